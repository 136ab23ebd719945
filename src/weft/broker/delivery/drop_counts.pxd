cimport cython
from libc.stdint cimport uint32_t

from weft.wire.message.codec cimport put_fields
from weft.wire.message.types cimport Fields
from weft.wire.frames cimport begin_frame, end_frame
from weft.wire.byteops cimport put_u32, u32_at
from weft.wire.buffer cimport Writer

cdef int _MESSAGE
cdef Py_ssize_t _ORIGINS_MAX


@cython.final
cdef class Losses:
    cdef readonly Py_ssize_t total
    cdef Py_ssize_t _origins_max
    cdef dict _counts
    cdef list _totals

    @cython.locals(
        data="const unsigned char *",
        at=Py_ssize_t,
        end=Py_ssize_t,
        origin=uint32_t,
        count=Py_ssize_t,
        before=Py_ssize_t,
    )
    cpdef Py_ssize_t count(self, bytes frames, int reason) except -1

    cpdef object add(self, object origin, int reason, object count)

    cpdef bytes take(self)


@cython.locals(fields=Fields, start=Py_ssize_t)
cpdef object put_gap(Writer writer, object origin, str reason, object count)
