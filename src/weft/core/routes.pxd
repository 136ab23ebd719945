cimport cython

from weft.core.arena cimport Arena
from weft.core.interest cimport Audience, Members, Subscriber
from weft.core.outbox cimport Outbox
from weft.core.words cimport u32_at


@cython.final
cdef class Group:
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
    cdef readonly list outboxes
    cdef readonly bytearray policies
    cdef readonly list groups

    cpdef bint is_empty(self) except -1

    @cython.locals(position=Py_ssize_t, outbox=Outbox, group=Group, deliveries=Py_ssize_t)
    cpdef Py_ssize_t deliver(
        self, Py_ssize_t start, Py_ssize_t end, Outbox sender, bint is_not_back
    ) except -1

    @cython.locals(
        plain=dict, grouped=dict, policies=dict, audience=Audience, members=Members, group=Group
    )
    cdef object _gather(self, list places)


@cython.locals(
    length=Py_ssize_t,
    turn=Py_ssize_t,
    deliveries=Py_ssize_t,
    first=Outbox,
    outbox=Outbox,
    arena=Arena,
)
cdef Py_ssize_t _deliver_in_turn(
    Group group, Py_ssize_t start, Py_ssize_t end, Outbox sender, bint is_not_back
) except -1

cdef object _add_subscriber(Subscriber subscriber, dict known)
