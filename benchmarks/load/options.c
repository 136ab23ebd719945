#include "options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"

enum type { TEXT, WHOLE, REAL };

static const struct {
    const char *name;
    enum type type;
    size_t offset;
} NAMES[] = {
    {"protocol", TEXT, offsetof(struct options, protocol)},
    {"service", TEXT, offsetof(struct options, service)},
    {"subject", TEXT, offsetof(struct options, subject)},
    {"pids", TEXT, offsetof(struct options, pids)},
    {"port", WHOLE, offsetof(struct options, port)},
    {"far_port", WHOLE, offsetof(struct options, far_port)},
    {"flows", WHOLE, offsetof(struct options, flows)},
    {"subscribers", WHOLE, offsetof(struct options, subscribers)},
    {"patterns", WHOLE, offsetof(struct options, patterns)},
    {"subjects", WHOLE, offsetof(struct options, subjects)},
    {"size", WHOLE, offsetof(struct options, size)},
    {"count", WHOLE, offsetof(struct options, count)},
    {"window", WHOLE, offsetof(struct options, window)},
    {"rate", WHOLE, offsetof(struct options, rate)},
    {"subscribe", WHOLE, offsetof(struct options, subscribe)},
    {"spin", WHOLE, offsetof(struct options, spin)},
    {"warm", REAL, offsetof(struct options, warm)},
    {"seconds", REAL, offsetof(struct options, seconds)},
};

static void set(struct options *options, const char *argument) {
    const char *value = strchr(argument, '=');
    size_t length = value ? (size_t)(value - argument) : 0;
    for (size_t i = 0; length && i < sizeof NAMES / sizeof *NAMES; i++) {
        if (strlen(NAMES[i].name) != length || strncmp(NAMES[i].name, argument, length)) continue;
        void *place = (char *)options + NAMES[i].offset;
        if (NAMES[i].type == TEXT) *(const char **)place = value + 1;
        if (NAMES[i].type == WHOLE) *(long *)place = atol(value + 1);
        if (NAMES[i].type == REAL) *(double *)place = atof(value + 1);
        return;
    }
    fail("no option %s", argument);
}

struct options read_options(int count, char **arguments) {
    struct options options = {
        .protocol = "weft",
        .service = "default",
        .subject = "load.0",
        .pids = "",
        .flows = 1,
        .subscribers = 1,
        .subjects = 1,
        .size = 128,
        .count = 1000,
        .window = 100,
        .rate = 1000,
        .seconds = 60,
    };
    for (int i = 0; i < count; i++) set(&options, arguments[i]);
    if (options.port <= 0 || options.count <= 0 || options.window <= 0) {
        fail("port, count and window must be over 0");
    }
    return options;
}
