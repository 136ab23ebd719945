from weft.wire.frames cimport Run
from weft.broker.delivery.outbox cimport Outbox
from weft.broker.routing.route cimport Route


cdef class Beyond:
    cpdef Outbox spread(self, Route route, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count)


cdef class Carrier:
    cpdef object take(self, Run run)

    cpdef object part(self)
