/* SPDX-License-Identifier: Apache-2.0 */
/* carrier.c - the row "shm" of xrun/transport.h: links are made, found, polled
 * and closed; see link.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/shm/link.h"
#include "worker/shm/shm.h"

#define NAME     "shm"
#define LOOKS    64 /* turns from one look at deaths and closings to the next */
#define PRIORITY 200
#define SWEEP_NS NS_PER_MS /* between two for who is not gone yet */

/* --- links ---------------------------------------------------------------- */

static struct xr_link *
link_new(struct carrier *c, uint32_t slot, uint32_t plane)
{
	struct xr_link *link =
		aligned_alloc(64, segment_round(sizeof(*link), 64));

	if (link == NULL)
		return NULL;
	memset(link, 0, sizeof(*link));
	link->carrier = c;
	link->slot = slot;
	link->plane = plane;
	link->peer = segment_slot(&c->shm->map, slot);
	link->bell = &link->peer->bell;
	link->awaits = &link->peer->awaits;
	return link;
}

static void
link_free(struct xr_link *link)
{
	if (link->lender != NULL)
		lender_unref(link->lender);
	free(link->fetch.parts);
	free(link);
}

static bool
add(struct carrier *c, struct xr_link *link)
{
	uint32_t cap = c->cap == 0 ? 8 : 2 * c->cap;
	struct xr_link **more;

	if (c->count == c->cap) {
		more = reallocarray(c->link, cap, sizeof(*more));
		if (more == NULL)
			return false;
		c->link = more;
		c->cap = cap;
	}
	c->link[c->count++] = link;
	return true;
}

/* What connect() made is polled from now on. */
static void
take_fresh(struct carrier *c)
{
	struct xr_link *link, *next;

	if (!atomic_load_explicit(&c->has_fresh, memory_order_acquire))
		return;
	pthread_mutex_lock(&c->lock);
	atomic_store_explicit(&c->has_fresh, false, memory_order_relaxed);
	link = c->fresh;
	c->fresh = NULL;
	pthread_mutex_unlock(&c->lock);
	for (; link != NULL; link = next) {
		next = link->next;
		if (!add(c, link))
			atomic_store(&link->state, LINK_BROKEN);
	}
}

/* --- rings that came ------------------------------------------------------ */

/* Copies and checks the head of a ring. The word of an earlier life may lead to it, too:
 * such a ring was freed, and this one was made in its place since the word was read. */
static bool
read_head(const struct carrier *c, uint32_t writer, uint64_t word,
	struct ring_head *copy)
{
	const struct segment_map *map = &c->shm->map;
	uint64_t at = segment_word_offset(word);
	const struct ring_head *head = (const void *)(map->base + at);

	if (at % RING_ALIGN != 0 || at < map->plan.arena ||
		at > map->plan.size - ring_bytes(1))
		return false;
	copy->lines = head->lines;
	copy->writer = head->writer;
	copy->reader = head->reader;
	copy->writer_plane = head->writer_plane;
	copy->reader_plane = head->reader_plane;
	copy->id = head->id;
	copy->incarnation = head->incarnation;
	return copy->lines >= 64 && copy->lines <= RING_LINES_MAX &&
		(copy->lines & (copy->lines - 1)) == 0 &&
		ring_bytes(copy->lines) <= map->plan.size - at &&
		segment_owns(map, writer, copy->writer_plane >> 8, at,
			ring_bytes(copy->lines)) &&
		copy->writer == writer && copy->reader == c->shm->slot &&
		word ==
		segment_ring_word(at, copy->writer_plane >> 8,
			copy->reader_plane >> 8);
}

static bool
attach(struct xr_link *link, uint32_t lines, uint64_t word)
{
	struct shm *shm = link->carrier->shm;
	struct lender *lender =
		lender_new(&shm->map, shm->slot, shm->gen, link->slot, word);

	if (lender == NULL)
		return false;
	lender_attach(lender, &shm->attached[link->slot]);
	ring_read(&link->in, lender->head, lines);
	link->lender = lender;
	return true;
}

/* The link to who wrote it, if there is one that has no ring from him yet. */
static struct xr_link *
find_waiting(struct carrier *c, uint32_t writer, uint32_t plane)
{
	struct xr_link *link = c->by_slot[writer];

	if (link == NULL || link->plane != plane || link->lender != NULL)
		return NULL;
	return link;
}

/* From here on whoever connects to him has this link, or it is too late: he has one
 * of his own. */
static bool
begin_accept(struct carrier *c, struct xr_link *link)
{
	struct xr_link *other;

	pthread_mutex_lock(&c->lock);
	other = c->by_slot[link->slot];
	link->accepting = other == NULL || other->plane != link->plane ||
		other->lender != NULL;
	if (link->accepting)
		c->by_slot[link->slot] = link;
	pthread_mutex_unlock(&c->lock);
	return link->accepting;
}

/* @ctx: who the host says it is; NULL: nobody. Returns true if the link has an owner. */
static bool
end_accept(struct carrier *c, struct xr_link *link, void *ctx)
{
	bool known;

	pthread_mutex_lock(&c->lock);
	link->accepting = false;
	if (ctx != NULL)
		link->ctx = ctx;
	known = ctx != NULL || link->wanted;
	if (!known && c->by_slot[link->slot] == link)
		c->by_slot[link->slot] = NULL;
	pthread_mutex_unlock(&c->lock);
	return known;
}

static void
forget_link(struct carrier *c, struct xr_link *link)
{
	if (link->lender != NULL && lender_close(link->lender, false))
		c->left = PLANE_MORE;
	if (c->count > 0 && c->link[c->count - 1] == link)
		c->count--;
	link_free(link);
}

/* Somebody is there who was not met before: the host says who he is. */
static void
accept_ring(struct carrier *c, const struct ring_head *copy, uint64_t word)
{
	struct xr_link *link = link_new(c, copy->writer, copy->writer_plane);
	void *ctx;

	if (link == NULL || !add(c, link)) {
		free(link);
		c->again = true;
		return;
	}
	if (!begin_accept(c, link)) {
		forget_link(c, link);
		c->again = true; /* the ring is that one's */
		return;
	}
	if (!attach(link, copy->lines, word)) {
		if (!end_accept(c, link, NULL))
			forget_link(c, link);
		c->again = true;
		return;
	}
	ctx = c->host.accepted(c->host.ctx, copy->id, copy->incarnation, link);
	if (!end_accept(c, link, ctx))
		forget_link(c, link);
}

static void
take_ring(struct carrier *c, const struct ring_head *copy, uint64_t word)
{
	struct xr_link *link;

	pthread_mutex_lock(&c->lock);
	link = find_waiting(c, copy->writer, copy->writer_plane);
	pthread_mutex_unlock(&c->lock);
	if (link == NULL)
		accept_ring(c, copy, word);
	else if (!attach(link, copy->lines, word))
		c->again = true;
}

/* One is read, and there is another: the first is about to be let go, by whoever
 * holds something of it; or its writer is mad. */
static void
meet_second(struct carrier *c, uint32_t writer)
{
	struct xr_link *link;

	pthread_mutex_lock(&c->lock);
	link = c->by_slot[writer];
	pthread_mutex_unlock(&c->lock);
	if (link != NULL && link->in.head != NULL)
		atomic_store(&link->state, LINK_BROKEN);
	else
		c->again = true;
}

static void
look_at_ring(struct carrier *c, uint32_t writer)
{
	uint64_t word = atomic_load_explicit(segment_dir(&c->shm->map,
						     c->shm->slot, writer),
		memory_order_acquire);
	uint64_t attached = atomic_load(&c->shm->attached[writer]);
	struct ring_head copy;

	if (word == attached || word == 0)
		return;
	if (attached != 0)
		meet_second(c, writer);
	else if (!read_head(c, writer, word, &copy) ||
		copy.reader_plane != c->plane) { /* of an earlier opening */
		if (plane_refuse(c->shm, writer, word))
			c->left = PLANE_MORE;
	} else {
		take_ring(c, &copy, word);
	}
}

static void
look_for_rings(struct carrier *c)
{
	/* A ring of one to whom a thread of ours connects at this moment is that link's,
	 * which is there the second time: nobody would look again before a sleep. */
	for (int time = 0; time == 0 || (time == 1 && c->again); time++) {
		c->again = false;
		for (uint32_t i = 0; i < c->shm->map.plan.slots; i++)
			look_at_ring(c, i);
	}
}

/* --- deaths and closings -------------------------------------------------- */

static bool
is_closed(const struct xr_link *link)
{
	const struct out *out =
		atomic_load_explicit(&link->out, memory_order_acquire);

	return (link->in.head != NULL &&
		       atomic_load_explicit(&link->in.head->closed,
			       memory_order_acquire) != 0) ||
		(out != NULL &&
			atomic_load_explicit(&out->ring.head->gone,
				memory_order_acquire) != 0);
}

static void
look_at_link(struct carrier *c, struct xr_link *link)
{
	if (link->dying || link->closing)
		return;
	if (!alive_is(link->peer, link->plane)) {
		link->dying = true;
		/* It may have made a ring, and not have said so. */
		look_at_ring(c, link->slot);
		alive_look(&c->shm->map);
	} else {
		link->closing = is_closed(link);
	}
}

/* What the dead had. Within a job the supervisor does it, too, as soon as it has
 * heard of the death; then we may not be ready yet. Only for processes that are about
 * to be gone it is waited: for what was let go meanwhile nobody may come again. */
static void
sweep(struct carrier *c)
{
	int64_t now = clock_now();

	if (c->left == PLANE_LATER && now - c->swept < SWEEP_NS)
		return;
	c->swept = now;
	c->left = plane_sweep(c->shm);
}

static void
look(struct carrier *c)
{
	struct shm *shm = c->shm;
	uint32_t arrivals = atomic_load_explicit(&shm->mine->arrivals,
		memory_order_acquire);
	uint32_t fails = atomic_load_explicit(&segment_shared(&shm->map)->fails,
		memory_order_acquire);

	take_fresh(c);
	if (arrivals != c->arrivals || fails != c->fails || c->again)
		look_for_rings(c);
	if (shm->own && fails != c->fails)
		c->left = PLANE_MORE;
	c->arrivals = arrivals;
	c->fails = fails;
	for (uint32_t i = 0; i < c->count; i++)
		look_at_link(c, c->link[i]);
	if (shm->limbo != NULL)
		out_limbo(shm);
	if (c->left != PLANE_CLEAN)
		sweep(c);
}

static bool
has_come(const struct carrier *c)
{
	return atomic_load_explicit(&c->shm->mine->arrivals,
		       memory_order_relaxed) != c->arrivals ||
		atomic_load_explicit(&segment_shared(&c->shm->map)->fails,
			memory_order_relaxed) != c->fails ||
		atomic_load_explicit(&c->has_fresh, memory_order_relaxed);
}

bool
carrier_busy(struct carrier *c)
{
	look(c);
	for (uint32_t i = 0; i < c->count; i++)
		if (link_busy(c->link[i]))
			return true;
	return c->left == PLANE_MORE;
}

/* Each turn begins behind the last link that had something. */
uint32_t
carrier_progress(void *self, uint32_t budget)
{
	struct carrier *c = self;
	uint32_t count = 0, n = c->count, at;
	struct xr_link *link;

	if (__builtin_expect(++c->turn % LOOKS == 0 || has_come(c), false)) {
		look(c);
		n = c->count;
	}
	for (uint32_t i = 0; i < n && c->count > 0; i++) {
		at = c->begin + i < c->count ? c->begin + i :
					       (c->begin + i) % c->count;
		link = c->link[at];
		if (!link_busy(link))
			continue;
		count += link_poll(link, budget - count);
		if (count < budget)
			continue;
		c->begin = at + 1;
		break;
	}
	return count;
}

/* --- the row -------------------------------------------------------------- */

static enum xr_status
open_carrier(const struct xr_carrier_host *host,
	const struct xr_carrier_opts *opts, void **self, struct xr_error *err)
{
	struct shm *shm;
	struct carrier *c;
	enum xr_status status = shm_open_segment(&shm, err);

	if (status != XR_OK)
		return status;
	c = calloc(1, sizeof(*c));
	if (c != NULL)
		c->by_slot = calloc(shm->map.plan.slots, sizeof(*c->by_slot));
	if (c == NULL || c->by_slot == NULL) {
		free(c);
		return fail(err, XR_E_NOMEM, "shm: out of memory");
	}
	c->shm = shm;
	c->host = *host;
	c->id = opts->id;
	c->incarnation = opts->incarnation;
	c->near_len = (size_t)snprintf(c->near, sizeof(c->near),
		NAME ":%s:%" PRIu64 ":", shm->boot, shm->inode);
	pthread_mutex_init(&c->lock, NULL);
	c->plane = plane_open(shm, c);
	if (c->plane != 0) {
		*self = c;
		return XR_OK;
	}
	free(c->by_slot);
	free(c);
	return fail(err, XR_E_STATE, "shm: open already");
}

static size_t
address(void *self, char *text, size_t cap)
{
	const struct carrier *c = self;
	int n = snprintf(text, cap, "%s%u:%u", c->near, c->shm->slot, c->plane);

	return n < 0 ? 0 : (size_t)n;
}

/* "shm:<boot id>:<segment>:<slot>:<opening>", if it is of this segment. */
static bool
parse(const struct carrier *c, const char *text, uint32_t *slot,
	uint32_t *plane)
{
	size_t n = c->near_len;
	char *end;
	unsigned long s, p;

	if (strncmp(text, c->near, n) != 0 || text[n] < '0' || text[n] > '9')
		return false;
	s = strtoul(text + n, &end, 10);
	if (*end != ':' || end[1] < '1' || end[1] > '9')
		return false;
	p = strtoul(end + 1, &end, 10);
	*slot = (uint32_t)s;
	*plane = (uint32_t)p;
	return *end == '\0' && s < c->shm->map.plan.slots && p <= UINT32_MAX;
}

static enum xr_status
connect_to(void *self, const char *text, uint32_t id, uint64_t incarnation,
	void *peer, struct xr_link **out, struct xr_error *err)
{
	struct carrier *c = self;
	struct xr_link *link;
	uint32_t slot, plane;

	if (!parse(c, text, &slot, &plane))
		return fail(err, XR_E_NODEV,
			"shm: %s is not of this machine and job", text);
	pthread_mutex_lock(&c->lock);
	link = c->by_slot[slot];
	if (link != NULL && link->plane == plane && link->accepting) {
		link->wanted = true;
		link->ctx = peer;
	} else if (link == NULL || link->plane != plane ||
		atomic_load(&link->state) != LINK_OPEN) {
		link = link_new(c, slot, plane);
		if (link != NULL) {
			link->ctx = peer;
			link->next = c->fresh;
			c->fresh = c->by_slot[slot] = link;
			atomic_store(&c->has_fresh, true);
		}
	}
	pthread_mutex_unlock(&c->lock);
	if (link == NULL)
		return fail(err, XR_E_NOMEM, "shm: out of memory");
	*out = link;
	return XR_OK;
}

static enum xr_there
there(void *self, const char *text, uint32_t id, uint64_t incarnation)
{
	struct carrier *c = self;
	uint32_t slot, plane;

	(void)id;
	(void)incarnation;
	if (!parse(c, text, &slot, &plane))
		return XR_THERE_UNKNOWN;
	return alive_is(segment_slot(&c->shm->map, slot), plane) ?
		XR_THERE_YES :
		XR_THERE_NO;
}

/* What was not fetched yet will not be: the memory is the host's again. */
static void
take_back(struct xr_link *link)
{
	const struct carrier *c = link->carrier;
	struct out *out =
		atomic_load_explicit(&link->out, memory_order_acquire);
	void *token;

	while (out != NULL && loans_void_any(&out->loans, &token))
		c->host.sent(c->host.ctx, token);
}

static void
close_link(struct xr_link *link)
{
	struct carrier *c = link->carrier;

	take_fresh(c);
	for (uint32_t i = 0; i < c->count; i++)
		if (c->link[i] == link) {
			c->link[i] = c->link[--c->count];
			break;
		}
	pthread_mutex_lock(&c->lock);
	if (c->by_slot[link->slot] == link)
		c->by_slot[link->slot] = NULL;
	pthread_mutex_unlock(&c->lock);
	fetch_end(link);
	take_back(link);
	out_close(link);
	if (link->lender != NULL && lender_close(link->lender, false))
		c->left = PLANE_MORE;
	link_free(link);
}

static void
free_carrier(void *self)
{
	struct carrier *c = self;
	struct shm *shm = c->shm;

	take_fresh(c);
	while (c->count > 0)
		close_link(c->link[0]);
	plane_close(shm, c->left == PLANE_MORE);
	for (struct out *out = shm->limbo; out != NULL; out = out->next)
		if (out->carrier == c)
			out->carrier = NULL;
	pthread_mutex_destroy(&c->lock);
	free(c->by_slot);
	free(c->link);
	free(c);
}

const struct xr_carrier shm_carrier = {
	.size = sizeof(shm_carrier),
	.api = XR_CARRIER_API,
	.name = NAME,
	.priority = PRIORITY,
	.caps = XR_CARRIER_LOCAL | XR_CARRIER_LENDS,
	.copies = LINK_EAGER,
	.open = open_carrier,
	.address = address,
	.connect = connect_to,
	.send = link_send,
	.unsend = link_unsend,
	.can_lend = link_can_lend,
	.progress = carrier_progress,
	.body_take = poll_take,
	.buffer_unref = shm_buffer_unref,
	.loan_take = poll_loan_take,
	.link_close = close_link,
	.free = free_carrier,
	.there = there,
};
