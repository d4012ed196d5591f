/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/transport.h - carriers: how messages come from one agent to another.
 *
 * A carrier moves messages, whole, each once, in order between two agents. It
 * knows nothing of calls. The agent (the host) chooses one for each peer: the
 * first of its list that both have and that reaches it.
 *
 * Threads. send() is called by any thread, for one link by one at a time.
 * progress() is called by one thread at a time, and only it calls deliver() and
 * lost() of the host, never while it holds a lock that send() or connect() takes.
 * A carrier with a thread of its own (XR_CARRIER_THREAD) calls them from that, and
 * has no progress().
 *
 * Memory. What send() is given is kept by the host until it returns with nothing
 * pending, else until sent() was called with its token. A body that is delivered
 * is good until deliver() returns, unless it took it.
 */
#ifndef XRUN_TRANSPORT_H
#define XRUN_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XR_CARRIER_API 1
#define XR_MESSAGE_MAX (UINT64_C(1) << 40) /* bytes of a body */
#define XR_ADDRESS_MAX 255 /* bytes of a carrier's address, as text */
#define XR_LOANS_MAX   255 /* of a message */

/* What stands in front of each message; little-endian on the wire. */
struct xr_record {
	uint8_t kind;  /* the agent's */
	uint8_t flags; /* the agent's */
	uint16_t aux;  /* the agent's */
	uint32_t method;
	uint64_t corr;
};

/* A message to be sent: @record, then @parts behind each other. */
struct xr_message {
	struct xr_record record;
	const struct xr_part *parts; /* [count] */
	uint32_t count;
	bool more;   /* another follows at once: nobody need be woken yet */
	bool answer; /* its receiver looks for it, or has said that it is to be
			* woken for answers, too */
	bool lent; /* the parts may be seen by the other end where they are, for
		      * as long as it likes, and nothing is pending for that */
	void *token; /* for sent() */
	/* Memory that goes with it and stays where it is: XR_CARRIER_LENDS. */
	const struct xr_part *loans; /* [loan_count] */
	uint32_t loan_count;         /* at most XR_LOANS_MAX */
};

struct xr_link; /* a carrier's way to one peer */

/* A body that came. @data is aligned to 64 bytes where it has more than 488. */
struct xr_body {
	const void *data;
	size_t len;
	void *own; /* of the carrier: for body_take() */
	/* What was lent with it, as good as the body; see loan_take(). */
	const struct xr_part *loans; /* [loan_count] */
	uint32_t loan_count;
};

/* A body that outlives deliver(): counted, see buffer_unref(). */
struct xr_body_buffer;

/* What the agent gives a carrier. All of it may be called until free(). */
struct xr_carrier_host {
	uint32_t size; /* sizeof(struct xr_carrier_host) */
	void *ctx;

	/* deliver() - a message came over @link. @peer is what accepted() or
	 * connect() said. */
	void (*deliver)(void *ctx, void *peer, const struct xr_record *record,
		const struct xr_body *body);

	/* place() - where the body of a long message is to be put, @len bytes,
	 * before it is read; NULL: the carrier has memory. It is the carrier's
	 * until deliver() or lost(), or until this is asked again of @peer: then
	 * the message was taken back; body_take() would copy it. */
	void *(*place)(void *ctx, void *peer, const struct xr_record *record,
		uint64_t len);

	/* sent() - what @token was given with is not needed any more; also after
	 * the link was lost. Any thread. */
	void (*sent)(void *ctx, void *token);

	/* accepted() - somebody opened a link to us, and proved to be @id with
	 * @incarnation; gives what stands for him; NULL: we know no such, and
	 * @link is nothing any more. By who calls deliver(). */
	void *(*accepted)(void *ctx, uint32_t id, uint64_t incarnation,
		struct xr_link *link);

	/* lost() - nothing comes or goes over the link any more; it is to be
	 * closed by link_close(), which may be done here. Once a link; of one
	 * that cannot be made it may come before connect() returns. */
	void (*lost)(void *ctx, void *peer, struct xr_link *link,
		const char *why);

	/* awake() - there is something to progress(); or, where send() gave
	 * XR_E_AGAIN, there is room. Any thread. */
	void (*awake)(void *ctx);
};

/* Borrowed for the call of open(). */
struct xr_carrier_opts {
	uint32_t size;          /* sizeof(struct xr_carrier_opts) */
	uint32_t id;            /* this worker's */
	uint64_t incarnation;   /* this worker's; another one after a restart */
	const uint8_t *secret;  /* [32]: all of the job know it; NULL: there is
				* none, and links cannot be made or taken */
	const char *interface;  /* of a network, by name or address; NULL: what
				* reaches the store */
	const char *store_host; /* that serves the store; NULL: this machine is
				 * all there is */
};

enum xr_carrier_caps {
	XR_CARRIER_THREAD = 1, /* it has a thread, and no progress() */
	XR_CARRIER_LOCAL = 2,  /* reaches this machine only */
	XR_CARRIER_TLS = 4, /* reserved: nobody else can read or change what it
			     * carries. None has it yet. */
	XR_CARRIER_LENDS = 8, /* messages can have loans */
};

/* Who gave an address, and is said to live there. */
enum xr_there {
	XR_THERE_UNKNOWN, /* the address says nothing to this carrier */
	XR_THERE_YES,
	XR_THERE_NO,     /* that life is over */
	XR_THERE_SILENT, /* nothing answers: the machine, or the way to it */
};

/* A carrier. Rows are found by name; @priority decides where nobody chose. */
struct xr_carrier {
	uint32_t size; /* sizeof(struct xr_carrier) */
	uint32_t api;  /* XR_CARRIER_API */
	const char *name;
	int32_t priority; /* shm 200, infiniband 100, tcp 0 */
	uint32_t caps;
	uint32_t copies; /* bytes of a body that are never pending */

	/* open() - XR_E_NODEV: not on this machine, or in this job. */
	enum xr_status (*open)(const struct xr_carrier_host *host,
		const struct xr_carrier_opts *opts, void **self,
		struct xr_error *err);

	/* address() - how others reach it, as text that begins with the name and
	 * a colon, and has no space; gives its length. */
	size_t (*address)(void *self, char *text, size_t cap);

	/* connect() - a link to who is at @address, is @id and lives for the
	 * @incarnation time. Waits for nobody: what cannot be reached is lost().
	 * One link leads to a peer: where accepted() had one meanwhile, or is
	 * about to, or another connect() had, it is that, to be closed once.
	 * XR_E_NODEV: that is no way to there; XR_E_FENCED: that life is over. */
	enum xr_status (*connect)(void *self, const char *address, uint32_t id,
		uint64_t incarnation, void *peer, struct xr_link **link,
		struct xr_error *err);

	/* send() - all of @message, or nothing.
	 *
	 * @pending: receives whether sent() will follow
	 *
	 * Returns  XR_OK; XR_E_AGAIN: no room now; XR_E_PEER_LOST; XR_E_RANGE */
	enum xr_status (*send)(struct xr_link *link,
		const struct xr_message *message, bool *pending);

	/* unsend() - the parts of a message that was left pending with @token
	 * are not looked at any more. If the other end has not got all of it, it
	 * may never come, or come whole. By any thread.
	 *
	 * Returns  true: sent() will not follow; false: it was called, or is
	 *          about to be */
	bool (*unsend)(struct xr_link *link, void *token);

	/* can_lend() - can @part be a loan of a message over @link? With loan_take()
	 * of those that are XR_CARRIER_LENDS. A message has at most
	 * XR_LOANS_MAX. */
	bool (*can_lend)(struct xr_link *link, const struct xr_part *part);

	/* progress() - deliver up to @budget messages, or some more; gives how
	 * many, with each other call of the host that it made: 0 is that nothing
	 * has changed for it. */
	uint32_t (*progress)(void *self, uint32_t budget);

	/* body_take() - keep what is being delivered; NULL: no memory. */
	struct xr_body_buffer *(*body_take)(void *self,
		const struct xr_body *body, const void **data);
	/* buffer_unref() - by any thread, also after free(). */
	void (*buffer_unref)(struct xr_body_buffer *buffer);

	/* loan_take() - keep loan @index of what is being delivered; NULL: no
	 * memory. */
	struct xr_body_buffer *(*loan_take)(void *self,
		const struct xr_body *body, uint32_t index);

	/* link_close() - what is pending is sent(); after it the carrier calls
	 * nothing with @peer; a call that is under way is waited for, except in that call itself. Not from
	 * deliver(), nor while somebody sends over it, or connects to its peer. */
	void (*link_close)(struct xr_link *link);
	void (*free)(void *self);

	/* there() - is @id, in its life @incarnation, still at @address? For who
	 * is not known there yet, and makes no link. Any thread; may wait for a
	 * second. NULL: it cannot tell. */
	enum xr_there (*there)(void *self, const char *address, uint32_t id,
		uint64_t incarnation);
};

/* xr_carrier_register() - XR_E_EXISTS; XR_E_ABI. */
enum xr_status xr_carrier_register(const struct xr_carrier *carrier,
	struct xr_error *err);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_TRANSPORT_H */
