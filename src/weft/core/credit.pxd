cimport cython

from weft.core.service cimport Peer, Service

cdef double _S


@cython.locals(service=Service, earned=double)
cpdef object spend(Peer peer, Py_ssize_t credit)
