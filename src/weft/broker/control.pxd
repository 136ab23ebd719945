cimport cython

from weft.broker.replies cimport acknowledge, ok_frame, refuse
from weft.broker.rate_limit cimport spend
from weft.wire.frames cimport Run
from weft.broker.handshake cimport greet
from weft.broker.service cimport Peer
from weft.wire.byteops cimport cut, u32_at

cdef int _ANSWER
cdef int _CONNECT
cdef int _SUBSCRIBE
cdef int _UNSUBSCRIBE
cdef int _PING
cdef int _PONG
cdef int _GOODBYE
cdef int _LANE
cdef int _TAIL


@cython.locals(data=bytearray, at=Py_ssize_t, size=Py_ssize_t, whole=bytes)
cpdef object control(Peer peer, Run run)

@cython.locals(kind=int)
cdef object _deal(Peer peer, frame)

cdef object _deal_with_lanes(Peer peer, frame, bytes whole)

@cython.locals(data=bytearray, at=Py_ssize_t)
cdef object _pass_tails(Peer peer, Run run, laning)

cdef object _acknowledge(Peer peer, Py_ssize_t at)

cdef object _owe_in_time(Peer peer, bytes frames)
