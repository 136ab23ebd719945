# The C functions of syscalls.py, for modules that cimport them; the contract is in syscalls.py.
from cpython.exc cimport PyErr_SetFromErrno
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint16_t

cdef extern from "sys/socket.h" nogil:
    enum:
        AF_INET
        AF_INET6
        MSG_DONTWAIT
        MSG_NOSIGNAL
        MSG_PEEK
        SOCK_CLOEXEC
        SOCK_NONBLOCK
    ctypedef unsigned int socklen_t
    struct sockaddr:
        pass
    struct sockaddr_storage:
        unsigned short ss_family
    int accept4(int fd, sockaddr *address, socklen_t *size, int flags)
    ssize_t send_to_socket "send"(int fd, const void *data, size_t length, int flags)
    ssize_t receive_from_socket "recv"(int fd, void *data, size_t length, int flags)

cdef extern from "netinet/in.h" nogil:
    struct in_addr:
        pass
    struct in6_addr:
        pass
    struct sockaddr_in:
        uint16_t sin_port
        in_addr sin_addr
    struct sockaddr_in6:
        uint16_t sin6_port
        in6_addr sin6_addr

cdef extern from "arpa/inet.h" nogil:
    enum:
        INET6_ADDRSTRLEN
    uint16_t ntohs(uint16_t number)
    const char *inet_ntop(int family, const void *address, char *text, socklen_t size)


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


cpdef inline Py_ssize_t peek(int fd, unsigned char *data, Py_ssize_t length) noexcept:
    cdef Py_ssize_t count = receive_from_socket(fd, data, length, MSG_PEEK | MSG_DONTWAIT)
    return count if count >= 0 else failure()


cpdef inline tuple accept(int listening):
    cdef sockaddr_storage address
    cdef sockaddr_in *four = <sockaddr_in *> &address
    cdef sockaddr_in6 *six = <sockaddr_in6 *> &address
    cdef socklen_t size = sizeof(address)
    cdef char host[INET6_ADDRSTRLEN]
    cdef int fd = accept4(listening, <sockaddr *> &address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK)
    if fd < 0:
        PyErr_SetFromErrno(OSError)
    if address.ss_family == AF_INET6:
        inet_ntop(AF_INET6, &six.sin6_addr, host, INET6_ADDRSTRLEN)
        return fd, host.decode("ascii"), ntohs(six.sin6_port)
    inet_ntop(AF_INET, &four.sin_addr, host, INET6_ADDRSTRLEN)
    return fd, host.decode("ascii"), ntohs(four.sin_port)
