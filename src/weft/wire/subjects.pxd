cimport cython

cdef int _DOT
cdef int _STAR
cdef int _TAIL
cdef int _SLASH
cdef int _UNDERSCORE
cdef int _DELETE
cdef Py_ssize_t _SUBJECT_MAX_BYTES
cdef Py_ssize_t _ELEMENT_MAX_BYTES
cdef Py_ssize_t _ELEMENTS_MAX


@cython.locals(
    data="const unsigned char *", end=Py_ssize_t, start=Py_ssize_t, at=Py_ssize_t, count=Py_ssize_t
)
cpdef bint is_pattern(bytes name) except -1

cpdef bint is_literal(bytes pattern) except -1

cpdef bint is_subject(bytes name) except -1

cpdef bint is_reserved(bytes name) except -1

cpdef bint stays_here(bytes name) except -1

cpdef bint matches(bytes pattern, bytes subject) except -1

@cython.locals(
    left="const unsigned char *",
    right="const unsigned char *",
    left_end=Py_ssize_t,
    right_end=Py_ssize_t,
    i=Py_ssize_t,
    j=Py_ssize_t,
)
cpdef bint covers(bytes wide, bytes narrow) except -1

@cython.locals(
    left="const unsigned char *",
    right="const unsigned char *",
    left_end=Py_ssize_t,
    right_end=Py_ssize_t,
    after_left=Py_ssize_t,
    after_right=Py_ssize_t,
    i=Py_ssize_t,
    j=Py_ssize_t,
)
cpdef bint overlaps(bytes one, bytes other) except -1

cpdef list elements(bytes name)

cdef Py_ssize_t _element_end(const unsigned char *data, Py_ssize_t at, Py_ssize_t end) noexcept

@cython.locals(at=Py_ssize_t, byte=int)
cdef bint _is_element(const unsigned char *data, Py_ssize_t start, Py_ssize_t end) noexcept

cdef bint _is_wild_against_reserved(bytes one, bytes other) except -1

cdef bint _is_utf8(bytes name) except -1
