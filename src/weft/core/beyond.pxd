from weft.core.frames cimport Run
from weft.core.outbox cimport Outbox
from weft.core.routes cimport Route


cdef class Beyond:
    cpdef Outbox spread(self, Route route, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count)


cdef class Carrier:
    cpdef object take(self, Run run)

    cpdef object part(self)
