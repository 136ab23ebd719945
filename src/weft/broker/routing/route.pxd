cimport cython

from weft.broker.delivery.arena cimport Arena
from weft.broker.routing.subscription_trie cimport Audience, GroupMembers, Subscriber
from weft.broker.delivery.outbox cimport Outbox
from weft.wire.byteops cimport u32_at

cdef Py_ssize_t _GROUP_HIGH
cdef Py_ssize_t _LAST_RESORT


@cython.final
cdef class Group:
    cdef readonly bytes name
    cdef readonly list members
    cdef readonly bytearray policies
    cdef readonly bytearray is_plain
    cdef readonly bint is_full
    cdef GroupMembers _source

    cdef object fill(self, Gathered gathered)

    cpdef Py_ssize_t turn(self) except -1

    @cython.locals(turn=Py_ssize_t)
    cpdef Py_ssize_t pick(self, Outbox sender) except -1

    @cython.locals(count=Py_ssize_t, turn=Py_ssize_t, member=Outbox)
    cdef Py_ssize_t _next(self, Outbox sender) except -1

    @cython.locals(
        count=Py_ssize_t,
        best=Py_ssize_t,
        best_cost=Py_ssize_t,
        step=Py_ssize_t,
        position=Py_ssize_t,
        member=Outbox,
        cost=Py_ssize_t,
    )
    cdef Py_ssize_t _with_room(self, Py_ssize_t turn, Outbox sender) except -1


@cython.final
cdef class Gathered:
    cdef dict plain
    cdef dict answering
    cdef dict answering_in_groups
    cdef dict groups
    cdef dict members

    cdef object add(self, Subscriber subscriber)

    cdef object add_member(self, bytes name, GroupMembers source, Subscriber subscriber)


@cython.final
cdef class Route:
    cdef readonly bytes subject
    cdef public bint is_stale
    cdef public bint is_journaled
    cdef readonly list outboxes
    cdef readonly bytearray policies
    cdef readonly list groups
    cdef readonly list responders
    cdef readonly list far_responders
    cdef readonly list far
    cdef readonly list far_groups
    cdef readonly bint is_far
    cdef readonly bint is_full
    cdef public object plan

    cpdef bint is_empty(self) except -1

    @cython.locals(count=Py_ssize_t, group=Group)
    cpdef Py_ssize_t receivers(self) except -1

    @cython.locals(best=Outbox)
    cpdef Outbox responder(self, Outbox sender, bint is_not_back, Py_ssize_t turn)

    cpdef Py_ssize_t deliver(
        self, Py_ssize_t start, Py_ssize_t end, Outbox sender, bint is_not_back
    ) except -1

    @cython.locals(position=Py_ssize_t, outbox=Outbox, receivers=Py_ssize_t)
    cpdef Py_ssize_t deliver_to_each(
        self, Py_ssize_t start, Py_ssize_t end, Outbox sender, bint is_not_back
    ) except -1

    @cython.locals(
        handed=Py_ssize_t,
        first=Group,
        any_member=Outbox,
        arena=Arena,
        length=Py_ssize_t,
        position=Py_ssize_t,
        group=Group,
    )
    cpdef Py_ssize_t deliver_in_turn(
        self, Py_ssize_t start, Py_ssize_t end, Outbox sender, bint is_not_back
    ) except -1

    @cython.locals(group=Group)
    cpdef Py_ssize_t deliver_to_group(
        self, bytes name, Py_ssize_t start, Py_ssize_t end
    ) except -1

    @cython.locals(
        here=Gathered,
        far=Gathered,
        audience=Audience,
        members=GroupMembers,
        subscriber=Subscriber,
        group=Group,
    )
    cdef object _gather(self, list places)

    @cython.locals(group=Group)
    cdef object _gather_far(self, Gathered here, Gathered far)


@cython.locals(
    count=Py_ssize_t,
    step=Py_ssize_t,
    outbox=Outbox,
    best=Outbox,
    burden=Py_ssize_t,
    best_burden=Py_ssize_t,
)
cdef Outbox _least_busy(list responders, Outbox sender, bint is_not_back, Py_ssize_t turn)

@cython.locals(handed=Py_ssize_t, any_member=Outbox, arena=Arena, length=Py_ssize_t)
cdef Py_ssize_t _hand_each(Group group, Py_ssize_t start, Py_ssize_t end) except -1

@cython.locals(turn=Py_ssize_t, outbox=Outbox)
cdef Py_ssize_t _hand(
    Group group, Py_ssize_t start, Py_ssize_t length, Outbox sender, bint is_not_back
) except -1

cdef Gathered _side(Subscriber subscriber, Gathered here, Gathered far)

cdef object _add_subscriber(Subscriber subscriber, dict known, dict answering)
