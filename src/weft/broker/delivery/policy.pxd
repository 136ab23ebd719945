cimport cython
from libc.stdint cimport int64_t

from weft.broker.delivery.memory_budget cimport Budget


@cython.final
cdef class Bounds:
    cdef readonly Py_ssize_t limit_bytes
    cdef readonly int64_t limit_age_ns
    cdef readonly Py_ssize_t keep_bytes
    cdef readonly Py_ssize_t drop_bytes
    cdef readonly Py_ssize_t piece_bytes
    cdef readonly Py_ssize_t holes_max
    cdef readonly Py_ssize_t pace_bytes
    cdef readonly Py_ssize_t high_bytes
    cdef readonly Py_ssize_t low_bytes
    cdef readonly Budget budget
    cdef readonly list dropped

    @cython.locals(budget=Budget)
    cpdef str described(self)
