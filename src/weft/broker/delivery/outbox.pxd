cimport cython
from libc.stdint cimport int64_t

from weft.broker.delivery.arena cimport Arena
from weft.broker.delivery.backlog cimport Backlog
from weft.broker.delivery.policy cimport Bounds
from weft.wire.byteops cimport cut, put_bytes, u32_at

cdef int _CUT


@cython.final
cdef class Outbox:
    cdef readonly Arena arena
    cdef public Bounds bounds
    cdef public object owner
    cdef public int fd
    cdef public Py_ssize_t busy
    cdef public bint is_distant
    cdef public bint is_away
    cdef readonly Py_ssize_t pending
    cdef readonly Py_ssize_t gathered
    cdef readonly bint is_cut
    cdef readonly bint is_crowded
    cdef Py_ssize_t _ease_bytes
    cdef int _head
    cdef int _tail
    cdef int _unfinished
    cdef bint _is_waiting
    cdef Backlog _backlog
    cdef Backlog _cut
    cdef Py_ssize_t _dropped_before

    @cython.locals(arena=Arena, tail=int)
    cpdef int push(self, Py_ssize_t start, Py_ssize_t length, int policy) except -1

    @cython.locals(tail=int)
    cpdef bint ends_at(self, Py_ssize_t end) except -1

    cpdef object hold(self, bytes frames, int64_t now_ns)

    cpdef object overtake(self, bytes frames)

    @cython.locals(arena=Arena, span=int, at=Py_ssize_t, room=Py_ssize_t)
    cpdef Py_ssize_t gather(self) except -1

    @cython.locals(arena=Arena, span=int, length=Py_ssize_t)
    cpdef object sent(self, Py_ssize_t count)

    cpdef object settle(self, int64_t now_ns)

    cpdef object take(self, Py_ssize_t limit_bytes, int64_t now_ns)

    cpdef object taken(self, Py_ssize_t count)

    @cython.locals(frames=bytes)
    cpdef bytes draw(self, Py_ssize_t limit_bytes, int64_t now_ns)

    cpdef object expire(self, int64_t now_ns)

    @cython.locals(backlog=Backlog)
    cpdef bint part(self, bytes frames) except -1

    cpdef object close(self)

    cpdef bint is_behind(self) noexcept

    cpdef Py_ssize_t owed(self) except -1

    cpdef Py_ssize_t cost(self) except -1

    cpdef int64_t moved_ns(self) except -1

    cpdef int64_t paced_ns(self) except -1

    cpdef object give_up(self, str problem)

    cpdef object dropped(self)

    cpdef str problem(self)

    cpdef bint stands_still(self, int64_t since_ns) except -1

    cpdef object ask_for_ease(self, Py_ssize_t low_bytes)

    cpdef bint is_eased(self) noexcept

    cdef object _wait(self)

    @cython.locals(arena=Arena, span=int, start=Py_ssize_t)
    cdef object _keep_spans(self, int64_t now_ns)

    cdef object _forget_spans(self)

    @cython.locals(backlog=Backlog)
    cdef object _look_at_backlog(self)

    @cython.locals(backlog=Backlog)
    cdef object _forget_backlog(self)

    cdef object _ease(self)

    cdef object _set_crowded(self, bint is_crowded)

    @cython.locals(arena=Arena, at=Py_ssize_t, end=Py_ssize_t)
    cdef int _unfinished_after(self, int span, Py_ssize_t count) except -1
