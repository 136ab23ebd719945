cimport cython

from weft.transports.loop.syscalls cimport peek
from weft.gateway.front.listener cimport PortListener
from weft.gateway.front.pending_connections cimport Lobby, Visitor
from weft.gateway.front.sniff cimport Classification, look

cdef int _NOT_NOW
cdef int _MORE
cdef int _MORE_HTTP
cdef int _DOOR
cdef int _GREETING
cdef int _HANDSHAKE
cdef int _LINK


@cython.final
cdef class Front:
    cdef object _services
    cdef object _refusals
    cdef object _web
    cdef object _encryption
    cdef object _loop
    cdef Lobby _lobby
    cdef PortListener _listener
    cdef object _limits
    cdef object _room
    cdef Py_ssize_t _greeting_bytes
    cdef bytearray _first_bytes
    cdef Py_ssize_t _places
    cdef Py_ssize_t _length
    cdef bint _is_plain_allowed

    cpdef object _take(self, list accepted)

    @cython.locals(length=Py_ssize_t, verdict=Classification)
    cpdef object _look(self, Visitor visitor, bint is_all)

    @cython.locals(want=int)
    cdef object _follow(self, Visitor visitor, Classification verdict)

    cdef bint _lacks_head(self, Visitor visitor, str service) except? -1

    cdef object _wait(self, Visitor visitor, Py_ssize_t needed)

    cdef object _hand_over(self, Visitor visitor, str service, int way)

    cdef object _refuse(self, Visitor visitor, error)

    cdef object _released(self, Visitor visitor)
