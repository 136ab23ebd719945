cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from weft.wire.byteops cimport (
    cut,
    i64_at,
    put_bytes,
    put_i64,
    put_u32,
    put_u64,
    same_bytes,
    u32_at,
    u64_at,
)
from weft.wire.buffer cimport Writer

cdef Py_ssize_t _HEADER
cdef Py_ssize_t _ROOM_FIRST
cdef Py_ssize_t _ROOM_KEPT
cdef Py_ssize_t _NAME_MAX
cdef Py_ssize_t _SIZE_MAX


@cython.final
cdef class Stamp:
    cdef public uint32_t origin
    cdef public uint32_t publisher
    cdef public uint64_t sequence
    cdef public int64_t time_ns


@cython.final
cdef class Run:
    cdef readonly Py_ssize_t body_limit
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t end
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t need
    cdef readonly int kind
    cdef readonly int flags
    cdef readonly Py_ssize_t subject_length
    cdef readonly bint has_reply

    @cython.locals(size=Py_ssize_t, size_limit=Py_ssize_t, names=Py_ssize_t)
    cpdef bint read(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end) except -1

    @cython.locals(start=Py_ssize_t)
    cpdef bytes subject(self, const unsigned char *data)

    @cython.locals(at=Py_ssize_t)
    cpdef int stamp(self, unsigned char *data, Stamp stamp) except -1

    @cython.locals(size=Py_ssize_t, size_limit=Py_ssize_t, names=Py_ssize_t)
    cdef int _refuse(self, const unsigned char *data, Py_ssize_t at) except -1


@cython.final
cdef class Decoder:
    cdef Run _run
    cdef bytearray _buffer
    cdef Py_ssize_t _at
    cdef Py_ssize_t _end
    cdef Py_ssize_t _run_end

    @cython.locals(left=Py_ssize_t, need=Py_ssize_t, room=Py_ssize_t)
    cpdef object feed(self, data)

    @cython.locals(start=Py_ssize_t)
    cpdef bytes next_frame(self)

    @cython.locals(frames=list, data="const unsigned char *", at=Py_ssize_t, end=Py_ssize_t)
    cpdef list next_run(self)


@cython.locals(
    data="unsigned char *", start=Py_ssize_t, subject_length=Py_ssize_t, reply_length=Py_ssize_t
)
cpdef Py_ssize_t begin_frame(
    Writer writer, int kind, int flags, bytes subject, bytes reply
) except -1

@cython.locals(size=Py_ssize_t)
cpdef object end_frame(Writer writer, Py_ssize_t start)

cpdef int stamp_frame(unsigned char *data, Py_ssize_t at, Stamp stamp) except -1

@cython.locals(length=Py_ssize_t, data="const unsigned char *")
cpdef object check_whole(bytes frame)

@cython.locals(subject_end=Py_ssize_t, reply_end=Py_ssize_t)
cpdef object parse(bytes frame)
