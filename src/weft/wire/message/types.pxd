cimport cython

cdef Py_ssize_t _FIELDS_MAX
cdef Py_ssize_t _DEPTH_MAX
cdef Py_ssize_t _VALUES_MAX
cdef Py_ssize_t _INDEXED_FROM


@cython.final
cdef class Fields:
    cdef readonly bint is_list
    cdef readonly list names
    cdef readonly bytearray kinds
    cdef readonly list values
    cdef readonly Py_ssize_t depth
    cdef readonly Py_ssize_t total
    cdef dict _index

    cpdef object add(self, str name, int kind, object raw)

    cpdef object adopt(self, Fields child)

    @cython.locals(position=Py_ssize_t)
    cpdef Py_ssize_t find(self, str name) except -2

    @cython.locals(position=Py_ssize_t, index=dict)
    cdef Py_ssize_t _find_indexed(self, str name) except -2
