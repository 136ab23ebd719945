/* A connection to a broker: bytes out, and what it says in. */
#pragma once

#include "options.h"
#include "protocol.h"

enum { STALL_S = 10 };

/* SPIN never sleeps, so that waking up is no part of what is measured. */
enum wait { SLEEP, SPIN };

struct connection {
    const struct protocol *protocol;
    int fd;
    size_t begin, end, room; /* what of input has yet to be taken, and how much fits */
    uint8_t *input;
    char inbox[SUBJECT_MAX]; /* the broker's gift, if it makes one */
};

/* Begins to connect, without waiting. */
struct connection dial(const struct options *options, long number);
/* Connects and is welcomed. */
struct connection join(const struct options *options, long number);
/* The same where those who publish do, once that broker can know who is subscribed elsewhere. */
struct connection join_to_publish(const struct options *options, long number);

void greet(struct connection *connection, const struct options *options, long number);
void subscribe(struct connection *connection, const char *pattern, long number);
/* Waits for the socket where it must: small things only. */
void say(struct connection *connection, const uint8_t *bytes, size_t length);
void publish(struct connection *connection, const struct message *message);

/* So much can be taken in by one read. */
void make_room(struct connection *connection, size_t room);
/* One read; how many bytes came, 0 if there were none. Fails if the connection is closed. */
size_t fill(struct connection *connection);
/* What comes next of what was read; PART if it is not whole yet. */
struct unit take(struct connection *connection);
/* Waits for the next thing worth mentioning; its pointers hold until the next call. */
struct unit hear(struct connection *connection, enum wait wait);
/* The same, and it must be this. */
struct unit expect(struct connection *connection, enum said said, enum wait wait);

/* Answers a ping; fails if the broker refused something. */
void deal_with(struct connection *connection, const struct unit *unit, const uint8_t *bytes);
