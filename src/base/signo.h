/* SPDX-License-Identifier: Apache-2.0 */
/* signo.h - signals by name and by number. */
#ifndef BASE_SIGNO_H
#define BASE_SIGNO_H

#include <stddef.h>

/* signo_parse() - "TERM", "SIGTERM", "sigterm" or "15"; 0 if it is none. */
int signo_parse(const char *text);

/* signo_name() - "SIGTERM", or "signal 42"; written to @out, 16 is enough. */
const char *signo_name(int signo, char *out, size_t cap);

/* signo_short() - "TERM", or "signal 42"; written to @out, 16 is enough. */
const char *signo_short(int signo, char *out, size_t cap);

#endif /* BASE_SIGNO_H */
