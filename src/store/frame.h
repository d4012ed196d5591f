/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h - requests to a store and its replies as bytes, for tcp://.
 *
 *	u32 length of what follows     u8 type   u8 0   u16 parts
 *	u64 id   i64 number   i32 status   u32 length of each part   the parts
 *
 * All of it is little-endian. The type is an operation of desk.h, a reply, or the
 * hello that both sides begin with, whose number is the version. Parts of a
 * request are the key or the keys, then what is expected, then the value; of a
 * reply the value, or the words of its error. An id comes back with the reply.
 *
 * Pure. What is longer than FRAME_MAX, or does not add up, is refused before
 * anything is allocated for it.
 */
#ifndef STORE_FRAME_H
#define STORE_FRAME_H

#include "base/buf.h"
#include "store/desk.h"

#define FRAME_VERSION 2
#define FRAME_MAGIC   "xrun store"
#define FRAME_HEAD    28 /* bytes before the lengths */
#define FRAME_PARTS   DESK_KEYS_MAX
#define FRAME_MAX     (STORE_VALUE_MAX + (8 << 20))

enum frame_type {
	FRAME_HELLO = 64,
	FRAME_PROOF = 65,
	FRAME_REPLY = 128,
};

struct frame {
	uint8_t type;
	int32_t status;
	int64_t id, number;
	uint32_t count;
	struct span *part; /* [count]; of a request [FRAME_PARTS] are needed */
};

/*
 * frame_size() - bytes of the frame that @in begins with.
 *
 * @size: 0: it takes more bytes to know
 * Returns  XR_OK; XR_E_PROTO: there is none
 */
enum xr_status frame_size(struct span in, size_t *size, struct xr_error *err);

/*
 * frame_read() - the frame that @in is, to the byte.
 *
 * @f: its part has room for FRAME_PARTS; they borrow from @in
 * Returns  XR_OK; XR_E_PROTO
 */
enum xr_status frame_read(struct span in, struct frame *f,
	struct xr_error *err);

/* frame_put() - the last @after bytes of the last part come behind it. */
void frame_put(struct buf *out, const struct frame *f, size_t after);

/*
 * The first message of each side. A connection with a secret begins so:
 *
 *	client                           server
 *	HELLO  nonce               ---->
 *	                           <---- HELLO  status, nonce, proof
 *	PROOF  proof               ---->
 *	                           <---- PROOF  status
 *
 * Without a secret it begins with two HELLO that have neither nonce nor proof.
 * The field `host` differs by side: a socket that is connected to itself receives
 * its own HELLO.
 */
struct frame_hello {
	bool host;                /* the server sends it */
	enum xr_status status;    /* XR_OK, or why the server refuses */
	struct span nonce, proof; /* length 0: there is none; borrowed */
};

void frame_put_hello(struct buf *out, const struct frame_hello *hello);

/*
 * frame_read_hello() - the HELLO of the server (@host) or of a client.
 *
 * @hello: its spans borrow from @f
 * Returns  XR_OK; XR_E_PROTO: @f is no such HELLO; XR_E_VERSION
 */
enum xr_status frame_read_hello(const struct frame *f, bool host,
	struct frame_hello *hello, struct xr_error *err);

void frame_put_request(struct buf *out, const struct store_request *q);

/* frame_request() - what is asked. @q has a value of its own, a reference for
 * the caller, if the operation takes one. XR_E_PROTO, XR_E_NOMEM. */
enum xr_status frame_request(const struct frame *f, struct store_request *q,
	struct xr_error *err);

/* frame_put_reply() - all but the bytes of its value, which come behind it. */
void frame_put_reply(struct buf *out, const struct store_reply *r);

/* frame_reply() - the same back, with a value of its own. */
enum xr_status frame_reply(const struct frame *f, struct store_reply *r,
	struct xr_error *err);

#endif /* STORE_FRAME_H */
