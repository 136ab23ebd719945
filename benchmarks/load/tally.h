/* Counts units that are all alike, without reading each.
 *
 * They are as long as the first, which was read whole and compared with what was sent, and
 * begin with the same bytes; whatever else comes in between is read as what it is.
 */
#pragma once

#include "connection.h"

enum { HEAD = 4, CARRY = 1024 };

struct tally {
    struct connection connection;
    long whole;              /* units so far */
    uint8_t head[HEAD];      /* how each begins */
    size_t size;             /* of each; 0: none is expected */
    size_t rest;             /* of the present one, yet to come */
    uint8_t carry[CARRY];    /* the beginning of what comes next, too short to tell */
    size_t carried;
};

/* Takes the next unit of the connection, which must be this, as the measure of all. */
struct unit learn(struct tally *tally, enum said said);
/* One read; how many units became whole, -1 if there was nothing to read. */
long count_read(struct tally *tally);
/* Fails unless everything that came was whole, and nothing more comes. */
void check_over(struct tally *tally);
