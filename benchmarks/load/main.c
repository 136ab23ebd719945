/* A load generator for gateways and other brokers: one thread, epoll, raw protocols.
 *
 *   load acknowledged
 *                  publishes that are acknowledged, at most `window` of them not yet; how long each
 *                  takes
 *   load connect   opens `count` connections, at most `window` at once; holds them until standard
 *                  input ends
 *   load flow      publishers send to subscribers, at most `window` messages on their way
 *   load pace      one message at a time, `rate` a second; how long each takes
 *   load request   one request at a time, as fast as they are answered; how long each takes
 *   load sit       `count` subscribers that read and ignore everything, cut or not, until standard
 *                  input ends
 *
 * The options are NAME=VALUE, see options.h. Everything printed is one line of JSON.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "commands.h"

static const struct {
    const char *name;
    int (*run)(const struct options *options);
} COMMANDS[] = {
    {"acknowledged", run_acknowledged}, {"connect", run_connect}, {"flow", run_flow},
    {"pace", run_pace}, {"request", run_request}, {"sit", run_sit},
};

int main(int count, char **arguments) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    for (size_t i = 0; count > 1 && i < sizeof COMMANDS / sizeof *COMMANDS; i++) {
        if (strcmp(COMMANDS[i].name, arguments[1])) continue;
        struct options options = read_options(count - 2, arguments + 2);
        return COMMANDS[i].run(&options);
    }
    fprintf(stderr, "load: see the top of benchmarks/load/main.c for how it is called\n");
    return 2;
}
