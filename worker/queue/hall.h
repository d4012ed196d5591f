/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hall.h - a queue's memory, as a process has it.
 *
 * There is one for each handle that came from outside, and for all handles of its lanes;
 * it is counted. A child made by fork() has its own, of the same memory, and is another
 * user of it from its first call on.
 *
 * Beside the memory there is a pipe, whose writing end each writer has, so that the kernel
 * tells readers when the last one is gone (POLLHUP), and that has a byte in it while there
 * is something to get, if anybody polls.
 */
#ifndef WORKER_QUEUE_HALL_H
#define WORKER_QUEUE_HALL_H

#include <pthread.h>

#include <sys/queue.h>

#include <xrun/queue.h>

#include "worker/queue/layout.h"
#include "worker/shm/wait.h"

/* What a queue is, and where what lies. */
struct hall_plan {
	enum xr_queue_kind kind;
	enum xr_enc_mode mode;
	bool redeliver;
	uint32_t items, lanes, blocks, block;
	uint64_t lot;
	/* within a lane */
	uint64_t cells_at, owners_at, next_at, data_at, lane_size;
	uint64_t lanes_at, mapped, lots_at, size;
};

struct lane {
	struct lane_head *ends;
	struct cell *cell;       /* [items] */
	_Atomic uint64_t *owner; /* [blocks] */
	_Atomic uint32_t *next;  /* [blocks] */
	uint8_t *data;           /* [blocks][block] */
};

/* An item that was got, and is not done, or not known to have come. */
struct hall_hand {
	struct lane *lane;
	uint64_t ticket;
};

/* trail.h; of who made the queue. */
struct trail {
	_Atomic bool is_on;
	pthread_mutex_t lock; /* what follows */
	int64_t noted;        /* when, the last time */
	int64_t at;           /* when this was remembered; 0: it was not */
	uint64_t items;
};

struct gauge_row;
struct lent;

struct hall {
	LIST_ENTRY(hall) list; /* of all that this process has */
	_Atomic uint32_t refs;
	struct hall_plan plan;
	struct hall_head *head;
	char *base;
	struct user *users;        /* [HALL_USERS] */
	struct lane *lane;         /* [lanes] */
	_Atomic uint32_t me;       /* who; 0: not come yet */
	_Atomic uint32_t roles;    /* enum xr_queue_role */
	uint32_t shift;            /* of items; 0: no power of two, or one */
	int fd, ear;               /* memory; the pipe's reading end */
	_Atomic int mouth;         /* its writing end; -1 */
	_Atomic uint32_t followed; /* the roll, as the vigil knows it */
	bool heard;                /* the vigil has the ear; under its lock */
	bool keeps;                /* what is got is ours until it is done */
	bool is_ward; /* another process's, which has no part in forks, */
	char name[USER_NAME];   /* of the worker of that name */
	_Atomic bool is_quit;   /* who waits goes */
	pthread_mutex_t lock;   /* what follows */
	struct hall_hand *hand; /* [hand_room] */
	size_t hand_count, hand_room;
	LIST_HEAD(lents, lent) lent;
	_Atomic uint64_t lent_count; /* that ever were in it */
	struct wait_site gets, puts;
	struct gauge_row *gauge; /* where who made it tells of it; or NULL */
	struct trail trail;
};

LIST_HEAD(hall_list, hall);

/* hall_plan_of() - false: too large. The numbers of @plan are set. */
bool hall_plan_of(struct hall_plan *plan);

/* hall_new() - of memory that is made. */
enum xr_status hall_new(const struct hall_plan *plan, struct hall **hall,
	struct xr_error *err);

/* hall_adopt() - of descriptors, which stay the caller's. */
enum xr_status hall_adopt(const int fds[XR_QUEUE_FDS], struct hall **hall,
	struct xr_error *err);

/* hall_tell() - this process made it, and says how it is (segment/gauge.h). */
void hall_tell(struct hall *h);

struct hall *hall_ref(struct hall *h);
void hall_unref(struct hall *h); /* NULL is fine */

/* lent_reap() - what was put by reference and was got is kept no more; or all. */
void lent_reap(struct hall *h, bool all);

/* lent_is_any() - is anything kept that is not got yet, or that its reader has in hand? */
bool lent_is_any(struct hall *h);

/* hall_each() - with the lock of all halls, which no call of this process holds for
 * long: @fn of each. */
void hall_each(void (*fn)(struct hall *h, void *ctx), void *ctx);

/* hall_file_limit() - how many bytes a file may have: RLIMIT_FSIZE. The kernel sends SIGXFSZ to
 * a process that exceeds it. */
uint64_t hall_file_limit(void);

/* hall_space() - which process ids are numbers here; of each machine others. 0: descriptors are
 * short, or the kernel's memory, as errno says. */
uint64_t hall_space(void);

/* hall_mute() - this process is no writer any more. */
void hall_mute(struct hall *h);

/* hall_settle() - of what was got, @hand is done; or, with @is_back, given back. Nothing,
 * if it was done before. */
void hall_settle(struct hall *h, const struct hall_hand *hand, bool is_back);

/* hall_wake() - all who sleep look. */
void hall_wake(struct hall *h);

/* hall_finish() - it is closed, if it is not; and all who sleep look. */
void hall_finish(struct hall *h, enum hall_end end);

/* hall_abandoned() - is there no writer any more? Then it is closed. A system call. */
bool hall_abandoned(struct hall *h);

/* hall_light() - there is something to get; who polls sees it. */
void hall_light(struct hall *h);
/* hall_darken() - there was nothing to get. */
void hall_darken(struct hall *h);

static inline bool
hall_has(const struct hall *h, enum xr_queue_role role)
{
	return (atomic_load_explicit(&h->roles, memory_order_relaxed) & role) !=
		0;
}

#endif /* WORKER_QUEUE_HALL_H */
