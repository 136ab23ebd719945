cimport cython

from weft.core.answers cimport told
from weft.core.messages cimport Message
from weft.core.service cimport Peer, Service
from weft.core.subjects cimport is_reserved, is_subject

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
