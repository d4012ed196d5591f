/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/queue.h - values and bytes from processes to processes.
 *
 * A queue is a piece of shared memory. Whoever puts something copies it there, and
 * whoever gets it copies it out; nobody is between them, and there are no locks, so
 * that a process may be killed at any moment, and all others go on. Items of one who
 * puts are got in the order in which they were put, each once, by one of those who
 * get. What was put is there though the one who put it has ended.
 *
 * A process of another machine has it by calls of the agent (xrun/rpc.h) to the process
 * that gave its text, with the same results. That process has to live then, and to be
 * a member: all calls are XR_E_PEER_LOST when it is gone, and XR_E_STATE when this
 * process's own agent is.
 *
 * A process has a queue by a handle: that which xr_queue_new() gave, also in children
 * made by fork(), or one that xr_queue_open() made of a text, or xr_queue_adopt() of
 * descriptors. A queue ends with its last handle. Any thread may use a handle at any
 * time. After exec() there is none.
 *
 * A time is how long all of a call may take, whatever others do; 0 is now or not at
 * all. From another machine, too: to be asked now who has the queue is given a second at
 * most. What was late was not put, and was not got.
 */
#ifndef XRUN_QUEUE_H
#define XRUN_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/store.h"
#include "xrun/time.h"
#include "xrun/value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XR_QUEUE_ITEMS     1024               /* unless it is said */
#define XR_QUEUE_BYTES     (4 << 20)          /* the same */
#define XR_QUEUE_ITEMS_MAX (1 << 20)          /* of a lane */
#define XR_QUEUE_BYTES_MAX (INT64_C(1) << 36) /* of a lane */
#define XR_QUEUE_LANES_MAX 1024
#define XR_QUEUE_SHORT     96 /* bytes of an item that needs none of a lane's */
#define XR_QUEUE_LONG_MOST 4  /* items at a time that are too long for a lane */
#define XR_QUEUE_USERS_MAX 1023 /* processes */
#define XR_QUEUE_TEXT_MAX  128  /* of xr_queue_text(), with a NUL */

enum xr_queue_kind {
	XR_QUEUE_ANY = 0, /* any number put, and any number get */
	XR_QUEUE_P2P = 1, /* one process puts, one gets: one thread of each at a
			   * time */
};

enum xr_queue_role {
	XR_QUEUE_WRITER = 1,
	XR_QUEUE_READER = 2,
};

struct xr_queue;

struct xr_queue_opts {
	uint32_t size;           /* sizeof(struct xr_queue_opts) */
	enum xr_queue_kind kind; /* any ends, or one to one */
	uint32_t items; /* that may be waiting in a lane; 0: XR_QUEUE_ITEMS */
	uint32_t lanes; /* 0 is 1; several: xr_queue_lane() */
	uint64_t bytes; /* of those of a lane; 0: XR_QUEUE_BYTES */
	enum xr_enc_mode mode; /* of values */
	bool redeliver; /* an item that was got goes to another, if who got it ends
			 * before xr_queue_done(); not with XR_QUEUE_P2P */
};

/*
 * xr_queue_new() - a queue, of which this process is writer and reader.
 *
 * @opts:  borrowed; NULL: any number, as large as above, values are copied
 * @queue: receives a handle; release with xr_queue_free()
 *
 * An item of more than XR_QUEUE_SHORT bytes takes room among the bytes of its lane, in
 * pieces of 1/1024 of them, 512 at least. One that needs more than a quarter of them
 * has memory of its own, as long as it waits; XR_QUEUE_LONG_MOST of these may.
 *
 * Returns  XR_OK; XR_E_INVAL; XR_E_RANGE: too many, or too large; XR_E_SYS: no
 *          descriptors, or no shared memory; XR_E_NOMEM
 * Thread   any.  Blocks: no.  Costs two descriptors for as long as it has a handle, and
 *          one for each process that waited at it and its like.
 */
enum xr_status xr_queue_new(const struct xr_queue_opts *opts,
	struct xr_queue **queue, struct xr_error *err);

/*
 * xr_queue_free() - this process has it no more; what waits in it stays for others.
 *
 * Nobody of this process may be in a call of it. Items that were put by reference
 * (XR_ENC_SHARE) and not yet got are lost. Of the queue and its lanes it is had by this
 * process until the last handle was freed. NULL is fine.
 */
void xr_queue_free(struct xr_queue *queue);

/* xr_queue_close() - nobody puts anything more; who waits to put has XR_E_CLOSED at
 * once, who gets has what is there, and then XR_E_CLOSED. For all processes. NULL is
 * fine. */
void xr_queue_close(struct xr_queue *queue);

/*
 * xr_queue_leave() - this process is no longer a writer of it, or reader.
 *
 * @roles: of enum xr_queue_role
 *
 * A queue without a writer is closed: as a pipe, by the end of the last process that
 * could write, whatever ends it. fork() makes another, exec() one less. So one that
 * makes a queue for its children leaves what it is not, and each of them does.
 */
void xr_queue_leave(struct xr_queue *queue, uint32_t roles);

/*
 * xr_queue_put() - @value at the end.
 *
 * @timeout of all puts and gets is in ns: 0 does not wait, and XR_TIMEOUT_DEFAULT is
 * XR_TIMEOUT_NEVER.
 *
 * @value: borrowed; it is the queue's copy that others get. With XR_ENC_SHARE
 *         tensors travel by reference, and this process is to live, and to have the
 *         queue, until they were got; to another machine, and from it, as copies
 *
 * Returns  XR_OK
 *          XR_E_TIMEOUT  there was no room; nothing was put
 *          XR_E_CLOSED   closed, or no reader may come any more
 *          XR_E_STATE    this process is no writer
 *          XR_E_EXISTS   XR_QUEUE_P2P: another process is the one, which @err names
 *          XR_E_INVAL    @queue or a pointer is NULL; @timeout
 *          XR_E_RANGE    too long for any queue of this machine; too many processes
 *          XR_E_ENCODE   as xr_encode()
 *          XR_E_PEER_LOST  of another machine: who has it is gone, which @err names
 *          XR_E_NOMEM, XR_E_SYS
 */
enum xr_status xr_queue_put(struct xr_queue *queue, struct xr_value *value,
	int64_t timeout, struct xr_error *err);

/*
 * xr_queue_get() - the first.
 *
 * @value: receives a reference; release with xr_value_unref(). Bytes that were put as
 *         such are a BYTES
 *
 * Returns  XR_OK
 *          XR_E_TIMEOUT    there was none
 *          XR_E_CLOSED     there will be none: closed, or the last writer is gone
 *          XR_E_STATE      this process is no reader
 *          XR_E_EXISTS     as xr_queue_put()
 *          XR_E_INVAL      @queue or a pointer is NULL; @timeout
 *          XR_E_DECODE     it cannot be decoded here, and is gone
 *          XR_E_PEER_LOST  it was put by reference, by one who is gone; so is it. Or as
 *                          xr_queue_put()
 *          XR_E_NOMEM, XR_E_SYS, XR_E_RANGE
 */
enum xr_status xr_queue_get(struct xr_queue *queue, struct xr_value **value,
	int64_t timeout, struct xr_error *err);

/*
 * xr_queue_put_many() - several, with one look and one wake-up for as many as there is
 * room for; xr_queue_get_many() - as many as are there.
 *
 * @count: in: how many; out, also on failure: how many were, from the first. To put
 *         waits until all are, to get until there is one
 *
 * Return as xr_queue_put() and xr_queue_get().
 */
enum xr_status xr_queue_put_many(struct xr_queue *queue,
	struct xr_value *const *values, size_t *count, int64_t timeout,
	struct xr_error *err);
enum xr_status xr_queue_get_many(struct xr_queue *queue,
	struct xr_value **values, size_t *count, int64_t timeout,
	struct xr_error *err);

/* The same of plain bytes, which a get of bytes gives back as they were; of an item
 * that is a value it gives the encoding. */
enum xr_status xr_queue_put_bytes(struct xr_queue *queue, const void *data,
	size_t len, int64_t timeout, struct xr_error *err);
enum xr_status xr_queue_put_many_bytes(struct xr_queue *queue,
	const struct xr_part *items, size_t *count, int64_t timeout,
	struct xr_error *err);

/* Where an item goes. */
struct xr_queue_buf {
	void *data;  /* [room]; NULL: receives memory, release with free(3) */
	size_t room; /* of the caller's memory */
	size_t len;  /* receives how many bytes it has */
};

/* xr_queue_get_bytes() - XR_E_RANGE: it has more than room, and stays; len says how
 * many. */
enum xr_status xr_queue_get_bytes(struct xr_queue *queue,
	struct xr_queue_buf *buf, int64_t timeout, struct xr_error *err);
enum xr_status xr_queue_get_many_bytes(struct xr_queue *queue,
	struct xr_queue_buf *bufs, size_t *count, int64_t timeout,
	struct xr_error *err);

/* xr_queue_done() - all that this process has got from it was dealt with: opts'
 * redeliver. What was got and is not done takes the room that it had. */
void xr_queue_done(struct xr_queue *queue);

/* xr_queue_count() - items in it; others may be about to change it. 0 of a machine that
 * does not answer. */
size_t xr_queue_count(const struct xr_queue *queue);
/* xr_queue_empty() - is there none now? Not before all that this process has put by reference was
 * got, and opened there: then it may end. */
bool xr_queue_empty(const struct xr_queue *queue);

/*
 * xr_queue_lane() - a handle of one lane of a queue that has several.
 *
 * Each lane is a queue of its own, with its own items and bytes. To put to all of them
 * is to put to each in turn, from the first, and to the next one that has room; to
 * get from all is to get from those that have something, in turn. Who waits for any
 * of them has one wake-up.
 *
 * @lane: receives it; release with xr_queue_free()
 *
 * Returns  XR_OK; XR_E_RANGE: there is none; XR_E_NOMEM
 */
enum xr_status xr_queue_lane(struct xr_queue *queue, uint32_t index,
	struct xr_queue **lane, struct xr_error *err);

/*
 * xr_queue_fd() - a descriptor that can be read from when there may be something to
 * get: for poll() and its like, and for nothing else.
 *
 * It is so until a get finds nothing, for all who poll, also if another one was
 * faster; when the queue was closed it stays so. So get with time 0 until that is
 * XR_E_TIMEOUT.
 *
 * @fd: receives it; the queue's, until xr_queue_free()
 *
 * Returns  XR_OK; XR_E_SYS; XR_E_NOMEM; XR_E_RANGE
 */
enum xr_status xr_queue_fd(struct xr_queue *queue, int *fd,
	struct xr_error *err);

/*
 * xr_queue_text() - what another process of the same user makes a handle of, by
 * xr_queue_open(), as long as this one lives and has its own.
 *
 * For processes of other machines the agent is to run: xr_rpc_init() comes before. Of a
 * handle of another machine it is the text of which that was made.
 *
 * Returns  XR_OK; XR_E_RANGE: XR_QUEUE_TEXT_MAX bytes have room for any
 */
enum xr_status xr_queue_text(const struct xr_queue *queue, char *text,
	size_t room, struct xr_error *err);

/*
 * xr_queue_open() - a handle; this process is writer and reader.
 *
 * Of a text of another machine, or of other process ids, it is one by the agent. It is
 * freed before that is shut down, and not had by children made by fork().
 *
 * Returns  XR_OK; XR_E_INVAL: no such text; XR_E_NOTFOUND: it is not there any more, or
 *          on another machine, and the text was made without an agent; XR_E_STATE: on
 *          another machine, and there is no agent here; XR_E_VERSION: of another
 *          version; XR_E_SYS; XR_E_NOMEM; of another machine as xr_rpc_sync()
 * Blocks   of another machine: until that has answered.
 */
enum xr_status xr_queue_open(const char *text, struct xr_queue **queue,
	struct xr_error *err);

#define XR_QUEUE_FDS 2

/* xr_queue_fds() - what else makes a handle, sent over a socket; borrowed. Of a queue of
 * another machine -1. */
void xr_queue_fds(const struct xr_queue *queue, int fds[XR_QUEUE_FDS]);

/* xr_queue_adopt() - as xr_queue_open(), of descriptors, which stay the caller's. */
enum xr_status xr_queue_adopt(const int fds[XR_QUEUE_FDS],
	struct xr_queue **queue, struct xr_error *err);

/*
 * xr_queue_share() - have it found by a name, in a store of the job's.
 * xr_queue_find() - a handle of the queue of this name; waits until it has one.
 *
 * @timeout: as of xr_store_get()
 *
 * Returns  as xr_store_set(); as xr_store_get() and xr_queue_open()
 */
enum xr_status xr_queue_share(const struct xr_queue *queue,
	struct xr_store *store, const char *name, struct xr_error *err);
enum xr_status xr_queue_find(struct xr_store *store, const char *name,
	int64_t timeout, struct xr_queue **queue, struct xr_error *err);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_QUEUE_H */
