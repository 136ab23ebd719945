/* NATS: lines of text, payloads after their length. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol.h"

/* A PING's answer says that all before it was dealt with: of a greeting, or of a subscription. */
static const char GREETING[] = "CONNECT {\"verbose\":false,\"pedantic\":false}\r\nPING\r\n";

static size_t put_greeting(uint8_t *at, const char *service, long number) {
    (void)service, (void)number;
    memcpy(at, GREETING, sizeof GREETING - 1);
    return sizeof GREETING - 1;
}

/* Numbers of one width, so that every delivery has the same size. */
static size_t put_subscribe(uint8_t *at, const char *pattern, long number) {
    return sprintf((char *)at, "SUB %s %ld\r\nPING\r\n", pattern, 10000 + number);
}

static size_t put_message(uint8_t *at, const struct message *message) {
    const char *reply = message->reply ? message->reply : "";
    size_t head = sprintf((char *)at, "PUB %s %s%s%zu\r\n", message->subject, reply,
                          *reply ? " " : "", message->size);
    memcpy(at + head, message->payload, message->size);
    memcpy(at + head + message->size, "\r\n", 2);
    return head + message->size + 2;
}

/* A stream answers where a reply is awaited: with the number it has given, or with an error. */
static int is_acknowledgement(const struct unit *unit) {
    return unit->said == DELIVERED && memmem(unit->payload, unit->payload_size, "\"seq\":", 6) &&
           !memmem(unit->payload, unit->payload_size, "\"error\"", 7);
}

static size_t put_pong(uint8_t *at) {
    memcpy(at, "PONG\r\n", 6);
    return 6;
}

/* MSG subject number [reply] size */
static struct unit read_delivery(const uint8_t *at, const uint8_t *body, size_t length) {
    const char *words[6];
    size_t count = 0;
    for (const uint8_t *word = at; count < 6 && word && word < body; count++) {
        words[count] = (const char *)word;
        const uint8_t *space = memchr(word, ' ', body - word);
        word = space ? space + 1 : NULL;
    }
    if (count != 4 && count != 5) return (struct unit){.said = REFUSED, .size = body - at};
    struct unit unit = {.said = DELIVERED, .payload = body};
    unit.payload_size = strtoul(words[count - 1], NULL, 10);
    unit.size = body - at + unit.payload_size + 2;
    if (count == 5) {
        unit.reply = (const uint8_t *)words[3];
        unit.reply_size = words[4] - words[3] - 1;
    }
    if (length < unit.size) unit.said = PART;
    return unit;
}

static struct unit read_line(const uint8_t *at, size_t length) {
    const uint8_t *next = after_line(at, length);
    if (!next) return (struct unit){.said = PART};
    if (memcmp(at, "MSG ", 4) == 0) return read_delivery(at, next, length);
    struct unit unit = {.said = REFUSED, .size = next - at};
    if (memcmp(at, "PONG", 4) == 0) unit.said = READY;
    if (memcmp(at, "PING", 4) == 0) unit.said = PINGED;
    if (memcmp(at, "INFO", 4) == 0) unit.said = CHATTER;
    return unit;
}

const struct protocol nats_protocol = {
    .name = "nats",
    .broker_begins = 1,
    .replies = "_INBOX.load.*",
    .reply_prefix = "_INBOX.load.",
    .put_greeting = put_greeting,
    .put_subscribe = put_subscribe,
    .put_message = put_message,
    .put_asking = put_message,
    .is_acknowledgement = is_acknowledgement,
    .put_pong = put_pong,
    .read = read_line,
};
