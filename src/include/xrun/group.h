/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/group.h - workers of a world under one name: values and services with keys.
 *
 * Members make a group together, and call each other by it. Each may give values
 * and services a key; whoever has the group finds them by that, and need not know
 * who has them. A value stays with the member that paired it; a service runs at the
 * member that registered it. Keys of values and of services are apart. Of all
 * members one has a key; it is free again when that one gives it up, closes the
 * group, or is lost.
 *
 * A group is passed to others as a value. Who has received one may call, look up,
 * and read; it holds nothing and enters no barrier.
 *
 * Any thread may call at any time. Keys are 1 to 255 bytes of UTF-8. Each function
 * that returns a status returns XR_E_STATE after fork(), and once the world was
 * closed that the group is of; XR_E_CLOSED once the group was; as xr_store_get()
 * where it looks a key up and the store fails.
 */
#ifndef XRUN_GROUP_H
#define XRUN_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/func.h"
#include "xrun/future.h"
#include "xrun/rpc.h"
#include "xrun/rref.h"
#include "xrun/time.h"
#include "xrun/value.h"
#include "xrun/world.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XR_GROUP_NAME_MAX 127 /* bytes */
#define XR_GROUP_KEY_MAX  255 /* bytes */

struct xr_group;

struct xr_group_opts {
	uint32_t size;              /* sizeof(struct xr_group_opts) */
	const char *name;           /* [A-Za-z0-9_.:-]{1,127} */
	const char *const *members; /* [count], in any order; NULL: the world */
	size_t count;               /* members */
	int64_t timeout; /* ns; 0 and XR_TIMEOUT_DEFAULT: that of the world;
			  * XR_TIMEOUT_NEVER */
};

/*
 * xr_group_new() - make a group; its members call it, and nobody else.
 *
 * @opts:  borrowed; members and name are the same in all of them
 * @group: receives it; release it with xr_group_free()
 *
 * Returns  XR_OK
 *          XR_E_NOTMEMBER  this worker is none; nothing was sent
 *          XR_E_EXISTS     this process has a group of that name
 *          XR_E_NOTFOUND   the world has no such worker, which is named
 *          XR_E_INVAL      @opts; a name that is none; a member twice
 *          XR_E_STATE      that is not this process's world
 *          XR_E_TIMEOUT, XR_E_PEER_LOST  @err names who did not come, and tells
 *                          who comes later, too; the next try is one again
 *          XR_E_NOMEM
 * Thread   any.  Blocks: until all members are there.
 */
enum xr_status xr_group_new(struct xr_world *world,
	const struct xr_group_opts *opts, struct xr_group **group,
	struct xr_error *err);

/* xr_group_close() - what this process holds of it is nobody's any more, and it can
 * make one of that name again. Others are not waited for. Again: nothing happens. */
void xr_group_close(struct xr_group *group);
void xr_group_free(struct xr_group *group); /* closed at once; NULL is fine */

/* These are of the group's members as they were when it was made, also when it is
 * closed. What is borrowed is good until xr_group_free(). */
const char *xr_group_name(const struct xr_group *group);
uint32_t xr_group_size(const struct xr_group *group);

/* xr_group_is_member() - @name NULL: this process. */
bool xr_group_is_member(const struct xr_group *group, const char *name);

/* xr_group_members() - sorted as strcmp(3) does; up to @cap are written. Gives how
 * many there are. */
size_t xr_group_members(const struct xr_group *group, const char **names,
	size_t cap);

/* xr_group_sync() and its kin - as those of xrun/rpc.h. XR_E_NOTMEMBER: the worker
 * that is to be called is none, and nothing was sent; the caller need not be one. */
enum xr_status xr_group_sync(struct xr_group *group,
	const struct xr_rpc_call *call, struct xr_value **value,
	struct xr_error *err);
enum xr_status xr_group_async(struct xr_group *group,
	const struct xr_rpc_call *call, struct xr_future **future,
	struct xr_error *err);
enum xr_status xr_group_remote(struct xr_group *group,
	const struct xr_rpc_call *call, struct xr_rref **rref,
	struct xr_error *err);

/* --- values --------------------------------------------------------------- */

/*
 * xr_group_pair() - @value, of which a reference is kept, under @key.
 *
 * Returns  XR_OK; XR_E_EXISTS: a member has one, which is named; XR_E_NOTMEMBER: no
 *          member, or a group that was received; XR_E_INVAL: @key; XR_E_NOMEM
 * Thread   any; of several that pair one key, one does.  Blocks: for the store.
 */
enum xr_status xr_group_pair(struct xr_group *group, const char *key,
	struct xr_value *value, struct xr_error *err);

/* xr_group_unpair() - XR_E_NOTFOUND: this process does not hold it, whoever does.
 * References to the value go on. */
enum xr_status xr_group_unpair(struct xr_group *group, const char *key,
	struct xr_error *err);

/* xr_group_is_paired() - does anybody hold @key now? */
enum xr_status xr_group_is_paired(struct xr_group *group, const char *key,
	bool *is_paired, struct xr_error *err);

/*
 * xr_group_get_paired() - a reference to the value that stays where it is.
 *
 * Returns  XR_OK; XR_E_NOTFOUND: nobody holds @key: key and group are named;
 *          as xr_rpc_remote(). Was it given up at that moment, using @rref gives
 *          XR_E_NOTFOUND.
 */
enum xr_status xr_group_get_paired(struct xr_group *group, const char *key,
	struct xr_rref **rref, struct xr_error *err);

/* --- services ------------------------------------------------------------- */

/* As struct xr_func. It answers by xr_reply() and its kin, at once or deferred; one that
 * is XR_FN_ASYNC by xr_reply_future(), or deferred. None is XR_FN_SHORT. @ctx stays until the world was closed: calls that have begun go on when
 * the key is given up. */
struct xr_group_service {
	uint32_t size; /* sizeof(struct xr_group_service) */
	const char *key;
	xr_func_fn *fn;
	void *ctx;
	uint32_t flags; /* XR_FN_ASYNC, XR_FN_SHARE */
};

/* xr_group_register() - as xr_group_pair(). @service is copied. */
enum xr_status xr_group_register(struct xr_group *group,
	const struct xr_group_service *service, struct xr_error *err);

/* xr_group_deregister(), xr_group_is_registered() - as those of values. */
enum xr_status xr_group_deregister(struct xr_group *group, const char *key,
	struct xr_error *err);
enum xr_status xr_group_is_registered(struct xr_group *group, const char *key,
	bool *is_registered, struct xr_error *err);

/* Zero, but for size and key, is the default. */
struct xr_group_call {
	uint32_t size;          /* sizeof(struct xr_group_call) */
	const char *key;        /* of the service to call */
	struct xr_value *args;  /* a LIST, borrowed; NULL: empty */
	struct xr_value *named; /* a DICT, borrowed; NULL: empty */
	int64_t timeout;        /* ns; 0 and XR_TIMEOUT_DEFAULT: that of the
				 * agent; XR_TIMEOUT_NEVER */
};

#define XR_GROUP_CALL \
	{ sizeof(struct xr_group_call), NULL, NULL, NULL, XR_TIMEOUT_DEFAULT }

/*
 * xr_group_call_sync() - call a service, wherever it is.
 *
 * Where it was is remembered, and looked up once more if it is not there any more.
 * No service is called twice for one call.
 *
 * @value: receives a reference; may be NULL
 *
 * Returns  XR_OK; XR_E_NOTFOUND: nobody has registered @call's key: key and group
 *          are named; XR_E_REMOTE: the service failed: xr_future_error() of the
 *          other has its status and text; XR_E_PEER_LOST: who had it is gone;
 *          XR_E_TIMEOUT; as xr_rpc_sync()
 */
enum xr_status xr_group_call_sync(struct xr_group *group,
	const struct xr_group_call *call, struct xr_value **value,
	struct xr_error *err);

/* xr_group_call_async() - the same, without waiting for the answer. The service is not
 * told when @future is cancelled. */
enum xr_status xr_group_call_async(struct xr_group *group,
	const struct xr_group_call *call, struct xr_future **future,
	struct xr_error *err);

/* xr_group_call_remote() - the same as xr_rpc_remote(). It looks up each time. */
enum xr_status xr_group_call_remote(struct xr_group *group,
	const struct xr_group_call *call, struct xr_rref **rref,
	struct xr_error *err);

/* --- all of them ---------------------------------------------------------- */

/*
 * xr_group_barrier() - until all members have entered.
 *
 * Each call is a round of its own: threads of one member that enter together leave
 * by two rounds, for which each other member enters twice.
 *
 * @timeout: ns; 0 does not wait; XR_TIMEOUT_DEFAULT: that of the group;
 *           XR_TIMEOUT_NEVER
 *
 * Returns  XR_OK; XR_E_NOTMEMBER; XR_E_INVAL: @timeout; XR_E_TIMEOUT,
 *          XR_E_PEER_LOST: @err names the group and who is missing, to all who
 *          entered the round, and to who comes to it later
 */
enum xr_status xr_group_barrier(struct xr_group *group, int64_t timeout,
	struct xr_error *err);

/* xr_group_value() - the group, to be sent to others. NULL: no memory. */
struct xr_value *xr_group_value(const struct xr_group *group);

/* xr_group_of_value() - one that was received; release it with xr_group_free().
 * XR_E_SCHEMA: @value is no group; XR_E_STATE: no world; XR_E_NOMEM. */
enum xr_status xr_group_of_value(const struct xr_value *value,
	struct xr_group **group, struct xr_error *err);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_GROUP_H */
