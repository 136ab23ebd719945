cimport cython

from weft.broker.replies cimport told
from weft.wire.message.message cimport Message
from weft.broker.service cimport Peer, Service
from weft.wire.subjects cimport is_reserved, is_subject

cdef int _LINK
cdef int _WELCOME


@cython.locals(service=Service)
cpdef object greet(Peer peer, frame)

cpdef bint is_name(bytes name) except -1

cpdef object admit(Peer peer, key)

cpdef object identify(Service service, said)

@cython.locals(options=Message)
cdef object _introduction(bytes body)

@cython.locals(service=Service, welcome=Message)
cdef bytes _welcome(Peer peer, bytes subject, bytes was)
