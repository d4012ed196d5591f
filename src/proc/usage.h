/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.h - what a process and its descendants use now, from /proc.
 *
 * No wait. What its own processes used that have ended, and were waited for, is
 * counted, so the time only grows while the tree keeps its root. The kernel keeps
 * children by the thread that made them: to find all costs three system calls a
 * thread, and most have none. So there are two ways to ask.
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
	uint32_t others; /* threads of these, but for the first of each */
	uint32_t asked;  /* of the others, for their children */
	bool running;    /* one of them is on a processor, or waits for one */
	bool stopped; /* the first of them is: by a signal, or for a tracer */
	pid_t leaf;   /* the last in the line of first children */
};

#define USAGE_PROCESSES 256  /* of a tree are looked at, at most */
#define USAGE_THREADS   1024 /* and asked for their children, beside the first */

/* usage_read() - of @pid alone, added to @u. False: there is no such process. */
bool usage_read(pid_t pid, struct usage *u);

/* usage_near() - of @pid, the children of its first thread, and so on; to be asked
 * on a loop. If @u->others is 0 that is all there is. False: as above. */
bool usage_near(pid_t pid, struct usage *u);

/* usage_tree() - of @pid and what descends from it. False: as above. */
bool usage_tree(pid_t pid, struct usage *u);

#endif /* PROC_USAGE_H */
