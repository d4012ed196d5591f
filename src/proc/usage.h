/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.h - what a process and its descendants use now, from /proc.
 *
 * No wait: to be asked on a loop. What its own processes used that
 * have ended, and were waited for, is counted, so the time only grows while
 * the tree keeps its root.
 */
#ifndef PROC_USAGE_H
#define PROC_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

struct usage {
	int64_t cpu_ns; /* user and system; the kernel counts in 10 ms */
	int64_t rss;    /* bytes */
	uint32_t processes;
	bool running; /* one of them is on a processor, or waits for one */
	bool stopped; /* the first of them is: by a signal, or for a tracer */
	pid_t leaf;   /* the last in the line of first children */
};

#define USAGE_PROCESSES 256 /* of a tree are looked at, at most */

/* usage_read() - of @pid alone, added to @u. False: there is no such process. */
bool usage_read(pid_t pid, struct usage *u);

/* usage_tree() - of @pid and what descends from it. False: as above. */
bool usage_tree(pid_t pid, struct usage *u);

#endif /* PROC_USAGE_H */
