/* SPDX-License-Identifier: Apache-2.0 */
/* rref_rig.h - references in messages of peers that the test plays; see wire_rig.h. */
#ifndef TESTS_UNIT_RREF_RIG_H
#define TESTS_UNIT_RREF_RIG_H

#include "base/clock.h"
#include "tests/unit/wire_rig.h"
#include "worker/rpc/rref_inner.h"

#define HOUR  XR_SECONDS(3600)
#define MAGIC 0x31525258u

static inline struct rref_gid
gid(uint32_t worker, uint64_t local)
{
	return (struct rref_gid){ .worker = worker,
		.incarnation = WIRE_PEER_AGE + worker,
		.local = local };
}

/* word() - value @local of @owner, of which @by made fork @fork. */
static inline struct rref_wire
word(uint32_t owner, uint64_t local, uint32_t by, uint64_t fork, uint32_t flags)
{
	const struct rref_gid id = gid(owner, local), f = gid(by, fork);
	struct rref_wire wire = rref_wire_of(&id, &f, flags);

	wire.owner = owner;
	wire.owner_incarnation = WIRE_PEER_AGE + owner;
	wire.timeout = INT64_MAX;
	return wire;
}

/* say() - a message of references. */
static inline void
say(uint32_t from, enum message_kind kind, struct rref_wire wire)
{
	wire_say(from, kind, 0, &wire, sizeof(wire));
}

/* says() - was @kind sent to @to, of this fork, with these flags? */
static inline bool
says(enum message_kind kind, uint32_t to, struct rref_wire wire, uint32_t flags)
{
	const struct wire_message *m = wire_sent(kind, to);
	struct rref_wire sent;

	if (m == NULL || m->len != sizeof(sent))
		return false;
	memcpy(&sent, m->data, sizeof(sent));
	return sent.fork_local == wire.fork_local &&
		sent.fork_worker == wire.fork_worker &&
		sent.id_local == wire.id_local && sent.flags == flags;
}

/* refs_from() - takes @count references, which came from @from. */
static inline enum xr_status
try_refs_from(uint32_t from, const struct rref_wire *wires, uint32_t count,
	struct refs_in **refs, struct xr_error *err)
{
	uint32_t head[16] = { MAGIC, 0, count };
	size_t len = sizeof(head) + count * sizeof(*wires);
	uint8_t *data = __real_malloc(len);
	struct xr_body body = { .data = data, .len = len };
	enum xr_status status;

	memcpy(data, head, sizeof(head));
	memcpy(data + sizeof(head), wires, count * sizeof(*wires));
	status = refs_take(&body, wire_peer[from], refs, err);
	if (status == XR_OK)
		cr_expect_eq(body.len, 0);
	free(data);
	return status;
}

static inline struct refs_in *
refs_from(uint32_t from, const struct rref_wire *wires, uint32_t count)
{
	struct refs_in *refs = NULL;

	cr_assert_eq(try_refs_from(from, wires, count, &refs, NULL), XR_OK);
	cr_assert_not_null(refs);
	return refs;
}

/* handle_in() - a reference to the handle of @wire. */
static inline struct xr_rref *
handle_in(struct refs_in *refs, const struct rref_wire *wire)
{
	struct xr_rref *h = NULL;

	cr_assert_eq(refs_find(refs, (const uint8_t *)wire, &h, NULL), XR_OK);
	return h;
}

/* handle_from() - the same of one reference; nothing else has it. */
static inline struct xr_rref *
handle_from(uint32_t from, struct rref_wire wire)
{
	struct refs_in *refs = refs_from(from, &wire, 1);
	struct xr_rref *h = handle_in(refs, &wire);

	refs_free(refs);
	return h;
}

static inline enum xr_status
usable(struct xr_rref *h, struct xr_error *err)
{
	enum xr_status status;

	pthread_mutex_lock(&rref.lock);
	status = user_usable(h, err);
	pthread_mutex_unlock(&rref.lock);
	return status;
}

/* Of refs_await(). */
static struct {
	unsigned count;
	enum xr_status status;
	char why[256];
} ready;

static inline void
note_ready(void *ctx, enum xr_status status, const char *why)
{
	(void)ctx;
	ready.count++;
	ready.status = status;
	snprintf(ready.why, sizeof(ready.why), "%s", why);
}

static inline bool
awaits(struct refs_in *refs)
{
	ready.count = 0;
	return refs_await(refs, note_ready, NULL);
}

static inline bool
is_ready(enum xr_status status, const char *why)
{
	return ready.count == 1 && ready.status == status &&
		strstr(ready.why, why) != NULL;
}

#define FIGURE(which) rref_figure(RREF_##which)

#endif /* TESTS_UNIT_RREF_RIG_H */
