/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake.h - messages out of the bytes of a connection, however these are cut.
 *
 * Short bodies are delivered where they lie in what was read. Others are put
 * together in memory of their own: the host's, if it has a place for a long one,
 * else one of bodies.h. Of a long one the rest is read straight to where it
 * belongs (intake_rest()).
 *
 * No I/O. One thread. Limits are checked before there is memory for anything.
 */
#ifndef WORKER_NET_INTAKE_H
#define WORKER_NET_INTAKE_H

#include <stdbool.h>

#include "worker/net/bodies.h"
#include "worker/net/head.h"

#define INTAKE_SHORT 488 /* bytes; above, bodies are aligned: transport.h */
#define INTAKE_LONG  (16 << 10) /* bytes; above, they may be placed */

struct intake_ops {
	/* place() - memory of the host for a long body; NULL: none. */
	void *(*place)(void *ctx, const struct net_head *head);
	/* deliver() - false: nobody wants any more of them. */
	bool (*deliver)(void *ctx, const struct net_head *head,
		const struct xr_body *body);
};

struct intake {
	struct bodies *bodies;
	const struct intake_ops *ops;
	void *ctx;
	char bytes[NET_HEAD]; /* of a head that is not whole */
	size_t have;          /* of them */
	struct net_head head; /* of the body that is under way */
	char *body;           /* where that goes; NULL: none is under way */
	uint64_t got;         /* bytes of it */
	struct xr_body_buffer *own; /* whose memory that is; NULL: the host's */
};

void intake_init(struct intake *in, struct bodies *bodies,
	const struct intake_ops *ops, void *ctx);
void intake_fini(struct intake *in);

/*
 * intake_feed() - @len more bytes have come.
 *
 * Returns  XR_OK; XR_E_PROTO: they are no messages; XR_E_NOMEM; XR_E_CLOSED:
 *          deliver() wants no more. Nothing may be fed afterwards.
 */
enum xr_status intake_feed(struct intake *in, const char *bytes, size_t len,
	struct xr_error *err);

/* intake_rest() - where the rest of a long body may be read to, *@len bytes; NULL:
 * bytes are to be fed. */
char *intake_rest(const struct intake *in, size_t *len);

/* intake_filled() - @len bytes are there now; as intake_feed(). */
enum xr_status intake_filled(struct intake *in, size_t len);

/* intake_is_midway() - would an end now cut a message? */
bool intake_is_midway(const struct intake *in);

#endif /* WORKER_NET_INTAKE_H */
