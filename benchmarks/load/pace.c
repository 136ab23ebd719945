/* One message at a time at a rate: from before it is sent until it is read.
 *
 * Without `spin` the generator sleeps until the time of the next message and in poll until it is
 * delivered, so that the kernel has to wake it, and the broker before it: what a quiet system sees.
 * With `spin` it never sleeps.
 */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "commands.h"
#include "connection.h"
#include "payload.h"

static void wait_until(double at_s, enum wait wait) {
    if (wait == SLEEP) sleep_until(at_s);
    while (now_s() < at_s) continue;
}

int run_pace(const struct options *options) {
    enum wait wait = options->spin ? SPIN : SLEEP;
    struct message message = message_to("load.pace", options->size);
    struct connection reader = join(options, 0);
    subscribe(&reader, message.subject, 0);
    expect(&reader, CONFIRMED, SLEEP);
    struct connection writer = join_to_publish(options, 1);
    double *took_s = calloc(options->count, sizeof *took_s), next_s = now_s();
    struct work before = work_so_far(options->pids);
    for (long i = 0; i < options->count; i++, next_s += 1.0 / options->rate) {
        wait_until(next_s, wait);
        double began_s = now_s();
        publish(&writer, &message);
        struct unit unit = expect(&reader, DELIVERED, wait);
        took_s[i] = now_s() - began_s;
        check_payload(&unit, &message);
        if (writer.protocol->hears_apart) expect(&writer, ACKNOWLEDGED, wait);
    }
    struct work after = work_so_far(options->pids);
    printf("{");
    print_percentiles(took_s, options->count);
    printf(", \"own_cpu_s\": %.4f, \"broker_cpu_s\": %.4f}\n", after.own_s - before.own_s,
           after.brokers_s - before.brokers_s);
    return 0;
}
