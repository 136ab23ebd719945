# The C bodies of kernel.py, for modules that cimport them; the contract is in kernel.py.
from libc.errno cimport EAGAIN, EINTR, errno

cdef extern from "sys/socket.h" nogil:
    enum:
        MSG_DONTWAIT
        MSG_NOSIGNAL
    ssize_t send_to_socket "send"(int fd, const void *data, size_t length, int flags)
    ssize_t receive_from_socket "recv"(int fd, void *data, size_t length, int flags)


cdef inline Py_ssize_t failure() noexcept:
    return -1 if errno == EAGAIN or errno == EINTR else -2


cpdef inline Py_ssize_t send(
    int fd, const unsigned char *data, Py_ssize_t start, Py_ssize_t length
) noexcept:
    cdef Py_ssize_t count = send_to_socket(fd, data + start, length, MSG_DONTWAIT | MSG_NOSIGNAL)
    return count if count >= 0 else failure()


cpdef inline Py_ssize_t receive(
    int fd, unsigned char *data, Py_ssize_t start, Py_ssize_t length
) noexcept:
    cdef Py_ssize_t count = receive_from_socket(fd, data + start, length, MSG_DONTWAIT)
    return count if count >= 0 else failure()
