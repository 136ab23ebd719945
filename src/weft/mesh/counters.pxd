cimport cython
from libc.stdint cimport uint64_t


@cython.final
cdef class TrafficCounts:
    cdef public uint64_t sent
    cdef public uint64_t received
    cdef public uint64_t passed_on
    cdef public uint64_t resent
    cdef public uint64_t held
    cdef public uint64_t shed
    cdef public uint64_t doubled
    cdef public uint64_t unserved
    cdef public uint64_t dropped
    cdef public uint64_t lost
    cdef public uint64_t gaps
    cdef readonly dict refused

    cpdef object refuse(self, str name, Py_ssize_t frames)
