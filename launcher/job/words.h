/* SPDX-License-Identifier: Apache-2.0 */
/* words.h - xrun's words on stderr where a job has no output of its own, not yet
 * or no more. Tame, whatever names are in them. */
#ifndef LAUNCHER_JOB_WORDS_H
#define LAUNCHER_JOB_WORDS_H

#include <stdbool.h>

#include "base/buf.h"
#include "xrun/error.h"

/* words_error() - "xrun: what is wrong   try: what to do"; the two are parted
 * by a tab in the text, "try: " is put here. */
void words_error(const struct xr_error *err);

/* words_lines() - "xrun: " and a line, for each line of @lines. */
void words_lines(const struct buf *lines);

/* words_have_room() - does stderr take a line now? Where nobody reads it, those
 * who have something else to do do not wait for him, and say nothing. */
bool words_have_room(void);

/* words_line() - "xrun: " and one line, in one write. */
void words_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* LAUNCHER_JOB_WORDS_H */
