cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t


@cython.final
cdef class Incoming:
    cdef readonly uint32_t origin
    cdef public uint64_t expected
    cdef public uint64_t top
    cdef public bint is_last
    cdef public bint is_ack_due
    cdef public int64_t hole_ns
    cdef public int64_t asked_ns
    cdef readonly list missed
    cdef readonly int64_t missed_ns
    cdef readonly Py_ssize_t held_bytes
    cdef readonly dict _held
    cdef readonly list _order
