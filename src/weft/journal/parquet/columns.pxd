cimport cython
from libc.stdint cimport int64_t

from weft.wire.subjects cimport matches
from weft.wire.byteops cimport cut, i64_at, put_bytes, put_i32, put_i64, same_bytes, u32_at
from weft.wire.buffer cimport Writer

cdef Py_ssize_t _HEADER


@cython.final
cdef class Texts:
    cdef readonly Writer offsets
    cdef readonly Writer data

    @cython.locals(at=Py_ssize_t)
    cdef int add(self, bytes source, Py_ssize_t start, Py_ssize_t length) except -1

    @cython.locals(at=Py_ssize_t)
    cdef int _end(self) except -1


@cython.final
cdef class IntegerColumn:
    cdef readonly Writer data

    @cython.locals(at=Py_ssize_t)
    cdef int add(self, int64_t value) except -1


@cython.final
cdef class Columns:
    cdef readonly Py_ssize_t rows
    cdef readonly Texts subject
    cdef readonly Texts reply
    cdef readonly Texts payload
    cdef readonly IntegerColumn flags
    cdef readonly IntegerColumn origin
    cdef readonly IntegerColumn publisher
    cdef readonly IntegerColumn sequence
    cdef readonly IntegerColumn time_ns
    cdef readonly IntegerColumn position
    cdef tuple _patterns
    cdef bint _takes_all
    cdef bytes _subject
    cdef bint _is_wanted

    @cython.locals(
        at=Py_ssize_t,
        end=Py_ssize_t,
        number=Py_ssize_t,
        length=Py_ssize_t,
        names=Py_ssize_t,
    )
    cpdef object add(self, bytes frames, int64_t first, Py_ssize_t count)

    @cython.locals(subject=Py_ssize_t, reply=Py_ssize_t, names=Py_ssize_t)
    cdef int _add_row(
        self, bytes frames, Py_ssize_t at, Py_ssize_t length, int64_t position
    ) except -1

    cdef bint _wants(self, bytes frames, Py_ssize_t start, Py_ssize_t length) except -1
