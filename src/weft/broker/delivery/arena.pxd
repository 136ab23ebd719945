cimport cython

from weft.broker.delivery.chunk cimport FrameChunk
from weft.wire.byteops cimport cut, put_bytes, room_for

cdef Py_ssize_t _FIRST_SPANS


@cython.final
cdef class Arena:
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t fill
    cdef readonly bytearray data
    cdef readonly list waiting
    cdef public Py_ssize_t in_use
    cdef readonly int span_count
    cdef int _span_room
    cdef int[::1] starts
    cdef int[::1] lengths
    cdef int[::1] nexts
    cdef int[::1] policies
    cdef dict _cuts

    cpdef Py_ssize_t room(self) noexcept

    @cython.locals(length=Py_ssize_t, start=Py_ssize_t)
    cpdef Py_ssize_t put(self, source) except -2

    cpdef Py_ssize_t reserve(self, Py_ssize_t length) noexcept

    cpdef object took(self, Py_ssize_t count)

    @cython.locals(number=int)
    cpdef int add_span(self, int start, int length, int policy) except -1

    @cython.locals(kept=FrameChunk)
    cpdef FrameChunk shared_cut(self, Py_ssize_t start, Py_ssize_t length)

    cpdef object reset(self)

    @cython.locals(room=int)
    cdef int _grow(self) except -1


cdef object _ints(int count)

@cython.locals(longer="int[::1]", number=int)
cdef object _longer(int[::1] ints, int room)
