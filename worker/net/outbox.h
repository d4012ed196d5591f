/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox.h - what is to go out over a connection, in order.
 *
 * Short messages are copied, many into one piece, and their senders may forget
 * them; of long ones only the places are kept, and whoever sent them hears when
 * they are out. Nothing is allocated while short messages go out as they come: a
 * piece that is empty is used again.
 *
 * The lock of the link it belongs to protects it.
 */
#ifndef WORKER_NET_OUTBOX_H
#define WORKER_NET_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/queue.h>
#include <sys/uio.h>

#include <xrun/transport.h>

#include "worker/net/head.h"

#define OUTBOX_WINDOW (4 << 20) /* bytes that wait: no more is taken */
#define OUTBOX_COPIED (2 << 10) /* bytes of a body, to be copied */
#define OUTBOX_PIECE  (8 << 10) /* bytes of a piece */

struct outbox_piece {
	TAILQ_ENTRY(outbox_piece) list;
	bool refers; /* a long message: head, then iovs; else copied bytes */
	bool is_out; /* of one that refers */
	void *token; /* of one that refers */
	size_t at;   /* copied bytes that went out; of @first's, if it refers */
	size_t len;  /* copied bytes */
	size_t first; /* iovs that went out */
	size_t count; /* of iovs */
	size_t cap;   /* bytes of @room */
	char head[NET_HEAD];
	_Alignas(struct iovec) char room[];
};

TAILQ_HEAD(outbox_pieces, outbox_piece);

struct outbox {
	struct outbox_pieces waiting;
	struct outbox_piece *spare; /* empty, of OUTBOX_PIECE; or NULL */
	uint64_t bytes;             /* that wait */
};

enum outbox_state {
	OUTBOX_EMPTY,
	OUTBOX_BLOCKED, /* the rest has to wait for room */
	OUTBOX_BROKEN,
};

void outbox_init(struct outbox *o);

/* outbox_fini() - what waits is forgotten. */
void outbox_fini(struct outbox *o);

/*
 * outbox_put() - @message, with a body of @len bytes, behind what waits.
 *
 * @piece: receives the message's own, if it refers to its parts; else NULL. It
 *         is good until outbox_forget()
 *
 * Returns  XR_OK; XR_E_AGAIN: OUTBOX_WINDOW bytes wait; XR_E_NOMEM; on failure
 *          nothing was taken
 */
enum xr_status outbox_put(struct outbox *o, const struct xr_message *message,
	uint64_t len, struct outbox_piece **piece);

/*
 * outbox_write() - as much to @fd as goes without a wait.
 *
 * Pieces that refer, and are out now, join @out, marked; those that were copied
 * are nobody's any more.
 *
 * @sys: receives errno where it is broken
 */
enum outbox_state outbox_write(struct outbox *o, int fd,
	struct outbox_pieces *out, int *sys);

/* What became of a message that its sender wants to forget. */
enum outbox_unsent {
	OUTBOX_GONE, /* it is not here: it went out, or is about to be told of */
	OUTBOX_UNSENT,
	OUTBOX_TORN, /* a part is out, and there is no memory for the rest */
};

/* outbox_unsend() - the message of @token, which refers: taken out, or, if some of
 * it went out, the rest is copied. */
enum outbox_unsent outbox_unsend(struct outbox *o, const void *token);

/* outbox_forget() - a piece that is in no list any more; it may serve again. */
void outbox_forget(struct outbox *o, struct outbox_piece *piece);

/* outbox_take_all() - all that wait join @out, marked or not. */
void outbox_take_all(struct outbox *o, struct outbox_pieces *out);

#endif /* WORKER_NET_OUTBOX_H */
