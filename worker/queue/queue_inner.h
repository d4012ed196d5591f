/* SPDX-License-Identifier: Apache-2.0 */
/* queue_inner.h - what the files of the public calls share. */
#ifndef WORKER_QUEUE_QUEUE_INNER_H
#define WORKER_QUEUE_QUEUE_INNER_H

#include <xrun/queue.h>

#include "worker/queue/lane.h"
#include "worker/queue/wake.h"

struct far;

/* A handle: of all lanes, or of one. */
struct xr_queue {
	struct hall *hall;               /* of @far, if there is one */
	uint32_t first, count;           /* of its lanes */
	_Atomic uint32_t put_at, get_at; /* where to begin the next time */
	struct far *far;                 /* NULL: it is of this machine */
};

/*
 * A call that may wait: look, and while there is nothing, spell_turn(), and look again.
 *
 *	struct spell s = spell_begin(q, timeout, &hall->head->items_wake);
 *	while (look(&s.met) is XR_E_AGAIN && (status = spell_turn(&s, err)) == XR_OK)
 *		;
 */
struct spell {
	struct hall *hall;
	struct wake *wake;
	struct wait_site *site;
	int64_t timeout, deadline;
	struct wait wait;
	uint32_t seen;
	bool begun, armed, is_last;
	struct lane_met met; /* by the last look */
};

void spell_init(struct spell *s, struct hall *h, struct wake *wake,
	int64_t timeout);

/* spell_turn() - XR_OK: look again; XR_E_TIMEOUT; XR_E_SYS, XR_E_NOMEM: nobody would be
 * heard of. Who is dead, and in the way, is swept away before the last look. */
enum xr_status spell_turn(struct spell *s, struct xr_error *err);
void spell_end(struct spell *s);

/* queue_make() - as xr_queue_new(), of which nobody is told. */
enum xr_status queue_make(const struct xr_queue_opts *opts,
	struct xr_queue **queue, struct xr_error *err);

/* give_all() - put @count letters. @done: receives how many were. */
enum xr_status give_all(struct xr_queue *q, struct letter *letters,
	size_t *count, int64_t timeout, struct xr_error *err);

/* take_some() - up to @count items; @takers' bufs receive them, and what they made. */
enum xr_status take_some(struct xr_queue *q, struct taker *takers,
	size_t *count, int64_t timeout, struct xr_error *err);

/* take_now() - the same of what is there, without waiting or a system call but to wake
 * others: XR_E_AGAIN, there is nothing. */
enum xr_status take_now(struct xr_queue *q, struct taker *takers, size_t *count,
	struct xr_error *err);

/* take_said() - @status, with words where @first did not get what is there: XR_E_RANGE,
 * XR_E_NOMEM. */
enum xr_status take_said(enum xr_status status, const struct taker *first,
	struct xr_error *err);

/* queue_open_own() - a handle as any other, of the text of one that this process has. */
enum xr_status queue_open_own(const char *text, struct xr_queue **queue,
	struct xr_error *err);

/* What was got of one item that may be a value. */
struct got {
	struct xr_queue_buf buf;
	int *fds; /* [count] */
	size_t count, head;
	enum xr_status status; /* of opening them */
	int error;             /* errno of XR_E_SYS */
};

/* got_prepare() - @taker takes what @got is to be made of. */
void got_prepare(struct taker *taker, struct got *got);

/* got_value() - the value of what was taken; all else is freed. */
enum xr_status got_value(struct taker *taker, struct got *got,
	struct xr_value **value, struct xr_error *err);

#endif /* WORKER_QUEUE_QUEUE_INNER_H */
