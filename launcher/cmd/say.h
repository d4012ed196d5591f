/* SPDX-License-Identifier: Apache-2.0 */
/* say.h - what a verb answers, to stdout, and what it cannot, to stderr. */
#ifndef LAUNCHER_CMD_SAY_H
#define LAUNCHER_CMD_SAY_H

#include "base/buf.h"
#include "xrun/error.h"

/* say() - print @out, all of it, and free it. Gives the exit status: 0, or
 * 125 with one line on stderr if it could not be written. */
int say(struct buf *out);

/* say_tame() - the same of text in which a terminal may obey each byte, such as colour. */
int say_tame(struct buf *out);

/* say_no() - "xrun: ..." on stderr; gives 125. */
int say_no(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* say_error() - the same of an error; what to try stands behind a tab. */
int say_error(const struct xr_error *err);

/* say_unwritten() - exit status of output that could not be written (@sys), or
 * all was (0): 141 where its reader is gone, silently; else 125 with words. */
int say_unwritten(int sys);

#endif /* LAUNCHER_CMD_SAY_H */
