cimport cython

from weft.wire.message.flat_codec cimport put_flat
from weft.wire.frames cimport end_frame
from weft.wire.message.message cimport Message
from weft.wire.buffer cimport Spare, Writer

cdef int _MESSAGE
cdef int _BARE
cdef Py_ssize_t _OPENINGS_MAX
cdef dict _openings
cdef Spare _spare


cpdef bytes opening(str subject)

@cython.locals(name=bytes, writer=Writer)
cpdef bytes message_frame(str subject, object body, str reply=*, int flags=*)

cpdef Message message_from(object body)

@cython.locals(message=Message)
cdef int _put_body(Writer writer, object body) except -1

cdef bytes _remembered(str subject)
