/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.h - what a member tells of itself in the store: BYTES.
 *
 * They have one shape (member.c), as each member reads those of all when a group
 * begins: as a DICT they took most of the time that 64 ranks needed to come together.
 *
 * Who it is, in which life; where it can be reached; of which size it takes the
 * group to be; how many accelerators it has, which of them it uses, and on which
 * of others' devices its tensors are to arrive.
 */
#ifndef WORKER_RPC_MEMBER_H
#define WORKER_RPC_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/device.h>
#include <xrun/error.h>
#include <xrun/rpc.h>
#include <xrun/value.h>

struct peer;
struct peer_devices;

/* All of it borrowed from the BYTES. */
struct member {
	const char *name, *addresses;
	const char *place; /* tell.h */
	uint32_t id;
	uint64_t incarnation;
	int64_t said_size; /* 0: members come and go */
	bool over_group;   /* it sends so: way.h */
	enum xr_device_kind device_kind;
	uint32_t device_count;
	uint32_t used_count, pair_count;
	const char
		*used; /* int32_t of each device it uses; aligned to nothing */
	const char *
		pairs; /* from and dst, int32_t, of each of its maps; the same */
	const char *to; /* their names, behind each other */
};

/* member_new() - the BYTES of this process, from what @m says but for its lists,
 * which are @opts'. NULL: no memory. */
struct xr_value *member_new(const struct member *m,
	const struct xr_rpc_opts *opts);

struct member_begin {
	const uint8_t *secret;
	const char *store_host; /* this and the rest: as struct */
	bool is_new;            /* agent_wish has them */
	void (*lost)(struct peer *p);
	bool is_near; /* all members have the segment: what reaches others is not
		       * opened, where there is shared memory */
};

/* member_open() - the agent of @m, which is this process: carriers as @opts have
 * them, and its own devices. Returns as agent_open(), and backend_carriers(). */
enum xr_status member_open(const struct member *m,
	const struct xr_rpc_opts *opts, const struct member_begin *how,
	struct xr_error *err);

/* member_read() - false: that is no member. */
bool member_read(const struct xr_value *v, struct member *m);

/* members_check_names() - of a LIST: two of them do not have one name, or one id.
 * XR_E_EXISTS names both; XR_E_PROTO. */
enum xr_status members_check_names(const struct xr_value *list,
	struct xr_error *err);

/* members_check_way() - of a LIST: all send over a group, or none does.
 * XR_E_CONFLICT names two. */
enum xr_status members_check_way(const struct xr_value *list,
	struct xr_error *err);

/* members_check_devices() - xr_devmap_check() of all in a LIST. */
enum xr_status members_check_devices(const struct xr_value *list,
	bool is_static, struct xr_error *err);

/* member_devices() - between @self, which is this process, and @m, which may be the
 * same; the caller frees it. NULL: no memory. */
struct peer_devices *member_devices(const struct member *m,
	const struct member *self);

/* member_add() - it is a peer of @self from now on, which is this process. NULL: no
 * memory. */
struct peer *member_add(const struct member *m, const struct member *self);

#endif /* WORKER_RPC_MEMBER_H */
