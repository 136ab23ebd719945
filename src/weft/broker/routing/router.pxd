cimport cython

from weft.broker.routing.subscription_trie cimport Interest, GroupMembers, Subscriber
from weft.broker.journal.batcher cimport Journal
from weft.broker.delivery.outbox cimport Outbox
from weft.broker.routing.route_cache cimport RouteCache
from weft.broker.routing.route cimport Route
from weft.wire.subjects cimport is_pattern, is_subject

cdef int _CUT
cdef int _DROP_OLD
cdef int _POLICIES


@cython.final
cdef class OutboxSubscriptions:
    cdef list subscribers
    cdef dict plain
    cdef dict grouped

    @cython.locals(subscriber=Subscriber, position=int)
    cdef Subscriber subscriber(self, Outbox outbox, int policy, bint is_listener)


@cython.final
cdef class Router:
    cdef Interest _interest
    cdef RouteCache _cache
    cdef dict _registry
    cdef Py_ssize_t _count
    cdef public Journal journal
    cdef public dict changes
    cdef public bint is_changed

    @cython.locals(registered=OutboxSubscriptions, subscriber=Subscriber, present=Subscriber)
    cpdef bint subscribe(
        self, Outbox outbox, bytes pattern, bytes group=*, int policy=*, bint is_listener=*
    ) except -1

    @cython.locals(registered=OutboxSubscriptions, present=Subscriber)
    cpdef bint unsubscribe(self, Outbox outbox, bytes pattern, bytes group=*) except -1

    @cython.locals(registered=OutboxSubscriptions, count=Py_ssize_t)
    cpdef Py_ssize_t leave(self, Outbox outbox) except -1

    @cython.locals(registered=OutboxSubscriptions)
    cpdef bint has(self, Outbox outbox, bytes pattern, bytes group=*) except -1

    @cython.locals(registered=OutboxSubscriptions)
    cpdef Py_ssize_t count(self, Outbox outbox) except -1

    @cython.locals(subscriber=Subscriber)
    cpdef object wanted_here(self, bytes pattern, bytes group=*)

    @cython.locals(found=list, more=Py_ssize_t, subscriber=Subscriber)
    cpdef tuple listeners(self, bytes subject, bint is_distant, Py_ssize_t limit)

    @cython.locals(found=list, members=GroupMembers, subscriber=Subscriber)
    cdef list _subscribers(self, bytes subject)

    @cython.locals(route=Route)
    cpdef Route route(self, bytes subject)

    cpdef object tap(self, Outbox outbox, bytes pattern)

    cdef object _changed(self, Outbox outbox, bytes pattern, bytes group)

    @cython.locals(registered=OutboxSubscriptions, subscriber=Subscriber)
    cpdef list subscriptions(self, Outbox outbox, Py_ssize_t limit=*)


cdef object _shown(bytes pattern, bytes group, Subscriber subscriber)

cdef Subscriber _present(OutboxSubscriptions registered, bytes pattern, bytes group)
