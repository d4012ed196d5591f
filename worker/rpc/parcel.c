/* SPDX-License-Identifier: Apache-2.0 */
/* parcel.c - see parcel.h. */
#include <stdlib.h>

#include "base/status.h"
#include "base/zalloc.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/tally.h"

static struct tally out; /* with carriers */

static void
sent(struct token *token)
{
	parcel_keep((struct parcel *)token);
}

struct parcel *
parcel_new(void (*free)(void *what), void *what)
{
	struct parcel *p = zalloc(sizeof(*p));

	if (p == NULL)
		return NULL;
	p->token.sent = sent;
	atomic_init(&p->refs, 1);
	p->free = free;
	p->what = what;
	return p;
}

struct parcel *
parcel_ref(struct parcel *p)
{
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

void
parcel_unref(struct parcel *p)
{
	if (p == NULL ||
		atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) !=
			1)
		return;
	if (p->free != NULL)
		p->free(p->what);
	free(p);
}

void
parcel_lend(struct parcel *p)
{
	parcel_ref(p);
	atomic_fetch_add_explicit(&p->pending, 1, memory_order_relaxed);
	tally_up(&out);
}

void
parcel_keep(struct parcel *p)
{
	atomic_fetch_sub_explicit(&p->pending, 1, memory_order_release);
	parcel_unref(p);
	tally_down(&out);
}

enum xr_status
parcel_await_sent(int64_t deadline, struct xr_error *err)
{
	return tally_await(&out, deadline) ?
		XR_OK :
		fail(err, XR_E_TIMEOUT, "%u messages are not sent",
			tally_count(&out));
}

/* Where nothing is taken back, it is over or somebody is about to say so; so it is
 * once the link is closed. */
void
parcel_end(struct parcel *p, struct peer *peer)
{
	if (p == NULL)
		return;
	if (atomic_load_explicit(&p->pending, memory_order_acquire) > 0 &&
		peer_unsend(peer, &p->token))
		parcel_keep(p);
	parcel_unref(p);
}
