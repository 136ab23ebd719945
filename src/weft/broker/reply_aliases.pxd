cimport cython
from libc.stdint cimport int64_t

from weft.broker.delivery.arena cimport Arena
from weft.wire.frames cimport stamp_frame
from weft.broker.journal.acks cimport keep
from weft.broker.auth.permissions cimport Rights
from weft.broker.routing.route cimport Route
from weft.broker.service cimport Holder, Mask, Peer, Service
from weft.wire.byteops cimport cut, put_bytes, put_u32, u32_at

cdef Py_ssize_t _HEADER
cdef Py_ssize_t _IDENTITY
cdef int _REQUEST
cdef int _NOT_BACK
cdef int _ALL_BUT_MASKED
cdef int _MAY_PUBLISH


@cython.locals(service=Service, stand_in=bytes, mask=Mask)
cpdef bytes begin_mask(Peer peer, bytes reply)

@cython.locals(service=Service, holder=Holder, count=Py_ssize_t)
cpdef object too_many_masks(Peer peer)

cpdef object end_mask(Peer peer, bytes stand_in)

@cython.locals(stand_in=bytes)
cpdef object forget_masks(Peer peer)

@cython.locals(old=list, stand_in=bytes, mask=Mask)
cpdef object expire_masks(Peer peer, int64_t oldest_ns)

@cython.locals(
    arena=Arena,
    data=bytearray,
    subject_length=Py_ssize_t,
    reply_length=Py_ssize_t,
    body=Py_ssize_t,
    body_length=Py_ssize_t,
    size=Py_ssize_t,
    start=Py_ssize_t,
    names=Py_ssize_t,
)
cpdef Py_ssize_t put_copy(
    Service service, Py_ssize_t at, bytes subject, bytes reply
) except -2

@cython.locals(data=bytearray, names=Py_ssize_t)
cpdef Py_ssize_t put_answer(Service service, Py_ssize_t at, Mask mask) except -2

cpdef object share_identity(bytearray data, Py_ssize_t at, Py_ssize_t copy)

cpdef object no_room()

@cython.locals(
    service=Service,
    data=bytearray,
    flags=int,
    rights=Rights,
    route=Route,
    start=Py_ssize_t,
    end=Py_ssize_t,
)
cpdef object publish_answer(Peer peer, Py_ssize_t at, Mask mask)
