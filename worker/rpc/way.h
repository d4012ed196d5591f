/* SPDX-License-Identifier: Apache-2.0 */
/*
 * way.h - which way messages of calls take: straight over the link to a peer, or as
 * messages of a group that all members form (backend process_group).
 *
 * Who stands on the agent has groups, and offers that way when it is loaded. It is
 * open from before anybody can send to this process until all links are closed, so
 * that every message of that time goes it. What is counted, recorded or failed on
 * purpose is the message that goes, as everywhere.
 */
#ifndef WORKER_RPC_WAY_H
#define WORKER_RPC_WAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/transport.h>

struct peer;

struct way {
	/* form() - the group of all @size members, among whom this process is
	 * @rank. All are peers already. */
	enum xr_status (*form)(uint32_t rank, uint32_t size,
		struct xr_error *err);
	/* dissolve() - of what was formed; nothing comes or goes any more. */
	void (*dissolve)(void);
	/* send() - of struct xr_carrier; the lock of @to is held. */
	enum xr_status (*send)(struct peer *to,
		const struct xr_message *message, bool *pending);
	/* arrived() - gives what @from sent to message_hand(), if it came as a
	 * message of the group; loses @from else. By who delivers. */
	void (*arrived)(struct peer *from, const struct xr_record *record,
		const struct xr_body *body);
};

extern _Atomic bool way_is_open __attribute__((visibility("hidden")));

/* way_is_group() - do messages go as those of the group? Whoever hears so sees it. */
static inline bool
way_is_group(void)
{
	return atomic_load_explicit(&way_is_open, memory_order_acquire);
}

/* way_offer() - there are groups: for the life of the process. */
void way_offer(const struct way *way);

/* way_open() - from now on all goes as messages of the group. XR_E_STATE: nobody
 * has groups; XR_E_CONFLICT: @rank is not this process's place; XR_E_NOMEM. */
enum xr_status way_open(uint32_t rank, uint32_t size, struct xr_error *err);
void way_close(void);

/* Of struct way; only if way_is_group(). */
enum xr_status way_send(struct peer *to, const struct xr_message *message,
	bool *pending);
void way_arrived(struct peer *from, const struct xr_record *record,
	const struct xr_body *body);

#endif /* WORKER_RPC_WAY_H */
