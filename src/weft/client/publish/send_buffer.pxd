cimport cython

from weft.client.publish.gil_lock cimport enter, leave
from weft.wire.byteops cimport put_bytes, put_u32, u32_at
from weft.wire.buffer cimport Spare, Writer

cdef int _BARE
cdef Py_ssize_t _CHUNK
cdef Spare _spare


cdef class SendBuffer:
    cdef public Py_ssize_t body_limit_bytes
    cdef readonly Py_ssize_t dropped
    cdef public object on_ask
    cdef public Py_ssize_t queued
    cdef Py_ssize_t _limit
    cdef str _when_full
    cdef object _wake
    cdef object _on_drop
    cdef object _lock
    cdef object _room
    cdef Writer _writer
    cdef object _chunks
    cdef Py_ssize_t _held
    cdef Py_ssize_t _in_flight
    cdef Py_ssize_t _passed
    cdef object _pending
    cdef Py_ssize_t _waiting
    cdef bint _is_awake
    cdef bint _is_dropping
    cdef str _refusal

    @cython.locals(is_first=bint)
    cpdef bint offer(self, bytes frame) except -1

    @cython.locals(length=Py_ssize_t, must_wake=bint)
    cpdef bint put(self, bytes frame) except -1

    @cython.locals(
        start=Py_ssize_t, length=Py_ssize_t, at=Py_ssize_t, data="unsigned char *", must_wake=bint
    )
    cpdef bint put_bare(self, bytes opening, int flags, bytes body) except -1

    @cython.locals(writer=Writer, size=Py_ssize_t, due=list)
    cpdef Py_ssize_t pass_on(self, object write) except -1

    cpdef object sent(self)

    cdef int _renew_lock(self) except -1

    cdef int _refuse_too_long(self, Py_ssize_t length, Py_ssize_t body_length) except -1

    cdef list _sift(self, bytes inbox)

    @cython.locals(must_wake=bint)
    cdef bint _put_pending(self, object pending) except -1

    cdef list _taken_pending(self)

    cdef bint _admits(self, Py_ssize_t length) except -1

    @cython.locals(was_awake=bint)
    cdef bint _count(self, Py_ssize_t length) except -1

    cdef int _end_chunk(self) except -1
