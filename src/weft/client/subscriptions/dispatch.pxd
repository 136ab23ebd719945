cimport cython
from libc.stdint cimport uint32_t, uint64_t

from weft.wire.byteops cimport cut, u32_at, u64_at

cdef Py_ssize_t _SUBJECT
cdef int _REQUEST
cdef Py_ssize_t _ORIGIN
cdef Py_ssize_t _SEQUENCE
cdef uint64_t _DIRECT


@cython.final
cdef class Turns:
    cdef list _puts
    cdef Py_ssize_t _next

    @cython.locals(turns=Py_ssize_t, first=Py_ssize_t)
    cpdef object put(self, list frames)


@cython.final
cdef class SubjectRoute:
    cdef readonly list messages
    cdef readonly list requests
    cdef readonly bint is_shared


@cython.final
cdef class Dispatch:
    cdef object _interests
    cdef object _statistics
    cdef readonly dict _routes
    cdef readonly object requests
    cdef dict _received
    cdef dict _before
    cdef uint32_t _origin
    cdef uint64_t _last
    cdef uint64_t _floor

    cpdef object resume(self)

    cpdef object forget(self)

    @cython.locals(first=bytes, subject=bytes, route=SubjectRoute)
    cpdef object deliver(self, list frames)

    @cython.locals(count=Py_ssize_t, frame=bytes, sequence=uint64_t, origin=uint32_t)
    cdef list _unreceived(self, list frames)

    @cython.locals(received=dict)
    cdef object _turn_to(self, uint32_t origin)

    cdef bint _is_repeated(self, bytes frame) except -1

    @cython.locals(route=SubjectRoute)
    cdef SubjectRoute _find(self, bytes subject)

    cdef list _all_of(self, list found)

    cdef list _one_of(self, list found)

    cpdef object _unwanted(self, list frames)
