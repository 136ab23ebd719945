cimport cython

from weft.broker.delivery.outbox cimport Outbox
from weft.wire.subjects cimport elements, is_literal, is_reserved


@cython.final
cdef class Subscriber:
    cdef readonly Outbox outbox
    cdef readonly int policy
    cdef readonly bint is_listener


@cython.final
cdef class GroupMembers:
    cdef readonly dict subscribers
    cdef public Py_ssize_t turn


@cython.final
cdef class Audience:
    cdef readonly dict plain
    cdef readonly dict groups


@cython.final
cdef class TrieNode:
    cdef dict children
    cdef TrieNode star
    cdef object here
    cdef object tail

    cdef bint is_bare(self) noexcept


@cython.final
cdef class Interest:
    cdef dict _literals
    cdef TrieNode _root

    @cython.locals(node=TrieNode, element=bytes)
    cpdef object add(self, bytes pattern, bytes group, Subscriber subscriber)

    @cython.locals(node=TrieNode, element=bytes, path=list, parts=list, is_tail=bint)
    cpdef object remove(self, bytes pattern, bytes group, Subscriber subscriber)

    cpdef object subscribers(self, bytes pattern, bytes group)

    @cython.locals(found=list, parts=list, node=TrieNode)
    cpdef list match(self, bytes subject)

    @cython.locals(
        found=list,
        parts=list,
        stack=list,
        walked=list,
        node=TrieNode,
        child=TrieNode,
        element=bytes,
    )
    cpdef list matching(self, bytes subject)

    @cython.locals(node=TrieNode, element=bytes)
    cdef object _place(self, bytes pattern)


@cython.locals(child=TrieNode)
cdef object _collect(TrieNode node, list parts, Py_ssize_t at, list found)

@cython.locals(child=TrieNode)
cdef TrieNode _next(TrieNode node, bytes element)

@cython.locals(child=TrieNode)
cdef TrieNode _stepped(TrieNode node, bytes element)

@cython.locals(depth=Py_ssize_t, parent=TrieNode, node=TrieNode, children=dict)
cdef object _prune(list path, list parts)

@cython.locals(audience=Audience, members=GroupMembers)
cdef object _joined(object place, bytes group, Subscriber subscriber)

@cython.locals(audience=Audience, members=GroupMembers)
cdef object _parted(object place, bytes group, Subscriber subscriber)

@cython.locals(audience=Audience)
cdef Audience _audience(object place)
