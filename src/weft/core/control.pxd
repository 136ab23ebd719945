cimport cython

from weft.core.answers cimport acknowledge, refuse
from weft.core.credit cimport spend
from weft.core.frames cimport Run
from weft.core.greeting cimport greet
from weft.core.service cimport Peer
from weft.core.words cimport cut, u32_at

cdef int _ANSWER
cdef int _CONNECT
cdef int _SUBSCRIBE
cdef int _UNSUBSCRIBE
cdef int _PING
cdef int _PONG
cdef int _GOODBYE


@cython.locals(data=bytearray, at=Py_ssize_t, size=Py_ssize_t)
cpdef object control(Peer peer, Run run)

@cython.locals(kind=int)
cdef object _deal(Peer peer, frame)
