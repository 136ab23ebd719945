cimport cython

from weft.broker.replies cimport acknowledge, refuse
from weft.broker.delivery.backpressure cimport hold_for_link, hold_publisher
from weft.wire.frames cimport Run, stamp_frame
from weft.broker.journal.acks cimport acknowledge_when_safe, keep, why_not_kept
from weft.broker.reply_aliases cimport (
    begin_mask,
    end_mask,
    no_room,
    put_copy,
    share_identity,
    too_many_masks,
)
from weft.broker.metering cimport Meter
from weft.broker.delivery.outbox cimport Outbox
from weft.broker.requests cimport give_request, is_own_inbox, take_reply
from weft.broker.auth.permissions cimport Rights
from weft.broker.routing.route cimport Route
from weft.broker.service cimport Awaited, Peer, Service
from weft.wire.subjects cimport is_reserved, is_subject
from weft.wire.byteops cimport cut, same_bytes, u32_at

cdef Py_ssize_t _HEADER
cdef int _ANSWER
cdef int _REQUEST
cdef int _NOT_BACK
cdef int _MASKED
cdef int _RESERVED
cdef int _FAILED
cdef int _ONE_BY_ONE
cdef int _MAY_PUBLISH
cdef int _MAY_REQUEST
cdef Route _NOWHERE


@cython.locals(
    service=Service,
    data=bytearray,
    length=Py_ssize_t,
    size=Py_ssize_t,
    is_not_back=bint,
    route=Route,
    receivers=Py_ssize_t,
    link=Outbox,
)
cpdef object publish(Peer peer, Run run)

@cython.locals(
    service=Service,
    metered=bytes,
    name=bytes,
    rights=Rights,
    route=Route,
    meter=Meter,
    before=Py_ssize_t,
)
cdef object _resolve(Peer peer, bytes subject, int flags)

cdef object _find_rights(Peer peer, Rights rights, bytes name, int flags)

cdef object _no_member()

cdef object _not_allowed(Peer peer, int flags)

@cython.locals(data=bytearray, at=Py_ssize_t)
cdef object _refuse_run(Peer peer, Run run, problem)

cdef object _refuse_one(Peer peer, Py_ssize_t at, problem, bint is_told)

@cython.locals(data=bytearray, at=Py_ssize_t, is_told=bint, names=Py_ssize_t, reply=bytes)
cdef object _publish_each(Peer peer, Run run)

cdef object _publish_one(Peer peer, Py_ssize_t at, int flags, bytes reply)

@cython.locals(
    service=Service,
    data=bytearray,
    route=Route,
    is_journaled=bint,
    is_not_back=bint,
    size=Py_ssize_t,
    link=Outbox,
)
cdef object _publish_to_all(Peer peer, Py_ssize_t at, int flags)

@cython.locals(service=Service, stand_in=bytes, copy=Py_ssize_t, awaited=Awaited)
cdef object _publish_masked(Peer peer, Py_ssize_t at, int flags, bytes reply)

cpdef object wrong_reply(Peer peer, bytes reply)
