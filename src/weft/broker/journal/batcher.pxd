cimport cython
from libc.stdint cimport int64_t

from weft.broker.delivery.arena cimport Arena
from weft.broker.delivery.outbox cimport Outbox
from weft.wire.subjects cimport is_pattern, matches
from weft.wire.byteops cimport i64_at, put_bytes, u32_at
from weft.wire.buffer cimport Writer

cdef Py_ssize_t _HEADER
cdef Py_ssize_t _BLOCK
cdef Py_ssize_t _HELD_MAX
cdef int _ARRIVED
cdef Py_ssize_t _TIME


@cython.final
cdef class JournalBatch:
    cdef readonly Writer writer
    cdef readonly list blocks
    cdef public bint is_awaited
    cdef public Py_ssize_t lead
    cdef public int64_t latest_ns

    cpdef object clear(self)


@cython.final
cdef class PendingAcks:
    cdef public int64_t position
    cdef public object peer
    cdef public Writer oks


@cython.final
cdef class Journal:
    cdef readonly list patterns
    cdef readonly int64_t position
    cdef readonly int64_t safe
    cdef readonly int64_t missed
    cdef public bint is_of_mesh
    cdef readonly bint is_failing
    cdef readonly str problem
    cdef Outbox _outbox
    cdef object _write
    cdef JournalBatch _batch
    cdef JournalBatch _spare
    cdef Py_ssize_t _block
    cdef int64_t _first
    cdef int64_t _kept
    cdef int64_t _latest_ns
    cdef object _asked
    cdef PendingAcks _last
    cdef list _held

    @cython.locals(pattern=bytes)
    cpdef bint wants(self, bytes subject) except -1

    cpdef bint is_full(self) except -1

    cpdef bint is_clean(self) except -1

    @cython.locals(outbox=Outbox, time_ns=int64_t)
    cpdef object take(self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count)

    @cython.locals(writer=Writer, at=Py_ssize_t, time_ns=int64_t)
    cpdef object take_arrived(self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count)

    cpdef object hold(self, object publisher)

    @cython.locals(asked=PendingAcks)
    cpdef Writer ask(self, object peer)

    @cython.locals(
        outbox=Outbox,
        arena=Arena,
        writer=Writer,
        start=Py_ssize_t,
        length=Py_ssize_t,
        at=Py_ssize_t,
    )
    cdef object _copy(self)

    cpdef object keep(self)

    cpdef object written(self, JournalBatch batch)

    @cython.locals(each=PendingAcks)
    cpdef object safe_until(self, int64_t position)

    cpdef list failed(self, str problem)

    cpdef object recovered(self)

    cdef bint _is_empty(self) except -1

    @cython.locals(batch=JournalBatch, held=list)
    cdef object _pass_on(self)

    @cython.locals(count=int64_t)
    cdef object _end_block(self)
