# C bodies of byteops.py for modules that cimport them; byteops.py states the contracts.
from cpython.bytearray cimport PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_Clear
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    const char *utf8_or_null "PyUnicode_AsUTF8AndSize"(object text, Py_ssize_t *size)
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    void *PyUnicode_DATA(object text)


# Most texts are ASCII: their bytes can be used in place.
cdef inline const char *ascii_or_null(str text, Py_ssize_t *size) noexcept:
    if not PyUnicode_IS_COMPACT_ASCII(text):
        return NULL
    size[0] = PyUnicode_GET_LENGTH(text)
    return <const char *> PyUnicode_DATA(text)


cdef inline const char *utf8_of(str text, Py_ssize_t *size) except NULL:
    cdef const char *encoded = ascii_or_null(text, size)
    return encoded if encoded != NULL else PyUnicode_AsUTF8AndSize(text, size)


cpdef inline bytearray room_for(Py_ssize_t size):
    return PyByteArray_FromStringAndSize(NULL, size)


cpdef inline uint32_t u32_at(const unsigned char *data, Py_ssize_t at) noexcept:
    cdef uint32_t value
    memcpy(&value, data + at, 4)
    return value


cpdef inline int32_t i32_at(const unsigned char *data, Py_ssize_t at) noexcept:
    cdef int32_t value
    memcpy(&value, data + at, 4)
    return value


cpdef inline uint64_t u64_at(const unsigned char *data, Py_ssize_t at) noexcept:
    cdef uint64_t value
    memcpy(&value, data + at, 8)
    return value


cpdef inline int64_t i64_at(const unsigned char *data, Py_ssize_t at) noexcept:
    cdef int64_t value
    memcpy(&value, data + at, 8)
    return value


cpdef inline double f64_at(const unsigned char *data, Py_ssize_t at) noexcept:
    cdef double value
    memcpy(&value, data + at, 8)
    return value


cpdef inline void put_u32(unsigned char *data, Py_ssize_t at, uint32_t value) noexcept:
    memcpy(data + at, &value, 4)


cpdef inline void put_i32(unsigned char *data, Py_ssize_t at, int32_t value) noexcept:
    memcpy(data + at, &value, 4)


cpdef inline void put_u64(unsigned char *data, Py_ssize_t at, uint64_t value) noexcept:
    memcpy(data + at, &value, 8)


cpdef inline void put_i64(unsigned char *data, Py_ssize_t at, int64_t value) noexcept:
    memcpy(data + at, &value, 8)


cpdef inline void put_f64(unsigned char *data, Py_ssize_t at, double value) noexcept:
    memcpy(data + at, &value, 8)


cpdef inline void put_bytes(
    unsigned char *data,
    Py_ssize_t at,
    const unsigned char *source,
    Py_ssize_t start,
    Py_ssize_t length,
) noexcept:
    memcpy(data + at, source + start, length)


cpdef inline bint same_bytes(
    const unsigned char *left,
    Py_ssize_t at,
    const unsigned char *right,
    Py_ssize_t start,
    Py_ssize_t length,
) noexcept:
    return memcmp(left + at, right + start, length) == 0


cpdef inline bytes cut(const unsigned char *data, Py_ssize_t start, Py_ssize_t end):
    return PyBytes_FromStringAndSize(<const char *> data + start, end - start)


cpdef inline str text_at(const unsigned char *data, Py_ssize_t start, Py_ssize_t end):
    return PyUnicode_DecodeUTF8(<char *> data + start, end - start, NULL)


cpdef inline bint is_text_at(const unsigned char *data, Py_ssize_t start, Py_ssize_t end) noexcept:
    cdef Py_ssize_t at = start
    while at + 8 <= end and u64_at(data, at) & 0x8080808080808080u == 0:
        at += 8
    while at < end and data[at] < 0x80:
        at += 1
    return at == end or is_utf8(data, at, end)


cdef inline bint is_utf8(const unsigned char *data, Py_ssize_t start, Py_ssize_t end) noexcept:
    try:
        PyUnicode_DecodeUTF8(<char *> data + start, end - start, NULL)
    except UnicodeDecodeError:
        return False
    return True


cpdef inline bint is_same_text(
    const unsigned char *data, Py_ssize_t start, Py_ssize_t end, str text
) noexcept:
    cdef Py_ssize_t size
    cdef const char *encoded = ascii_or_null(text, &size)
    if encoded == NULL:
        encoded = utf8_or_null(text, &size)
    if encoded == NULL:
        PyErr_Clear()
        return False
    return size == end - start and memcmp(data + start, encoded, size) == 0


cpdef inline bint is_int64(object value) except -1:
    cdef int overflow
    PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0


cpdef inline bint has_utf8(str text) noexcept:
    cdef Py_ssize_t size
    if ascii_or_null(text, &size) == NULL and utf8_or_null(text, &size) == NULL:
        PyErr_Clear()
        return False
    return True


cpdef inline Py_ssize_t text_size(str text) except -1:
    cdef Py_ssize_t size
    utf8_of(text, &size)
    return size


cpdef inline int put_text(unsigned char *data, Py_ssize_t at, str text) except -1:
    cdef Py_ssize_t size
    cdef const char *encoded = utf8_of(text, &size)
    memcpy(data + at, encoded, size)
    return 0


cpdef inline double exponential(double power) noexcept:
    return exp(power)
