/* SPDX-License-Identifier: Apache-2.0 */
/* logs_inner.h - what the files logs*.c share. */
#ifndef LAUNCHER_CMD_LOGS_INNER_H
#define LAUNCHER_CMD_LOGS_INNER_H

#include "launcher/cmd/attempt.h"
#include "launcher/cmd/logs_put.h"
#include "launcher/log/merge.h"

struct logs_settings {
	const char *since, *until, *ranks, *grep;
	int64_t tail, attempt;
	bool follow, timestamps, only_stdout, only_stderr, json, prefix,
		ignore_case;
	int color, collapse;
};

/* Words of --collapse: enum collapse_mode. */
extern const char *const logs_collapses[];

/* What is read, and how: one attempt at a time. */
struct reading {
	struct logs_settings s;
	struct attempt attempt;
	struct reader *reader;
	size_t count;
	struct merge merge;
	struct logs_put put;
	bool last;    /* nobody writes any more */
	bool reduced; /* the user knows that only a part is shown */
	int stop; /* of reading_follow(): it leaves when this is readable; -1 */
	bool stopped; /* so it did */
};

/* reading_begin() - the attempt that is open: its readers, each at its first line,
 * and what prints them. */
enum xr_status reading_begin(struct reading *l, struct xr_error *err);

/* reading_end() - of that attempt. What `put` says of its output stays. */
void reading_end(struct reading *l);

/* reading_look() - readers that had nothing are asked whether they have by now. */
void reading_look(struct reading *l, size_t reader);

/* reading_check() - can all of it be opened? XR_E_SYS with words in @err. */
enum xr_status reading_check(const struct reading *l, struct xr_error *err);

/* reading_put_some() - what is there now is put, up to @runs runs, and goes out with
 * logs_put_flush(). Returns false if there is no more. */
bool reading_put_some(struct reading *l, size_t runs);

/* reading_follow() - all of it, and what comes; XR_OK, or words in @err. */
enum xr_status reading_follow(struct reading *l, struct xr_error *err);

#endif /* LAUNCHER_CMD_LOGS_INNER_H */
