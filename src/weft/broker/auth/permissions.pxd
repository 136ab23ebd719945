cimport cython

from weft.wire.subjects cimport covers, is_literal, overlaps


@cython.final
cdef class Rule:
    cdef readonly bint is_all
    cdef readonly tuple allow
    cdef readonly tuple deny

    @cython.locals(pattern=bytes)
    cpdef bint denies(self, bytes name) except -1

    @cython.locals(pattern=bytes)
    cpdef bint grants(self, bytes name) except -1


@cython.final
cdef class Enabled:
    cdef list _holders
    cdef list _wild

    @cython.locals(pattern=bytes)
    cpdef bint grants(self, int right, bytes name) except -1

    @cython.locals(holders=set)
    cpdef bint hold(self, int right, bytes pattern, object number) except -1

    @cython.locals(holders=set)
    cpdef bint let_go(self, int right, bytes pattern, object number) except -1


@cython.final
cdef class Rights:
    cdef readonly tuple rules
    cdef Enabled _enabled

    @cython.locals(rule=Rule)
    cpdef bint allows(self, int right, bytes name) except -1

    @cython.locals(rule=Rule)
    cpdef bint denies(self, int right, bytes name) except -1

    @cython.locals(rule=Rule)
    cpdef bint has(self, int right) except -1


cpdef object may_not(str deed, bytes name)
