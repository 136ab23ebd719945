/* A load generator for gateways and other brokers: one thread, epoll, closed loops.
 *
 *   load connect PROTOCOL PORT COUNT WINDOW     open COUNT connections, print the rate, hold them
 *                                               until standard input ends
 *   load flow PORT SERVICE FLOWS SUBSCRIBERS SIZE COUNT WINDOW
 *                                               FLOWS subjects, each with one publisher and so many
 *                                               subscribers; COUNT messages of SIZE bytes each, at
 *                                               most WINDOW of them on their way
 *   load pace PORT SERVICE SIZE COUNT RATE      one message at a time at a rate; latencies in µs
 *   load sit PORT SERVICE SUBJECT COUNT         COUNT subscribers that read and ignore everything,
 *                                               cut or not, until standard input ends
 *
 * PROTOCOL is weft or nats. Everything printed is one line of JSON.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 32, CONNECT = 1, SUBSCRIBE = 3, MESSAGE = 5, ANSWER = 1, BARE = 8 };
enum { BUFFER = 1 << 20, STALL_S = 30 };

static uint8_t buffer[BUFFER];

static void fail(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

static size_t put_frame(uint8_t *at, int kind, int flags, const char *subject, size_t body) {
    uint32_t size = HEADER + strlen(subject) + body;
    memset(at, 0, size);
    memcpy(at, &size, 4);
    at[4] = kind;
    at[5] = flags;
    at[6] = strlen(subject);
    memcpy(at + HEADER, subject, strlen(subject));
    return size;
}

static struct sockaddr_in address_of(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* Ports of one source address run out near 28,000: spread over 127.0.0.2 and on. */
static int dial(int port, int number) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) fail("socket");
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    struct sockaddr_in from = address_of(0);
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + number / 10000);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) < 0) fail("bind");
    struct sockaddr_in to = address_of(port);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS) fail("connect");
    return fd;
}

static void watch(int poll, int fd, uint32_t events, uint64_t tag, int operation) {
    struct epoll_event event = {.events = events, .data.u64 = tag};
    if (epoll_ctl(poll, operation, fd, &event) < 0) fail("epoll_ctl");
}

static void send_all(int fd, const uint8_t *data, size_t length) {
    while (length > 0) {
        ssize_t count = send(fd, data, length, MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN) continue;
        if (count < 0) fail("send");
        data += count;
        length -= count;
    }
}

static void receive_exactly(int fd, uint8_t *data, size_t length) {
    while (length > 0) {
        ssize_t count = recv(fd, data, length, 0);
        if (count < 0 && errno == EAGAIN) continue;
        if (count <= 0) fail("the gateway closed the connection");
        data += count;
        length -= count;
    }
}

static void receive_frame(int fd, int kind) {
    uint32_t size;
    receive_exactly(fd, buffer, 4);
    memcpy(&size, buffer, 4);
    receive_exactly(fd, buffer + 4, size - 4);
    if (buffer[4] != kind) {
        fprintf(stderr, "load: frame of kind %d instead of %d\n", buffer[4], kind);
        exit(1);
    }
}

static int open_weft(int port, const char *service, const char *subject, int number) {
    int fd = dial(port, number);
    struct epoll_event event;
    int poll = epoll_create1(0);
    watch(poll, fd, EPOLLOUT, 0, EPOLL_CTL_ADD);
    if (epoll_wait(poll, &event, 1, 5000) != 1) fail("connect");
    close(poll);
    size_t length = put_frame(buffer, CONNECT, 0, service, 0);
    if (subject) length += put_frame(buffer + length, SUBSCRIBE, ANSWER, subject, 0);
    send_all(fd, buffer, length);
    receive_frame(fd, 2);
    if (subject) receive_frame(fd, 6);
    return fd;
}

/* ---- connect ---- */

static void greet(int fd, int is_nats) {
    uint8_t hello[64];
    if (is_nats) {
        const char *text = "CONNECT {\"verbose\":false}\r\nPING\r\n";
        send_all(fd, (const uint8_t *)text, strlen(text));
    } else {
        send_all(fd, hello, put_frame(hello, CONNECT, 0, "default", 0));
    }
}

static int is_welcomed(int fd, int is_nats, int *seen) {
    uint8_t text[4096];
    ssize_t count = recv(fd, text, sizeof text, 0);
    if (count <= 0) fail("a connection was closed before its welcome");
    if (!is_nats) return text[4] == 2;
    if (!*seen) {
        *seen = 1; /* INFO: now it is our turn */
        greet(fd, 1);
        return 0;
    }
    return 1;
}

static int do_connect(char **argument) {
    int is_nats = strcmp(argument[0], "nats") == 0;
    int port = atoi(argument[1]), count = atoi(argument[2]), window = atoi(argument[3]);
    int poll = epoll_create1(0), opened = 0, ready = 0;
    int *fds = calloc(count, sizeof *fds), *seen = calloc(count, sizeof *seen);
    struct epoll_event events[256];
    double began = now_s(), worst = 0;
    double *started = calloc(count, sizeof *started);
    while (ready < count) {
        while (opened < count && opened - ready < window) {
            fds[opened] = dial(port, opened);
            started[opened] = now_s();
            watch(poll, fds[opened], EPOLLOUT, opened, EPOLL_CTL_ADD);
            opened++;
        }
        int found = epoll_wait(poll, events, 256, STALL_S * 1000);
        if (found <= 0) fail("nothing happened");
        for (int i = 0; i < found; i++) {
            int number = events[i].data.u64;
            if (events[i].events & EPOLLOUT) {
                if (!is_nats) greet(fds[number], 0);
                watch(poll, fds[number], EPOLLIN, number, EPOLL_CTL_MOD);
            } else if (is_welcomed(fds[number], is_nats, &seen[number])) {
                watch(poll, fds[number], 0, number, EPOLL_CTL_DEL);
                double took = now_s() - started[number];
                if (took > worst) worst = took;
                ready++;
            }
        }
    }
    double took = now_s() - began;
    printf("{\"connections\": %d, \"per_s\": %.0f, \"worst_ms\": %.1f}\n", count, count / took,
           worst * 1e3);
    fflush(stdout);
    while (read(0, buffer, BUFFER) > 0) {
    }
    return 0;
}

/* ---- flow ---- */

struct flow {
    int publisher;
    long sent, received; /* messages; received by all its subscribers */
    size_t offset;       /* bytes of the current message that are gone */
    size_t frame;
    uint8_t *frames; /* as many frames as one send takes */
    size_t room;     /* of frames, in messages */
    int is_blocked;
};

static void push(struct flow *flow, int subscribers, long count, long window) {
    for (;;) {
        long may = window - (flow->sent - flow->received / subscribers);
        if (may > count - flow->sent) may = count - flow->sent;
        if (may > (long)flow->room) may = flow->room;
        if (may <= 0) return;
        size_t length = may * flow->frame - flow->offset;
        ssize_t gone = send(flow->publisher, flow->frames + flow->offset, length, MSG_NOSIGNAL);
        if (gone < 0 && errno == EAGAIN) {
            flow->is_blocked = 1;
            return;
        }
        if (gone < 0) fail("send");
        flow->offset += gone;
        flow->sent += flow->offset / flow->frame;
        flow->offset %= flow->frame;
    }
}

static int do_flow(char **argument) {
    int port = atoi(argument[0]), flows = atoi(argument[2]), subscribers = atoi(argument[3]);
    const char *service = argument[1];
    size_t size = atoi(argument[4]);
    long count = atol(argument[5]), window = atol(argument[6]);
    struct flow *all = calloc(flows, sizeof *all);
    int poll = epoll_create1(0), number = 0;
    int *readers = calloc((size_t)flows * subscribers, sizeof *readers);
    size_t *parts = calloc((size_t)flows * subscribers, sizeof *parts);
    for (int i = 0; i < flows; i++) {
        char subject[64];
        snprintf(subject, sizeof subject, "load.%d", i);
        struct flow *flow = &all[i];
        flow->frame = HEADER + strlen(subject) + size;
        flow->room = (256 << 10) / flow->frame + 1;
        flow->frames = malloc(flow->room * flow->frame);
        for (size_t j = 0; j < flow->room; j++)
            put_frame(flow->frames + j * flow->frame, MESSAGE, BARE, subject, size);
        for (int j = 0; j < subscribers; j++, number++) {
            readers[number] = open_weft(port, service, subject, number);
            watch(poll, readers[number], EPOLLIN, (uint64_t)number, EPOLL_CTL_ADD);
        }
        flow->publisher = open_weft(port, service, NULL, number);
        watch(poll, flow->publisher, EPOLLOUT | EPOLLET, 1ull << 32 | i, EPOLL_CTL_ADD);
    }
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    long due = count * flows * subscribers, done = 0;
    double began = now_s();
    for (int i = 0; i < flows; i++) push(&all[i], subscribers, count, window);
    struct epoll_event events[256];
    while (done < due) {
        int found = epoll_wait(poll, events, 256, STALL_S * 1000);
        if (found <= 0) {
            fprintf(stderr, "load: stalled after %ld of %ld deliveries\n", done, due);
            return 1;
        }
        for (int i = 0; i < found; i++) {
            uint64_t tag = events[i].data.u64;
            struct flow *flow = &all[tag >> 32 ? (int)(uint32_t)tag : (int)tag / subscribers];
            if (tag >> 32) {
                flow->is_blocked = 0;
            } else {
                ssize_t got = recv(readers[tag], buffer, BUFFER, 0);
                if (got < 0 && errno == EAGAIN) continue;
                if (got <= 0) fail("a subscriber was cut");
                parts[tag] += got;
                long whole = parts[tag] / flow->frame;
                parts[tag] %= flow->frame;
                flow->received += whole;
                done += whole;
            }
            if (!flow->is_blocked) push(flow, subscribers, count, window);
        }
    }
    double took = now_s() - began;
    getrusage(RUSAGE_SELF, &after);
    double cpu = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                 (after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                 (after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6 +
                 (after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
    printf("{\"deliveries\": %ld, \"seconds\": %.4f, \"per_s\": %.0f, \"own_cpu_s\": %.3f}\n", due,
           took, due / took, cpu);
    return 0;
}

/* ---- sit ---- */

static int do_sit(char **argument) {
    int port = atoi(argument[0]), count = atoi(argument[3]), poll = epoll_create1(0), left = count;
    for (int i = 0; i < count; i++) {
        int fd = open_weft(port, argument[1], argument[2], i);
        watch(poll, fd, EPOLLIN, fd, EPOLL_CTL_ADD);
    }
    watch(poll, 0, EPOLLIN, 0, EPOLL_CTL_ADD);
    printf("{\"subscribers\": %d}\n", count);
    fflush(stdout);
    struct epoll_event events[256];
    for (;;) {
        int found = epoll_wait(poll, events, 256, -1);
        for (int i = 0; i < found; i++) {
            int fd = events[i].data.u64;
            if (fd == 0) {
                printf("{\"left\": %d}\n", left);
                return 0;
            }
            ssize_t got = recv(fd, buffer, BUFFER, 0);
            if (got == 0 || (got < 0 && errno != EAGAIN)) {
                close(fd);
                left--;
            }
        }
    }
}

/* ---- pace ---- */

static int by_value(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static int do_pace(char **argument) {
    int port = atoi(argument[0]), count = atoi(argument[3]);
    size_t size = atoi(argument[2]);
    double rate = atof(argument[4]);
    const char *subject = "load.pace";
    int reader = open_weft(port, argument[1], subject, 0);
    int writer = open_weft(port, argument[1], NULL, 0);
    size_t length = put_frame(buffer, MESSAGE, BARE, subject, size);
    uint8_t *frame = malloc(length), *heard = malloc(length);
    memcpy(frame, buffer, length);
    double *took = calloc(count, sizeof *took), next = now_s();
    for (int i = 0; i < count; i++) {
        while (now_s() < next) {
        }
        next += 1 / rate;
        double began = now_s();
        send_all(writer, frame, length);
        receive_exactly(reader, heard, length);
        took[i] = now_s() - began;
    }
    qsort(took, count, sizeof *took, by_value);
    printf("{\"messages\": %d, \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f}\n", count,
           took[count / 2] * 1e6, took[count * 99 / 100] * 1e6, took[(long)count * 999 / 1000] * 1e6);
    return 0;
}

int main(int count, char **argument) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (count == 6 && strcmp(argument[1], "connect") == 0) return do_connect(argument + 2);
    if (count == 9 && strcmp(argument[1], "flow") == 0) return do_flow(argument + 2);
    if (count == 7 && strcmp(argument[1], "pace") == 0) return do_pace(argument + 2);
    if (count == 6 && strcmp(argument[1], "sit") == 0) return do_sit(argument + 2);
    fprintf(stderr, "load: see the top of benchmarks/load.c for how it is called\n");
    return 2;
}
