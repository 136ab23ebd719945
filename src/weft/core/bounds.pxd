cimport cython
from libc.stdint cimport int64_t


@cython.final
cdef class Bounds:
    cdef readonly Py_ssize_t limit_bytes
    cdef readonly int64_t limit_age_ns
    cdef readonly Py_ssize_t keep_bytes
    cdef readonly Py_ssize_t drop_bytes
    cdef readonly Py_ssize_t piece_bytes
    cdef readonly list dropped
