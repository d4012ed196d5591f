/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - time as int64 nanoseconds.
 *
 * Intervals and deadlines use clock_now(), which never jumps. clock_wall() is
 * for stamps that a person or another machine reads, and for nothing else.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include <sys/time.h>

#define NS_PER_US 1000LL
#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL

int64_t clock_now(void);  /* CLOCK_MONOTONIC */
int64_t clock_wall(void); /* CLOCK_REALTIME, since the epoch */

/* clock_seconds() - of struct rusage, for a person. */
double clock_seconds(struct timeval t);

/* clock_text() - "1.8 s", "12 ms", "3 min 20 s", "2 h 5 min"; fits in 32. */
const char *clock_text(int64_t ns, char *out, size_t cap);

/* clock_rough() - in one unit, cut: "45 s", "3 min", "2 h", "5 days". */
const char *clock_rough(int64_t ns, char *out, size_t cap);

/* clock_stamp() - "2026-11-21T02:14:21.123456Z" of wall ns; fits in 32. */
const char *clock_stamp(int64_t wall_ns, char *out, size_t cap);

/* clock_parse() - wall ns of such a stamp; -1 if it is none. */
int64_t clock_parse(const char *stamp);

#endif /* BASE_CLOCK_H */
