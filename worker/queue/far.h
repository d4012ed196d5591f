/* SPDX-License-Identifier: Apache-2.0 */
/*
 * far.h - a queue of another machine, by its handle here.
 *
 * The process that gave the text serves it: each call is one of the agent's, to that
 * process (ward.h), which does what was asked on a handle that it has for this one. The
 * time of a call is over there; what it says has become of the call is what the
 * call gives, so that nothing is put that was said not to be, and nothing is got by
 * nobody.
 *
 * Who serves may be stopped, or the way to it cut. A get waits FAR_GRACE_NS for its word,
 * and is late then; what comes later is kept, and is what the next get of the
 * handle has. A put waits: nobody else knows whether it was put.
 */
#ifndef WORKER_QUEUE_FAR_H
#define WORKER_QUEUE_FAR_H

#include "worker/queue/queue_inner.h"

struct xr_future;
struct xr_peer;
struct xr_method_ref;

#define FAR_GRACE_NS INT64_C(1000000000)

/* Where a queue's text leads. */
struct where_queue {
	unsigned pid;
	int memory, pipe, worker; /* -1: that process had no agent */
	unsigned long long start, inode, space;
};

/* What handles of one far_open() share. */
struct far {
	_Atomic uint32_t refs;
	_Atomic uint32_t handles; /* with the last of which it is left */
	struct hall hall; /* of which there is a plan, and neither memory nor
				 * roles, so that what all calls ask first leads here */
	_Atomic uint32_t roles; /* enum xr_queue_role */
	struct xr_peer *home;
	struct xr_method_ref *method;
	uint64_t life; /* of the agent that it is of */
	uint64_t token;
	char text[XR_QUEUE_TEXT_MAX];
	pthread_mutex_t lock; /* what follows */
	int fd;               /* -1: nobody polls */
	bool is_watched;      /* an answer is to come that lights it, */
	bool is_stale;        /* and may be of what was got since */
	bool is_over;         /* it stays lit */
};

/* An answer that is to come, or of which something is left. */
struct far_call {
	TAILQ_ENTRY(far_call) list;
	struct far *far; /* of a watch: a reference */
	int64_t timeout; /* of the agent's call */
	struct xr_future *future;
	struct xr_value *answer;
	bool is_late;  /* what it asked for, its asker got not */
	uint32_t next; /* item of the answer */
	uint64_t at;   /* where its bytes begin */
	size_t len;
	uint8_t ask[]; /* [len] */
};

/* far_open() - of @text, which says @where; XR_E_STATE: there is no agent here;
 * XR_E_NOTFOUND: nor there, or the queue is gone. */
enum xr_status far_open(const char *text, const struct where_queue *where,
	struct far **far, struct xr_error *err);

struct far *far_ref(struct far *f);
void far_unref(struct far *f);

/* far_come() - one handle more; far_go() - @q goes, and what came too late for it. */
void far_come(struct far *f);
void far_go(struct xr_queue *q);

/* far_may() - XR_E_AGAIN: by far_give(), or far_take(); XR_E_STATE: it has left. */
enum xr_status far_may(const struct xr_queue *q, enum xr_queue_role role,
	struct xr_error *err);

/* As give_all() and take_some(). */
enum xr_status far_give(struct xr_queue *q, struct letter *letters,
	size_t *count, int64_t timeout, struct xr_error *err);
enum xr_status far_take(struct xr_queue *q, struct taker *takers, size_t *count,
	int64_t timeout, struct xr_error *err);

void far_close(struct xr_queue *q);
void far_leave(struct xr_queue *q, uint32_t roles);
void far_done(struct xr_queue *q);
size_t far_count(const struct xr_queue *q);
enum xr_status far_fd(struct xr_queue *q, int *fd, struct xr_error *err);

/* --- far.c, for far_move.c -------------------------------------------------------- */

/* far_call_new() - with room for @len bytes behind struct far_ask, which is filled but
 * for count and timeout; NULL: no memory. */
struct far_call *far_call_new(const struct xr_queue *q, uint32_t op,
	size_t len);
void far_call_free(struct far_call *c); /* NULL is fine */

/* far_send() - @c has a future. */
enum xr_status far_send(struct far *f, struct far_call *c,
	struct xr_error *err);

/* far_await() - @c has an answer, which is whole; XR_E_AGAIN: not by @until. */
enum xr_status far_await(struct far_call *c, int64_t until,
	struct xr_error *err);

/* far_said() - the status of an answer, and its words. */
enum xr_status far_said(const struct far_call *c, struct xr_error *err);

/* far_darken() - a get found nothing: @is_over, and nothing will come. */
void far_darken(struct far *f, bool is_over);

#endif /* WORKER_QUEUE_FAR_H */
