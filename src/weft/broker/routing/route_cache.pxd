cimport cython

from weft.broker.routing.route cimport Route
from weft.wire.subjects cimport elements, is_reserved

cdef Py_ssize_t _NODES_PER_ROUTE


@cython.final
cdef class CacheNode:
    cdef dict children
    cdef Route route


@cython.final
cdef class Generation:
    cdef dict nodes
    cdef Py_ssize_t made
    cdef Py_ssize_t receivers
    cdef CacheNode _root

    @cython.locals(node=CacheNode, child=CacheNode, element=bytes)
    cdef object add(self, Route route)

    @cython.locals(node=CacheNode, route=Route)
    cdef Route take(self, bytes subject)

    @cython.locals(route=Route, found=list)
    cdef object forget(self, bytes pattern)

    @cython.locals(route=Route, found=list)
    cdef object forget_all(self)


@cython.final
cdef class RouteCache:
    cdef Py_ssize_t _half
    cdef Py_ssize_t _half_receivers
    cdef Generation _young
    cdef Generation _old

    @cython.locals(node=CacheNode, route=Route)
    cpdef Route get(self, bytes subject)

    @cython.locals(young=Generation)
    cpdef object add(self, Route route)

    cpdef object forget(self, bytes pattern)


@cython.locals(child=CacheNode, element=bytes, name=bytes)
cdef object _find_cached(CacheNode node, list parts, Py_ssize_t at, list found)

@cython.locals(child=CacheNode)
cdef object _find_all_cached(CacheNode node, list found)
