cimport cython
from libc.stdint cimport int64_t

from weft.wire.byteops cimport u32_at

cdef Py_ssize_t _KEPT_COST


@cython.final
cdef class FrameChunk:
    cdef readonly bytes frames
    cdef public Py_ssize_t holders


@cython.final
cdef class BacklogEntry:
    cdef readonly FrameChunk piece
    cdef readonly Py_ssize_t cost
    cdef readonly int policy
    cdef readonly int64_t time_ns
    cdef readonly bytes subject
    cdef public object losses


@cython.locals(last=Py_ssize_t)
cpdef Py_ssize_t piece_end(
    bytearray data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t most
) except -1
