/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the record of a running job, and its line of the history.
 *
 * While the job runs, its record (ctl/record.h) says how to find its processes
 * should keeper and supervisor be killed. When a job without a folder among the
 * others ends, a line of the history (state/history.h) says how it ended.
 */
#ifndef LAUNCHER_KEEPER_RECORD_H
#define LAUNCHER_KEEPER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/ctl/record.h"
#include "xrun/error.h"

struct job;

/* Part of the page that keeper and supervisor share. */
struct record {
	struct ctl_record file;
	uint64_t lineage; /* mark of its processes, proc/lineage.h */
	uint64_t ticks;   /* since boot, before its first process */
	int32_t noted;    /* the history has a line of this job */
};

/*
 * record_open() - makes the file for the record of a job that is about to start, in @root.
 *
 * The launcher does this, because the supervisor would take three times as long: the
 * first use of each page of the program is a fault in a new process. A record that cannot
 * be made is no reason not to start: a warning tells why.
 * @trouble: why a folder before @root is not used; may be empty
 * Returns   XR_OK; XR_E_STATE with -d, if verbs could not reach the job
 */
enum xr_status record_open(struct job *job, const struct ctl_root *root,
	const struct xr_error *trouble, struct xr_error *err);

/* record_begin() - gives the record its name before the first rank starts. The supervisor
 * does this, so that a keeper that is killed earlier leaves none. */
void record_begin(struct job *job);

/* record_search() - notes in the state of @job whether there are records of other jobs.
 * Called by the supervisor while the ranks start. */
void record_search(struct job *job);

/* record_mark() - marks the calling supervisor and its descendants. Warns if it
 * cannot. */
void record_mark(const struct job *job);

/* record_complete() - work_fn: adds to the record of @job what takes time to find
 * out. For a job that lasts. */
void record_complete(void *job);

/* record_remove() - the job is over and nothing of it runs. Returns false if the record is
 * still there. Uses no heap. */
bool record_remove(const struct job *job);

/* record_free() - frees the texts of the record. The file stays; see
 * record_remove(). */
void record_free(struct job *job);

/* record_note() - appends the line of the history, once, if @job has no folder
 * among the others. Uses no heap. May wait for the disk. */
void record_note(struct job *job, int status, const char *reason);

#endif /* LAUNCHER_KEEPER_RECORD_H */
