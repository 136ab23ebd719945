cimport cython

from weft.wire.message.types cimport Fields
from weft.wire.message.field_types cimport checked_text, default_kind, raw_scalar

cdef int _MESSAGE
cdef int _LIST
cdef Py_ssize_t _DEPTH_MAX
cdef Py_ssize_t _VALUES_MAX


cdef class RawValue:
    cpdef int raw_kind(self) except -1

    cpdef str raw_name(self)

    cpdef object raw_form(self)


cpdef int kind_of(object value) except -1

cpdef object raw_value(int kind, object value, Py_ssize_t depth)

@cython.locals(kind=int)
cpdef int add_value(Fields fields, object name, object value, Py_ssize_t depth) except -1

cpdef Fields fields_from_mapping(object values, Py_ssize_t depth)

cpdef Fields fields_from_items(object values, Py_ssize_t depth)

cdef object _raw_value(int kind, object value, Py_ssize_t depth)

cdef int _refuse_too_deep(Py_ssize_t depth) except -1

cdef int _refuse_too_many(Py_ssize_t count) except -1
