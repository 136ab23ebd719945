#include "tally.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "failure.h"

/* About what a cache next to the core holds. */
enum { BUFFER = 256 << 10 };

static uint8_t buffer[BUFFER + CARRY];

struct unit learn(struct tally *tally, enum said said) {
    struct unit unit = expect(&tally->connection, said, SLEEP);
    if (tally->size && tally->size != unit.size)
        fail("a delivery of %zu bytes after one of %zu", unit.size, tally->size);
    tally->size = unit.size;
    memcpy(tally->head, tally->connection.input + tally->connection.begin - unit.size, HEAD);
    return unit;
}

/* What is left of these bytes cannot be told yet: it comes before what is read next. */
static void carry(struct tally *tally, const uint8_t *at, size_t length) {
    if (length > CARRY) fail("%zu bytes that are nothing known", length);
    memcpy(tally->carry, at, length);
    tally->carried = length;
}

static long count_bytes(struct tally *tally, const uint8_t *at, const uint8_t *end) {
    long before = tally->whole;
    while (at < end) {
        if (tally->rest > 0) {
            size_t step = tally->rest < (size_t)(end - at) ? tally->rest : (size_t)(end - at);
            at += step;
            tally->rest -= step;
            tally->whole += tally->rest == 0;
        } else if (end - at < HEAD) {
            break;
        } else if (tally->size > 0 && memcmp(at, tally->head, HEAD) == 0) {
            tally->rest = tally->size;
        } else {
            struct unit unit = tally->connection.protocol->read(at, end - at);
            if (unit.said == PART) break;
            if (unit.said == DELIVERED || unit.said == ACKNOWLEDGED)
                fail("one of %zu bytes unlike the first of %zu", unit.size, tally->size);
            deal_with(&tally->connection, &unit, at);
            at += unit.size;
        }
    }
    carry(tally, at, end - at);
    return tally->whole - before;
}

long count_read(struct tally *tally) {
    struct connection *connection = &tally->connection;
    if (connection->begin < connection->end) {
        carry(tally, connection->input + connection->begin, connection->end - connection->begin);
        connection->begin = connection->end;
    }
    size_t carried = tally->carried;
    memcpy(buffer, tally->carry, carried);
    ssize_t got = recv(connection->fd, buffer + carried, BUFFER, 0);
    if (got < 0 && errno == EAGAIN) return -1;
    if (got < 0) fail_errno("a connection failed");
    if (got == 0) fail("the broker cut a connection");
    return count_bytes(tally, buffer, buffer + carried + got);
}

void check_over(struct tally *tally) {
    while (count_read(tally) >= 0)
        if (tally->rest > 0) break;
    if (tally->rest > 0 || tally->carried > 0)
        fail("more came than was sent: %zu bytes are no whole delivery",
             tally->size - tally->rest + tally->carried);
}
