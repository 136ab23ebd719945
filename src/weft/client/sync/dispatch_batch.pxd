cimport cython

from weft.client.subscriptions.receive_window cimport ReceiveWindow
from weft.client.received cimport BlockingReceived, blocking_received
from weft.client.subscriptions.context_check cimport is_changed

cdef Py_ssize_t _RELEASED_TOGETHER
cdef Py_ssize_t _MUCH_BYTES


@cython.final
cdef class Handling:
    cdef public bint is_discarding
    cdef object _handler
    cdef object _connection
    cdef object _callbacks
    cdef ReceiveWindow _intake
    cdef object _report
    cdef object _base

    cpdef Py_ssize_t run(self, list frames) except -1

    @cython.locals(count=Py_ssize_t, size=Py_ssize_t, released=Py_ssize_t, frame=bytes)
    cpdef Py_ssize_t run_here(self, list frames) except -1

    cdef int _handle(self, bytes frame) except -1

    cdef int _call(self, BlockingReceived message) except -1

    cdef int _fail(self, BlockingReceived message) except -1
