# Same as context_check.py, with the function behind copy_context(): an unchanged context is the
# same pointer.
cdef extern from "Python.h":
    object PyContext_CopyCurrent()


cpdef inline bint is_changed(object base) except -1:
    return PyContext_CopyCurrent() != base
