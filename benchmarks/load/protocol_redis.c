/* Redis: RESP2, where a connection that subscribed may do nothing else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol.h"

/* The most parts of any array we are sent: pmessage, pattern, channel, payload. */
enum { PARTS_MAX = 4 };

static size_t put_greeting(uint8_t *at, const char *service, long number) {
    (void)service, (void)number;
    return sprintf((char *)at, "*1\r\n$4\r\nPING\r\n");
}

static size_t put_subscribe(uint8_t *at, const char *pattern, long number) {
    (void)number;
    const char *verb = strchr(pattern, '*') ? "PSUBSCRIBE" : "SUBSCRIBE";
    return sprintf((char *)at, "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(verb), verb,
                   strlen(pattern), pattern);
}

static size_t put_body(uint8_t *at, const struct message *message) {
    memcpy(at, message->payload, message->size);
    memcpy(at + message->size, "\r\n", 2);
    return message->size + 2;
}

static size_t put_message(uint8_t *at, const struct message *message) {
    size_t head = sprintf((char *)at, "*3\r\n$7\r\nPUBLISH\r\n$%zu\r\n%s\r\n$%zu\r\n",
                          strlen(message->subject), message->subject, message->size);
    return head + put_body(at + head, message);
}

/* Into the stream that has the subject's name. */
static size_t put_asking(uint8_t *at, const struct message *message) {
    size_t head = sprintf((char *)at,
                          "*5\r\n$4\r\nXADD\r\n$%zu\r\n%s\r\n$1\r\n*\r\n$1\r\nf\r\n$%zu\r\n",
                          strlen(message->subject), message->subject, message->size);
    return head + put_body(at + head, message);
}

static int is_acknowledgement(const struct unit *unit) { return unit->said == ACKNOWLEDGED; }

static size_t put_pong(uint8_t *at) {
    (void)at;
    return 0;
}

/* An array of strings, and of a number at the end of a confirmation. */
static struct unit read_array(const uint8_t *at, size_t length) {
    const uint8_t *end = at + length, *next = after_line(at, length), *first = NULL;
    long parts = atol((const char *)at + 1);
    struct unit unit = {.said = PART};
    if (parts < 1 || parts > PARTS_MAX) return (struct unit){.said = REFUSED, .size = next - at};
    for (long i = 0; i < parts; i++) {
        const uint8_t *head = next;
        if (!(next = after_line(head, end - head))) return unit;
        if (*head == ':') continue;
        unit.payload = next;
        unit.payload_size = strtoul((const char *)head + 1, NULL, 10);
        if ((size_t)(end - next) < unit.payload_size + 2) return unit;
        if (!first) first = next;
        next += unit.payload_size + 2;
    }
    unit.size = next - at;
    unit.said = REFUSED;
    if (!first) return unit;
    if (!memcmp(first, "message", 7) || !memcmp(first, "pmessag", 7)) unit.said = DELIVERED;
    if (!memcmp(first, "subscri", 7) || !memcmp(first, "psubscr", 7)) unit.said = CONFIRMED;
    return unit;
}

/* What a message was named by the stream that has it now. */
static struct unit read_name(const uint8_t *at, const uint8_t *name, size_t length) {
    long size = atol((const char *)at + 1);
    if (size < 0) return (struct unit){.said = REFUSED, .size = name - at};
    struct unit unit = {.said = ACKNOWLEDGED, .size = name - at + size + 2};
    if (length < unit.size) unit.said = PART;
    return unit;
}

static struct unit read_reply(const uint8_t *at, size_t length) {
    const uint8_t *next = after_line(at, length);
    if (!next) return (struct unit){.said = PART};
    if (*at == '*') return read_array(at, length);
    if (*at == '$') return read_name(at, next, length);
    struct unit unit = {.said = REFUSED, .size = next - at};
    if (*at == '+') unit.said = READY;
    if (*at == ':') {
        unit.said = ACKNOWLEDGED;
        unit.receivers = atol((const char *)at + 1);
    }
    return unit;
}

const struct protocol redis_protocol = {
    .name = "redis",
    .hears_apart = 1,
    .replies = "load.reply",
    .put_greeting = put_greeting,
    .put_subscribe = put_subscribe,
    .put_message = put_message,
    .put_asking = put_asking,
    .is_acknowledgement = is_acknowledgement,
    .put_pong = put_pong,
    .read = read_reply,
};
