cimport cython

from weft.wire.message.from_python cimport (
    RawValue,
    add_value,
    fields_from_mapping,
    kind_of,
    raw_value,
)
from weft.wire.message.lazy_body cimport LazyBody
from weft.wire.message.types cimport Fields
from weft.wire.message.flat_codec cimport dict_from_flat, put_flat, raw_at
from weft.wire.frames cimport check_whole
from weft.wire.message.field_types cimport checked_text
from weft.wire.buffer cimport Spare, Writer

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
cdef int _TIMESTAMP
cdef tuple _NUMBERS
cdef object _MISSING
cdef Spare _spare


@cython.final
cdef class Field(RawValue):
    cdef readonly str name
    cdef int _kind
    cdef object _raw


@cython.final
cdef class Message(LazyBody):
    @cython.locals(fields=Fields, position=Py_ssize_t, flat=bytes)
    cpdef object get(self, str name, object default=*)

    @cython.locals(writer=Writer, is_put=bint)
    cdef bint _has_body_of(self, dict values) except -1

    @cython.locals(fields=Fields, position=Py_ssize_t, flat=bytes)
    cdef object _get(self, str name, int kind)

    cdef object _lacks(self, str name)


cpdef Message message_in(bytes frame)

cdef object _converted(str name, int found, int wanted, object value)

@cython.locals(message=Message)
cdef Message _made(bytes frame, bytes body, Fields fields)

cdef Message _wrapped(Fields fields)

@cython.locals(field=Field)
cdef Field _field(str name, int kind, object raw)

cdef object _python_value(int kind, object raw)

@cython.locals(i=Py_ssize_t)
cdef list _list_from_fields(Fields items)
