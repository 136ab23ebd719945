#include "connection.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "failure.h"

/* How long brokers may take to tell each other who is subscribed. */
static const double SETTLE_S = 0.5;

enum { ROOM = 1024, SHOWN = 80, SPINS_PER_LOOK = 1 << 14, SPREAD = 10000 };

static uint8_t scratch[1 << 20];

static struct sockaddr_in address_of(int port, int host) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + host);
    return address;
}

struct connection dial(const struct options *options, long number) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    if (fd < 0) fail_errno("socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    /* Ports of one source address run out near 28,000: spread over 127.0.0.2 and on. */
    struct sockaddr_in from = address_of(0, 1 + number / SPREAD);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) < 0) fail_errno("bind");
    struct sockaddr_in to = address_of(options->port, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)
        fail_errno("connect");
    return (struct connection){.protocol = find_protocol(options->protocol), .fd = fd};
}

static void wait_for(int fd, short events) {
    struct pollfd wanted = {.fd = fd, .events = events};
    if (poll(&wanted, 1, STALL_S * 1000) != 1) fail("nothing happened for %d s", STALL_S);
}

struct connection join(const struct options *options, long number) {
    struct connection connection = dial(options, number);
    wait_for(connection.fd, POLLOUT);
    if (connection.protocol->broker_begins) wait_for(connection.fd, POLLIN);
    greet(&connection, options, number);
    struct unit welcome = expect(&connection, READY, SLEEP);
    if (welcome.reply_size) memcpy(connection.inbox, welcome.reply, welcome.reply_size);
    return connection;
}

struct connection join_to_publish(const struct options *options, long number) {
    if (!options->far_port) return join(options, number);
    struct options there = *options;
    there.port = options->far_port;
    sleep_until(now_s() + SETTLE_S);
    return join(&there, number);
}

void greet(struct connection *connection, const struct options *options, long number) {
    say(connection, scratch, connection->protocol->put_greeting(scratch, options->service, number));
}

void subscribe(struct connection *connection, const char *pattern, long number) {
    say(connection, scratch, connection->protocol->put_subscribe(scratch, pattern, number));
}

void publish(struct connection *connection, const struct message *message) {
    say(connection, scratch, connection->protocol->put_message(scratch, message));
}

void say(struct connection *connection, const uint8_t *bytes, size_t length) {
    while (length > 0) {
        ssize_t gone = send(connection->fd, bytes, length, MSG_NOSIGNAL);
        if (gone < 0 && errno != EAGAIN) fail_errno("send");
        if (gone < 0) wait_for(connection->fd, POLLOUT);
        bytes += gone < 0 ? 0 : gone;
        length -= gone < 0 ? 0 : gone;
    }
}

void make_room(struct connection *connection, size_t room) {
    connection->room = room;
    connection->input = realloc(connection->input, room);
    if (!connection->input) fail_errno("realloc");
}

size_t fill(struct connection *connection) {
    if (connection->begin > 0) {
        connection->end -= connection->begin;
        memmove(connection->input, connection->input + connection->begin, connection->end);
        connection->begin = 0;
    }
    if (connection->end == connection->room)
        make_room(connection, connection->room ? 2 * connection->room : ROOM);
    uint8_t *at = connection->input + connection->end;
    ssize_t got = recv(connection->fd, at, connection->room - connection->end, 0);
    if (got < 0 && errno == EAGAIN) return 0;
    if (got < 0) fail_errno("recv");
    if (got == 0) fail("the broker closed the connection");
    connection->end += got;
    return got;
}

struct unit take(struct connection *connection) {
    size_t length = connection->end - connection->begin;
    if (length == 0) return (struct unit){.said = PART};
    uint8_t *at = connection->input + connection->begin;
    struct unit unit = connection->protocol->read(at, length);
    if (unit.said == PART) return unit;
    connection->begin += unit.size;
    deal_with(connection, &unit, at);
    return unit;
}

void deal_with(struct connection *connection, const struct unit *unit, const uint8_t *bytes) {
    if (unit->said == PINGED) {
        uint8_t pong[64];
        say(connection, pong, connection->protocol->put_pong(pong));
    }
    if (unit->said != REFUSED) return;
    char shown[SHOWN + 1] = "";
    for (size_t i = 0; i < SHOWN && i < unit->size; i++)
        shown[i] = isprint(bytes[i]) ? (char)bytes[i] : '.';
    fail("the broker refused: %s", shown);
}

static void wait_spinning(struct connection *connection) {
    double ends_s = now_s() + STALL_S;
    for (long spins = 1; !fill(connection); spins++)
        if (spins % SPINS_PER_LOOK == 0 && now_s() > ends_s) fail("no answer for %d s", STALL_S);
}

struct unit hear(struct connection *connection, enum wait wait) {
    for (;;) {
        struct unit unit = take(connection);
        if (unit.said != PART && unit.said != PINGED && unit.said != CHATTER) return unit;
        if (unit.said != PART) continue;
        if (wait == SPIN) {
            wait_spinning(connection);
        } else {
            wait_for(connection->fd, POLLIN);
            fill(connection);
        }
    }
}

struct unit expect(struct connection *connection, enum said said, enum wait wait) {
    struct unit unit = hear(connection, wait);
    /* Where there is no confirmation, a ping behind the subscription is answered. */
    int is_confirmation = said == CONFIRMED && unit.said == READY;
    if (unit.said != said && !is_confirmation)
        fail("the broker said something else (%d) than expected (%d)", unit.said, said);
    return unit;
}
