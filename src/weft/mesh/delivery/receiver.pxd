cimport cython
from libc.stdint cimport uint32_t, uint64_t

from weft.broker.replies cimport error_frame
from weft.broker.delivery.arena cimport Arena
from weft.broker.journal.batcher cimport Journal
from weft.broker.requests cimport is_own_inbox, pass_refusal, pass_reply, pass_request
from weft.broker.routing.route cimport Route
from weft.broker.service cimport Peer, Service
from weft.wire.subjects cimport stays_here
from weft.wire.byteops cimport cut, same_bytes, u32_at
from weft.mesh.counters cimport TrafficCounts
from weft.mesh.delivery.remote_gateway cimport RemoteGateway
from weft.mesh.delivery.origin_stream cimport Incoming
from weft.mesh.delivery.frame_batch cimport Load

cdef Py_ssize_t _HEADER
cdef int _PLAIN
cdef int _ONE
cdef int _MESSAGE
cdef int _ERROR
cdef int _REQUEST
cdef int _RESERVED
cdef Route _NOWHERE


@cython.final
cdef class Arrivals:
    cdef Service _service
    cdef TrafficCounts _counts
    cdef dict _distants
    cdef object _say
    cdef dict _incoming
    cdef dict _unsettled
    cdef dict _ended
    cdef bytes _subject
    cdef Route _route
    cdef readonly object activation
    cdef readonly int mark

    cpdef Incoming stream(self, uint32_t origin, uint64_t number)

    cpdef object arrive(self, Incoming incoming, Load load)

    @cython.locals(counts=TrafficCounts, data=bytearray)
    cdef object _arrive_odd(self, Incoming incoming, Load load)

    @cython.locals(arena=Arena, load=Load)
    cdef object _release(self, Incoming incoming)

    @cython.locals(
        service=Service,
        journal=Journal,
        data=bytearray,
        start=Py_ssize_t,
        length=Py_ssize_t,
        route=Route,
        receivers=Py_ssize_t,
        handed=Py_ssize_t,
    )
    cdef object _deliver(self, Load load)

    @cython.locals(route=Route)
    cdef object _find(self, bytes subject)

    @cython.locals(
        service=Service, data=bytearray, distant=RemoteGateway, at=Py_ssize_t, size=Py_ssize_t
    )
    cdef object _deliver_each(self, Load load)

    @cython.locals(data=bytearray, names=Py_ssize_t, subject=bytes, reply=bytes, route=Route)
    cdef object _deliver_one(self, Peer peer, Py_ssize_t at)
