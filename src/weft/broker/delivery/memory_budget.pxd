cimport cython

from weft.broker.delivery.chunk cimport FrameChunk

cdef Py_ssize_t _FLOOR


@cython.final
cdef class Budget:
    cdef public Py_ssize_t limit_bytes
    cdef readonly Py_ssize_t used_bytes
    cdef public Py_ssize_t crowded
    cdef public bint is_eased
    cdef Budget _service

    cpdef Py_ssize_t allowance(self) except -1

    cpdef object ease(self)

    cpdef object charge(self, Py_ssize_t count)

    cpdef object hold(self, FrameChunk piece)

    cpdef object release(self, FrameChunk piece)
