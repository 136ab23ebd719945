cimport cython
from libc.stdint cimport uint32_t

from weft.broker.delivery.arena cimport Arena
from weft.broker.mesh_hooks cimport Beyond
from weft.broker.delivery.outbox cimport Outbox
from weft.broker.routing.route cimport Group, Route
from weft.broker.service cimport Service
from weft.wire.byteops cimport put_u32, put_u64, u32_at
from weft.mesh.counters cimport TrafficCounts
from weft.mesh.delivery.remote_gateway cimport RemoteGateway
from weft.mesh.routing.forwarding_tree cimport Branch, ForwardingPlan
from weft.mesh.delivery.retransmit_buffer cimport RetransmitBuffer

cdef int _CUT
cdef int _MESSAGE
cdef int _ERROR


cdef class MeshSender(Beyond):
    cdef readonly Service service
    cdef readonly uint32_t own
    cdef readonly Arena arena
    cdef readonly TrafficCounts counts
    cdef readonly dict distants
    cdef readonly object ways
    cdef readonly RetransmitBuffer ring
    cdef readonly Py_ssize_t version
    cdef dict _plans

    cpdef object go_by(self, ways)

    cpdef object forget_plans(self)

    @cython.locals(plan=ForwardingPlan, crowded=Outbox)
    cpdef Outbox spread(self, Route route, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count)

    @cython.locals(length=Py_ssize_t, at=Py_ssize_t)
    cpdef bint push(
        self, Outbox link, bytearray header, Py_ssize_t start, Py_ssize_t end
    ) except -1

    cpdef ForwardingPlan _plan(self, Route route)

    @cython.locals(ring=RetransmitBuffer, branch=Branch, crowded=Outbox)
    cdef Outbox _send(self, list branches, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count)

    cpdef object _send_apart(self, list branches, bytes frames, Py_ssize_t count)

    cpdef bint _push_apart(self, Outbox link, bytearray header, bytes frames) except -1

    @cython.locals(
        size=Py_ssize_t, distant=RemoteGateway, group=Group, crowded=Outbox, outbox=Outbox
    )
    cpdef Outbox _share(self, Route route, Py_ssize_t start, Py_ssize_t end)


@cython.locals(outbox=Outbox)
cdef Outbox _pick(Group group)
