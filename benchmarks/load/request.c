/* One request at a time, as fast as they are answered: from before it is sent until its answer is
 * read. Requester and responder are both here and never sleep: only the broker may.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "commands.h"
#include "connection.h"
#include "failure.h"
#include "payload.h"

/* Where a connection that subscribed cannot publish, whoever does both needs two. */
struct party {
    struct connection hears, second;
    struct connection *speaks;
};

static void open_party(struct party *party, const struct options *options, long number) {
    party->hears = join(options, number);
    party->speaks = &party->hears;
    if (!party->hears.protocol->hears_apart) return;
    party->second = join(options, number + 1);
    party->speaks = &party->second;
}

static void listen_to(struct party *party, const char *pattern) {
    subscribe(&party->hears, pattern, 0);
    expect(&party->hears, CONFIRMED, SLEEP);
}

static void answer(struct party *responder, const struct options *options, struct message *answer) {
    char subject[SUBJECT_MAX] = "";
    const struct protocol *protocol = responder->hears.protocol;
    struct unit unit = expect(&responder->hears, DELIVERED, SPIN);
    if (unit.payload_size != (size_t)options->size) fail("a request of another size");
    if (protocol->reply_prefix || !protocol->replies) {
        if (!unit.reply_size || unit.reply_size >= SUBJECT_MAX) fail("a request without a reply");
        memcpy(subject, unit.reply, unit.reply_size);
        answer->subject = subject;
    }
    publish(responder->speaks, answer);
}

/* Where the answer to this request is awaited; empty where two channels are all there is. */
static void put_reply(char *reply, const struct connection *requester, long number) {
    const struct protocol *protocol = requester->protocol;
    *reply = 0;
    if (protocol->reply_prefix)
        snprintf(reply, SUBJECT_MAX, "%s%ld", protocol->reply_prefix, number);
    if (!protocol->replies)
        snprintf(reply, SUBJECT_MAX, "%.*s.%ld", SUBJECT_MAX - 24, requester->inbox, number);
}

/* Not timed: a client reads these when it likes. */
static void read_acknowledgements(struct party *party) {
    if (party->speaks != &party->hears) expect(party->speaks, ACKNOWLEDGED, SPIN);
}

int run_request(const struct options *options) {
    struct party responder, requester;
    open_party(&responder, options, 0);
    open_party(&requester, options, 2);
    const char *replies = requester.hears.protocol->replies;
    struct message request = message_to("load.request", options->size);
    struct message reply = message_to(replies ? replies : "", options->size);
    listen_to(&responder, request.subject);
    if (replies) listen_to(&requester, replies);
    double *took_s = calloc(options->count, sizeof *took_s);
    struct work before = work_so_far(options->pids);
    for (long i = 0; i < options->count; i++) {
        char address[SUBJECT_MAX];
        put_reply(address, &requester.hears, i);
        request.reply = *address ? address : NULL;
        double began_s = now_s();
        publish(requester.speaks, &request);
        answer(&responder, options, &reply);
        struct unit unit = expect(&requester.hears, DELIVERED, SPIN);
        took_s[i] = now_s() - began_s;
        check_payload(&unit, &reply);
        read_acknowledgements(&requester);
        read_acknowledgements(&responder);
    }
    struct work after = work_so_far(options->pids);
    printf("{");
    print_percentiles(took_s, options->count);
    printf(", \"own_cpu_s\": %.4f, \"broker_cpu_s\": %.4f}\n", after.own_s - before.own_s,
           after.brokers_s - before.brokers_s);
    return 0;
}
