cimport cython

from weft.client.content cimport message_frame, opening
from weft.client.outgoing cimport Outgoing

cdef int _NOT_BACK
cdef object _END


@cython.final
cdef class Done:
    pass


cdef Done _DONE


cdef class AsyncPublishing:
    cdef Outgoing _outgoing
    cdef object _calls


cdef class BlockingPublishing:
    cdef Outgoing _outgoing
    cdef object _acknowledged
    cdef double _timeout_s
