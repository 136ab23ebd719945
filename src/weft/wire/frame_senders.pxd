cimport cython

from weft.wire.byteops cimport cut, same_bytes

cdef Py_ssize_t _IDENTITY
cdef Py_ssize_t _LENGTH
cdef Py_ssize_t _HEADER


@cython.locals(frame=bytes)
cpdef bint all_from(list frames, bytes identity) except -1

@cython.locals(found=list, frame=bytes, start=Py_ssize_t, length=Py_ssize_t)
cpdef list replies_in(list frames)
