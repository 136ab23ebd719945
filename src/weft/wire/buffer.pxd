cimport cython

from weft.wire.byteops cimport cut, put_bytes

cdef Py_ssize_t _FIRST_ROOM
cdef Py_ssize_t _KEPT_MAX
cdef Py_ssize_t _SPARES


@cython.final
cdef class Writer:
    cdef readonly bytearray data
    cdef readonly Py_ssize_t size

    @cython.locals(start=Py_ssize_t, room=Py_ssize_t)
    cpdef Py_ssize_t reserve(self, Py_ssize_t length) except -1

    cpdef object put(self, source)

    cpdef object cut_back(self, Py_ssize_t size)

    cpdef bytes take(self)


@cython.final
cdef class Spare:
    cdef list _kept
    cdef Py_ssize_t _at_most

    cpdef Writer take(self)

    cpdef object give(self, Writer writer)
