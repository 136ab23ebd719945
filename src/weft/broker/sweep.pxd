cimport cython
from libc.stdint cimport int64_t

from weft.broker.replies cimport end_with
from weft.broker.reply_aliases cimport expire_masks
from weft.broker.delivery.outbox cimport Outbox
from weft.broker.requests cimport expire_requests
from weft.broker.service cimport Peer, Service

cdef int64_t _LINGER_NS
cdef int64_t _S


@cython.locals(peer=Peer)
cpdef list sweep(Service service)

@cython.locals(outbox=Outbox, is_owed=bint)
cdef int64_t _patience_ns(Peer peer) except -1

@cython.locals(service=Service, now_ns=int64_t, quiet_ns=int64_t)
cdef object _check_lateness(Peer peer)

@cython.locals(outbox=Outbox, is_behind=bint, dropped=Py_ssize_t)
cdef object _check_pace(Peer peer)
