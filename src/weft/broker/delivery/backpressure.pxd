cimport cython
from libc.stdint cimport int64_t

from weft.broker.delivery.outbox cimport Outbox
from weft.broker.routing.route cimport Group, Route
from weft.broker.service cimport Peer, Service

cdef int64_t _STILL
cdef int64_t _SLICE
cdef int64_t _ALLOWANCE
cdef int64_t _RESTORED
cdef Py_ssize_t _GROUP_LOW
cdef int _CUT


@cython.final
cdef class Allowance:
    cdef int64_t _left_ns
    cdef int64_t _restored_ns
    cdef int64_t _spent_ns

    @cython.locals(restored=int64_t)
    cpdef int64_t left_ns(self, int64_t now_ns) except? -1

    cpdef object spend(self, int64_t since_ns, int64_t now_ns)


@cython.final
cdef class Allowances:
    cdef readonly Allowance held
    cdef readonly Allowance holding


@cython.final
cdef class PublisherHold:
    cdef readonly Peer publisher
    cdef readonly Outbox reader
    cdef readonly int64_t since_ns


@cython.locals(reader=Outbox)
cpdef object hold_publisher(Peer peer)

cpdef object hold_for_link(Peer peer, Outbox link)

@cython.locals(now_ns=int64_t, hold=PublisherHold, is_over=bint)
cpdef list end_holds(Service service)

@cython.locals(own=Allowances)
cpdef Allowances allowances(Peer peer)

@cython.locals(service=Service)
cdef bint _can_be_held(Peer peer) except -1

@cython.locals(service=Service)
cdef object _hold(Peer peer, Outbox reader, Py_ssize_t low_bytes)

@cython.locals(route=Route, position=Py_ssize_t, outbox=Outbox)
cdef Outbox _plain_reader(Peer peer)

@cython.locals(group=Group, outbox=Outbox)
cdef Outbox _full_group(Peer peer)

@cython.locals(owner=Peer, now_ns=int64_t)
cdef bint _may_hold(Outbox reader, Peer publisher) except -1

@cython.locals(owner=Peer)
cdef object _spend(PublisherHold hold, int64_t now_ns)
