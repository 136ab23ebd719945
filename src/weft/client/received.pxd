cimport cython

from weft.wire.message.message cimport Message, message_in


cdef int _REQUEST


cdef class Received:
    cdef bytes _frame
    cdef Message _message
    cdef object _publisher
    cdef bint _is_answered

    @cython.locals(message=Message)
    cdef Message _read(self)

    cdef object _answer(self, object body, bint is_failure)


@cython.final
cdef class AsyncReceived(Received):
    pass


@cython.final
cdef class BlockingReceived(Received):
    pass


@cython.locals(message=AsyncReceived)
cpdef AsyncReceived async_received(bytes frame, object publisher)

@cython.locals(message=BlockingReceived)
cpdef BlockingReceived blocking_received(bytes frame, object publisher)

cpdef bytes frame_of(Received message)
