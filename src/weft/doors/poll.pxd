cimport cython

from weft.doors.turn cimport Turn

cdef int _BATCH_MAX


@cython.final
cdef class Poll:
    cdef Turn _turn
    cdef object _loop
    cdef dict _doors
    cdef object _epoll

    cpdef object watch(self, int fd, door, int events)

    cpdef object close(self)

    @cython.locals(fd=int, events=int)
    cpdef object _wake(self)
