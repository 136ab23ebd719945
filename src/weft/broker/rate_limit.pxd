cimport cython

from weft.broker.service cimport Peer, Service

cdef double _S


@cython.locals(service=Service, earned=double)
cpdef object spend(Peer peer, Py_ssize_t credit)
