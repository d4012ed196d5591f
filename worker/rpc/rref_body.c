/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rref_body.c - the references of a message's body.
 *
 * They stand in front of it, in blocks of 64 bytes, so that what follows lies as
 * it would without: a head, what the call makes, whose method it is, then each of
 * the references as it stands in the value, too. A value has another beginning.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/future.h"
#include "worker/rpc/rref_inner.h"

#define HEAD_MAGIC 0x31525258u /* "XRR1" */

enum head_flags {
	HEAD_BIRTH = 1,
	HEAD_TARGET = 2,
};

struct head {
	uint32_t magic, flags, count, zero[13];
};
_Static_assert(sizeof(struct head) == sizeof(struct rref_wire), "a block");

struct one {
	struct rref_wire wire;
	struct xr_rref *rref; /* a reference */
	struct await await;
	bool awaits; /* it is in the handle's list */
};

struct refs_in {
	struct refs_in *next; /* of struct rref_todo */
	struct rref_wire birth, target;
	bool has_birth, has_target;
	uint32_t at; /* where the next is looked for */
	uint32_t left;
	bool failed;
	refs_ready_fn *fn;
	void *ctx;
	uint32_t count;
	struct one one[]; /* [count] */
};

/* --- out -------------------------------------------------------------------- */

static struct rref_wire *
add_block(struct refs_out *out)
{
	struct rref_wire *more;
	uint32_t cap = out->cap == 0 ? 4 : 2 * out->cap;

	if (out->count == out->cap) {
		more = reallocarray(out->wire, cap, sizeof(*more));
		if (more == NULL)
			return NULL;
		out->wire = more;
		out->cap = cap;
	}
	memset(&out->wire[out->count], 0, sizeof(*more));
	return &out->wire[out->count++];
}

static struct head *
head_of(struct refs_out *out)
{
	struct head *head = (struct head *)out->wire;

	if (out->count > 0)
		return head;
	head = (struct head *)add_block(out);
	if (head != NULL)
		head->magic = HEAD_MAGIC;
	return head;
}

/* A method of a value here is called over a fork, which keeps the value on the
 * way. */
static enum xr_status
add_target(struct refs_out *out, struct xr_error *err)
{
	struct xr_rref *h = out->target;
	struct head *head = head_of(out);
	struct rref_wire *wire = head != NULL ? add_block(out) : NULL;
	struct rref_gid fork = h->node.id;
	enum xr_status status = XR_OK;

	if (wire == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	((struct head *)out->wire)->flags |= HEAD_TARGET;
	pthread_mutex_lock(&rref.lock);
	if (h->is_owner) {
		fork = rref_new_gid();
		status = owned_fork(h->owned, &fork, out->to);
	}
	*wire = rref_wire_of(&h->id, &fork, 0);
	pthread_mutex_unlock(&rref.lock);
	return status == XR_OK ? XR_OK : fail(err, status, "out of memory");
}

enum xr_status
refs_out_begin(struct refs_out *out, struct peer *to, struct xr_error *err)
{
	struct rref_wire *birth;

	out->to = to;
	if (out->has_birth) {
		birth = head_of(out) != NULL ? add_block(out) : NULL;
		if (birth == NULL)
			return fail(err, XR_E_NOMEM, "out of memory");
		*birth = out->birth;
		((struct head *)out->wire)->flags |= HEAD_BIRTH;
	}
	return out->target != NULL ? add_target(out, err) : XR_OK;
}

/* Of a value here its receiver has a fork from now on; of another's it has one
 * when the owner says so, and we keep our own till then. */
static enum xr_status
fork_for(struct xr_rref *h, struct peer *to, struct rref_wire *wire,
	struct xr_error *err)
{
	enum xr_status status = user_usable(h, err);
	struct rref_gid fork;

	if (status != XR_OK)
		return status;
	fork = rref_new_gid();
	*wire = rref_wire_of(&h->id, &fork, 0);
	wire->owner = h->owner_id;
	wire->owner_incarnation = h->owner->incarnation;
	if (!h->is_owner && child_new(&fork, h, to) == NULL)
		status = XR_E_NOMEM;
	if (h->is_owner) {
		wire->flags = RREF_CONFIRMED;
		status = owned_fork(h->owned, &fork, to);
	}
	return status == XR_OK ? XR_OK : fail(err, status, "out of memory");
}

enum xr_status
refs_out_add(struct refs_out *out, struct xr_rref *h,
	uint8_t packed[VALUE_RREF_BYTES], struct xr_error *err)
{
	struct rref_wire *wire = head_of(out) != NULL ? add_block(out) : NULL;
	enum xr_status status;

	if (wire == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	pthread_mutex_lock(&rref.lock);
	status = fork_for(h, out->to, wire, err);
	pthread_mutex_unlock(&rref.lock);
	if (status != XR_OK) {
		out->count--;
		return status;
	}
	((struct head *)out->wire)->count++;
	memcpy(packed, wire, sizeof(*wire));
	return XR_OK;
}

struct xr_part
refs_out_part(const struct refs_out *out)
{
	return (struct xr_part){ out->wire, out->count * sizeof(*out->wire) };
}

/* An id that nobody has, such as of a birth, is none of a fork. */
void
refs_out_undo(struct refs_out *out)
{
	struct rref_todo todo;
	struct rref_gid fork;
	struct child *c;

	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	for (uint32_t i = 1; i < out->count; i++) {
		fork = rref_fork_of(&out->wire[i]);
		c = (struct child *)gid_find(&rref.children, &fork);
		if (c != NULL)
			child_remove(c, &todo);
		else
			owned_unfork(&fork, out->to, NULL, &todo);
	}
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	out->count = 0;
}

void
refs_out_fini(struct refs_out *out)
{
	if (!out->lent)
		free(out->wire);
	*out = (struct refs_out){ 0 };
}

/* --- in --------------------------------------------------------------------- */

/* The lock is held. */
static struct xr_rref *
take_own(struct peer *from, const struct rref_wire *wire,
	struct rref_todo *todo)
{
	struct rref_gid id = rref_id_of(wire), fork = rref_fork_of(wire);
	struct owned *o = owned_find(&id);
	struct xr_rref *h;

	if (o == NULL)
		o = owned_new(&id);
	h = o != NULL ? handle_of_owned(o) : NULL;
	if (from == agent_self())
		owned_unfork(&fork, from, NULL, todo);
	else if (h != NULL)
		rref_later(todo, MESSAGE_RREF_CHILD_ACCEPT, from, wire);
	if (h == NULL && o != NULL)
		owned_look(o, todo);
	return h;
}

/* The lock is held. One that came before is the same. */
static struct xr_rref *
take_users(struct peer *from, const struct rref_wire *wire, struct peer *owner,
	struct rref_todo *todo)
{
	struct rref_gid id = rref_id_of(wire), fork = rref_fork_of(wire);
	struct xr_rref *h = (struct xr_rref *)gid_find(&rref.users, &fork);

	if (h != NULL)
		return xr_rref_ref(h);
	h = user_new(&id, &fork, owner, wire->owner);
	if (h == NULL)
		return NULL;
	if ((wire->flags & RREF_CONFIRMED) != 0 && owner == from)
		h->state = USER_CONFIRMED;
	user_add(h);
	if (h->state == USER_PENDING) {
		h->parent = from;
		rref_later(todo, MESSAGE_RREF_FORK_REQUEST, owner, wire);
	}
	return h;
}

static struct xr_rref *
take_lost(const struct rref_wire *wire)
{
	struct rref_gid id = rref_id_of(wire), fork = rref_fork_of(wire);
	struct xr_rref *h = user_new(&id, &fork, NULL, wire->owner);

	if (h == NULL)
		return NULL;
	h->state = USER_FAILED;
	h->error = failure_new(XR_E_PEER_LOST,
		"lost worker %u, which had the value, in the life that the reference is of",
		wire->owner);
	return h;
}

static struct xr_rref *
take_one(struct peer *from, const struct rref_wire *wire)
{
	struct rref_todo todo;
	struct peer *owner = NULL;
	struct xr_rref *h = NULL;
	bool lost;

	if (agent_peer(NULL, wire->owner, &owner, NULL) != XR_OK ||
		owner->incarnation != wire->owner_incarnation)
		return take_lost(wire);
	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	/* What is taken from here on rref_lost() finds, or the owner is known to be lost
	 * already. */
	lost = atomic_load(&owner->state) >= PEER_LOST;
	if (rref.open && !lost)
		h = owner == agent_self() ?
			take_own(from, wire, &todo) :
			take_users(from, wire, owner, &todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	return lost ? take_lost(wire) : h;
}

static enum xr_status
take_all(struct refs_in *refs, const uint8_t *at, struct peer *from,
	struct xr_error *err)
{
	bool whole = true;

	/* All of them, or those left out would never be given back. */
	for (uint32_t i = 0; i < refs->count; i++, at += VALUE_RREF_BYTES) {
		memcpy(&refs->one[i].wire, at, VALUE_RREF_BYTES);
		refs->one[i].await.refs = refs;
		refs->one[i].rref = take_one(from, &refs->one[i].wire);
		whole = whole && refs->one[i].rref != NULL;
	}
	return whole ? XR_OK :
		       fail(err, XR_E_NOMEM, "no memory for references");
}

static const uint8_t *
take_block(bool has, struct rref_wire *wire, const uint8_t *at)
{
	if (!has)
		return at;
	memcpy(wire, at, sizeof(*wire));
	return at + sizeof(*wire);
}

enum xr_status
refs_take(struct xr_body *body, struct peer *from, struct refs_in **refs,
	struct xr_error *err)
{
	const uint8_t *at = body->data;
	enum xr_status status;
	struct refs_in *in;
	struct head head;
	size_t blocks;

	*refs = NULL;
	if (body->len < sizeof(head))
		return XR_OK;
	memcpy(&head, at, sizeof(head));
	if (head.magic != HEAD_MAGIC)
		return XR_OK;
	blocks = 1 + (size_t)head.count + ((head.flags & HEAD_BIRTH) != 0) +
		((head.flags & HEAD_TARGET) != 0);
	if (blocks > body->len / sizeof(head))
		return fail(err, XR_E_PROTO, "references are cut short");
	in = calloc(1, sizeof(*in) + head.count * sizeof(struct one));
	if (in == NULL)
		return fail(err, XR_E_NOMEM, "no memory for references");
	in->count = head.count;
	in->has_birth = (head.flags & HEAD_BIRTH) != 0;
	in->has_target = (head.flags & HEAD_TARGET) != 0;
	at += sizeof(head);
	at = take_block(in->has_birth, &in->birth, at);
	at = take_block(in->has_target, &in->target, at);
	status = take_all(in, at, from, err);
	body->data = (const uint8_t *)body->data + blocks * sizeof(head);
	body->len -= blocks * sizeof(head);
	if (status == XR_OK)
		*refs = in;
	else
		refs_free(in);
	return status;
}

void
refs_free(struct refs_in *refs)
{
	if (refs == NULL)
		return;
	pthread_mutex_lock(&rref.lock);
	for (uint32_t i = 0; i < refs->count; i++)
		if (refs->one[i].awaits)
			LIST_REMOVE(&refs->one[i].await, list);
	pthread_mutex_unlock(&rref.lock);
	for (uint32_t i = 0; i < refs->count; i++)
		xr_rref_unref(refs->one[i].rref);
	free(refs);
}

/* They stand in the value in the order in which they stand here. */
enum xr_status
refs_find(struct refs_in *refs, const uint8_t wire[VALUE_RREF_BYTES],
	struct xr_rref **rref_out, struct xr_error *err)
{
	for (uint32_t i = 0; refs != NULL && i < refs->count; i++) {
		struct one *one = &refs->one[(refs->at + i) % refs->count];

		if (memcmp(&one->wire, wire, VALUE_RREF_BYTES) != 0)
			continue;
		refs->at = (refs->at + i + 1) % refs->count;
		*rref_out = xr_rref_ref(one->rref);
		return XR_OK;
	}
	return fail(err, XR_E_DECODE,
		"rref: it does not stand before the value");
}

const struct rref_wire *
refs_birth(const struct refs_in *refs)
{
	return refs != NULL && refs->has_birth ? &refs->birth : NULL;
}

const struct rref_wire *
refs_target(const struct refs_in *refs)
{
	return refs != NULL && refs->has_target ? &refs->target : NULL;
}

void
refs_discard(struct peer *from, const struct xr_body *body)
{
	struct xr_body rest = *body;
	struct refs_in *refs = NULL;

	refs_take(&rest, from, &refs, NULL);
	refs_free(refs);
}

/* --- until all are confirmed ------------------------------------------------- */

static bool
is_failed(const struct xr_rref *h)
{
	return h->state == USER_FAILED || h->state == USER_CLOSED;
}

bool
refs_known(const struct refs_in *refs)
{
	bool known = true;

	if (refs == NULL)
		return true;
	pthread_mutex_lock(&rref.lock);
	for (uint32_t i = 0; i < refs->count; i++)
		known = known && refs->one[i].rref->state == USER_CONFIRMED;
	pthread_mutex_unlock(&rref.lock);
	return known;
}

bool
refs_await(struct refs_in *refs, refs_ready_fn *fn, void *ctx)
{
	uint32_t left = 0;
	bool failed = false;

	if (refs == NULL)
		return false;
	pthread_mutex_lock(&rref.lock);
	refs->fn = fn;
	refs->ctx = ctx;
	for (uint32_t i = 0; i < refs->count; i++) {
		struct one *one = &refs->one[i];

		failed = failed || is_failed(one->rref);
		if (one->rref->state != USER_PENDING)
			continue;
		LIST_INSERT_HEAD(&one->rref->awaits, &one->await, list);
		one->awaits = true;
		left++;
	}
	refs->left = left;
	refs->failed = failed;
	pthread_mutex_unlock(&rref.lock);
	if (left == 0 && failed)
		refs_tell_ready(refs);
	return left > 0 || failed;
}

void
refs_one_ready(struct await *a, bool failed, struct rref_todo *todo)
{
	struct refs_in *refs = a->refs;
	struct one *one =
		(struct one *)((char *)a - offsetof(struct one, await));

	one->awaits = false;
	refs->failed = refs->failed || failed;
	if (--refs->left > 0)
		return;
	refs->next = todo->ready;
	todo->ready = refs;
}

/* @refs may be gone afterwards. */
struct refs_in *
refs_tell_ready(struct refs_in *refs)
{
	struct refs_in *next = refs->next;
	enum xr_status status = XR_OK;
	struct xr_error err = { 0 };

	for (uint32_t i = 0; i < refs->count && refs->failed; i++) {
		pthread_mutex_lock(&rref.lock);
		status = user_usable(refs->one[i].rref, &err);
		pthread_mutex_unlock(&rref.lock);
		if (status != XR_OK)
			break;
	}
	refs->fn(refs->ctx, status, err.text);
	return next;
}
