/* SPDX-License-Identifier: Apache-2.0 */
/*
 * post.h - messages from one member to another, by tag: receiving.
 *
 * To send (letter.h) is a question, whose answer is that it was received. What
 * comes before it was asked for waits in the order in which it came, up to a limit
 * that those keep to who send; so do those who ask.
 */
#ifndef WORKER_COLL_POST_H
#define WORKER_COLL_POST_H

#include <stdint.h>

#include <xrun/coll.h>
#include <xrun/transport.h>

struct peer;

/* post_recv(), post_irecv() - @call is checked; as xr_coll_recv(). */
enum xr_status post_recv(struct xr_coll *team, const struct xr_coll_op *call,
	int64_t *from, struct xr_error *err);
enum xr_status post_irecv(struct xr_coll *team, const struct xr_coll_op *call,
	struct xr_future **future, struct xr_error *err);

/* post_arrived() - by who delivers. */
void post_arrived(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body);

/* post_cancelled() - nobody waits any more for the answer to what @peer sent. */
void post_cancelled(struct xr_coll *team, const struct peer *peer,
	uint64_t corr);

/* post_fail_all() - of a group that has failed, whose lock is not held. */
void post_fail_all(struct xr_coll *team);

/* post_expire() - those whose time was over by @now; gives when the next is. */
int64_t post_expire(struct xr_coll *team, int64_t now);

#endif /* WORKER_COLL_POST_H */
