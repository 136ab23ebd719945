cimport cython

from weft.broker.replies cimport error_frame, put_ok
from weft.broker.journal.batcher cimport Journal
from weft.broker.service cimport Peer, Service


@cython.locals(journal=Journal)
cpdef object keep(Peer peer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count)

@cython.locals(journal=Journal)
cpdef object why_not_kept(Service service)

@cython.locals(journal=Journal)
cpdef object acknowledge_when_safe(Peer peer, Py_ssize_t at)

@cython.locals(journal=Journal, peer=Peer, oks=bytes, at=Py_ssize_t, subject_end=Py_ssize_t)
cpdef object journal_failed(Service service, str problem)
