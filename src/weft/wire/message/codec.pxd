cimport cython

from weft.wire.message.types cimport Fields
from weft.wire.byteops cimport (
    cut,
    f64_at,
    i32_at,
    i64_at,
    put_bytes,
    put_f64,
    put_i32,
    put_i64,
    put_text,
    put_u32,
    put_u64,
    text_at,
    text_size,
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
cdef int _MESSAGE
cdef int _BOOL
cdef int _BLOB
cdef int _LIST
cdef int _NULL
cdef int _TIMESTAMP
cdef Py_ssize_t _FIELDS_MAX
cdef Py_ssize_t _DEPTH_MAX
cdef Py_ssize_t _VALUES_MAX
cdef Py_ssize_t _FIELD_MIN_BYTES
cdef Py_ssize_t _LENGTH_MAX


cpdef bytes encode_fields(Fields fields)

@cython.locals(count=Py_ssize_t, at=Py_ssize_t, position=Py_ssize_t, kind=int)
cpdef int put_fields(Writer writer, Fields fields) except -1

cpdef Fields decode_fields(bytes body, Py_ssize_t start=*)

cpdef Py_ssize_t checked_length(Py_ssize_t length) except -1


@cython.final
cdef class BodyReader:
    cdef bytes _body
    cdef const unsigned char *_data
    cdef Py_ssize_t _at
    cdef Py_ssize_t _end
    cdef Py_ssize_t _total

    @cython.locals(
        here=Fields, child=Fields, left=Py_ssize_t, kind=int, parents=list, parents_left=list
    )
    cpdef Fields read(self)

    @cython.locals(at=Py_ssize_t)
    cdef Py_ssize_t _need(self, Py_ssize_t length) except -1

    @cython.locals(at=Py_ssize_t, count=Py_ssize_t, left=Py_ssize_t)
    cdef Py_ssize_t _read_count(self, bint is_list) except -1

    @cython.locals(at=Py_ssize_t)
    cdef int _read_byte(self) except -1

    @cython.locals(at=Py_ssize_t, length=Py_ssize_t)
    cdef Py_ssize_t _read_length(self) except -1

    @cython.locals(at=Py_ssize_t, length=Py_ssize_t)
    cdef str _read_text(self)

    cdef object _read_value(self, int kind)

    @cython.locals(at=Py_ssize_t, length=Py_ssize_t, byte=int)
    cdef object _read_rare_value(self, int kind)


@cython.locals(at=Py_ssize_t, length=Py_ssize_t)
cpdef Py_ssize_t put_string(Writer writer, str text, Py_ssize_t more) except -1

@cython.locals(at=Py_ssize_t)
cdef int _put_value(Writer writer, int kind, object raw) except -1

@cython.locals(at=Py_ssize_t, length=Py_ssize_t)
cdef int _put_rare_value(Writer writer, int kind, object raw) except -1
