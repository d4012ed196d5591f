/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.h - this process as a member: its peers, carriers and crew.
 *
 * One a process at a time. Everything public is between agent_enter() and
 * agent_leave(), which cost a store each; closing waits until nobody is in
 * between.
 *
 * Locks, none of which is held while another is taken or a callback runs, but
 * where it says so: peer->lock around a carrier's send(); members.lock
 * (member.h); lead, crew and futures have their own, for a few stores.
 */
#ifndef WORKER_RPC_AGENT_H
#define WORKER_RPC_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/rpc.h>
#include <xrun/transport.h>

#include "worker/rpc/peer.h"

#define AGENT_SECRET       32
#define AGENT_CARRIERS_MAX 8

enum agent_state {
	AGENT_NONE,
	AGENT_JOINING, /* messages are served, calls of the program's refused */
	AGENT_RUNS,
	AGENT_CLOSING,
	AGENT_FORKED, /* it is the parent's, for ever */
};

/* A carrier that is open. Its host's ctx. */
struct agent_carrier {
	const struct xr_carrier *ops;
	void *self;
	struct xr_carrier_host host;
	char address[XR_ADDRESS_MAX + 1];
};

struct agent_wish {
	const char *name;
	uint32_t id;
	uint64_t incarnation;
	uint32_t threads;
	int64_t timeout; /* ns; INT64_MAX: never */
	const struct xr_carrier *const
		*carriers; /* [carrier_count], best first */
	uint32_t carrier_count;
	const uint8_t *secret; /* [AGENT_SECRET], copied; NULL: none */
	const char *interface, *store_host; /* as struct xr_carrier_opts */
	struct peer_devices *devices;       /* of what it sends itself; taken */
	/* Until agent_begin() others may not know it yet: functions that others
	 * call wait before they call. */
	bool is_new;
	/* lost() - a peer is, and was not expected to be; or NULL. By who reads:
	 * it may not wait. */
	void (*lost)(struct peer *p);
};

/*
 * agent_open() - carriers, crew, and this process as the first peer; nothing is
 * known of others. It is AGENT_JOINING.
 *
 * Returns  XR_OK; XR_E_STATE: there is one; XR_E_NODEV: no carrier works here;
 *          XR_E_NOMEM, XR_E_SYS
 */
enum xr_status agent_open(const struct agent_wish *wish, struct xr_error *err);

/* agent_begin() - the program may call. */
void agent_begin(void);

/*
 * agent_close() - all that is pending ends with XR_E_CLOSED; nobody is in it any
 * more; all is given back. Not by the crew.
 *
 * @look: called when no function is served any more, and what they held was given
 *        back; NULL
 */
void agent_close(void (*look)(void *ctx), void *ctx);

enum agent_state agent_state(void);

/* agent_addresses() - where this process can be reached: "shm:... tcp:..." */
size_t agent_addresses(char *text, size_t cap);

/* agent_enter() - XR_E_STATE: there is none, or not for the program. Nested calls
 * are fine. */
enum xr_status agent_enter(struct xr_error *err);
void agent_leave(void);

/* agent_come() - the same for answers, also of a process that has not begun. */
bool agent_come(void);

/* agent_lose() - @p is not what it should be, or gone. Once; any thread. */
void agent_lose(struct peer *p, const char *why);

/* agent_self() - this process as a member. */
struct peer *agent_self(void);

/* What is known of a member before it is met. */
struct agent_member {
	const char *name;
	uint32_t id;
	uint64_t incarnation;
	const char *addresses;
	struct peer_devices *devices; /* NULL: no map leads to it or from it */
	uint32_t rank;                /* as struct peer has it */
};

/* agent_add() - another member, or its next life; gives the peer, which takes
 * @m->devices. NULL: no memory, or the number is beyond XR_WORKER_ID_MAX. */
struct peer *agent_add(const struct agent_member *m);

/* agent_there() - is that member still at @addresses? Waits for a second or two. */
enum xr_there agent_there(const char *addresses, uint32_t id,
	uint64_t incarnation);

/* agent_peer() - by name, or with NULL by id, the newest that bore it;
 * XR_E_NOTFOUND names asker and asked. */
enum xr_status agent_peer(const char *name, int64_t id, struct peer **peer,
	struct xr_error *err);

/* agent_find(), agent_find_id() - the newest that bore it, whatever became of it;
 * NULL: nobody did. */
struct peer *agent_find(const char *name);
struct peer *agent_find_id(uint32_t id);

/* agent_first(), agent_next() - all there ever were, the newest first. */
struct peer *agent_first(void);
struct peer *agent_next(const struct peer *p);

/* agent_timeout() - resolves @timeout, an argument, by the timeout of the agent.
 * agent_timeout_field() does the same with a field, of which 0 is the agent's, too.
 * Both store ns, and INT64_MAX for no limit. */
enum xr_status agent_timeout(int64_t timeout, int64_t *ns,
	struct xr_error *err);
enum xr_status agent_timeout_field(int64_t timeout, int64_t *ns,
	struct xr_error *err);

/* agent_connect() - find a way to @p, whose lock is held. */
void agent_connect(struct peer *p);

#endif /* WORKER_RPC_AGENT_H */
