/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.h - starting a program without an event loop.
 *
 * spawn_start() clones, sets the child up and runs the program. It returns
 * after the exec: either the program runs, or @step and @sys say what failed,
 * and nothing is left. The child shares the maker's memory until then (vfork
 * semantics), so everything it needs is prepared before.
 *
 * Descriptors of the child come from slots below SPAWN_SLOTS, which the maker
 * keeps for that purpose: the child drops everything from SPAWN_SLOTS up in
 * one call without copying the maker's table. Every descriptor of the maker is
 * close-on-exec.
 *
 * The maker has 0 to 2 open, all signals blocked and no ignored ones, so that
 * the child need not reset dispositions one by one. The child becomes a
 * session leader and dies when the thread that made it dies: only the main
 * thread makes children. One maker at a time.
 */
#ifndef PROC_SPAWN_H
#define PROC_SPAWN_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/resource.h>
#include <sys/types.h>

/* Descriptors the maker stages for the child; see spawn_slots_init(). */
enum spawn_slot {
	SPAWN_SLOT_IN = 3,
	SPAWN_SLOT_OUT,
	SPAWN_SLOT_ERR,
	SPAWN_SLOT_LIFE,
	SPAWN_SLOT_CONTROL,
	SPAWN_SLOT_SEGMENT,
	SPAWN_SLOT_NULL,
	SPAWN_SLOTS, /* first descriptor that no child sees */
};

enum spawn_step {
	SPAWN_OK,
	SPAWN_CLONE,
	SPAWN_GROUP,
	SPAWN_FILES,
	SPAWN_SESSION,
	SPAWN_DEATHSIG,
	SPAWN_STDIO,
	SPAWN_LIMIT,
	SPAWN_AFFINITY,
	SPAWN_CHDIR,
	SPAWN_TERMINAL,
	SPAWN_EXEC,
};

struct spawn {
	const char *dir;   /* working directory; NULL: the maker's */
	const char *path;  /* program file, not searched for; seen from dir */
	char *const *argv; /* NULL-terminated */
	char *const *envp; /* NULL-terminated */
	int in, out, err;  /* a slot, or 0, 1, 2 itself: what becomes it */
	bool tty;          /* @out is a terminal: make it the controlling one */
	int life;          /* slot that becomes @life_at; -1: none */
	int life_at;       /* below the limit of @files */
	int control;       /* slot that becomes @control_at; -1: none */
	int control_at;    /* below the limit of @files */
	int segment;       /* slot that becomes @segment_at; -1: none */
	int segment_at;    /* below the limit of @files */
	struct rlimit files; /* RLIMIT_NOFILE of the child */
	int group;           /* cgroup.procs of its group; 0: the maker's */
	const void *cpus;    /* mask for sched_setaffinity(2); NULL: as it is */
	uint32_t cpus_len;   /* its bytes, whole words */
	uint32_t rank;       /* for faults; base/fault.h */

	/* Results. */
	pid_t pid; /* 0 if nothing was started */
	int pidfd; /* close-on-exec; the caller closes */
	enum spawn_step step;
	int sys; /* errno of the step that failed */
};

/*
 * spawn_slots_init() - take the slots, filled with /dev/null.
 *
 * To be called once, early: what stood in the slots is closed.
 * Returns 0, or -1 with errno.
 */
int spawn_slots_init(void);

/* spawn_slot_set() - the slot shares @fd from now on; @fd -1: /dev/null. */
int spawn_slot_set(enum spawn_slot slot, int fd);

/*
 * spawn_start() - see above.
 *
 * Returns true if the program runs (@pid, @pidfd), false if @step failed.
 * A refused clone is tried again as fork with a gate, for old sandboxes.
 * Blocks: until the exec.
 */
bool spawn_start(struct spawn *s);

/* spawn_step_name() - "exec", "setsid", ...: what was being done. */
const char *spawn_step_name(enum spawn_step step);

#endif /* PROC_SPAWN_H */
