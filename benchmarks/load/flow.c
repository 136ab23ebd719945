/* Publishers to subscribers in closed loops: what comes back lets more be sent. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "clock.h"
#include "commands.h"
#include "failure.h"
#include "payload.h"
#include "tally.h"

enum { EVENTS = 256, AT_ONCE = 256 << 10, PATTERN_CONNECTIONS = 10, SETTLE_MS = 20 };

static const uint64_t PUBLISHER = 1ull << 32;

struct flow {
    struct tally publisher;  /* of its acknowledgements, where there are any */
    struct tally *readers;
    long reader_count;
    long copies;             /* how many readers get each message */
    long proofs;             /* messages that were sent by themselves before */
    long sent, received;     /* messages; received by all readers together */
    long limit;              /* messages to be sent, all in all */
    size_t offset;           /* bytes of the present message that are gone */
    size_t frame;            /* bytes of a message */
    size_t room;             /* messages that one send may take */
    uint8_t *frames;         /* twice as many, so that a send may begin at any of the first half */
    int is_blocked;
};

static void push(struct flow *flow, long window) {
    for (;;) {
        long may = window - (flow->sent - flow->received / flow->copies);
        if (may > flow->limit - flow->sent) may = flow->limit - flow->sent;
        if (may > (long)flow->room) may = flow->room;
        if (may <= 0) return;
        const uint8_t *from = flow->frames + flow->sent % flow->room * flow->frame + flow->offset;
        size_t length = may * flow->frame - flow->offset;
        ssize_t gone = send(flow->publisher.connection.fd, from, length, MSG_NOSIGNAL);
        flow->is_blocked = gone < 0 && errno == EAGAIN;
        if (flow->is_blocked) return;
        if (gone < 0) fail_errno("the broker cut a publisher");
        flow->offset += gone;
        flow->sent += flow->offset / flow->frame;
        flow->offset %= flow->frame;
    }
}

/* Sends a message once by itself: every reader that must have it has it, as it was sent. */
static void prove(struct flow *flow, const struct message *message, long first, long copies) {
    publish(&flow->publisher.connection, message);
    flow->proofs++;
    for (long i = first; i < first + copies; i++) {
        struct unit unit = learn(&flow->readers[i], DELIVERED);
        check_payload(&unit, message);
    }
    if (!flow->publisher.connection.protocol->hears_apart) return;
    struct unit unit = learn(&flow->publisher, ACKNOWLEDGED);
    if (unit.receivers != copies) fail("%ld receivers instead of %ld", unit.receivers, copies);
}

/* Lays out messages to these subjects, one after the other, as often as one send may take. */
static void prepare(struct flow *flow, const struct message *messages, long subjects) {
    const struct protocol *protocol = flow->publisher.connection.protocol;
    uint8_t *one = malloc(messages->size + 2 * SUBJECT_MAX);
    flow->frame = protocol->put_message(one, messages);
    free(one);
    flow->room = (AT_ONCE / (flow->frame * subjects) + 1) * subjects;
    flow->frames = malloc(2 * flow->room * flow->frame + 1);
    for (size_t i = 0; i < 2 * flow->room; i++)
        protocol->put_message(flow->frames + i * flow->frame, &messages[i % subjects]);
}

static void open_readers(struct flow *flow, const struct options *options, long first) {
    flow->readers = calloc(flow->reader_count, sizeof *flow->readers);
    for (long i = 0; i < flow->reader_count; i++)
        flow->readers[i].connection = join(options, first + i);
}

static void open_publisher(struct flow *flow, const struct options *options, long first) {
    flow->publisher.connection = join_to_publish(options, first + flow->reader_count);
}

/* One subject, and subscribers that ask for just this. */
static void open_plain(struct flow *flow, const struct options *options, long number) {
    char subject[SUBJECT_MAX];
    snprintf(subject, sizeof subject, "load.%ld", number);
    flow->reader_count = flow->copies = options->subscribers;
    long first = number * (options->subscribers + 1);
    open_readers(flow, options, first);
    for (long i = 0; i < flow->reader_count; i++) {
        subscribe(&flow->readers[i].connection, subject, 0);
        expect(&flow->readers[i].connection, CONFIRMED, SLEEP);
    }
    open_publisher(flow, options, first);
    struct message message = message_to(subject, options->size);
    prove(flow, &message, 0, flow->copies);
    prepare(flow, &message, 1);
}

/* Many patterns, over a few connections, and subjects of which each matches one of them. */
static void open_patterns(struct flow *flow, const struct options *options) {
    char text[SUBJECT_MAX];
    flow->copies = 1;
    flow->reader_count = PATTERN_CONNECTIONS;
    open_readers(flow, options, 0);
    for (long i = 0; i < options->patterns; i++) {
        struct tally *reader = &flow->readers[i % flow->reader_count];
        snprintf(text, sizeof text, "load.%05ld.*", i);
        subscribe(&reader->connection, text, i);
        expect(&reader->connection, CONFIRMED, SLEEP);
    }
    open_publisher(flow, options, 0);
    struct message *messages = calloc(options->subjects, sizeof *messages);
    for (long i = 0; i < options->subjects; i++) {
        snprintf(text, sizeof text, "load.%05ld.here", i);
        messages[i] = message_to(text, options->size);
        prove(flow, &messages[i], i % flow->reader_count, 1);
    }
    prepare(flow, messages, options->subjects);
}

static void watch(int poll, int fd, uint32_t events, uint64_t tag) {
    struct epoll_event event = {.events = events, .data.u64 = tag};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) < 0) fail_errno("epoll_ctl");
}

/* Every flow has as many readers, so that the number of one tells its flow. */
static struct flow *open_flows(const struct options *options, int poll) {
    struct flow *flows = calloc(options->flows, sizeof *flows);
    for (long i = 0; i < options->flows; i++) {
        struct flow *flow = &flows[i];
        if (options->patterns) {
            open_patterns(flow, options);
        } else {
            open_plain(flow, options, i);
        }
        for (long j = 0; j < flow->reader_count; j++)
            watch(poll, flow->readers[j].connection.fd, EPOLLIN, i * flow->reader_count + j);
        int fd = flow->publisher.connection.fd;
        watch(poll, fd, EPOLLIN | EPOLLOUT | EPOLLET, PUBLISHER | i);
    }
    return flows;
}

static void handle(struct flow *flows, const struct epoll_event *event, long window) {
    long number = (uint32_t)event->data.u64, readers = flows->reader_count;
    struct flow *flow = &flows[event->data.u64 & PUBLISHER ? number : number / readers];
    if (event->data.u64 & PUBLISHER) {
        if (event->events & EPOLLIN)
            while (count_read(&flow->publisher) >= 0) continue;
        if (event->events & EPOLLOUT) flow->is_blocked = 0;
    } else {
        long whole = count_read(&flow->readers[number % readers]);
        if (whole > 0) flow->received += whole;
    }
    if (!flow->is_blocked) push(flow, window);
}

static int is_over(const struct flow *flows, long count) {
    for (long i = 0; i < count; i++)
        if (flows[i].received < flows[i].limit * flows[i].copies) return 0;
    return 1;
}

/* Lets every flow send so many messages, or for so long, and waits until all are there. */
static void drive(struct flow *flows, const struct options *options, int poll, double seconds) {
    struct epoll_event events[EVENTS];
    double ends_s = now_s() + seconds;
    int is_late = 0;
    for (long i = 0; i < options->flows; i++) {
        flows[i].limit += options->count;
        push(&flows[i], options->window);
    }
    while (!is_over(flows, options->flows)) {
        int found = epoll_wait(poll, events, EVENTS, STALL_S * 1000);
        if (found <= 0)
            fail("stalled: %ld of %ld messages were delivered", flows->received / flows->copies,
                 flows->sent);
        for (int i = 0; i < found; i++) handle(flows, &events[i], options->window);
        if (is_late || now_s() < ends_s) continue;
        is_late = 1;
        for (long i = 0; i < options->flows; i++)
            flows[i].limit = flows[i].sent + (flows[i].offset > 0);
    }
}

static long delivered(const struct flow *flows, long count) {
    long all = 0;
    for (long i = 0; i < count; i++) all += flows[i].received;
    return all;
}

static long published(const struct flow *flows, long count) {
    long all = 0;
    for (long i = 0; i < count; i++) all += flows[i].proofs + flows[i].sent;
    return all;
}

static void check_all_over(struct flow *flows, long count) {
    nanosleep(&(struct timespec){.tv_nsec = SETTLE_MS * 1000000L}, NULL);
    for (long i = 0; i < count; i++) {
        long whole = 0;
        for (long j = 0; j < flows[i].reader_count; j++) {
            check_over(&flows[i].readers[j]);
            whole += flows[i].readers[j].whole;
        }
        if (whole != flows[i].sent * flows[i].copies)
            fail("%ld were delivered of %ld", whole, flows[i].sent * flows[i].copies);
    }
}

int run_flow(const struct options *options) {
    int poll = epoll_create1(0);
    struct flow *flows = open_flows(options, poll);
    if (options->warm > 0) drive(flows, options, poll, options->warm);
    struct work before = work_so_far(options->pids);
    long earlier = delivered(flows, options->flows);
    double began_s = now_s();
    drive(flows, options, poll, options->seconds);
    double took_s = now_s() - began_s;
    struct work after = work_so_far(options->pids);
    long deliveries = delivered(flows, options->flows) - earlier;
    check_all_over(flows, options->flows);
    printf("{\"deliveries\": %ld, \"published\": %ld, \"seconds\": %.4f, \"per_s\": %.0f, "
           "\"own_cpu_s\": %.4f, \"broker_cpu_s\": %.4f}\n",
           deliveries, published(flows, options->flows), took_s, deliveries / took_s,
           after.own_s - before.own_s, after.brokers_s - before.brokers_s);
    return 0;
}
