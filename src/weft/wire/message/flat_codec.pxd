cimport cython

from weft.wire.message.codec cimport checked_length, put_string
from weft.wire.byteops cimport (
    cut,
    f64_at,
    has_utf8,
    i32_at,
    i64_at,
    is_int64,
    is_same_text,
    is_text_at,
    put_bytes,
    put_f64,
    put_i32,
    put_i64,
    text_at,
    u32_at,
    u64_at,
)
from weft.wire.buffer cimport Writer

cdef int _STRING
cdef int _INT32
cdef int _UINT32
cdef int _INT64
cdef int _UINT64
cdef int _DOUBLE
cdef int _BOOL
cdef int _BLOB
cdef int _NULL
cdef int _TIMESTAMP
cdef Py_ssize_t _FIELDS_MAX


@cython.locals(start=Py_ssize_t)
cpdef bint put_flat(Writer writer, dict values) except -1

@cython.locals(end=Py_ssize_t, left=Py_ssize_t, at=Py_ssize_t)
cpdef bint is_flat(bytes data, Py_ssize_t start) except -1

@cython.locals(left=Py_ssize_t, at=Py_ssize_t, name_end=Py_ssize_t)
cpdef Py_ssize_t find_flat(bytes data, Py_ssize_t start, str name) except -2

@cython.locals(kind=int)
cpdef object raw_at(const unsigned char *data, Py_ssize_t at)

@cython.locals(
    left=Py_ssize_t, at=Py_ssize_t, name_end=Py_ssize_t, name=str, values=dict
)
cpdef dict dict_from_flat(bytes data, Py_ssize_t start)

@cython.locals(after=Py_ssize_t)
cpdef Py_ssize_t after_text(const unsigned char *data, Py_ssize_t at, Py_ssize_t end) noexcept

@cython.locals(length=Py_ssize_t)
cdef Py_ssize_t _after_blob(const unsigned char *data, Py_ssize_t at, Py_ssize_t end) noexcept

@cython.locals(kind=int, size=Py_ssize_t)
cpdef Py_ssize_t after_value(const unsigned char *data, Py_ssize_t at, Py_ssize_t end) noexcept

@cython.locals(kind=int)
cdef Py_ssize_t _skip(const unsigned char *data, Py_ssize_t at) noexcept

@cython.locals(length=Py_ssize_t, at=Py_ssize_t)
cdef bint _put_field(Writer writer, str name, object value) except -1

@cython.locals(at=Py_ssize_t)
cdef Py_ssize_t _put_name(Writer writer, str name, int kind, Py_ssize_t size) except -1
