cimport cython
from libc.stdint cimport int64_t, uint64_t

from weft.broker.delivery.arena cimport Arena
from weft.broker.mesh_hooks cimport Beyond, Carrier
from weft.broker.delivery.policy cimport Bounds
from weft.broker.delivery.memory_budget cimport Budget
from weft.wire.frames cimport Run, Stamp
from weft.broker.metering cimport PublisherTraffic, Meter
from weft.broker.delivery.outbox cimport Outbox
from weft.broker.auth.permissions cimport Enabled, Rights
from weft.broker.routing.router cimport Router
from weft.broker.routing.route cimport Route
from weft.wire.buffer cimport Writer

cdef int _CUT


@cython.final
cdef class Holder:
    cdef readonly str key_id
    cdef public Py_ssize_t peers
    cdef public Py_ssize_t requests
    cdef public Py_ssize_t masks


@cython.final
cdef class Awaited:
    cdef readonly Peer requester
    cdef readonly Peer responder
    cdef readonly bytes subject
    cdef readonly int64_t time_ns
    cdef public bytes stand_in


@cython.final
cdef class Mask:
    cdef readonly Peer owner
    cdef readonly bytes reply
    cdef readonly int64_t time_ns


@cython.final
cdef class Peer:
    cdef readonly Service service
    cdef readonly Outbox outbox
    cdef public object door
    cdef readonly uint64_t number
    cdef readonly bytes inbox
    cdef public str name
    cdef public str address
    cdef public str client
    cdef public int lanes
    cdef public object key
    cdef public Holder holder
    cdef public Rights rights
    cdef public object enabling
    cdef public Carrier carrier
    cdef public bint is_greeted
    cdef public Run run
    cdef readonly bint is_over
    cdef readonly object error
    cdef readonly int64_t joined_ns
    cdef readonly int64_t since_ns
    cdef public int64_t heard_ns
    cdef public int64_t pinged_ns
    cdef readonly int64_t over_ns
    cdef public bytes rest
    cdef public int64_t rest_ns
    cdef public bytearray large
    cdef public Py_ssize_t large_fill
    cdef public Py_ssize_t large_size
    cdef public Py_ssize_t weight
    cdef public double control_credit
    cdef public int64_t control_ns
    cdef public Meter meter
    cdef public bytes subject
    cdef public bint is_system_subject
    cdef public bint may_publish
    cdef public bint may_request
    cdef public bint is_one_by_one
    cdef public Route route
    cdef public PublisherTraffic flow
    cdef public dict asking
    cdef public dict serving
    cdef public dict masks
    cdef public dict channels
    cdef public bint is_called_slow
    cdef public Py_ssize_t dropped_said
    cdef public bint is_held
    cdef public bint is_paused
    cdef public object allowances

    @cython.locals(service=Service, start=Py_ssize_t)
    cpdef object owe(self, bytes frames)

    cpdef object owe_first(self, bytes frames)

    cpdef object end(self, error)


@cython.final
cdef class Service:
    cdef readonly str name
    cdef readonly str gateway
    cdef readonly object limits
    cdef readonly list dropped
    cdef readonly Arena arena
    cdef readonly Budget budget
    cdef readonly Bounds bounds
    cdef readonly Router router
    cdef readonly Run run
    cdef readonly Run link_run
    cdef readonly Run greeting_run
    cdef readonly Stamp stamp
    cdef readonly Writer writer
    cdef public int64_t wall_ns
    cdef public int64_t now_ns
    cdef readonly dict peers
    cdef readonly dict inboxes
    cdef readonly dict masks
    cdef public uint64_t masks_made
    cdef readonly dict holders
    cdef public Py_ssize_t requests
    cdef readonly Py_ssize_t requests_each
    cdef readonly Py_ssize_t requests_total
    cdef readonly Py_ssize_t requests_share
    cdef readonly bytes secret
    cdef readonly dict desks
    cdef public Beyond beyond
    cdef public object on_link
    cdef public object laning
    cdef public object on_member_over
    cdef readonly object keyring
    cdef readonly object tickets
    cdef readonly Enabled enabled
    cdef public bint is_review_due
    cdef public bint is_right_lost
    cdef public list holds
    cdef public bint is_draining
    cdef readonly object ended_why
    cdef public Py_ssize_t slow_count
    cdef public str slow_example
    cdef readonly list ending
    cdef public Py_ssize_t flow_count
    cdef public Py_ssize_t unfinished_bytes
    cdef public Py_ssize_t request_turn
    cdef public uint64_t bytes_out
    cdef public uint64_t deliveries
    cdef readonly PublisherTraffic total
    cdef readonly dict refused
    cdef readonly dict ended
    cdef uint64_t _number

    cpdef object set_limits(self, limits)

    cpdef object set_keys(self, keyring)

    @cython.locals(number=uint64_t, secret=uint64_t, peer=Peer)
    cpdef Peer join(self, object token, door)

    cpdef uint64_t next_number(self) except 0

    cpdef object count_refused(self, str name)

    cpdef object count_ended(self, str name)


cpdef bint is_insider(Peer peer) except -1
