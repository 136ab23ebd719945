#include "failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fprintf(stderr, "load: ");
    vfprintf(stderr, format, values);
    fprintf(stderr, "\n");
    exit(1);
}

void fail_errno(const char *what) { fail("%s: %s", what, strerror(errno)); }
