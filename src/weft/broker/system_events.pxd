cimport cython

from weft.wire.frames cimport begin_frame, end_frame, stamp_frame
from weft.wire.message.message cimport Message
from weft.broker.delivery.outbox cimport Outbox
from weft.broker.routing.route cimport Route
from weft.broker.service cimport Peer, Service
from weft.wire.buffer cimport Writer


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
