cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from weft.wire.byteops cimport cut, put_bytes, put_u32, u32_at, u64_at
from weft.wire.buffer cimport Writer

cdef Py_ssize_t _CHUNK
cdef Py_ssize_t _ENTRY
cdef Py_ssize_t _COUNT
cdef Py_ssize_t _HOPS
cdef Py_ssize_t _HEADER


@cython.final
cdef class Chunk:
    cdef Writer writer
    cdef int64_t time_ns


@cython.final
cdef class RetransmitBuffer:
    cdef Py_ssize_t _limit
    cdef object _chunks
    cdef Chunk _spare
    cdef Chunk _last
    cdef Py_ssize_t _bytes
    cdef Py_ssize_t _record

    @cython.locals(chunk=Chunk)
    cpdef object begin(self, int64_t now_ns)

    cpdef object add(self, bytearray header)

    @cython.locals(chunk=Chunk, writer=Writer, headers=Py_ssize_t, at=Py_ssize_t)
    cpdef object finish(self, bytearray data, Py_ssize_t start, Py_ssize_t end)

    @cython.locals(oldest=Chunk)
    cpdef object expire(self, int64_t now_ns)

    @cython.locals(search=Search, chunk=Chunk, data=bytearray, size=Py_ssize_t, at=Py_ssize_t)
    cpdef list find(self, uint32_t number, uint64_t first, uint64_t last)

    @cython.locals(chunk=Chunk)
    cdef object _drop(self)


@cython.final
cdef class Search:
    cdef readonly list found
    cdef uint32_t _number
    cdef uint64_t _first
    cdef uint64_t _last

    @cython.locals(
        headers_end=Py_ssize_t, header=Py_ssize_t, header_end=Py_ssize_t, entry=Py_ssize_t
    )
    cdef object look(self, bytearray data, Py_ssize_t at)

    @cython.locals(
        start=Py_ssize_t,
        left=Py_ssize_t,
        end=Py_ssize_t,
        count=Py_ssize_t,
        group=bytes,
        frames=bytes,
        number=uint64_t,
        mark=int,
    )
    cdef object _take(self, bytearray data, Py_ssize_t at, Py_ssize_t header, Py_ssize_t entry)
