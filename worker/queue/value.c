/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c - see xrun/queue.h: items that are values.
 *
 * One that is put by reference (XR_ENC_SHARE) begins with the numbers of descriptors that
 * its writer has, which who gets it opens for itself before the writer can see that it was
 * got: until then the writer keeps them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/fd.h"
#include "base/status.h"
#include "worker/queue/queue_inner.h"
#include "worker/queue/user.h"

#define SHARED_MOST 1024 /* descriptors of an item */

struct shared_fd {
	uint64_t inode;
	int32_t fd;
	uint32_t unused;
};

struct shared {
	uint64_t start; /* of the writer */
	uint32_t pid;
	uint32_t count;
	struct shared_fd fd[];
};

/* What a writer keeps. */
struct lent {
	LIST_ENTRY(lent) list;
	struct lane *lane;
	uint64_t ticket;
	struct xr_encoded *encoded;
};

void
lent_reap(struct hall *h, bool all)
{
	struct lent *l, *next;

	pthread_mutex_lock(&h->lock);
	for (l = LIST_FIRST(&h->lent); l != NULL; l = next) {
		next = LIST_NEXT(l, list);
		if (!all && lane_has(h, l->lane, l->ticket))
			continue;
		LIST_REMOVE(l, list);
		xr_encoded_free(l->encoded);
		free(l);
	}
	pthread_mutex_unlock(&h->lock);
}

bool
lent_is_any(struct hall *h)
{
	bool is_any;

	if (h->plan.mode != XR_ENC_SHARE)
		return false;
	lent_reap(h, false);
	pthread_mutex_lock(&h->lock);
	is_any = !LIST_EMPTY(&h->lent);
	pthread_mutex_unlock(&h->lock);
	return is_any;
}

/* --- in ------------------------------------------------------------------------------- */

/* A value on its way: the parts of its letter, and what they lie in. */
struct parcelled {
	struct xr_encoded *encoded;
	struct shared *shared;
	struct xr_part *parts; /* [1 + those of encoded]; NULL: those */
	struct lent *lent;
};

static void
parcelled_free(struct parcelled *p)
{
	xr_encoded_free(p->encoded);
	free(p->shared);
	free(p->parts);
	free(p->lent);
}

static size_t
total(const struct xr_part *parts, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += parts[i].len;
	return len;
}

static bool
describe_fds(struct shared *s, const int *fds, size_t count)
{
	struct stat st;

	*s = (struct shared){ .pid = (uint32_t)getpid(),
		.count = (uint32_t)count };
	s->start = user_start(s->pid);
	for (size_t i = 0; i < count; i++) {
		if (fstat(fds[i], &st) == -1)
			return false;
		s->fd[i] =
			(struct shared_fd){ .inode = st.st_ino, .fd = fds[i] };
	}
	return true;
}

/* What goes before the encoding, and is kept behind it. */
static enum xr_status
lend(struct parcelled *p, struct letter *letter, struct xr_error *err)
{
	size_t count, len;
	const int *fds = xr_encoded_fds(p->encoded, &count);

	letter->kind = CELL_SHARED;
	if (count > SHARED_MOST)
		return fail(err, XR_E_RANGE, "%zu shared tensors in one item",
			count);
	len = sizeof(*p->shared) + count * sizeof(p->shared->fd[0]);
	p->shared = malloc(len);
	p->parts = calloc(letter->count + 1, sizeof(*p->parts));
	p->lent = calloc(1, sizeof(*p->lent));
	if (p->shared == NULL || p->parts == NULL || p->lent == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	if (!describe_fds(p->shared, fds, count))
		return fail(err, XR_E_SYS, "fstat: %s", strerror(errno));
	p->parts[0] = (struct xr_part){ p->shared, len };
	memcpy(p->parts + 1, letter->parts,
		letter->count * sizeof(p->parts[0]));
	letter->parts = p->parts;
	letter->count++;
	return XR_OK;
}

static enum xr_status
parcel_value(struct hall *h, struct xr_value *value, struct parcelled *p,
	struct letter *letter, struct xr_error *err)
{
	const struct xr_enc_opts opts = { .size = sizeof(opts),
		.mode = h->plan.mode };
	enum xr_status status;
	size_t fds = 0;

	*p = (struct parcelled){ 0 };
	*letter = (struct letter){ .kind = CELL_VALUE };
	if (value == NULL)
		return fail(err, XR_E_INVAL, "no value");
	status = xr_encode(value, &opts, &p->encoded, err);
	if (status != XR_OK)
		return status;
	letter->parts = xr_encoded_parts(p->encoded, &letter->count);
	xr_encoded_fds(p->encoded, &fds);
	if (fds > 0)
		status = lend(p, letter, err);
	letter->len = total(letter->parts, letter->count);
	return status;
}

/* It was put: what it refers to is kept until it was got. */
static void
keep(struct hall *h, struct parcelled *p, const struct letter *letter)
{
	if (p->lent == NULL)
		return;
	p->lent->lane = letter->lane;
	p->lent->ticket = letter->ticket;
	p->lent->encoded = p->encoded;
	pthread_mutex_lock(&h->lock);
	LIST_INSERT_HEAD(&h->lent, p->lent, list);
	atomic_fetch_add(&h->lent_count, 1);
	pthread_mutex_unlock(&h->lock);
	p->lent = NULL;
	p->encoded = NULL;
}

XR_EXPORT enum xr_status
xr_queue_put_many(struct xr_queue *queue, struct xr_value *const *values,
	size_t *count, int64_t timeout, struct xr_error *err)
{
	size_t want = *count;
	struct parcelled *p = calloc(want + 1, sizeof(*p));
	struct letter *letters = calloc(want + 1, sizeof(*letters));
	enum xr_status status = XR_OK;
	size_t n = 0;

	*count = 0;
	if (queue == NULL)
		status = fail(err, XR_E_INVAL, "no queue");
	else if (p == NULL || letters == NULL)
		status = fail(err, XR_E_NOMEM, "out of memory");
	if (status == XR_OK && queue->hall->plan.mode == XR_ENC_SHARE)
		lent_reap(queue->hall, false);
	for (; n < want && status == XR_OK; n++)
		status = parcel_value(queue->hall, values[n], &p[n],
			&letters[n], err);
	if (status == XR_OK) {
		*count = want;
		status = give_all(queue, letters, count, timeout, err);
	}
	for (size_t i = 0; i < n; i++) {
		if (i < *count)
			keep(queue->hall, &p[i], &letters[i]);
		parcelled_free(&p[i]);
	}
	free(p);
	free(letters);
	return status;
}

XR_EXPORT enum xr_status
xr_queue_put(struct xr_queue *queue, struct xr_value *value, int64_t timeout,
	struct xr_error *err)
{
	struct parcelled p;
	struct letter letter;
	enum xr_status status;
	size_t count = 1;

	if (queue == NULL)
		return fail(err, XR_E_INVAL, "no queue");
	if (queue->hall->plan.mode == XR_ENC_SHARE)
		lent_reap(queue->hall, false);
	status = parcel_value(queue->hall, value, &p, &letter, err);
	if (status == XR_OK)
		status = give_all(queue, &letter, &count, timeout, err);
	if (status == XR_OK)
		keep(queue->hall, &p, &letter);
	parcelled_free(&p);
	return status;
}

/* --- out ------------------------------------------------------------------------------ */

static int
open_shared(const struct shared *s, const struct shared_fd *which)
{
	struct stat st;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", s->pid, which->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_ino == which->inode)
		return fd;
	close(fd);
	errno = 0;
	return -1;
}

/* errno: 0, where there is something else. */
static enum xr_status
not_opened(struct got *g)
{
	if (user_is_gone(errno))
		return XR_E_PEER_LOST;
	g->error = errno;
	return XR_E_SYS;
}

static enum xr_status
open_all(struct got *g, const struct shared *s)
{
	uint64_t start;

	g->fds = calloc(s->count + 1, sizeof(*g->fds));
	if (g->fds == NULL)
		return XR_E_NOMEM;
	start = user_start(s->pid);
	if (start == 0)
		return not_opened(g);
	if (start != s->start)
		return XR_E_PEER_LOST;
	for (; g->count < s->count; g->count++) {
		g->fds[g->count] = open_shared(s, &s->fd[g->count]);
		if (g->fds[g->count] == -1)
			return not_opened(g);
	}
	return XR_OK;
}

/* Before the writer is told. */
static void
open_before(struct taker *t)
{
	struct got *g = t->ctx;
	const struct shared *s = t->made;

	if (t->kind != CELL_SHARED)
		return;
	g->status = XR_E_DECODE;
	if (g->buf.len < sizeof(*s) || s->count > SHARED_MOST)
		return;
	g->head = sizeof(*s) + s->count * sizeof(s->fd[0]);
	if (g->head <= g->buf.len)
		g->status = open_all(g, s);
}

void
got_prepare(struct taker *taker, struct got *got)
{
	*taker = (struct taker){
		.buf = &got->buf,
		.before = open_before,
		.ctx = got,
	};
}

static void
free_bytes(void *data, void *ctx)
{
	(void)ctx;
	free(data);
}

static enum xr_status
decode(const struct got *g, const void *data, struct xr_value **value,
	struct xr_error *err)
{
	const struct xr_part part = { (const char *)data + g->head,
		g->buf.len - g->head };
	const struct xr_dec_opts opts = { .size = sizeof(opts),
		.fds = g->fds,
		.fd_count = g->count };

	if (g->status == XR_E_PEER_LOST)
		return fail(err, g->status,
			"who put the item by reference is gone");
	if (g->status == XR_E_SYS)
		return fail(err, g->status,
			"an item that was put by reference: %s",
			strerror(g->error));
	if (g->status != XR_OK)
		return fail(err, g->status, "an item cannot be read");
	return xr_decode(&part, 1, &opts, value, err);
}

enum xr_status
got_value(struct taker *t, struct got *g, struct xr_value **value,
	struct xr_error *err)
{
	enum xr_status status;

	if (t->kind == CELL_BYTES) {
		*value = xr_value_wrap_bytes(t->made, g->buf.len, free_bytes,
			NULL);
		if (*value != NULL)
			return XR_OK;
		status = fail(err, XR_E_NOMEM, "out of memory");
	} else {
		status = decode(g, t->made, value, err);
	}
	free(t->made);
	for (size_t i = 0; i < g->count; i++)
		close(g->fds[i]);
	free(g->fds);
	return status;
}

XR_EXPORT enum xr_status
xr_queue_get(struct xr_queue *queue, struct xr_value **value, int64_t timeout,
	struct xr_error *err)
{
	struct got got = { 0 };
	struct taker taker;
	size_t count = 1;
	enum xr_status status;

	got_prepare(&taker, &got);
	status = take_some(queue, &taker, &count, timeout, err);
	if (status == XR_OK)
		return got_value(&taker, &got, value, err);
	free(taker.made);
	return status;
}

/* What cannot be read is left out, unless there is nothing else. */
static enum xr_status
values_of(struct taker *takers, struct got *gots, struct xr_value **values,
	size_t *count, struct xr_error *err)
{
	enum xr_status status = XR_OK, first = XR_OK;
	size_t n = 0;

	for (size_t i = 0; i < *count; i++) {
		status = got_value(&takers[i], &gots[i], &values[n], err);
		if (status == XR_OK)
			n++;
		else if (first == XR_OK)
			first = status;
	}
	*count = n;
	return n > 0 ? XR_OK : first;
}

XR_EXPORT enum xr_status
xr_queue_get_many(struct xr_queue *queue, struct xr_value **values,
	size_t *count, int64_t timeout, struct xr_error *err)
{
	size_t want = *count;
	struct got *gots = calloc(want + 1, sizeof(*gots));
	struct taker *takers = calloc(want + 1, sizeof(*takers));
	enum xr_status status;

	*count = 0;
	if (gots == NULL || takers == NULL) {
		free(gots);
		free(takers);
		return fail(err, XR_E_NOMEM, "out of memory");
	}
	for (size_t i = 0; i < want; i++)
		got_prepare(&takers[i], &gots[i]);
	*count = want;
	status = take_some(queue, takers, count, timeout, err);
	for (size_t i = *count; i < want; i++)
		free(takers[i].made);
	if (status == XR_OK)
		status = values_of(takers, gots, values, count, err);
	free(gots);
	free(takers);
	return status;
}
