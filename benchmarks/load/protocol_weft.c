/* Weft's own protocol: docs/protocol.md. */
#define _GNU_SOURCE
#include <string.h>

#include "protocol.h"

enum { HEADER = 32, ANSWER = 1, REQUEST = 2, BARE = 8 };
enum { CONNECT = 1, WELCOME, SUBSCRIBE, UNSUBSCRIBE, MESSAGE, OK, ERROR, PING, PONG };

static size_t put_frame(uint8_t *at, int kind, int flags, const struct message *parts) {
    size_t subject = strlen(parts->subject), reply = parts->reply ? strlen(parts->reply) : 0;
    uint32_t size = HEADER + subject + reply + parts->size;
    memset(at, 0, HEADER);
    memcpy(at, &size, 4);
    at[4] = kind;
    at[5] = flags;
    at[6] = subject;
    at[7] = reply;
    memcpy(at + HEADER, parts->subject, subject);
    if (reply) memcpy(at + HEADER + subject, parts->reply, reply);
    if (parts->size) memcpy(at + HEADER + subject + reply, parts->payload, parts->size);
    return size;
}

static size_t put_greeting(uint8_t *at, const char *service, long number) {
    (void)number;
    return put_frame(at, CONNECT, 0, &(struct message){.subject = service});
}

static size_t put_subscribe(uint8_t *at, const char *pattern, long number) {
    (void)number;
    return put_frame(at, SUBSCRIBE, ANSWER, &(struct message){.subject = pattern});
}

static size_t put_message(uint8_t *at, const struct message *message) {
    return put_frame(at, MESSAGE, message->reply ? BARE | REQUEST : BARE, message);
}

static size_t put_asking(uint8_t *at, const struct message *message) {
    return put_frame(at, MESSAGE, BARE | ANSWER, message);
}

static int is_acknowledgement(const struct unit *unit) { return unit->said == CONFIRMED; }

static size_t put_pong(uint8_t *at) {
    return put_frame(at, PONG, 0, &(struct message){.subject = ""});
}

/* The field `inbox` of a WELCOME: its name, the type of a string, its length, its bytes. */
static void find_inbox(const uint8_t *at, size_t length, struct unit *unit) {
    static const uint8_t FIELD[] = {5, 0, 0, 0, 'i', 'n', 'b', 'o', 'x', 1, 40, 0, 0, 0};
    const uint8_t *found = memmem(at, length, FIELD, sizeof FIELD);
    if (!found || at + length - found < (long)sizeof FIELD + 40) return;
    unit->reply = found + sizeof FIELD;
    unit->reply_size = 40;
}

static struct unit read_frame(const uint8_t *at, size_t length) {
    static const enum said SAID[] = {
        [WELCOME] = READY, [MESSAGE] = DELIVERED, [OK] = CONFIRMED, [PING] = PINGED,
        [PONG] = CHATTER,
    };
    uint32_t size;
    if (length < HEADER) return (struct unit){.said = PART};
    memcpy(&size, at, 4);
    if (length < size) return (struct unit){.said = PART, .size = size};
    struct unit unit = {.said = REFUSED, .size = size};
    if (at[4] < sizeof SAID / sizeof *SAID && SAID[at[4]] != PART) unit.said = SAID[at[4]];
    unit.reply = at + HEADER + at[6];
    unit.reply_size = at[7];
    unit.payload = unit.reply + at[7];
    unit.payload_size = at + size - unit.payload;
    if (at[4] == WELCOME) find_inbox(unit.payload, unit.payload_size, &unit);
    return unit;
}

const struct protocol weft_protocol = {
    .name = "weft",
    .put_greeting = put_greeting,
    .put_subscribe = put_subscribe,
    .put_message = put_message,
    .put_asking = put_asking,
    .is_acknowledgement = is_acknowledgement,
    .put_pong = put_pong,
    .read = read_frame,
};
