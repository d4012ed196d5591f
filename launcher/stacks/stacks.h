/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks.h - where ranks are: the stacks of all their threads, and equal ones
 * as one.
 *
 * tree.c finds the processes of each rank and threads.c reads what /proc says of
 * them; gather.c lets the tools that are there (eu-stack, gdb, py-spy) tell
 * their stacks, which parse_*.c read; merge.c makes one of equal ones, and put.c
 * and put_json.c write them. It is the work of a process of its own, which a
 * person or the supervisor starts: it allocates as it likes, and waits.
 *
 * Everything is found with the rights of whoever asks. A process that is looked
 * at stands still for some milliseconds, and goes on whatever becomes of the
 * tool; one that stood still before stays so.
 */
#ifndef LAUNCHER_STACKS_STACKS_H
#define LAUNCHER_STACKS_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

#define STACKS_FRAMES_MAX  512  /* of a stack; deeper ones are cut there */
#define STACKS_THREADS_MAX 4096 /* of a process */
#define STACKS_A_RANK      16   /* processes of a rank that are looked at */

/* Where a function of a stack was. */
struct frame {
	char *function; /* as name.h writes it; "": not known */
	char *file;     /* of the module or source, without its folder; "" */
	int64_t line;   /* 0: not known */
};

/* From the inside out. */
struct frames {
	struct frame *at;
	uint32_t count;
};

struct thread {
	pid_t tid;
	char comm[17];
	char state;     /* as of ps(1); '?' */
	char wchan[64]; /* where it sleeps in the kernel; "" */
	char call[160]; /* the system call that it is in: "read pipe"; "" */
	struct frames native, python;
	struct frames kernel; /* for root */
	uint32_t group;       /* merge.c */
};

/* What told the stacks. */
enum stacks_by {
	STACKS_BY_PROC, /* nobody: what /proc says of the threads is there */
	STACKS_BY_EU,
	STACKS_BY_GDB,
};

struct process {
	uint32_t rank;
	pid_t pid;
	uint32_t depth; /* 0: the rank itself */
	char comm[17];
	bool stopped; /* it stood still before it was looked at */
	bool python;  /* it runs Python */
	enum stacks_by by;
	const char *
		python_by; /* "py-spy", "gdb", "faulthandler"; NULL: no Python was told */
	char why[160];         /* there are no stacks; "" */
	struct thread *thread; /* the first is the main one, mostly */
	uint32_t threads;
};

/* One that was asked for. */
struct stacks_rank {
	uint32_t rank;
	pid_t pid;
	bool ended;        /* there is no such process any more */
	uint32_t left_out; /* processes beyond STACKS_A_RANK */
};

/* Equal stacks. */
struct group {
	const struct process *process; /* one that has it, */
	const struct thread *thread;   /* and its thread */
	uint32_t threads;              /* that have it */
	uint32_t ranks;
	bool main;      /* some are main threads of their process */
	uint32_t first; /* merge.c */
};

struct stacks {
	struct stacks_rank *rank;
	uint32_t ranks;
	struct process *process;
	uint32_t count;
	struct group *group; /* the odd ones first */
	uint32_t groups;
	int64_t took_ns;
};

/* stacks_add_rank() - before all else. */
void stacks_add_rank(struct stacks *s, uint32_t rank, pid_t pid);
struct process *stacks_add_process(struct stacks *s, uint32_t rank, pid_t pid);

/* stacks_thread() - the thread called @tid, which is new if there was none; NULL
 * if there are too many. Good until the next. */
struct thread *stacks_thread(struct process *p, pid_t tid);

/* stacks_add_frame() - the next one out; what is too much is left out. */
void stacks_add_frame(struct frames *f, const struct frame *frame);

void stacks_fini(struct stacks *s);

/* stacks_tame() - a name that anybody chose is a word of a line. */
void stacks_tame(char *name);

/* stacks_by_name() - "eu-stack", "gdb", "/proc". */
const char *stacks_by_name(enum stacks_by by);

#endif /* LAUNCHER_STACKS_STACKS_H */
