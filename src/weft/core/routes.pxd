cimport cython

from weft.core.arena cimport Arena
from weft.core.interest cimport Audience, Members, Subscriber
from weft.core.outbox cimport Outbox
from weft.core.words cimport u32_at

cdef Py_ssize_t _LAST_RESORT


@cython.final
cdef class Group:
    cdef readonly bytes name
    cdef readonly list members
    cdef readonly bytearray policies
    cdef readonly bytearray is_plain
    cdef Members _source

    @cython.locals(count=Py_ssize_t, turn=Py_ssize_t)
    cpdef Py_ssize_t pick(self, Outbox sender) except -1


@cython.final
cdef class Route:
    cdef readonly bytes subject
    cdef public bint is_stale
    cdef public bint is_journaled
    cdef readonly list outboxes
    cdef readonly bytearray policies
    cdef readonly list groups
    cdef readonly list responders

    cpdef bint is_empty(self) except -1

    @cython.locals(count=Py_ssize_t, group=Group)
    cpdef Py_ssize_t receivers(self) except -1

    @cython.locals(
        count=Py_ssize_t,
        step=Py_ssize_t,
        outbox=Outbox,
        best=Outbox,
        burden=Py_ssize_t,
        best_burden=Py_ssize_t,
    )
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

    @cython.locals(
        plain=dict,
        answering=dict,
        answering_in_groups=dict,
        grouped=dict,
        policies=dict,
        audience=Audience,
        members=Members,
        group=Group,
    )
    cdef object _gather(self, list places)


@cython.locals(turn=Py_ssize_t, outbox=Outbox)
cdef Py_ssize_t _hand(
    Group group, Py_ssize_t start, Py_ssize_t length, Outbox sender, bint is_not_back
) except -1

cdef object _fill(Group group, dict policies, dict plain)

cdef object _add_subscriber(Subscriber subscriber, dict known, dict answering)
