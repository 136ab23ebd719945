# The same as scope.py, by the functions behind copy_context(); unchanged contexts are one pointer.
cdef extern from "Python.h":
    object PyContext_CopyCurrent()


cpdef inline bint is_changed(object base) except -1:
    return PyContext_CopyCurrent() != base
