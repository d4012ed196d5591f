/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.h - jobs that have ended and have no folder among the others: with
 * --no-logs, with --log-dir, and those whose ranks wrote nothing.
 *
 * <root>/.history has a line for each of them, a JSON object with members of
 * job.json, and "dir" if the job keeps its output elsewhere. Lines are appended
 * with one write(2). The lines of a removed job are overwritten with spaces. Earlier
 * versions appended a line {"job":ID,"removed":true} instead, which is still read. A
 * file that has become large is renamed to .history.1, so the last several
 * hundred jobs are known.
 */
#ifndef LAUNCHER_STATE_HISTORY_H
#define LAUNCHER_STATE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

/* history_add() - appends @text, which ends with a newline. Returns 0, or -1 with
 * errno. Uses no heap. */
int history_add(const char *root, const char *text, size_t len);

/* history_add_line() - the same with @text, a line without its newline. */
int history_add_line(const char *root, const char *text);

/* history_is_fn - Returns true if @id is one of the jobs that are meant. */
typedef bool history_is_fn(void *ctx, const char *id);

/* history_remove() - overwrites all lines of the jobs for which @is returns true.
 * Reads the files once. Returns 0, or -1 with errno. */
int history_remove(const char *root, history_is_fn *is, void *ctx);

/* The jobs of a history, the youngest last, each id once. */
struct history {
	struct cJSON **job;
	size_t count;
};

/* history_read() - reads all of it; memory that is missing ends xrun. */
void history_read(struct history *h, const char *root);

/* history_find() - job @id, or NULL. */
const struct cJSON *history_find(const struct history *h, const char *id);

void history_fini(struct history *h);

#endif /* LAUNCHER_STATE_HISTORY_H */
