cimport cython

from weft.broker.delivery.arena cimport Arena
from weft.wire.message.codec cimport put_fields
from weft.wire.message.types cimport Fields
from weft.wire.frames cimport begin_frame, end_frame
from weft.wire.message.message cimport Message
from weft.broker.service cimport Peer, Service
from weft.wire.byteops cimport cut, put_bytes, put_u32, put_u64
from weft.wire.buffer cimport Writer

cdef Py_ssize_t _HEADER
cdef int _CUT
cdef int _MESSAGE
cdef int _OK
cdef int _ERROR
cdef int _ANSWER
cdef int _REQUEST


@cython.locals(service=Service, arena=Arena, length=Py_ssize_t, start=Py_ssize_t)
cpdef object acknowledge(Peer peer, Py_ssize_t at)

@cython.locals(data=bytearray, subject_end=Py_ssize_t, subject=bytes, reply=bytes, flags=int)
cpdef object refuse(Peer peer, Py_ssize_t at, error)

cpdef object end_with(Peer peer, error)

@cython.locals(service=Service, is_told=bint)
cpdef bint end_slow_reader(Peer peer) except -1

@cython.locals(kind=int, flags=int, fields=Fields, writer=Writer, start=Py_ssize_t)
cpdef bytes error_frame(Peer peer, bytes subject, bytes reply, tuple refused, error)

@cython.locals(writer=Writer, start=Py_ssize_t)
cpdef bytes told(Peer peer, int kind, bytes subject, bytes reply, Message message)

@cython.locals(length=Py_ssize_t, made=bytearray)
cpdef bytes ok_frame(bytearray data, Py_ssize_t at)

@cython.locals(length=Py_ssize_t, start=Py_ssize_t)
cpdef object put_ok(Writer writer, bytearray data, Py_ssize_t at)

cdef object _make_ok(bytearray data, Py_ssize_t at, Py_ssize_t length)
