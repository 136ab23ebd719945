cimport cython
from libc.stdint cimport uint32_t

from weft.wire.frames cimport Run, Stamp
from weft.broker.journal.batcher cimport Journal
from weft.broker.auth.permissions cimport Rights
from weft.broker.routing.route cimport Route
from weft.broker.service cimport Service
from weft.wire.subjects cimport is_reserved, is_subject
from weft.wire.byteops cimport cut, u32_at

cdef int _MESSAGE
cdef int _BARE
cdef Py_ssize_t _HEADER
cdef int _MAY_PUBLISH


@cython.final
cdef class Release:
    cdef Service _service
    cdef public Py_ssize_t known
    cdef readonly bint is_begun
    cdef readonly uint32_t publisher

    @cython.locals(service=Service, data=bytearray, run=Run, stamp=Stamp)
    cpdef object publish(self, Py_ssize_t start, Py_ssize_t end)

    @cython.locals(
        service=Service,
        data=bytearray,
        route=Route,
        start=Py_ssize_t,
        skipped=Py_ssize_t,
        journal=Journal,
        receivers=Py_ssize_t,
    )
    cdef object _publish(self, Run run)


@cython.locals(run=Run, rows=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t)
cpdef Py_ssize_t checked_rows(
    bytes frames, Py_ssize_t body_limit_bytes, Rights rights=*
) except -1

@cython.locals(at=Py_ssize_t, names=Py_ssize_t, reply=bytes)
cdef object _check_replies(Run run, bytes frames, Rights rights)

cdef object _check_subject(bytes name, tuple allowed, Rights rights)
