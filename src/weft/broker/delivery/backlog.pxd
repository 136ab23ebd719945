cimport cython
from libc.stdint cimport int64_t

from weft.broker.delivery.arena cimport Arena
from weft.broker.delivery.policy cimport Bounds
from weft.broker.delivery.memory_budget cimport Budget
from weft.broker.delivery.drop_counts cimport Losses
from weft.broker.delivery.chunk cimport BacklogEntry, FrameChunk, piece_end
from weft.wire.byteops cimport cut, u32_at

cdef int _LATEST
cdef int _DROP_OLD
cdef int _DROP_NEW
cdef int _CUT
cdef int _FORWARD
cdef int _SLOW
cdef int _OLD
cdef int _CONFLATED
cdef Py_ssize_t _HEADER
cdef Py_ssize_t _KEPT_COST
cdef Py_ssize_t _HOLE_ORIGINS
cdef Py_ssize_t _HOLE_COST
cdef FrameChunk _NOTHING
cdef double _S


@cython.final
cdef class Backlog:
    cdef readonly Py_ssize_t cost
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t firm
    cdef readonly Py_ssize_t dropped
    cdef readonly bint is_cut
    cdef readonly bint is_torn
    cdef readonly str problem
    cdef readonly int64_t moved_ns
    cdef readonly int64_t paced_ns
    cdef Losses _losses
    cdef Bounds _bounds
    cdef Budget _budget
    cdef bytes _front
    cdef Py_ssize_t _front_at
    cdef FrameChunk _front_piece
    cdef bint _is_begun
    cdef int64_t _offered_ns
    cdef Py_ssize_t _taken
    cdef object _kept
    cdef object _yielding
    cdef object _staying
    cdef object _firm
    cdef Py_ssize_t _yielding_cost
    cdef dict _latest
    cdef Py_ssize_t _holes
    cdef Losses _hole
    cdef bint _is_hole_last
    cdef Py_ssize_t _number
    cdef list _urgent
    cdef Py_ssize_t _urgent_bytes

    cpdef object begin(self, bytes rest, int64_t now_ns)

    @cython.locals(
        at=Py_ssize_t, end=Py_ssize_t, policy=int, most=Py_ssize_t, upto=Py_ssize_t
    )
    cpdef object keep_span(self, Arena arena, int span, int64_t now_ns)

    cpdef object keep(self, bytes frames, int policy, int64_t now_ns)

    cpdef object overtake(self, bytes frames)

    cpdef object take(self, Py_ssize_t limit_bytes, int64_t now_ns)

    cpdef object sent(self, Py_ssize_t count)

    @cython.locals(frames=bytes)
    cpdef bytes draw(self, Py_ssize_t limit_bytes, int64_t now_ns)

    @cython.locals(age_ns=int64_t, oldest_ns=int64_t, first=BacklogEntry)
    cpdef object expire(self, int64_t now_ns)

    @cython.locals(rest=bytes, lost=bytes, kept=BacklogEntry)
    cpdef object cut(self, str problem)

    @cython.locals(rest=bytes)
    cpdef object finish_with(self, bytes frames)

    @cython.locals(kept=BacklogEntry)
    cpdef object close(self)

    cpdef bint is_empty(self) except -1

    @cython.locals(frames=bytes, subject=bytes, kept=BacklogEntry)
    cdef object _keep(self, FrameChunk piece, int policy, int64_t now_ns)

    @cython.locals(number=Py_ssize_t)
    cdef object _append(self, BacklogEntry kept)

    @cython.locals(bounds=Bounds, hole=BacklogEntry, is_room=bint)
    cdef object _refuse(self, bytes frames)

    @cython.locals(bounds=Bounds, limit=Py_ssize_t)
    cdef bint _make_room(self, BacklogEntry kept) except -1

    @cython.locals(kept=BacklogEntry)
    cdef object _drop_before(self, those, int64_t oldest_ns)

    @cython.locals(kept=BacklogEntry)
    cdef object _drop(self, Py_ssize_t number, int reason)

    cdef object _count(self, bytes frames, int reason)

    @cython.locals(kept=BacklogEntry)
    cdef BacklogEntry _remove(self, Py_ssize_t number)

    @cython.locals(
        parts=list, length=Py_ssize_t, last=FrameChunk, number=Py_ssize_t, kept=BacklogEntry
    )
    cdef object _refill(self, Py_ssize_t limit_bytes)

    @cython.locals(kept=BacklogEntry)
    cdef bint _is_between_envelopes(self) except -1

    cdef object _count_urgent(self, Py_ssize_t count)

    cdef Py_ssize_t _put_hole(self, list parts, Py_ssize_t number, Losses losses) except -1

    @cython.locals(news=bytes)
    cdef Py_ssize_t _put_news(self, list parts, Losses losses) except -1

    @cython.locals(length=Py_ssize_t, piece=FrameChunk)
    cdef object _drop_front(self)

    cdef object _set_last(self, bytes frames)

    @cython.locals(front=bytes, at=Py_ssize_t)
    cdef tuple _begun(self)

    cdef object _moved(self, int64_t now_ns)
