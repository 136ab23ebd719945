cimport cython

from weft.broker.delivery.arena cimport Arena
from weft.broker.ingest cimport drop_large, feed, took_large
from weft.broker.journal.batcher cimport Journal
from weft.broker.delivery.outbox cimport Outbox
from weft.broker.service cimport Peer, Service
from weft.transports.loop.syscalls cimport receive, send

cdef Py_ssize_t _READ
cdef Py_ssize_t _ANSWERS
cdef Py_ssize_t _COPIES
cdef Py_ssize_t _NOT_NOW
cdef double _SLICE_S


@cython.final
cdef class Turn:
    cdef readonly Service service
    cdef object _call_soon
    cdef object _loop
    cdef object _slice
    cdef bytearray _ignored
    cdef readonly bint is_scheduled
    cdef readonly bint is_loop_needed
    cdef public object on_left

    @cython.locals(arena=Arena, start=Py_ssize_t, count=Py_ssize_t)
    cpdef Py_ssize_t read(self, Peer peer, int fd) except -3

    cpdef object hear(self, Peer peer, bytes frames)

    cpdef object begin(self)

    cpdef object later(self, act)

    cpdef object wake(self)

    cpdef object left(self)

    @cython.locals(
        service=Service,
        arena=Arena,
        waiting=list,
        position=Py_ssize_t,
        outbox=Outbox,
        is_broken=bint,
        peer=Peer,
        ended=list,
        over=Peer,
    )
    cpdef object flush(self)

    @cython.locals(service=Service)
    cdef object _review(self)

    cdef object _look_at_holds(self)

    cdef object _end_holds(self)

    @cython.locals(start=Py_ssize_t)
    cdef object _took_large(self, Peer peer, Py_ssize_t count)

    cdef bint _make_room(self, Peer peer, Py_ssize_t needed) except -1

    cdef object _deal(self, Peer peer, Py_ssize_t start)

    cdef object _tell_time(self)


@cython.locals(data=bytearray, start=Py_ssize_t, count=Py_ssize_t)
cdef bint _send(Outbox outbox, Service service) except -1
