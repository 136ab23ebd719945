cimport cython
from libc.stdint cimport uint64_t

cdef bytes _DIGITS
cdef bytes _VALUES
cdef int _NO_DIGIT
cdef uint64_t _WORD_MAX

@cython.locals(
    missing=Py_ssize_t, padded=bytearray, groups=Py_ssize_t, group=Py_ssize_t, at=Py_ssize_t,
    to=Py_ssize_t, place=Py_ssize_t, word=uint64_t, made=bytearray
)
cpdef bytes encode(bytes data)

@cython.locals(
    missing=Py_ssize_t, padded=bytearray, groups=Py_ssize_t, group=Py_ssize_t, at=Py_ssize_t,
    to=Py_ssize_t, place=Py_ssize_t, word=uint64_t, made=bytearray, digit=int
)
cpdef bytes decode(bytes text)
