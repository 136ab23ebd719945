cimport cython

from weft.broker.replies cimport end_slow_reader
from weft.broker.journal.batcher cimport Journal
from weft.broker.delivery.outbox cimport Outbox
from weft.broker.service cimport Peer
from weft.transports.loop.poller cimport Poll
from weft.transports.loop.turn cimport Turn

cdef Py_ssize_t _READ
cdef int _READS
cdef Py_ssize_t _PIECE
cdef int _AGAIN
cdef int _READING
cdef int _WRITING


@cython.final
cdef class TcpDoor:
    cdef Turn _turn
    cdef Poll _poll
    cdef int _fd
    cdef int _watched
    cdef Peer _peer

    @cython.locals(peer=Peer)
    cpdef Peer open(self, token)

    cpdef object happened(self, int events)

    @cython.locals(peer=Peer, is_told=bint)
    cpdef object fall_behind(self)

    cpdef object press(self)

    cpdef object finish(self)

    cpdef object give_up(self, error)

    cpdef object abort(self)

    @cython.locals(count=Py_ssize_t)
    cdef object _read(self)

    cpdef object resume(self)

    @cython.locals(journal=Journal)
    cdef object _rest(self)

    cdef bint _is_held(self) except -1

    @cython.locals(outbox=Outbox, count=Py_ssize_t)
    cdef object _write(self)

    cdef object _say_last(self)

    cdef object _watch(self, int events)
