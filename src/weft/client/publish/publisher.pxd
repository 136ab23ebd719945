cimport cython

from weft.client.publish.encode cimport message_frame, opening
from weft.client.publish.send_buffer cimport SendBuffer

cdef int _NOT_BACK
cdef int _MASKED
cdef int _REQUEST
cdef int _FAILED
cdef object _END


@cython.final
cdef class Done:
    pass


cdef Done _DONE


cdef class Publishing:
    cdef SendBuffer _outgoing
    cdef object _required
    cdef object _requests

    @cython.locals(reply_start=Py_ssize_t, reply=bytes)
    cdef bytes _put_answer(self, bytes asked, object body, bint is_failure)

    @cython.locals(frame=bytes)
    cdef bytes _put(self, str subject, object body, str reply, int flags)


cdef class AsyncPublishing(Publishing):
    cdef object _calls


cdef class BlockingPublishing(Publishing):
    cdef object _acknowledged
    cdef double _timeout_s


@cython.locals(flags=int)
cdef int _flags(bint not_back, bint masked, str reply) except -1
