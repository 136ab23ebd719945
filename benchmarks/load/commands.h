/* What the generator can be told to do; each prints lines of JSON and returns the exit status. */
#pragma once

#include "options.h"

int run_acknowledged(const struct options *options);
int run_connect(const struct options *options);
int run_flow(const struct options *options);
int run_pace(const struct options *options);
int run_request(const struct options *options);
int run_sit(const struct options *options);
