cimport cython

from weft.core.interest cimport Audience, Subscriber
from weft.core.outbox cimport Outbox
from weft.core.words cimport u32_at


@cython.final
cdef class Group:
    cdef readonly list members
    cdef readonly bytearray policies
    cdef readonly bytearray is_plain
    cdef Py_ssize_t _turn

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

    @cython.locals(position=Py_ssize_t, outbox=Outbox, group=Group)
    cpdef int deliver(
        self, Py_ssize_t start, Py_ssize_t end, Outbox sender, bint is_not_back
    ) except -1

    @cython.locals(plain=dict, grouped=dict, members=dict)
    cdef object _gather(self, list places)


@cython.locals(length=Py_ssize_t, turn=Py_ssize_t, outbox=Outbox, data="const unsigned char *")
cdef int _deliver_in_turn(
    Group group, Py_ssize_t start, Py_ssize_t end, Outbox sender, bint is_not_back
) except -1

@cython.locals(audience=Audience, known=dict, members=dict)
cdef object _add_place(object place, dict plain, dict grouped)

cdef object _add_subscriber(Subscriber subscriber, dict known)

@cython.locals(group=Group)
cdef Group _group(dict members, dict plain)
