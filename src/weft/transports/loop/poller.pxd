cimport cython
from libc.stdint cimport int64_t

from weft.broker.service cimport Service
from weft.transports.loop.turn cimport Turn

cdef int _BATCH_MAX
cdef int64_t _STAY_NS
cdef int64_t _LOOK_NS
cdef int64_t _LOOK_ASKED_NS
cdef int _LEFT_OUT_MAX
cdef int64_t _LIVELY_NS


@cython.final
cdef class Poll:
    cdef Turn _turn
    cdef object _loop
    cdef dict _doors
    cdef public bint looks
    cdef bint _stays
    cdef int _guest
    cdef Py_ssize_t _asked
    cdef int64_t _asked_ns
    cdef int _left_out
    cdef int _failure
    cdef object _epoll

    cpdef object watch(self, int fd, door, int events)

    cpdef object close(self)

    @cython.locals(is_called_for=bint, ends_ns=int64_t)
    cpdef object _wake(self)

    @cython.locals(began_ns=int64_t, ends_ns=int64_t, is_lively=bint, ready=list)
    cdef list _look(self)

    @cython.locals(fd=int, events=int, is_called_for=bint, service=Service)
    cdef bint _make_turn(self, list ready) except -1
