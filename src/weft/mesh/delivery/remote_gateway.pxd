cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from weft.broker.delivery.outbox cimport Outbox
from weft.broker.service cimport Peer


@cython.final
cdef class RemoteGateway:
    cdef readonly Peer peer
    cdef readonly Outbox outbox
    cdef readonly uint32_t number
    cdef readonly str name
    cdef public uint64_t next
    cdef public int mark
    cdef public uint64_t acked
    cdef public uint64_t seen
    cdef public int64_t mark_ns
    cdef public int64_t mark_wait_ns
    cdef public int64_t marked_ns
    cdef public int64_t unconfirmed_ns
    cdef public uint64_t missed
    cdef public int64_t resent_ns
