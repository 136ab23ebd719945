cimport cython
from libc.stdint cimport uint32_t, uint64_t

from weft.broker.mesh_hooks cimport Carrier
from weft.wire.frames cimport Run
from weft.broker.delivery.outbox cimport Outbox
from weft.broker.service cimport Peer
from weft.wire.byteops cimport cut, put_bytes, put_u32, u32_at, u64_at
from weft.mesh.delivery.receiver cimport Arrivals
from weft.mesh.delivery.origin_stream cimport Incoming
from weft.mesh.delivery.frame_batch cimport Load
from weft.mesh.delivery.sender cimport MeshSender
from weft.mesh.routing.forwarding_tree cimport OnwardBranch

cdef Py_ssize_t _HEADER
cdef Py_ssize_t _ENTRY
cdef Py_ssize_t _COUNT
cdef Py_ssize_t _ENTRIES
cdef Py_ssize_t _HOPS
cdef int _HOPS_MAX
cdef int _WORD
cdef int _INTEREST
cdef uint64_t _NUMBER_MAX
cdef int _TRACE
cdef int _MESSAGE
cdef int _ERROR
cdef int _PING
cdef int _PONG
cdef int _GOODBYE
cdef int _FORWARD
cdef int _FABRIC


cdef class LinkCarrier(Carrier):
    cdef Peer _peer
    cdef uint32_t _number
    cdef MeshSender _outgoing
    cdef Arrivals _arrivals
    cdef object _listener
    cdef Py_ssize_t _left
    cdef Load _load
    cdef uint64_t _number_here
    cdef bint _is_for_here
    cdef bytes _path
    cdef Incoming _incoming
    cdef list _parts
    cdef object _passage

    @cython.locals(kind=int)
    cpdef object take(self, Run run)

    cpdef object part(self)

    @cython.locals(data=bytearray)
    cdef object _end(self, Run run)

    @cython.locals(
        data=bytearray, count=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t, left=Py_ssize_t
    )
    cdef object _split(self, Run run)

    @cython.locals(
        load=Load, at=Py_ssize_t, end=Py_ssize_t, below=Py_ssize_t, part_end=Py_ssize_t
    )
    cdef object _open(self, bytes header)

    @cython.locals(load=Load)
    cdef object _open_here(self, bytes header, Py_ssize_t at)

    @cython.locals(
        link=Outbox,
        path_end=Py_ssize_t,
        length=Py_ssize_t,
        made=bytearray,
        entries=Py_ssize_t,
    )
    cdef object _open_part(self, bytes header, Py_ssize_t at, Py_ssize_t end)

    cpdef object _detour(self, bytes header, Py_ssize_t at, Py_ssize_t end)

    @cython.locals(count=Py_ssize_t, load=Load, part=OnwardBranch, is_taken=bint)
    cdef object _carry(self, Run run)

    @cython.locals(data=bytearray, at=Py_ssize_t, size=Py_ssize_t, body=bytes)
    cdef object _hear(self, Run run, bint is_near)
