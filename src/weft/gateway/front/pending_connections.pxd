cimport cython

cdef unsigned int _EVENTS
cdef unsigned int _GONE
cdef int _POLL_MAX


@cython.final
cdef class Visitor:
    cdef readonly int fd
    cdef readonly str peer
    cdef public double deadline
    cdef readonly bint is_encrypted
    cdef public int low_water
    cdef public bint speaks_http
    cdef public bint is_for_door
    cdef public bint is_ended


@cython.final
cdef class Lobby:
    cdef object _loop
    cdef object _look
    cdef object _late
    cdef dict _visitors
    cdef object _sweep
    cdef object _epoll

    cpdef object keep(self, Visitor visitor, int needed)

    cpdef object forget(self, Visitor visitor)

    cpdef list empty(self)

    cpdef object close(self)

    @cython.locals(descriptor=int, events="unsigned int")
    cpdef object _wake(self)

    cpdef object _sweep_out(self)


cdef object _set_low_water(Visitor visitor, int needed)
