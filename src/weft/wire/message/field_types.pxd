cimport cython

from weft.wire.byteops cimport has_utf8, is_int64

cdef int _STRING
cdef int _INT64
cdef int _DOUBLE
cdef int _BOOL
cdef int _BLOB
cdef int _NULL
cdef int _TIMESTAMP


cpdef int default_kind(object value) except -1

cpdef object raw_scalar(int kind, object value)

@cython.locals(text=str)
cpdef str checked_text(object value)
