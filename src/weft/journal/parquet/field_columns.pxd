cimport cython
from libc.stdint cimport int64_t

from weft.wire.message.flat_codec cimport after_text, after_value
from weft.wire.byteops cimport (
    f64_at,
    i32_at,
    i64_at,
    put_bytes,
    put_f64,
    put_i32,
    put_i64,
    same_bytes,
    u32_at,
)
from weft.wire.buffer cimport Writer

cdef int _STRING
cdef int _INT32
cdef int _UINT32
cdef int _INT64
cdef int _UINT64
cdef int _DOUBLE
cdef int _MESSAGE
cdef int _BOOL
cdef int _BLOB
cdef int _LIST
cdef int _NULL
cdef int _TIMESTAMP
cdef int _BARE
cdef Py_ssize_t _FIELDS_MAX
cdef Py_ssize_t _DEPTH_MAX
cdef Py_ssize_t _VALUES_MAX
cdef Py_ssize_t _FIELD_MIN_BYTES
cdef int _AS_INTEGER
cdef int _AS_DOUBLE
cdef int _AS_BOOL
cdef int _AS_TEXT
cdef int _AS_BINARY
cdef int _AS_MOMENT


@cython.final
cdef class FieldColumn:
    cdef readonly bytes name
    cdef readonly bytearray values
    cdef readonly bytearray validity
    cdef readonly Writer texts
    cdef readonly Py_ssize_t nulls
    cdef readonly bint is_odd
    cdef Py_ssize_t _name_bytes
    cdef Py_ssize_t _rows
    cdef int _form
    cdef int64_t _bound

    cdef bint is_named(
        self, const unsigned char *data, Py_ssize_t start, Py_ssize_t length
    ) noexcept

    cdef bint wants(self, Py_ssize_t row) noexcept

    @cython.locals(bits=Py_ssize_t)
    cdef int clear(self, Py_ssize_t rows) except -1

    @cython.locals(row=Py_ssize_t)
    cdef int add(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end) except -1

    cdef int add_null(self) except -1

    @cython.locals(kind=int)
    cdef bint _put(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end) except -1

    @cython.locals(at=Py_ssize_t)
    cdef int _put_text(
        self, const unsigned char *data, Py_ssize_t start, Py_ssize_t end
    ) except -1

    @cython.locals(kind=int, whole=int64_t)
    cdef bint _put_number(
        self, const unsigned char *data, Py_ssize_t at, Py_ssize_t word
    ) except -1


@cython.final
cdef class FieldReader:
    cdef readonly list columns
    cdef Py_ssize_t _total

    @cython.locals(
        column=FieldColumn,
        row=Py_ssize_t,
        first=Py_ssize_t,
        start=Py_ssize_t,
        end=Py_ssize_t,
        size=Py_ssize_t,
    )
    cpdef Py_ssize_t read(
        self, bytes offsets, bytes data, bytes flags, Py_ssize_t rows
    ) except -2

    @cython.locals(left=Py_ssize_t, name=Py_ssize_t, kind=Py_ssize_t, column=FieldColumn)
    cdef bint _read_body(
        self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t row
    ) except -1

    @cython.locals(after=Py_ssize_t, kind=int)
    cdef Py_ssize_t _after(
        self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t depth
    ) noexcept

    @cython.locals(left=Py_ssize_t)
    cdef Py_ssize_t _after_nested(
        self,
        const unsigned char *data,
        Py_ssize_t at,
        Py_ssize_t end,
        Py_ssize_t depth,
        bint is_list,
    ) noexcept

    @cython.locals(count=Py_ssize_t, left=Py_ssize_t)
    cdef Py_ssize_t _count(
        self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end, bint is_list
    ) noexcept
