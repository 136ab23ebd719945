cimport cython
from libc.stdint cimport int64_t

from weft.core.arena cimport Arena
from weft.core.bounds cimport Bounds
from weft.core.losses cimport Losses
from weft.core.words cimport cut, u32_at

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


@cython.final
cdef class Kept:
    cdef readonly bytes frames
    cdef readonly Py_ssize_t cost
    cdef readonly int policy
    cdef readonly int64_t time_ns
    cdef readonly bytes subject


@cython.final
cdef class Backlog:
    cdef readonly Py_ssize_t cost
    cdef readonly Py_ssize_t size
    cdef readonly bint is_cut
    cdef readonly Losses losses
    cdef Bounds _bounds
    cdef bytes _front
    cdef Py_ssize_t _front_at
    cdef readonly int64_t moved_ns
    cdef int64_t _offered_ns
    cdef object _kept
    cdef object _yielding
    cdef Py_ssize_t _yielding_cost
    cdef dict _latest
    cdef Py_ssize_t _number
    cdef list _urgent
    cdef Py_ssize_t _urgent_bytes

    cpdef object begin(self, bytes rest, int64_t now_ns)

    @cython.locals(
        at=Py_ssize_t, end=Py_ssize_t, policy=int, most=Py_ssize_t, piece_end=Py_ssize_t
    )
    cpdef object keep_span(self, Arena arena, int span, int64_t now_ns)

    @cython.locals(subject=bytes, kept=Kept, number=Py_ssize_t)
    cpdef object keep(self, bytes frames, int policy, int64_t now_ns)

    cpdef object overtake(self, bytes frames)

    cpdef object take(self, Py_ssize_t limit_bytes, int64_t now_ns)

    cpdef object sent(self, Py_ssize_t count)

    @cython.locals(frames=bytes)
    cpdef bytes draw(self, Py_ssize_t limit_bytes, int64_t now_ns)

    @cython.locals(oldest_ns=int64_t, kept=Kept)
    cpdef object expire(self, int64_t now_ns)

    @cython.locals(kept=Kept)
    cpdef object cut(self)

    cpdef bint is_empty(self) except -1

    @cython.locals(limit=Py_ssize_t)
    cdef bint _make_room(self, Kept kept) except -1

    @cython.locals(kept=Kept)
    cdef object _drop(self, Py_ssize_t number, int reason)

    @cython.locals(kept=Kept)
    cdef Kept _remove(self, Py_ssize_t number)

    @cython.locals(length=Py_ssize_t, kept=Kept, parts=list, news=bytes)
    cdef object _refill(self, Py_ssize_t limit_bytes)

    @cython.locals(kept=Kept)
    cdef bint _is_between_envelopes(self) except -1


@cython.locals(last=Py_ssize_t)
cdef Py_ssize_t _piece_end(
    const unsigned char *data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t most
) noexcept
