/* MQTT 3.1.1 with quality of service 0: at most once, nothing acknowledged. */
#include <stdio.h>
#include <string.h>

#include "protocol.h"

enum { CONNECT = 0x10, CONNACK = 0x20, PUBLISH = 0x30, SUBSCRIBE = 0x82, SUBACK = 0x90 };
enum { CLEAN_SESSION = 2, LEVEL = 4, REFUSED_SUBSCRIPTION = 0x80 };

static uint8_t *put_u16(uint8_t *at, size_t value) {
    at[0] = value >> 8;
    at[1] = value;
    return at + 2;
}

static uint8_t *put_head(uint8_t *at, int kind, size_t rest) {
    *at++ = kind;
    for (; rest >= 128; rest >>= 7) *at++ = (rest & 127) | 128;
    *at++ = rest;
    return at;
}

static uint8_t *put_text(uint8_t *at, const char *text) {
    at = put_u16(at, strlen(text));
    memcpy(at, text, strlen(text));
    return at + strlen(text);
}

/* `a.*` is `a/+` here. */
static uint8_t *put_topic(uint8_t *at, const char *subject) {
    uint8_t *end = put_text(at, subject);
    for (uint8_t *each = at + 2; each < end; each++) {
        if (*each == '.') *each = '/';
        if (*each == '*') *each = '+';
    }
    return end;
}

static size_t put_greeting(uint8_t *at, const char *service, long number) {
    (void)service;
    char name[24];
    snprintf(name, sizeof name, "load%ld", number);
    uint8_t *next = put_text(put_head(at, CONNECT, 12 + strlen(name)), "MQTT");
    *next++ = LEVEL;
    *next++ = CLEAN_SESSION;
    next = put_u16(next, 0); /* never silent for too long */
    return put_text(next, name) - at;
}

static size_t put_subscribe(uint8_t *at, const char *pattern, long number) {
    uint8_t *next = put_u16(put_head(at, SUBSCRIBE, 5 + strlen(pattern)), 1 + number % 65535);
    next = put_topic(next, pattern);
    *next++ = 0;
    return next - at;
}

static size_t put_message(uint8_t *at, const struct message *message) {
    uint8_t *next = put_head(at, PUBLISH, 2 + strlen(message->subject) + message->size);
    next = put_topic(next, message->subject);
    memcpy(next, message->payload, message->size);
    return next + message->size - at;
}

static size_t put_pong(uint8_t *at) {
    (void)at;
    return 0;
}

static struct unit read_packet(const uint8_t *at, size_t length) {
    size_t rest = 0, head = 1;
    do {
        if (head >= length || head > 4) return (struct unit){.said = PART};
        rest |= (size_t)(at[head] & 127) << 7 * (head - 1);
    } while (at[head++] & 128);
    struct unit unit = {.said = REFUSED, .size = head + rest};
    if (length < unit.size) unit.said = PART;
    if (length < unit.size || rest < 2) return unit;
    if (at[0] == CONNACK && at[head + 1] == 0) unit.said = READY;
    if (at[0] == SUBACK && at[unit.size - 1] != REFUSED_SUBSCRIPTION) unit.said = CONFIRMED;
    if ((at[0] & 0xf0) == PUBLISH) {
        size_t topic = at[head] << 8 | at[head + 1];
        if (topic > rest - 2) return unit;
        unit.said = DELIVERED;
        unit.payload = at + head + 2 + topic;
        unit.payload_size = rest - 2 - topic;
    }
    return unit;
}

const struct protocol mqtt_protocol = {
    .name = "mqtt",
    .replies = "load.reply",
    .put_greeting = put_greeting,
    .put_subscribe = put_subscribe,
    .put_message = put_message,
    .put_pong = put_pong,
    .read = read_packet,
};
