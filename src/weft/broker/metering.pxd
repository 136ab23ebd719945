cimport cython
from libc.stdint cimport int64_t, uint64_t

from weft.wire.byteops cimport exponential

cdef double _WINDOW_NS
cdef double _WINDOW_S


@cython.final
cdef class PublisherTraffic:
    cdef readonly uint64_t messages
    cdef readonly uint64_t bytes
    cdef readonly int64_t first_ns
    cdef readonly int64_t last_ns
    cdef readonly bint is_folded
    cdef double _recent_messages
    cdef double _recent_bytes

    @cython.locals(decay=double)
    cpdef void record(self, Py_ssize_t messages, Py_ssize_t size, int64_t now_ns) noexcept

    cpdef double message_rate(self, int64_t now_ns) noexcept

    cpdef double byte_rate(self, int64_t now_ns) noexcept

    cpdef object fold(self, PublisherTraffic other)

    cdef double _decay(self, int64_t now_ns) noexcept


@cython.final
cdef class Meter:
    cdef readonly PublisherTraffic others
    cdef dict _flows
    cdef Py_ssize_t _flows_max

    @cython.locals(flow=PublisherTraffic)
    cpdef PublisherTraffic flow(self, bytes subject, int64_t now_ns)

    cpdef bint has(self, bytes subject) except -1

    @cython.locals(rate=double, flow=PublisherTraffic)
    cpdef double message_rate(self, int64_t now_ns) except -1

    @cython.locals(rate=double, flow=PublisherTraffic)
    cpdef double byte_rate(self, int64_t now_ns) except -1

    cpdef dict flows(self)

    @cython.locals(total=PublisherTraffic, flow=PublisherTraffic)
    cpdef PublisherTraffic total(self)

    cdef object _fold_idlest(self)

    cpdef int64_t _last_ns(self, bytes subject) except? -1
