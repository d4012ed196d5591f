/* SPDX-License-Identifier: Apache-2.0 */
/* who.h - ranks by number, as xrun's words name them: "ranks 0, 2-63". */
#ifndef LAUNCHER_TELL_WHO_H
#define LAUNCHER_TELL_WHO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "launcher/job/job.h"

/* Is local rank @r one of them? */
typedef bool who_fn(const struct job *job, uint32_t r, uint32_t arg);

/* who_put() - "rank 3", "ranks 0, 2-63" of those for which @pick holds; gives
 * how many they are. */
uint32_t who_put(const struct job *job, who_fn *pick, uint32_t arg,
	struct buf *out);

/* who_failed_too() - who_fn: died of itself, and is not @culprit. */
bool who_failed_too(const struct job *job, uint32_t r, uint32_t culprit);

/* who_put_stopped() - "ranks 0, 1 were stopped by xrun (TERM, 0.1 s)"; false,
 * and nothing is put, if there are none. */
bool who_put_stopped(const struct job *job, struct buf *out);

/* who_plural() - @one if @n is 1, else @many. */
const char *who_plural(uint32_t n, const char *one, const char *many);

#endif /* LAUNCHER_TELL_WHO_H */
