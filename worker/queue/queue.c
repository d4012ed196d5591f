/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - see xrun/queue.h: the life of a handle, and what is asked of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/fd.h"
#include "base/status.h"
#include "worker/queue/far/far.h"
#include "worker/queue/queue_inner.h"
#include "worker/queue/user.h"
#include "worker/queue/vigil.h"
#include "worker/queue/far/ward.h"
#include "worker/shm/gauge.h"

#define QUEUE_PARTS 1024 /* of a lane's bytes, which items take in whole ones */
#define QUEUE_KEY   "queue/"

static const struct xr_queue_opts plain = { .size = sizeof(plain) };

/* --- making and leaving --------------------------------------------------------------- */

static enum xr_status
check(const struct xr_queue_opts *o, struct xr_error *err)
{
	if (o->size != sizeof(*o) || o->kind > XR_QUEUE_P2P ||
		o->mode > XR_ENC_SHARE ||
		(o->redeliver && o->kind == XR_QUEUE_P2P))
		return fail(err, XR_E_INVAL, "no such queue");
	if (o->items > XR_QUEUE_ITEMS_MAX || o->bytes > XR_QUEUE_BYTES_MAX ||
		o->lanes > XR_QUEUE_LANES_MAX)
		return fail(err, XR_E_RANGE, "no queue is that large");
	return XR_OK;
}

static void
plan_from(struct hall_plan *p, const struct xr_queue_opts *o)
{
	uint64_t bytes = o->bytes > 0 ? o->bytes : XR_QUEUE_BYTES;
	uint64_t block = (bytes + QUEUE_PARTS - 1) / QUEUE_PARTS;

	block = block > HALL_BLOCK ? (block + 63) / 64 * 64 : HALL_BLOCK;
	*p = (struct hall_plan){
		.kind = o->kind,
		.mode = o->mode,
		.redeliver = o->redeliver,
		.items = o->items > 0 ? o->items : XR_QUEUE_ITEMS,
		.lanes = o->lanes > 0 ? o->lanes : 1,
		.block = (uint32_t)block,
		.blocks = (uint32_t)((bytes + block - 1) / block),
	};
}

static struct xr_queue *
handle_new(uint32_t first, uint32_t count)
{
	struct xr_queue *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	q->first = first;
	q->count = count;
	return q;
}

/* Takes @hall, also on failure. */
static enum xr_status
handle_of(struct hall *hall, uint32_t first, uint32_t count,
	struct xr_queue **queue, struct xr_error *err)
{
	struct xr_queue *q = handle_new(first, count);

	if (q == NULL) {
		hall_unref(hall);
		return fail(err, XR_E_NOMEM, "out of memory");
	}
	q->hall = hall;
	*queue = q;
	return XR_OK;
}

/* One more of @far. */
static enum xr_status
far_handle_of(struct far *far, struct xr_queue *q, struct xr_queue **queue,
	struct xr_error *err)
{
	if (q == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	q->far = far;
	q->hall = &far->hall;
	far_come(far);
	*queue = q;
	return XR_OK;
}

enum xr_status
queue_make(const struct xr_queue_opts *o, struct xr_queue **queue,
	struct xr_error *err)
{
	enum xr_status status = check(o, err);
	struct hall_plan plan;
	struct hall *h;

	if (status != XR_OK)
		return status;
	plan_from(&plan, o);
	status = hall_new(&plan, &h, err);
	if (status != XR_OK)
		return status;
	return handle_of(h, 0, plan.lanes, queue, err);
}

XR_EXPORT enum xr_status
xr_queue_new(const struct xr_queue_opts *opts, struct xr_queue **queue,
	struct xr_error *err)
{
	enum xr_status status =
		queue_make(opts != NULL ? opts : &plain, queue, err);

	if (status == XR_OK)
		hall_tell((*queue)->hall);
	return status;
}

XR_EXPORT enum xr_status
xr_queue_lane(struct xr_queue *queue, uint32_t index, struct xr_queue **lane,
	struct xr_error *err)
{
	if (index >= queue->count)
		return fail(err, XR_E_RANGE, "a queue of %u lanes has no %u",
			queue->count, index);
	if (queue->far != NULL)
		return far_handle_of(queue->far,
			handle_new(queue->first + index, 1), lane, err);
	return handle_of(hall_ref(queue->hall), queue->first + index, 1, lane,
		err);
}

XR_EXPORT void
xr_queue_free(struct xr_queue *queue)
{
	if (queue == NULL)
		return;
	if (queue->far != NULL)
		far_go(queue->far);
	else
		hall_unref(queue->hall);
	free(queue);
}

XR_EXPORT void
xr_queue_close(struct xr_queue *queue)
{
	if (queue == NULL)
		return;
	if (queue->far != NULL)
		far_close(queue);
	else
		hall_finish(queue->hall, HALL_CLOSED);
	KEEP_FRAME;
}

XR_EXPORT void
xr_queue_leave(struct xr_queue *queue, uint32_t roles)
{
	if (queue->far != NULL) {
		far_leave(queue, roles);
		KEEP_FRAME;
		return;
	}
	if ((roles & XR_QUEUE_WRITER) != 0)
		hall_mute(queue->hall);
	atomic_fetch_and(&queue->hall->roles, ~roles);
}

/* --- asking --------------------------------------------------------------------------- */

XR_EXPORT size_t
xr_queue_count(const struct xr_queue *queue)
{
	size_t count = 0;

	if (queue->far != NULL)
		return XR_KEEP_FRAME(far_count(queue));
	for (uint32_t i = 0; i < queue->count; i++)
		count += lane_count(queue->hall,
			&queue->hall->lane[queue->first + i]);
	return count;
}

XR_EXPORT bool
xr_queue_empty(const struct xr_queue *queue)
{
	if (queue->far != NULL)
		return far_count(queue) == 0;
	for (uint32_t i = 0; i < queue->count; i++)
		if (!lane_is_empty(queue->hall,
			    &queue->hall->lane[queue->first + i]))
			return false;
	return !lent_is_any(queue->hall);
}

XR_EXPORT void
xr_queue_done(struct xr_queue *queue)
{
	struct hall *h = queue->hall;
	size_t count;

	if (queue->far != NULL) {
		far_done(queue);
		KEEP_FRAME;
		return;
	}
	pthread_mutex_lock(&h->lock);
	count = h->hand_count;
	while (h->hand_count > 0) {
		struct hall_hand *hand = &h->hand[--h->hand_count];

		lane_release(h, hand->lane, hand->ticket);
	}
	pthread_mutex_unlock(&h->lock);
	if (count > 0)
		wake_ring(&h->head->space_wake, UINT32_MAX);
}

/* False: it is done already. The lock is held. */
static bool
take_hand(struct hall *h, const struct hall_hand *hand)
{
	for (size_t i = 0; i < h->hand_count; i++)
		if (h->hand[i].lane == hand->lane &&
			h->hand[i].ticket == hand->ticket) {
			h->hand[i] = h->hand[--h->hand_count];
			return true;
		}
	return false;
}

void
hall_settle(struct hall *h, const struct hall_hand *hand, bool is_back)
{
	bool has;

	pthread_mutex_lock(&h->lock);
	has = take_hand(h, hand);
	if (has && is_back)
		lane_return(h, hand->lane, hand->ticket);
	else if (has)
		lane_release(h, hand->lane, hand->ticket);
	pthread_mutex_unlock(&h->lock);
	if (!has)
		return;
	wake_ring(is_back ? &h->head->items_wake : &h->head->space_wake,
		h->plan.lanes > 1 ? UINT32_MAX : 1);
	if (is_back)
		hall_light(h);
}

/* The word first: who puts something from now on tells. */
XR_EXPORT enum xr_status
xr_queue_fd(struct xr_queue *queue, int *fd, struct xr_error *err)
{
	struct hall *h = queue->hall;
	enum xr_status status;
	uint32_t who;

	if (queue->far != NULL)
		return XR_KEEP_FRAME(far_fd(queue, fd, err));
	status = user_self(h, &who, err);
	if (status == XR_OK)
		status = vigil_follow(h, err);
	if (status != XR_OK)
		return status;
	atomic_store(&h->head->polled, 1);
	atomic_thread_fence(memory_order_seq_cst);
	if (!xr_queue_empty(queue))
		hall_light(h);
	if (atomic_load(&h->head->end) != HALL_OPEN)
		hall_finish(h, HALL_CLOSED);
	*fd = h->ear;
	return XR_OK;
}

/* --- handing it on --------------------------------------------------------------------- */

XR_EXPORT void
xr_queue_fds(const struct xr_queue *queue, int fds[XR_QUEUE_FDS])
{
	fds[0] = queue->far != NULL ? -1 : queue->hall->fd;
	fds[1] = queue->far != NULL ? -1 : queue->hall->ear;
}

XR_EXPORT enum xr_status
xr_queue_adopt(const int fds[XR_QUEUE_FDS], struct xr_queue **queue,
	struct xr_error *err)
{
	enum xr_status status;
	struct hall *h;

	status = hall_adopt(fds, &h, err);
	if (status != XR_OK)
		return status;
	return handle_of(h, 0, h->plan.lanes, queue, err);
}

/* PID:START:MEMORY:PIPE:INODE:SPACE:WORKER. INODE and SPACE tell that it is what it was,
 * WORKER who serves it elsewhere; -1: nobody. */
static int
write_text(const struct hall *h, int worker, char *text, size_t room)
{
	uint32_t pid = (uint32_t)getpid();
	uint64_t space = hall_space(), start = user_start(pid);
	struct stat st;

	if (space == 0 || start == 0 || fstat(h->fd, &st) == -1)
		return -1;
	return snprintf(text, room, "%u:%llu:%d:%d:%llu:%llu:%d", pid,
		(unsigned long long)start, h->fd, h->ear,
		(unsigned long long)st.st_ino, (unsigned long long)space,
		worker);
}

XR_EXPORT enum xr_status
xr_queue_text(const struct xr_queue *queue, char *text, size_t room,
	struct xr_error *err)
{
	enum xr_status status = XR_OK;
	int worker, n;

	if (queue->far != NULL) {
		n = snprintf(text, room, "%s", queue->far->text);
	} else {
		status = ward_serve(&worker, err);
		if (status != XR_OK)
			return status;
		n = write_text(queue->hall, worker, text, room);
	}
	if (n < 0)
		return fail(err, XR_E_SYS, "a queue's text: %s",
			strerror(errno));
	if ((size_t)n >= room)
		return fail(err, XR_E_RANGE, "no room for a queue's text");
	return XR_OK;
}

static enum xr_status
not_there(struct xr_error *err)
{
	return fail(err, XR_E_NOTFOUND, "who had the queue is gone");
}

/* @error: errno of what looked at its process. */
static enum xr_status
not_opened(const struct where_queue *w, int error, struct xr_error *err)
{
	if (user_is_gone(error))
		return not_there(err);
	return fail(err, XR_E_SYS, "the queue of process %u: %s", w->pid,
		strerror(error));
}

static int
open_of(const struct where_queue *w, int fd, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", w->pid, fd);
	return open(path, flags | O_CLOEXEC | O_NONBLOCK);
}

static bool
is_it(const struct where_queue *w, int fd)
{
	struct stat st;

	return fd != -1 && fstat(fd, &st) == 0 && st.st_ino == w->inode;
}

static enum xr_status
open_where(const struct where_queue *w, struct xr_queue **queue,
	struct xr_error *err)
{
	int fds[XR_QUEUE_FDS] = { -1, -1 };
	uint64_t start = user_start(w->pid);
	enum xr_status status;

	if (start == 0)
		return not_opened(w, errno, err);
	if (start != w->start)
		return not_there(err);
	fds[0] = open_of(w, w->memory, O_RDWR);
	if (fds[0] != -1 && is_it(w, fds[0]))
		fds[1] = open_of(w, w->pipe, O_RDONLY);
	else if (fds[0] != -1)
		errno = 0; /* it is something else */
	status = fds[1] == -1 ? not_opened(w, errno, err) :
				xr_queue_adopt(fds, queue, err);
	fd_close(fds[0]);
	fd_close(fds[1]);
	return status;
}

static enum xr_status
read_text(const char *text, struct where_queue *w, struct xr_error *err)
{
	int end = 0;

	if (text == NULL || strlen(text) >= XR_QUEUE_TEXT_MAX ||
		sscanf(text, "%u:%llu:%d:%d:%llu:%llu:%d%n", &w->pid, &w->start,
			&w->memory, &w->pipe, &w->inode, &w->space, &w->worker,
			&end) != 7 ||
		text[end] != '\0')
		return fail(err, XR_E_INVAL, "that is no queue's text");
	return XR_OK;
}

/* That another process has that number elsewhere is no more than a mistake. */
enum xr_status
queue_open_own(const char *text, struct xr_queue **queue, struct xr_error *err)
{
	struct where_queue w;
	enum xr_status status = read_text(text, &w, err);

	if (status != XR_OK)
		return status;
	if (w.pid != (unsigned)getpid() || w.space != hall_space() ||
		!is_it(&w, w.memory))
		return not_there(err);
	return xr_queue_adopt((int[]){ w.memory, w.pipe }, queue, err);
}

static enum xr_status
open_far(const char *text, const struct where_queue *w, struct xr_queue **queue,
	struct xr_error *err)
{
	struct far *far;
	enum xr_status status = far_open(text, w, &far, err);

	if (status != XR_OK)
		return status;
	status = far_handle_of(far, handle_new(0, far->hall.plan.lanes), queue,
		err);
	far_unref(far);
	return status;
}

XR_EXPORT enum xr_status
xr_queue_open(const char *text, struct xr_queue **queue, struct xr_error *err)
{
	struct where_queue w;
	enum xr_status status = read_text(text, &w, err);
	uint64_t space;

	if (status != XR_OK)
		return status;
	space = hall_space();
	if (space == 0)
		return not_opened(&w, errno, err);
	return w.space == space ? open_where(&w, queue, err) :
				  open_far(text, &w, queue, err);
}

static enum xr_status
key_of(const char *name, char *key, size_t room, struct xr_error *err)
{
	int n = snprintf(key, room, QUEUE_KEY "%s", name);

	if (n < 0 || (size_t)n >= room)
		return fail(err, XR_E_RANGE, "a queue's name is too long");
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_queue_share(const struct xr_queue *queue, struct xr_store *store,
	const char *name, struct xr_error *err)
{
	char text[XR_QUEUE_TEXT_MAX], key[256];
	enum xr_status status = key_of(name, key, sizeof(key), err);

	if (status == XR_OK)
		status = xr_queue_text(queue, text, sizeof(text), err);
	if (status != XR_OK)
		return status;
	gauge_rename(queue->hall->gauge, name);
	return xr_store_set(store, key, text, strlen(text), err);
}

XR_EXPORT enum xr_status
xr_queue_find(struct xr_store *store, const char *name, int64_t timeout,
	struct xr_queue **queue, struct xr_error *err)
{
	struct xr_store_value value = { 0 };
	char key[256];
	enum xr_status status = key_of(name, key, sizeof(key), err);

	if (status == XR_OK)
		status = xr_store_get(store, key, timeout, &value, err);
	if (status == XR_OK)
		status = xr_queue_open(value.data, queue, err);
	xr_store_value_free(&value);
	return status;
}
