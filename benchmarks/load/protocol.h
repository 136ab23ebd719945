/* What differs between the protocols of brokers, as far as a load generator has to know.
 *
 * Subjects and patterns are given as `a.b` and `a.*`; a protocol that writes them otherwise
 * translates. A subscription is confirmed by exactly one unit.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SUBJECT_MAX = 256 };

enum said {
    PART,         /* more bytes are needed to tell */
    READY,        /* the greeting is answered */
    CONFIRMED,    /* a subscription is in place */
    DELIVERED,    /* a message */
    ACKNOWLEDGED, /* a message of ours went to `receivers` */
    PINGED,       /* an answer is wanted */
    CHATTER,      /* nothing to act on */
    REFUSED,
};

/* One thing that a broker said; the pointers are into the bytes it was read from. */
struct unit {
    enum said said;
    size_t size;
    const uint8_t *payload, *reply;
    size_t payload_size, reply_size;
    long receivers;
};

struct message {
    const char *subject, *reply; /* with a reply it is a request; NULL: none */
    const uint8_t *payload;
    size_t size;
};

struct protocol {
    const char *name;
    int broker_begins; /* the client waits for the broker's first words */
    int hears_apart;   /* a connection that subscribed cannot publish */
    /* What answers come to: a pattern to subscribe to, and what to write before a number to get
     * a fresh address. Without the pattern, the greeting's answer gives an inbox. */
    const char *replies, *reply_prefix;
    size_t (*put_greeting)(uint8_t *at, const char *service, long number);
    size_t (*put_subscribe)(uint8_t *at, const char *pattern, long number);
    size_t (*put_message)(uint8_t *at, const struct message *message);
    /* The same, and the broker is to say that it has it; NULL where it cannot be asked. */
    size_t (*put_asking)(uint8_t *at, const struct message *message);
    int (*is_acknowledgement)(const struct unit *unit);
    size_t (*put_pong)(uint8_t *at);
    struct unit (*read)(const uint8_t *at, size_t length);
};

extern const struct protocol weft_protocol, nats_protocol, redis_protocol, mqtt_protocol;

const struct protocol *find_protocol(const char *name);

/* The end of the line that starts here, after its CR LF; NULL if it is not here yet. */
const uint8_t *after_line(const uint8_t *at, size_t length);
