/* Publishes that are acknowledged one by one: what is acknowledged lets more be sent.
 *
 * Acknowledgements come in the order of the messages, so that counting them tells whose they are.
 * How long each took is from before it is sent until its acknowledgement is read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "commands.h"
#include "connection.h"
#include "failure.h"
#include "payload.h"

enum { READ_ROOM = 256 << 10, SETTLE_MS = 20 };

struct publisher {
    struct connection connection;
    enum wait wait;
    long window;
    size_t frame;            /* bytes of a message */
    uint8_t *frames;         /* a window full of them */
    double *sent_s;          /* when each of a window was sent, in turn */
    double *took_s;          /* of every message that is measured */
    long room;               /* of took_s */
    long sent, acknowledged; /* messages, all in all */
    long earlier;            /* of these, those before anything was measured */
};

static void push(struct publisher *publisher, long limit) {
    long may = publisher->window - (publisher->sent - publisher->acknowledged);
    if (may > limit - publisher->sent) may = limit - publisher->sent;
    if (may <= 0) return;
    double at_s = now_s();
    say(&publisher->connection, publisher->frames, may * publisher->frame);
    for (; may > 0; may--) publisher->sent_s[publisher->sent++ % publisher->window] = at_s;
}

static void count(struct publisher *publisher, const struct unit *unit, double at_s) {
    if (unit->said == PINGED || unit->said == CHATTER) return;
    if (!publisher->connection.protocol->is_acknowledgement(unit))
        fail("the broker said something else (%d) than that a message is kept", unit->said);
    if (publisher->acknowledged == publisher->sent) fail("more was acknowledged than was sent");
    long number = publisher->acknowledged++;
    if (number - publisher->earlier == publisher->room) {
        publisher->room = publisher->room ? 2 * publisher->room : publisher->window;
        publisher->took_s = realloc(publisher->took_s, publisher->room * sizeof *publisher->took_s);
        if (!publisher->took_s) fail_errno("realloc");
    }
    publisher->took_s[number - publisher->earlier] =
        at_s - publisher->sent_s[number % publisher->window];
}

/* Waits for an acknowledgement, and takes all that came with it. */
static void listen_to(struct publisher *publisher) {
    struct unit unit = hear(&publisher->connection, publisher->wait);
    double at_s = now_s();
    do {
        count(publisher, &unit, at_s);
        unit = take(&publisher->connection);
    } while (unit.said != PART);
}

/* Sends so many messages, or for so long, and waits until all are acknowledged. */
static void drive(struct publisher *publisher, long count, double seconds) {
    double ends_s = now_s() + seconds;
    long limit = publisher->sent + count;
    do {
        push(publisher, limit);
        listen_to(publisher);
        if (now_s() >= ends_s) limit = publisher->sent;
    } while (publisher->acknowledged < limit);
}

static struct publisher open_publisher(const struct options *options) {
    const struct protocol *protocol = find_protocol(options->protocol);
    if (!protocol->put_asking) fail("%s acknowledges nothing", protocol->name);
    struct publisher publisher = {
        .connection = join(options, 0),
        .wait = options->spin ? SPIN : SLEEP,
        .window = options->window,
        .sent_s = calloc(options->window, sizeof(double)),
    };
    struct message message = message_to("load.0", options->size);
    char reply[SUBJECT_MAX];
    if (protocol->reply_prefix) {
        snprintf(reply, sizeof reply, "%s0", protocol->reply_prefix);
        subscribe(&publisher.connection, reply, 0);
        expect(&publisher.connection, CONFIRMED, SLEEP);
        message.reply = reply;
    }
    publisher.frames = malloc(options->window * (options->size + 3 * SUBJECT_MAX));
    if (!publisher.sent_s || !publisher.frames) fail_errno("malloc");
    for (long i = 0; i < options->window; i++)
        publisher.frame = protocol->put_asking(publisher.frames + i * publisher.frame, &message);
    make_room(&publisher.connection, READ_ROOM);
    return publisher;
}

static void check_over(struct publisher *publisher) {
    nanosleep(&(struct timespec){.tv_nsec = SETTLE_MS * 1000000L}, NULL);
    if (!fill(&publisher->connection)) return;
    for (struct unit unit; (unit = take(&publisher->connection)).said != PART;)
        count(publisher, &unit, 0);
}

int run_acknowledged(const struct options *options) {
    struct publisher publisher = open_publisher(options);
    if (options->warm > 0) drive(&publisher, options->count, options->warm);
    publisher.earlier = publisher.acknowledged;
    struct work before = work_so_far(options->pids);
    double began_s = now_s();
    drive(&publisher, options->count, options->seconds);
    double took_s = now_s() - began_s;
    struct work after = work_so_far(options->pids);
    check_over(&publisher);
    long messages = publisher.acknowledged - publisher.earlier;
    printf("{");
    print_percentiles(publisher.took_s, messages);
    printf(", \"published\": %ld, \"seconds\": %.4f, \"per_s\": %.0f, \"own_cpu_s\": %.4f, "
           "\"broker_cpu_s\": %.4f}\n",
           publisher.sent, took_s, messages / took_s, after.own_s - before.own_s,
           after.brokers_s - before.brokers_s);
    return 0;
}
