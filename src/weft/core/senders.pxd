cimport cython

from weft.core.words cimport same_bytes

cdef Py_ssize_t _IDENTITY
cdef Py_ssize_t _LENGTH


@cython.locals(frame=bytes)
cpdef bint all_from(list frames, bytes identity) except -1
