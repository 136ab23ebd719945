cimport cython

from weft.core.frames cimport begin_frame, end_frame, stamp_frame
from weft.core.messages cimport Message
from weft.core.outbox cimport Outbox
from weft.core.routes cimport Route
from weft.core.service cimport Peer, Service
from weft.core.writer cimport Writer


@cython.locals(route=Route)
cpdef bint is_heard(Service service, str event) except -1

@cython.locals(
    subject=bytes,
    route=Route,
    writer=Writer,
    start=Py_ssize_t,
    frame=bytes,
    at=Py_ssize_t,
    outbox=Outbox,
)
cpdef object announce(Service service, str event, Message message)
