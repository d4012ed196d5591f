/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scene.h - a job that something is done to, and what must hold afterwards,
 * whatever was done: one checker for all loops of tests/fault.
 *
 * The program is a subreaper, so whoever a job leaves behind becomes its
 * child, and cannot be missed. A scene has a folder of its own, with the state
 * and runtime folders of xrun, its stdout and stderr (out, err), and the
 * copies that spew makes of what it writes (ref.RANK.out, ref.RANK.err and
 * their counters).
 */
#ifndef TESTS_FAULT_SCENE_H
#define TESTS_FAULT_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>
#include <termios.h>

#define SCENE_RANKS 64

struct scene {
	char dir[512];
	int master;            /* of its terminal; -1: stdin is /dev/null */
	struct termios before; /* of that terminal */
	pid_t pid;             /* xrun's first process */
	char what[256];        /* the round, for whoever reads of a violation */
	bool unremovable;      /* this round nobody can remove a name */
	uint32_t broken;       /* violations so far */
};

/* What the end of a round may look like. */
struct scene_end {
	int64_t orphans_ms; /* everybody is gone so long after the end */
	uint32_t ranks;     /* that ran spew --both --copy; 0: other programs */
	uint64_t pipe_bytes; /* of a stream may be lost: nobody was left */
	bool complete;       /* every byte of the copies is there */
	bool report;         /* it had --report=report */
	int status;          /* of scene_wait(), for the report */
};

/* scene_init() - be a subreaper; @dir is made. Dies where that fails. */
void scene_init(struct scene *s, const char *dir);
void scene_fini(struct scene *s);

/* scene_clear() - an empty folder for the next round. */
void scene_clear(struct scene *s);

/* scene_start() - xrun with @argv in the scene; its pid is in @s. @traced: it
 * waits, stopped, for its tracer. */
void scene_start(struct scene *s, char *const *argv, bool traced);

/* scene_terminal() - rounds from now on have a terminal of their own. */
void scene_terminal(struct scene *s);

/* scene_wait() - the wait status of the first process; -1: it did not end in
 * @ms, and was killed, which is a violation. */
int scene_wait(struct scene *s, int64_t ms);

/* scene_check() - everything that must hold. Prints what does not, with the
 * round; the milliseconds until nobody was left, or -1. */
int64_t scene_check(struct scene *s, const struct scene_end *end);

/* scene_broken() - print and count a violation. */
void scene_broken(struct scene *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* scene_child() - a child of @pid that is called @name; 0: none. */
pid_t scene_child(pid_t pid, const char *name);

/* scene_number() - behind @name in /proc/TID/status; 0: none, or gone. */
pid_t scene_number(pid_t tid, const char *name);

/* scene_count() - lines of the file @name that begin with @prefix. */
uint32_t scene_count(const struct scene *s, const char *name,
	const char *prefix);

/* scene_size() - bytes of the file @name; 0 if it is not there. */
int64_t scene_size(const struct scene *s, const char *name);

#endif /* TESTS_FAULT_SCENE_H */
