cimport cython

from weft.client.subscriptions.receive_window cimport ReceiveWindow
from weft.client.received cimport AsyncReceived, async_received, frame_of
from weft.client.subscriptions.context_check cimport is_changed

cdef Py_ssize_t _RELEASED_TOGETHER
cdef Py_ssize_t _MUCH_BYTES


@cython.final
cdef class AsyncQueue:
    cdef readonly bint is_ended
    cdef object _reading
    cdef readonly ReceiveWindow _intake
    cdef object _on_gap
    cdef object _on_news
    cdef Py_ssize_t _refused
    cdef readonly object _items
    cdef list _run
    cdef Py_ssize_t _at
    cdef AsyncReceived _given
    cdef readonly object base
    cdef object _news
    cdef bint _is_idle
    cdef Py_ssize_t _done
    cdef Py_ssize_t _done_bytes

    @cython.locals(size=Py_ssize_t, frame=bytes)
    cpdef object put(self, list frames)

    cpdef bytes take(self)

    @cython.locals(frame=bytes, message=AsyncReceived)
    cpdef object handle(self, object handler, object connection)

    cpdef AsyncReceived given(self)

    @cython.locals(message=AsyncReceived)
    cpdef object settle(self)

    cpdef object release(self, bytes frame)

    cdef bint _is_empty(self) except -1

    @cython.locals(frame=bytes)
    cdef int _put_each(self, list frames) except -1

    cdef object _turn_to(self, object item)

    @cython.locals(count=Py_ssize_t, size=Py_ssize_t)
    cdef int _hand_in(self) except -1

    cdef int _tell(self) except -1
