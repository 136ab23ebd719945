#include "protocol.h"

#include <string.h>

#include "failure.h"

const struct protocol *find_protocol(const char *name) {
    const struct protocol *all[] = {&weft_protocol, &nats_protocol, &redis_protocol,
                                    &mqtt_protocol};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    fail("no protocol %s", name);
}

const uint8_t *after_line(const uint8_t *at, size_t length) {
    const uint8_t *end = memchr(at, '\n', length);
    return end ? end + 1 : NULL;
}
