cimport cython
from libc.stdint cimport int64_t

from weft.broker.replies cimport error_frame
from weft.wire.frames cimport stamp_frame
from weft.broker.reply_aliases cimport end_mask, no_room, publish_answer, put_answer, share_identity
from weft.broker.delivery.outbox cimport Outbox
from weft.broker.service cimport Awaited, Holder, Mask, Peer, Service
from weft.wire.byteops cimport cut, u32_at

cdef Py_ssize_t _INBOX_BYTES
cdef Py_ssize_t _FAR_INBOX_BYTES
cdef Py_ssize_t _HEADER
cdef int _CUT
cdef int _DROP_NEW
cdef int _ERROR
cdef int _REQUEST
cdef int _NOT_BACK
cdef Py_ssize_t _KEPT_COST


cpdef bint is_own_inbox(Peer peer, bytes subject) except -1

@cython.locals(service=Service, holder=Holder, count=Py_ssize_t)
cpdef object give_request(Peer peer, Py_ssize_t at, bytes reply)

cpdef object pass_request(Peer peer, Py_ssize_t at, bytes reply)

@cython.locals(
    service=Service,
    data=bytearray,
    asking=dict,
    outbox=Outbox,
    size=Py_ssize_t,
    taken=Py_ssize_t,
    responder=Peer,
    awaited=Awaited,
)
cdef object _give(Peer peer, Py_ssize_t at, bytes reply, bint is_new)

cpdef object take_reply(Peer peer, Py_ssize_t at)

cpdef object pass_reply(Peer peer, Py_ssize_t at)

@cython.locals(
    service=Service,
    data=bytearray,
    reply=bytes,
    mask=Mask,
    owner=Peer,
    awaited=Awaited,
    start=Py_ssize_t,
    policy=int,
)
cdef object _take(Peer peer, Py_ssize_t at, bint is_new)

@cython.locals(data=bytearray)
cdef object _identify(Service service, Py_ssize_t at, Py_ssize_t start, bint is_new)

@cython.locals(address=bytes)
cdef Peer _owner(Service service, bytes reply)

cdef object _to_nobody(Service service, Py_ssize_t at, bint is_new)

@cython.locals(
    data=bytearray,
    names=Py_ssize_t,
    body=Py_ssize_t,
    told=bytes,
    reply=bytes,
    awaited=Awaited,
    requester=Peer,
    size=Py_ssize_t,
)
cpdef object pass_refusal(Peer peer, Py_ssize_t at)

@cython.locals(reply=bytes, awaited=Awaited)
cpdef object refuse_request(Peer peer, bytes given, object problem)

@cython.locals(reply=bytes, awaited=Awaited)
cpdef object forget_requests(Peer peer)

@cython.locals(reply=bytes, awaited=Awaited)
cpdef object expire_requests(Peer peer, int64_t oldest_ns)

@cython.locals(mask=Mask)
cdef bytes _unmasked(Service service, bytes given)

@cython.locals(requester=Peer)
cdef object _refuse(bytes reply, Awaited awaited, object problem)

@cython.locals(requester=Peer)
cdef object _settle(bytes reply, Awaited awaited)
