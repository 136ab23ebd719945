#include "payload.h"

#include <stdlib.h>
#include <string.h>

#include "failure.h"

struct message message_to(const char *subject, size_t size) {
    uint8_t *payload = malloc(size + 1);
    if (!payload) fail_errno("malloc");
    for (size_t i = 0; i < size; i++) payload[i] = 'a' + i % 23;
    return (struct message){.subject = strdup(subject), .payload = payload, .size = size};
}

void check_payload(const struct unit *unit, const struct message *message) {
    if (unit->payload_size != message->size)
        fail("%zu bytes were delivered instead of %zu", unit->payload_size, message->size);
    if (memcmp(unit->payload, message->payload, message->size))
        fail("what was delivered is not what was sent");
}
