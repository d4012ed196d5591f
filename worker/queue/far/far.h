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
 * Who serves may be stopped, or the way to it cut. Its word is waited for until the time of
 * the call is over, and FAR_SLACK_NS more, as it may be under way; for that of a mere look,
 * which has no time, FAR_LOOK_NS. What a get is too late for is the next get's of the handle,
 * if that waits for it, and goes back to where it was got else: who serves keeps what it
 * sent to one who may be late until that says what became of it. Of XR_QUEUE_P2P it stays
 * for the next get, as nobody else may have it.
 *
 * A get does not know how many bytes will come. If those of an item need more time than
 * FAR_SLACK_NS, the server leaves the item in the queue and answers with the length. The
 * client allows for the bytes and asks again.
 *
 * A put that has a time is an offer first: who serves takes room for it, which nobody else
 * sees, and says so; from then on it is ours whether it is put. So one that is too late for
 * that word was not put, and what comes later is revoked.
 */
#ifndef WORKER_QUEUE_FAR_FAR_H
#define WORKER_QUEUE_FAR_FAR_H

#include "worker/queue/queue_inner.h"

struct xr_future;
struct xr_peer;
struct xr_method_ref;

#define FAR_LOOK_NS  INT64_C(1000000000)
#define FAR_SLACK_NS INT64_C(10000000)
/* Many bytes take long by themselves, on a loaded machine or a slow network: bytes a
 * second for which the reply is awaited beyond the time of the call. */
#define FAR_RATE (INT64_C(4) << 20)
#define FAR_LATE_NS \
	INT64_C(20000000) /* a wait ended late, beyond a time slice */

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
	_Atomic uint64_t acked; /* the last answer to a get that has come */
	pthread_mutex_t lock;   /* what follows */
	TAILQ_HEAD(, far_call) late;
	int fd;          /* -1: nobody polls */
	bool is_watched; /* an answer is to come that lights it, */
	bool is_stale;   /* and may be of what was got since */
	bool is_over;    /* it stays lit */
};

/* An answer that is to come, or of which something is left. */
struct far_call {
	TAILQ_ENTRY(far_call) list;
	_Atomic uint32_t refs;
	int64_t timeout; /* of the agent's call */
	int64_t limit;   /* of its being sent; 0: the same */
	int64_t until; /* of a get that allows for many bytes; 0: of any other */
	struct xr_future *future;
	struct xr_value *answer;
	uint32_t next;       /* item of the answer */
	uint64_t at;         /* where its bytes begin */
	struct far *watched; /* of FAR_WATCH: a reference */
	bool is_late;        /* who asked has gone on */
	bool is_kept;        /* nobody else can have it */
	/* late.c; the first three under the lock of @far. */
	bool is_listed;
	bool is_told;          /* its end is listened for, */
	struct far_call *back; /* of this, which gives back what came */
	struct far *far;       /* which it keeps from being left */
	size_t len;
	uint8_t ask[]; /* [len] */
};

/* far_open() - of @text, which says @where; XR_E_STATE: there is no agent here;
 * XR_E_NOTFOUND: nor there, or the queue is gone. */
enum xr_status far_open(const char *text, const struct where_queue *where,
	struct far **far, struct xr_error *err);

struct far *far_ref(struct far *f);
void far_unref(struct far *f);

/* far_come() - one handle more, or something that is late; far_go() - one less: with the
 * last of them it is left. */
void far_come(struct far *f);
void far_go(struct far *f);

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

/* --- far.c, for the others -------------------------------------------------------- */

/* far_call_new() - with room for @len bytes behind struct far_ask, which is filled but
 * for count and timeout; NULL: no memory. */
struct far_call *far_call_new(const struct xr_queue *q, uint32_t op,
	size_t len);
void far_call_unref(struct far_call *c); /* NULL is fine */

/* far_send() - @c has a future. */
enum xr_status far_send(struct far *f, struct far_call *c,
	struct xr_error *err);

/* far_tell() - @op with a number, of all lanes: nobody answers that. */
void far_tell(struct far *f, uint32_t op, uint64_t number);

/* far_await() - @c has an answer, which is whole; XR_E_AGAIN: not by @until. */
enum xr_status far_await(struct far_call *c, int64_t until,
	struct xr_error *err);

/* far_said() - the status of an answer, and its words. */
enum xr_status far_said(const struct far_call *c, struct xr_error *err);

/* far_darken() - a get found nothing: @is_over, and nothing will come. */
void far_darken(struct far *f, bool is_over);

/* far_check() - is the answer @c has one? far_await() has looked. */
enum xr_status far_check(const struct far_call *c, struct xr_error *err);

/* --- late.c --------------------------------------------------------------------------- */

/* late_pop() - the first that a get of @q was late for; NULL: none. */
struct far_call *late_pop(const struct xr_queue *q);

/* late_push() - @c is late, or has something left. Taken. */
void late_push(const struct xr_queue *q, struct far_call *c);

/* late_is_back() - of one that was popped: what it had was given back, or is being; until
 * @until that is waited for. */
bool late_is_back(struct far_call *c, int64_t until);

/* late_return() - give back what @c was answered. */
void late_return(const struct xr_queue *q, const struct far_call *c,
	int64_t until);

#endif /* WORKER_QUEUE_FAR_FAR_H */
