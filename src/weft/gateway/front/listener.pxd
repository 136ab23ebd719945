cimport cython

from weft.transports.loop.syscalls cimport accept

cdef int _ACCEPT_MAX


@cython.final
cdef class PortListener:
    cdef object _loop
    cdef object _take
    cdef object _socket
    cdef bint _is_ipv6
    cdef object _resume
    cdef double _paused_at
    cdef readonly Py_ssize_t accepted
    cdef readonly Py_ssize_t pauses
    cdef readonly bint is_open
    cdef readonly object address

    cpdef object close(self)

    @cython.locals(taken=list, listening=int, fd=int, port=int)
    cpdef bint _accept(self) except -1

    cdef object _pause(self, error)

    cdef object _rest(self, double seconds)

    cpdef object _start_again(self)
