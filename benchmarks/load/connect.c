/* Many connections: how fast they are made, and then they are held. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "connection.h"
#include "failure.h"

enum { EVENTS = 256 };

enum state { DIALLING, WAITING, GREETED, SUBSCRIBING, DONE };

struct newcomer {
    struct connection connection;
    enum state state;
    double began_s;
};

static void watch(int poll, int fd, uint32_t events, uint64_t tag, int operation) {
    struct epoll_event event = {.events = events, .data.u64 = tag};
    if (epoll_ctl(poll, operation, fd, &event) < 0) fail_errno("epoll_ctl");
}

static void begin(struct newcomer *newcomer, const struct options *options, long number) {
    greet(&newcomer->connection, options, number);
    newcomer->state = GREETED;
}

/* One step on, for everything that the broker has said. */
static void listen_to(struct newcomer *newcomer, const struct options *options, long number) {
    char subject[SUBJECT_MAX];
    if (newcomer->state == WAITING) begin(newcomer, options, number);
    fill(&newcomer->connection);
    for (struct unit unit; (unit = take(&newcomer->connection)).said != PART;) {
        if (newcomer->state == SUBSCRIBING && (unit.said == CONFIRMED || unit.said == READY)) {
            newcomer->state = DONE;
        } else if (newcomer->state == GREETED && unit.said == READY) {
            newcomer->state = options->subscribe ? SUBSCRIBING : DONE;
            snprintf(subject, sizeof subject, "load.idle.%ld", number);
            if (options->subscribe) subscribe(&newcomer->connection, subject, number);
        }
    }
}

/* Whether it is done now. */
static int advance(struct newcomer *newcomer, const struct options *options, long number,
                   int poll) {
    if (newcomer->state == DIALLING) {
        watch(poll, newcomer->connection.fd, EPOLLIN, number, EPOLL_CTL_MOD);
        newcomer->state = WAITING;
        if (!newcomer->connection.protocol->broker_begins) begin(newcomer, options, number);
        return 0;
    }
    listen_to(newcomer, options, number);
    if (newcomer->state != DONE) return 0;
    watch(poll, newcomer->connection.fd, 0, number, EPOLL_CTL_DEL);
    return 1;
}

static double connect_all(struct newcomer *all, const struct options *options, int poll) {
    struct epoll_event events[EVENTS];
    long opened = 0, ready = 0;
    double worst_s = 0;
    while (ready < options->count) {
        for (; opened < options->count && opened - ready < options->window; opened++) {
            all[opened].began_s = now_s();
            all[opened].connection = dial(options, opened);
            watch(poll, all[opened].connection.fd, EPOLLOUT, opened, EPOLL_CTL_ADD);
        }
        int found = epoll_wait(poll, events, EVENTS, STALL_S * 1000);
        if (found <= 0) fail("stalled: %ld of %ld connections are ready", ready, options->count);
        for (int i = 0; i < found; i++) {
            long number = events[i].data.u64;
            if (!advance(&all[number], options, number, poll)) continue;
            double took_s = now_s() - all[number].began_s;
            if (took_s > worst_s) worst_s = took_s;
            ready++;
        }
    }
    return worst_s;
}

int run_connect(const struct options *options) {
    struct newcomer *all = calloc(options->count, sizeof *all);
    struct work before = work_so_far(options->pids);
    double began_s = now_s();
    double worst_s = connect_all(all, options, epoll_create1(0));
    double took_s = now_s() - began_s;
    struct work after = work_so_far(options->pids);
    printf("{\"connections\": %ld, \"seconds\": %.4f, \"per_s\": %.0f, \"worst_ms\": %.1f, "
           "\"own_cpu_s\": %.4f, \"broker_cpu_s\": %.4f}\n",
           options->count, took_s, options->count / took_s, worst_s * 1e3,
           after.own_s - before.own_s, after.brokers_s - before.brokers_s);
    fflush(stdout);
    char ignored[64];
    while (read(0, ignored, sizeof ignored) > 0) continue;
    return 0;
}
