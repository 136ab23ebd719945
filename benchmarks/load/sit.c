/* Subscribers that read and ignore everything: to be there, or to be stopped. */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "commands.h"
#include "connection.h"
#include "failure.h"

enum { EVENTS = 256 };

static uint8_t ignored[1 << 20];

static void watch(int poll, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) < 0) fail_errno("epoll_ctl");
}

int run_sit(const struct options *options) {
    int poll = epoll_create1(0);
    long left = options->count;
    struct epoll_event events[EVENTS];
    for (long i = 0; i < options->count; i++) {
        struct connection connection = join(options, i);
        subscribe(&connection, options->subject, 0);
        expect(&connection, CONFIRMED, SLEEP);
        watch(poll, connection.fd);
    }
    watch(poll, 0);
    printf("{\"subscribers\": %ld}\n", options->count);
    fflush(stdout);
    for (;;) {
        int found = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < found; i++) {
            int fd = events[i].data.fd;
            if (fd == 0) {
                printf("{\"left\": %ld}\n", left);
                return 0;
            }
            ssize_t got = recv(fd, ignored, sizeof ignored, 0);
            if (got > 0 || (got < 0 && errno == EAGAIN)) continue;
            epoll_ctl(poll, EPOLL_CTL_DEL, fd, NULL);
            left--;
        }
    }
}
