cimport cython

from weft.core.words cimport cut

cdef Py_ssize_t _SUBJECT
cdef int _REQUEST


@cython.final
cdef class Turns:
    cdef list _puts
    cdef Py_ssize_t _next

    @cython.locals(turns=Py_ssize_t, first=Py_ssize_t)
    cpdef object put(self, list frames)


@cython.final
cdef class Route:
    cdef readonly list messages
    cdef readonly list requests


@cython.final
cdef class Dispatch:
    cdef object _interests
    cdef object _statistics
    cdef readonly dict _routes

    cpdef object forget(self)

    @cython.locals(first=bytes, subject=bytes, route=Route)
    cpdef object deliver(self, list frames)

    @cython.locals(route=Route)
    cdef Route _find(self, bytes subject)

    cdef list _all_of(self, list found)

    cdef list _one_of(self, list found)

    cpdef object _unwanted(self, list frames)
