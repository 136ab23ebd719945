cimport cython

from weft.wire.message.from_python cimport RawValue
from weft.wire.message.codec cimport decode_fields, encode_fields, put_fields
from weft.wire.message.types cimport Fields
from weft.wire.message.flat_codec cimport find_flat, is_flat
from weft.wire.byteops cimport cut, i64_at, text_at, u32_at, u64_at
from weft.wire.buffer cimport Writer

cdef int _MESSAGE
cdef int _BLOB
cdef int _BARE
cdef Py_ssize_t _HEADER


cdef class LazyBody(RawValue):
    cdef bytes _frame
    cdef bytes _body
    cdef Fields _fields
    cdef bytes _flat
    cdef Py_ssize_t _flat_start
    cdef bint _is_looked_at

    cpdef bytes encode(self)

    cpdef object put(self, Writer writer)

    cdef bytes _bare_body(self)

    @cython.locals(flat=bytes)
    cdef Py_ssize_t _find_flat(self, str name) except -3

    @cython.locals(source=bytes, start=Py_ssize_t)
    cdef bytes _look(self)

    @cython.locals(fields=Fields)
    cdef Fields _read(self)


cdef str _name_at(bytes frame, Py_ssize_t start, Py_ssize_t length)

cdef Py_ssize_t _body_start(bytes frame) except -1
