/* Time that passes, and time that processors work. */
#pragma once

#include <stddef.h>

struct work {
    double own_s, brokers_s;
};

double now_s(void);
void sleep_until(double at_s);

/* What this process, and those whose ids are listed with commas between, have worked so far. */
struct work work_so_far(const char *pids);

/* Sorts the times and prints how many there are and their percentiles, as members of an object. */
void print_percentiles(double *took_s, long count);
