cimport cython
from libc.stdint cimport uint32_t

from weft.wire.byteops cimport cut, u32_at

cdef int _MORE
cdef int _GREETING
cdef int _LINK
cdef Py_ssize_t _FIRST
cdef Py_ssize_t _HEADER
cdef int _CONNECT
cdef int _LINK_KIND
cdef uint32_t _TLS_HANDSHAKE
cdef Classification _IS_REQUEST
cdef Classification _IS_HANDSHAKE


@cython.final
cdef class Classification:
    cdef readonly int want
    cdef readonly Py_ssize_t needed
    cdef readonly str service


@cython.locals(size=uint32_t, service=str)
cpdef Classification look(bytearray data, Py_ssize_t length, Py_ssize_t limit_bytes)

cdef Classification _request(bytearray data, Py_ssize_t length, Py_ssize_t limit_bytes)

@cython.locals(names=int, name=bytes)
cdef str _service_in(bytearray data, Py_ssize_t size)
