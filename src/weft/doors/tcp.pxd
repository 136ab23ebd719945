cimport cython

from weft.core.outbox cimport Outbox
from weft.core.service cimport Peer
from weft.doors.turn cimport Turn

cdef Py_ssize_t _READ
cdef int _READS
cdef Py_ssize_t _PIECE
cdef int _AGAIN


@cython.final
cdef class TcpDoor:
    cdef Turn _turn
    cdef object _loop
    cdef int _fd
    cdef bint _is_writing
    cdef Peer _peer

    @cython.locals(peer=Peer)
    cpdef Peer open(self, token)

    @cython.locals(count=Py_ssize_t)
    cpdef object readable(self)

    @cython.locals(outbox=Outbox, count=Py_ssize_t)
    cpdef object writable(self)

    cpdef object look(self)

    cpdef object fall_behind(self)

    cpdef object finish(self)

    cpdef object abort(self)
