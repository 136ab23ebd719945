#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "failure.h"

static double seconds(clockid_t clock) {
    struct timespec at;
    if (clock_gettime(clock, &at) < 0) fail_errno("clock_gettime");
    return at.tv_sec + at.tv_nsec / 1e9;
}

double now_s(void) { return seconds(CLOCK_MONOTONIC); }

void sleep_until(double at_s) {
    struct timespec at = {.tv_sec = (time_t)at_s};
    at.tv_nsec = (long)((at_s - at.tv_sec) * 1e9);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

struct work work_so_far(const char *pids) {
    struct work work = {.own_s = seconds(CLOCK_PROCESS_CPUTIME_ID)};
    for (const char *at = pids; *at; at += strcspn(at, ","), at += *at == ',') {
        clockid_t clock;
        /* Of all threads, those that ended included, in nanoseconds: /proc has only ticks of it. */
        if (clock_getcpuclockid(atoi(at), &clock) != 0) fail("no process %d", atoi(at));
        work.brokers_s += seconds(clock);
    }
    return work;
}

static int by_value(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

void print_percentiles(double *took_s, long count) {
    qsort(took_s, count, sizeof *took_s, by_value);
    printf("\"messages\": %ld, \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f", count,
           took_s[count / 2] * 1e6, took_s[count * 99 / 100] * 1e6,
           took_s[count * 999 / 1000] * 1e6);
}
