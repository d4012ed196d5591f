/* SPDX-License-Identifier: Apache-2.0 */
/* outbox.c - see outbox.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/socket.h>

#include "base/status.h"
#include "worker/net/outbox.h"

#define IOVS 64 /* of one call; the kernel takes 1024 at most */
#define TURN 32 /* calls, before others have theirs */

void
outbox_init(struct outbox *o)
{
	*o = (struct outbox){ .bytes = 0 };
	TAILQ_INIT(&o->waiting);
}

void
outbox_fini(struct outbox *o)
{
	struct outbox_piece *piece;

	while ((piece = TAILQ_FIRST(&o->waiting)) != NULL) {
		TAILQ_REMOVE(&o->waiting, piece, list);
		free(piece);
	}
	free(o->spare);
	o->spare = NULL;
}

void
outbox_forget(struct outbox *o, struct outbox_piece *piece)
{
	if (o->spare == NULL && piece->cap == OUTBOX_PIECE)
		o->spare = piece;
	else
		free(piece);
}

/* An empty piece with @cap bytes at least. */
static struct outbox_piece *
new_piece(struct outbox *o, size_t cap)
{
	struct outbox_piece *piece = o->spare;

	if (cap < OUTBOX_PIECE)
		cap = OUTBOX_PIECE;
	if (cap == OUTBOX_PIECE && piece != NULL)
		o->spare = NULL;
	else
		piece = malloc(sizeof(*piece) + cap);
	if (piece == NULL)
		return NULL;
	*piece = (struct outbox_piece){ .cap = cap };
	return piece;
}

/* The last one, if it can take a copy of @size bytes, or a new one. */
static struct outbox_piece *
piece_for(struct outbox *o, size_t size)
{
	struct outbox_piece *last = TAILQ_LAST(&o->waiting, outbox_pieces);

	if (last != NULL && !last->refers && last->cap - last->len >= size)
		return last;
	last = new_piece(o, size);
	if (last != NULL)
		TAILQ_INSERT_TAIL(&o->waiting, last, list);
	return last;
}

static enum xr_status
copy(struct outbox *o, const struct xr_message *m, uint64_t len)
{
	struct outbox_piece *piece = piece_for(o, NET_HEAD + (size_t)len);
	char *to;

	if (piece == NULL)
		return XR_E_NOMEM;
	to = piece->room + piece->len;
	net_head_put(to, &(struct net_head){ m->record, len });
	to += NET_HEAD;
	for (uint32_t i = 0; i < m->count; i++) {
		if (m->parts[i].len > 0)
			memcpy(to, m->parts[i].data, m->parts[i].len);
		to += m->parts[i].len;
	}
	piece->len += NET_HEAD + (size_t)len;
	return XR_OK;
}

static enum xr_status
refer(struct outbox *o, const struct xr_message *m, uint64_t len,
	struct outbox_piece **piece)
{
	struct outbox_piece *p;
	struct iovec *iov;
	size_t cap;

	if (__builtin_mul_overflow((size_t)m->count + 1, sizeof(*iov), &cap))
		return XR_E_NOMEM;
	p = new_piece(o, cap);
	if (p == NULL)
		return XR_E_NOMEM;
	p->refers = true;
	p->token = m->token;
	net_head_put(p->head, &(struct net_head){ m->record, len });
	iov = (struct iovec *)p->room;
	iov[p->count++] = (struct iovec){ p->head, NET_HEAD };
	for (uint32_t i = 0; i < m->count; i++)
		if (m->parts[i].len > 0)
			iov[p->count++] = (struct iovec){
				(void *)m->parts[i].data,
				m->parts[i].len,
			};
	TAILQ_INSERT_TAIL(&o->waiting, p, list);
	*piece = p;
	return XR_OK;
}

enum xr_status
outbox_put(struct outbox *o, const struct xr_message *message, uint64_t len,
	struct outbox_piece **piece)
{
	enum xr_status status;

	*piece = NULL;
	if (o->bytes >= OUTBOX_WINDOW)
		return XR_E_AGAIN;
	status = len <= OUTBOX_COPIED ? copy(o, message, len) :
					refer(o, message, len, piece);
	if (status == XR_OK)
		o->bytes += NET_HEAD + len;
	return status;
}

/* --- taking back ------------------------------------------------------------ */

/* Bytes that wait. */
static size_t
rest_of(const struct outbox_piece *p)
{
	const struct iovec *iov = (const struct iovec *)p->room;
	size_t len = 0;

	for (size_t i = p->first; i < p->count; i++)
		len += iov[i].iov_len;
	return len - p->at;
}

/* A piece of the same bytes, which are its own. NULL: no memory. */
static struct outbox_piece *
copy_rest(struct outbox *o, const struct outbox_piece *p)
{
	const struct iovec *iov = (const struct iovec *)p->room;
	struct outbox_piece *own = new_piece(o, rest_of(p));
	size_t at = p->at, n;

	if (own == NULL)
		return NULL;
	for (size_t i = p->first; i < p->count; i++, at = 0) {
		n = iov[i].iov_len - at;
		memcpy(own->room + own->len, (const char *)iov[i].iov_base + at,
			n);
		own->len += n;
	}
	return own;
}

enum outbox_unsent
outbox_unsend(struct outbox *o, const void *token)
{
	struct outbox_piece *p, *rest;

	TAILQ_FOREACH(p, &o->waiting, list)
	if (p->refers && p->token == token)
		break;
	if (p == NULL)
		return OUTBOX_GONE;
	if (p->first > 0 || p->at > 0) {
		rest = copy_rest(o, p);
		if (rest == NULL)
			return OUTBOX_TORN;
		TAILQ_INSERT_AFTER(&o->waiting, p, rest, list);
	} else {
		o->bytes -= rest_of(p);
	}
	TAILQ_REMOVE(&o->waiting, p, list);
	outbox_forget(o, p);
	return OUTBOX_UNSENT;
}

/* --- writing --------------------------------------------------------------- */

/* What of @p waits, into @iov; gives how many there are now. */
static size_t
gather(const struct outbox_piece *p, struct iovec *iov, size_t n)
{
	const struct iovec *own = (const struct iovec *)p->room;
	size_t at = p->at;

	if (!p->refers) {
		iov[n++] = (struct iovec){ (char *)p->room + at, p->len - at };
		return n;
	}
	for (size_t i = p->first; i < p->count && n < IOVS; i++) {
		iov[n++] = (struct iovec){ (char *)own[i].iov_base + at,
			own[i].iov_len - at };
		at = 0;
	}
	return n;
}

static size_t
gather_all(const struct outbox *o, struct iovec iov[IOVS])
{
	const struct outbox_piece *p;
	size_t n = 0;

	TAILQ_FOREACH(p, &o->waiting, list)
	{
		if (n == IOVS)
			break;
		n = gather(p, iov, n);
	}
	return n;
}

/* @n bytes of it went out, or all: what is left of @n. */
static size_t
advance(struct outbox_piece *p, size_t n)
{
	const struct iovec *iov = (const struct iovec *)p->room;
	size_t left;

	if (!p->refers) {
		left = p->len - p->at;
		left = n < left ? n : left;
		p->at += left;
		p->is_out = p->at == p->len;
		return n - left;
	}
	while (p->first < p->count) {
		left = iov[p->first].iov_len - p->at;
		if (n < left) {
			p->at += n;
			return 0;
		}
		n -= left;
		p->at = 0;
		p->first++;
	}
	p->is_out = true;
	return n;
}

static void
went_out(struct outbox *o, size_t n, struct outbox_pieces *out)
{
	struct outbox_piece *p;

	o->bytes -= n;
	while ((p = TAILQ_FIRST(&o->waiting)) != NULL) {
		n = advance(p, n);
		if (!p->is_out)
			break;
		TAILQ_REMOVE(&o->waiting, p, list);
		if (p->refers)
			TAILQ_INSERT_TAIL(out, p, list);
		else
			outbox_forget(o, p);
	}
}

enum outbox_state
outbox_write(struct outbox *o, int fd, struct outbox_pieces *out, int *sys)
{
	struct iovec iov[IOVS];
	struct msghdr message = { .msg_iov = iov };
	ssize_t n;

	for (int i = 0; i < TURN && !TAILQ_EMPTY(&o->waiting); i++) {
		message.msg_iovlen = gather_all(o, iov);
		n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n >= 0) {
			went_out(o, (size_t)n, out);
		} else if (errno == EAGAIN || errno == ENOBUFS ||
			errno == ENOMEM) {
			return OUTBOX_BLOCKED;
		} else if (errno != EINTR) {
			*sys = errno;
			return OUTBOX_BROKEN;
		}
	}
	return TAILQ_EMPTY(&o->waiting) ? OUTBOX_EMPTY : OUTBOX_BLOCKED;
}

void
outbox_take_all(struct outbox *o, struct outbox_pieces *out)
{
	TAILQ_CONCAT(out, &o->waiting, list);
	o->bytes = 0;
}
