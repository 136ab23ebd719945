/* The end: one line that says why, and status 1. */
#pragma once

__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);
__attribute__((noreturn)) void fail_errno(const char *what);
