cimport cython
from libc.stdint cimport int64_t

cdef int64_t _ITEM_COST


@cython.final
cdef class ReceiveWindow:
    cdef public bint is_full
    cdef int64_t _limit
    cdef int64_t _high
    cdef int64_t _low
    cdef object _flow
    cdef readonly int64_t _arrived
    cdef public int64_t _taken
    cdef object _lock
    cdef tuple _when_empty

    @cython.locals(cost=int64_t)
    cpdef bint admit_all(self, int64_t size, int64_t count) except -1

    @cython.locals(cost=int64_t, held=int64_t)
    cpdef bint admit(self, int64_t size) except -1

    cpdef object release(self, int64_t size, int64_t count=*)

    @cython.locals(was_full=bint)
    cdef int _ease_if_low(self) except -1
