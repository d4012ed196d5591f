/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - a record of each running job of this user on this machine.
 *
 * A record is a file .job-HEX in a folder of root.h. The job's keeper and
 * supervisor hold its lock (flock(2)) as long as one of them lives, and remove it
 * at the end. A record whose lock is free belongs to a job whose xrun was killed.
 * The record does not depend on where, or whether, the job keeps its output.
 *
 * If its folder is known only to processes with the same XDG_RUNTIME_DIR, a symbolic
 * link .at-HEX in STATE/.run-HOST names the folder.
 *
 * The content is text of the caller's.
 */
#ifndef LAUNCHER_CTL_RECORD_H
#define LAUNCHER_CTL_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "launcher/ctl/root.h"

struct ctl_record {
	int fd; /* holds the lock; -1: there is no file */
	uint64_t number;
	bool is_named;
	char *path; /* NULL: there is no file */
	char *link; /* to its folder; NULL: not needed */
};

#define CTL_RECORD_NONE ((struct ctl_record){ .fd = -1 })

/*
 * ctl_record_make() - makes a file for a record in @root, and locks it. If the file
 * system can do that, the file has no name yet and so goes with its last process.
 *
 * @number:  makes its name, unique among all jobs
 * Returns   0; -1 with errno, and no record. ctl_record_free() frees its paths.
 */
int ctl_record_make(struct ctl_record *record, const struct ctl_root *root,
	uint64_t number, struct span text);

/* ctl_record_name() - gives the file its name, unless it has it. Returns 0; -1 with errno,
 * and no record. */
int ctl_record_name(struct ctl_record *record, struct span text);

/* ctl_record_others() - returns true if any folder has a record of another job. */
bool ctl_record_others(const struct ctl_record *own);

/* ctl_record_write() - replaces the text by one that is not shorter. */
void ctl_record_write(const struct ctl_record *record, struct span text);

/* ctl_record_remove() - removes the file and its link; the lock stays. Returns false if
 * one of them is still there. Uses no heap. */
bool ctl_record_remove(const struct ctl_record *record);

/* ctl_record_free() - frees the paths; the file and its lock stay. */
void ctl_record_free(struct ctl_record *record);

/* A record that was found. */
struct ctl_record_found {
	const char *text; /* terminated */
	bool held;        /* keeper or supervisor lives */
	int64_t age;      /* ns since it was made, by the wall clock */
};

/* ctl_record_fn: returns true to remove a record whose lock is free. */
typedef bool ctl_record_fn(void *ctx, const struct ctl_record_found *found);

/* ctl_record_each() - calls @fn for each record. Removes nothing.
 * @all: in all folders, instead of those in which verbs look for jobs */
void ctl_record_each(bool all, ctl_record_fn *fn, void *ctx);

/* ctl_record_sweep() - calls @fn for each record in all folders. Locks each
 * record whose lock is free during the call. */
void ctl_record_sweep(ctl_record_fn *fn, void *ctx);

#endif /* LAUNCHER_CTL_RECORD_H */
