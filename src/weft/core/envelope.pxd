from weft.core.build cimport RawValue
from weft.core.words cimport i64_at, text_at, u32_at, u64_at

cdef Py_ssize_t _HEADER


cdef class Envelope(RawValue):
    cdef bytes _frame


cdef str _name_at(bytes frame, Py_ssize_t start, Py_ssize_t length)
