cimport cython
from libc.stdint cimport uint32_t, uint64_t

from weft.wire.byteops cimport u32_at


@cython.final
cdef class Load:
    cdef public uint32_t origin
    cdef public int flags
    cdef public bytes group
    cdef public int mark
    cdef public uint64_t number
    cdef public Py_ssize_t start
    cdef public Py_ssize_t end
    cdef public Py_ssize_t count

    @cython.locals(skipped=Py_ssize_t)
    cpdef Py_ssize_t skip(self, bytearray data, uint64_t until) except -1
