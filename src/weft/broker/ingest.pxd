cimport cython

from weft.broker.replies cimport end_with
from weft.broker.control cimport control
from weft.wire.frames cimport Run
from weft.broker.publish cimport publish
from weft.broker.service cimport Peer, Service
from weft.wire.byteops cimport cut, put_bytes

cdef Py_ssize_t _FIRST_LARGE
cdef Py_ssize_t _READ
cdef Py_ssize_t _UNFINISHED
cdef int _MESSAGE


@cython.locals(service=Service, data=bytearray, start=Py_ssize_t, run=Run)
cpdef object feed(Peer peer, Py_ssize_t at, Py_ssize_t end)

@cython.locals(before=bytearray, length=Py_ssize_t)
cpdef bint took_large(Peer peer, Py_ssize_t count) except -1

cpdef object drop_large(Peer peer)

@cython.locals(length=Py_ssize_t)
cdef object _begin_large(Peer peer, Py_ssize_t at, Py_ssize_t end, Py_ssize_t need)

@cython.locals(service=Service)
cdef bint _set_large(Peer peer, Py_ssize_t size) except -1
