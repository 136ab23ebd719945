cimport cython
from libc.stdint cimport uint32_t

from weft.broker.delivery.outbox cimport Outbox
from weft.wire.byteops cimport put_u32, put_u64, u64_at
from weft.mesh.delivery.remote_gateway cimport RemoteGateway

cdef Py_ssize_t _COUNT
cdef Py_ssize_t _ENTRY


@cython.final
cdef class Branch:
    cdef readonly Outbox link
    cdef readonly bytearray header
    cdef readonly list slots
    cdef Py_ssize_t _entries

    @cython.locals(at=Py_ssize_t, distant=RemoteGateway)
    cpdef object count(self, Py_ssize_t frames)


@cython.final
cdef class OnwardBranch:
    cdef readonly Outbox link
    cdef readonly bytearray header
    cdef Py_ssize_t _entries

    cpdef object count(self, Py_ssize_t frames)

    @cython.locals(at=Py_ssize_t, end=Py_ssize_t)
    cpdef object go_on(self, Py_ssize_t frames)


@cython.final
cdef class ForwardingPlan:
    cdef readonly Py_ssize_t version
    cdef readonly list branches
