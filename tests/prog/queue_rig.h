/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_rig.h - what the programs that test queues share: children, and counts that all of
 * them see.
 */
#ifndef TESTS_PROG_QUEUE_RIG_H
#define TESTS_PROG_QUEUE_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/queue.h>

#include "tests/prog/rig.h"

/* What was put and got, item by item, of all producers. */
#define RIG_WRITERS 8
#define RIG_ITEMS   200000
#define RIG_WORDS   64
#define RIG_READY   63 /* the word of queue_far.h */
#define RIG_KEPT    64 /* bytes */

struct rig_board {
	_Atomic uint32_t word[RIG_WORDS]; /* rig_word */
	_Atomic uint64_t got;
	uint8_t kept[RIG_KEPT];
	_Atomic uint8_t seen[RIG_WRITERS][RIG_ITEMS];
};

struct rig_item {
	uint32_t writer;
	uint32_t seq;
};

extern struct rig_board *rig_board;

/* rig_init() - in main(), first. Gives @extra bytes that all see, too. */
void *rig_init(size_t extra);

/* rig_keep() - of children that are executed @data has, when they begin, what it has
 * when they are made; in main(), before rig_init(). */
void rig_keep(void *data, size_t len);
void rig_recall(void);

typedef void rig_fn(struct xr_queue *q, uint32_t index);

/* rig_fork() - a child that runs @fn and ends with 0. */
pid_t rig_fork(rig_fn *fn, struct xr_queue *q, uint32_t index);
/* rig_leave() - xr_queue_leave(), which those have done, too, who are made later. */
void rig_leave(struct xr_queue *q, uint32_t roles);
uint32_t rig_left(const struct xr_queue *q);

/* rig_join() - each of them ended with 0. rig_kill() - by SIGKILL, and is reaped. */
void rig_join(const pid_t *pids, size_t count);
void rig_kill(pid_t pid);

/* rig_sleeps() - until the process sleeps in a system call. */
void rig_sleeps(pid_t pid);

int64_t rig_cpu(void); /* ns of this process */

/* rig_queue() - as XR_QUEUE_... says. */
struct xr_queue *rig_queue(const struct xr_queue_opts *opts);
#define QUEUE(...) \
	rig_queue(&(struct xr_queue_opts){ \
		.size = sizeof(struct xr_queue_opts), \
		__VA_ARGS__ })

/* rig_put() - @bytes bytes that begin with an item; rig_get() - one; false: closed. */
void rig_put(struct xr_queue *q, uint32_t writer, uint32_t seq, size_t bytes);
bool rig_get(struct xr_queue *q, struct rig_item *item, size_t *len);

/* rig_tensor() - of 100000 bytes that are 1. */
struct xr_value *rig_tensor(void);

extern const struct rig_case many_cases[]; /* queue_many.c */
void many_init(void);
void away_init(void);
extern const struct rig_case end_cases[]; /* queue_end.c */

extern const struct rig_case away_cases[]; /* queue_away.c: with QUEUE_FAR */

#endif /* TESTS_PROG_QUEUE_RIG_H */
