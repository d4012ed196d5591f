/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/rpc.h - calling functions of other processes, with values.
 *
 * A process joins under a name and an id; then it can call what others have
 * registered (xrun/func.h), and is called by them, until it leaves. There is one
 * agent a process. With @world_size the group is static: all join, then all
 * begin; without, members come and go.
 *
 * Within xrun nothing need be said: rank, size and where to meet are known. Any
 * thread may call at any time. User functions are never called twice for one
 * call, and no order holds between two calls. XR_TIMEOUT_DEFAULT is the timeout of
 * the agent. After fork() the library is closed in the child: XR_E_STATE.
 */
#ifndef XRUN_RPC_H
#define XRUN_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/device.h"
#include "xrun/error.h"
#include "xrun/future.h"
#include "xrun/time.h"
#include "xrun/value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XR_RPC_TIMEOUT_DEFAULT XR_SECONDS(60) /* a call */
#define XR_RPC_THREADS_DEFAULT 16             /* that run functions */
#define XR_RPC_GROUP_THREADS_DEFAULT \
	4 /* the same, of the backend process_group */
#define XR_INIT_METHOD_DEFAULT "env://"
#define XR_WORKER_NAME_MAX     127 /* bytes */
#define XR_WORKER_ID_MAX       32767

/* --- backends ------------------------------------------------------------- */

/* A backend's number: 1 and more, and never another's in this process. */
typedef uint32_t xr_backend_id;

struct xr_rpc_opts {
	uint32_t size;           /* sizeof(struct xr_rpc_opts) */
	xr_backend_id backend;   /* 0: "auto" */
	int64_t timeout;         /* ns, of the agent: of calls without one, of
				  * joining; 0 and XR_TIMEOUT_DEFAULT:
				  * XR_RPC_TIMEOUT_DEFAULT; XR_TIMEOUT_NEVER */
	const char *init_method; /* of the store: xrun/store.h */
	uint32_t threads;        /* that run functions, not 0 */
	const char *const *transports; /* [transport_count], best first; of */
	uint32_t transport_count; /* xrun/transport.h; 0: all, by priority */
	const struct xr_device_pair
		*maps;          /* [map_count]: on which device of whom */
	uint32_t map_count;     /* my tensors arrive */
	const int32_t *devices; /* [device_count]: accelerators, each once */
	uint32_t device_count;  /* 0: those of the maps */
	const char *const
		*extra;       /* [extra_count]: "key=value", a backend's own */
	uint32_t extra_count; /* settings */
	uint32_t rref_flags;  /* enum xr_rref_flags */
};

enum xr_rref_flags {
	/* Of the remote calls of this agent: the owner confirms a reference when
	 * the function that makes the value has ended, and not when it has the
	 * call; so that the call's timeout covers the function. */
	XR_RREF_ACK_ON_DONE = 1,
};

struct xr_backend {
	uint32_t size;    /* sizeof(struct xr_backend) */
	const char *name; /* [A-Za-z0-9_]{1,63} */
	/* check() - of options that are this backend's; NULL: all are fine. */
	enum xr_status (*check)(const struct xr_rpc_opts *opts, void *ctx,
		struct xr_error *err);
	/* carriers() - names of the transports it uses, best first, NULL at the
	 * end; NULL: those of the options. */
	const char *const *(*carriers)(const struct xr_rpc_opts *opts,
		void *ctx);
	void *ctx;
};

/* xr_backend_register() - XR_E_EXISTS names it. Those that are known stay as they
 * are. @id may be NULL. */
enum xr_status xr_backend_register(const struct xr_backend *backend,
	xr_backend_id *id, struct xr_error *err);

/* xr_backend_find() - 0: nobody registered it. "TENSORPIPE" is "auto",
 * "PROCESS_GROUP" is "process_group", "FAULTY_TENSORPIPE" is "faulty". */
xr_backend_id xr_backend_find(const char *name);
const char *xr_backend_name(xr_backend_id id); /* NULL: none */

/* xr_rpc_opts_init() - the defaults; XR_E_NOTFOUND: no such backend. @opts->size
 * is set by the caller. */
enum xr_status xr_rpc_opts_init(xr_backend_id backend, struct xr_rpc_opts *opts,
	struct xr_error *err);

/* A set of options that can be added to, where a table would be long. */
struct xr_rpc_settings;
struct xr_rpc_settings *xr_rpc_settings_new(xr_backend_id backend);
void xr_rpc_settings_free(struct xr_rpc_settings *settings);
const struct xr_rpc_opts *xr_rpc_settings_opts(const struct xr_rpc_settings
		*settings);

/*
 * xr_rpc_opts_set() - an option by its name: "timeout" (1.5s, 2m, never; 0: the
 * default), "init_method", "threads" (also rpc_timeout, num_worker_threads), "transports"
 * (as shm,tcp), or a backend's own.
 *
 * Returns  XR_OK; XR_E_INVAL: unknown, which @err names, or no such value; what
 *          the backend's check gives; XR_E_NOMEM
 */
enum xr_status xr_rpc_opts_set(struct xr_rpc_settings *settings,
	const char *key, const char *value, struct xr_error *err);

/* xr_rpc_opts_map_device() - XR_E_INVAL: a negative index that is not the CPU;
 * @from was mapped to another of @to's devices. */
enum xr_status xr_rpc_opts_map_device(struct xr_rpc_settings *settings,
	const char *to, int32_t from, int32_t dst, struct xr_error *err);

/* xr_rpc_opts_devices() - XR_E_INVAL: the CPU is among them. */
enum xr_status xr_rpc_opts_devices(struct xr_rpc_settings *settings,
	const int32_t *devices, uint32_t count, struct xr_error *err);

/* --- joining and leaving -------------------------------------------------- */

/*
 * xr_rpc_init() - join.
 *
 * @name:       [A-Za-z0-9_:-]{1,127}, nobody else's
 * @rank:       the id; -1: the store knows it, within xrun and by variables; in a
 *              group that changes any that nobody has
 * @world_size: how many join; 0: a group whose members come and go; -1: as known
 * @opts:       borrowed; NULL: defaults
 *
 * Returns  XR_OK          all are there, and can be called
 *          XR_E_INVAL     name, options, device maps; each member has the same
 *          XR_E_STATE     an agent runs already, unharmed; after fork()
 *          XR_E_EXISTS    two have one name, or one id: both are named
 *          XR_E_CONFLICT  rank or size are others than the group's; it is static
 *                         and this is not, or the other way round
 *          XR_E_TIMEOUT   @err names who is missing; in a group that changes, who
 *                         of it has not taken note
 *          XR_E_PEER_LOST another failed: its error
 *          as xr_store_open()
 * Thread   any.  Blocks: until all have joined, or the timeout of calls.
 */
enum xr_status xr_rpc_init(const char *name, int64_t rank, int64_t world_size,
	const struct xr_rpc_opts *opts, struct xr_error *err);

enum xr_shutdown_flags {
	XR_SHUTDOWN_GRACEFUL = 0,  /* when nobody calls any more */
	XR_SHUTDOWN_IMMEDIATE = 1, /* no other member is waited for */
	XR_SHUTDOWN_STRICT = 2,    /* references that leaked are an error */
};

/*
 * xr_rpc_shutdown() - leave. The agent is gone afterwards, whatever is returned.
 *
 * Graceful: all members meet, wait until no call of anybody is under way, release
 * references, and leave together; a member of a group that changes waits for its
 * own calls. Futures that are pending end with XR_E_CLOSED. References that the
 * program has not released are named on standard error.
 *
 * @timeout: ns; 0 does not wait for members and calls; XR_TIMEOUT_DEFAULT: that of
 *           the agent; XR_TIMEOUT_NEVER. Functions that run here at that
 *           time, for others, are waited for in any case: a thread cannot be ended
 *           from outside. After 5 s they are named on standard error.
 *
 * Returns  XR_OK; XR_E_INVAL: the agent stays; XR_E_STATE: no agent, or this is one
 *          of its functions; XR_E_TIMEOUT: @err names who is missing;
 *          XR_E_PEER_LOST; XR_E_EXISTS: references leaked, with XR_SHUTDOWN_STRICT
 */
enum xr_status xr_rpc_shutdown(uint32_t flags, int64_t timeout,
	struct xr_error *err);

/* --- members -------------------------------------------------------------- */

struct xr_worker {
	uint32_t size; /* sizeof(struct xr_worker) */
	uint32_t id;
	char name[XR_WORKER_NAME_MAX + 1];
};

/* All three: XR_E_STATE without an agent; XR_E_NOTFOUND names asker and asked.
 * @worker->size is set by the caller. */
enum xr_status xr_worker_self(struct xr_worker *worker, struct xr_error *err);
enum xr_status xr_worker_find(const char *name, struct xr_worker *worker,
	struct xr_error *err);
enum xr_status xr_worker_find_id(int64_t id, struct xr_worker *worker,
	struct xr_error *err);

/* xr_worker_list() - by id; @count receives how many there are, of which up to
 * @cap are written. */
enum xr_status xr_worker_list(struct xr_worker *workers, size_t cap,
	size_t *count, struct xr_error *err);

/* --- calls ---------------------------------------------------------------- */

/* Zero, but for size, is the default of all that may be left out. */
struct xr_rpc_call {
	uint32_t size;          /* sizeof(struct xr_rpc_call) */
	const char *to;         /* a name; NULL: by @id */
	int64_t id;             /* number of the callee, if @to is NULL */
	const char *func;       /* its name; NULL: @bound's */
	struct xr_value *bound; /* of xr_fn_bind(); or NULL */
	struct xr_value *args;  /* a LIST, borrowed; NULL: empty */
	struct xr_value *named; /* a DICT, borrowed; NULL: empty */
	int64_t timeout;        /* ns; 0 and XR_TIMEOUT_DEFAULT: that of the
				 * agent; XR_TIMEOUT_NEVER */
	uint32_t flags;         /* enum xr_rpc_flags */
};

enum xr_rpc_flags {
	/* A callee that can map the memory of tensors (xr_tensor_new()'s, on this
	 * machine) has them where they are instead of a copy: it sees what is
	 * written there later, for as long as it keeps them, and may write. */
	XR_RPC_SHARE = 1,
};

#define XR_RPC_CALL \
	{ sizeof(struct xr_rpc_call), NULL, 0, NULL, NULL, NULL, NULL, \
		XR_TIMEOUT_DEFAULT, 0 }

/*
 * xr_rpc_sync() - call, and wait for what it gives.
 *
 * Nothing of @call is copied before it was sent: tensors are not to be written to
 * until it is answered.
 *
 * @value: receives a reference; may be NULL
 *
 * Returns  XR_OK
 *          XR_E_INVAL       @call, or its timeout; a future among the
 *                           arguments: nothing was sent
 *          XR_E_STATE       no agent
 *          XR_E_NOTFOUND    no such worker: asker and asked are named
 *          XR_E_NO_FUNCTION, XR_E_SCHEMA  as the callee knows them
 *          XR_E_REMOTE      the function failed; xr_future_error() has all of it
 *          XR_E_TIMEOUT     the text has the limit in ms
 *          XR_E_PEER_LOST   the callee is gone, which is named
 *          XR_E_DEVICE      no map for a tensor's device
 *          XR_E_RANGE       a message of more than XR_MESSAGE_MAX bytes
 *          XR_E_ENCODE, XR_E_DECODE, XR_E_CLOSED, XR_E_INJECTED, XR_E_NOMEM
 */
enum xr_status xr_rpc_sync(const struct xr_rpc_call *call,
	struct xr_value **value, struct xr_error *err);

/* xr_rpc_async() - the same, without waiting for the answer. What can be known before
 * sending is returned; all else ends @future, a reference. If the callee takes
 * nothing more, the calling thread sleeps until there is room for the call
 * (xr_rpc(3)). XR_E_TIMEOUT: there was none in time, and there is no future. */
enum xr_status xr_rpc_async(const struct xr_rpc_call *call,
	struct xr_future **future, struct xr_error *err);

struct xr_rref;

/* xr_rpc_remote() - the same, and what it gives stays there: xrun/rref.h. @rref can
 * be used and passed on at once. The timeout is for the callee's word that it has
 * the call; see enum xr_rref_flags. */
enum xr_status xr_rpc_remote(const struct xr_rpc_call *call,
	struct xr_rref **rref, struct xr_error *err);

/* xr_rpc_set_timeout() - sets the timeout of the agent, for calls that begin later. With
 * 0 these do not wait. XR_TIMEOUT_DEFAULT restores that of xr_rpc_init().
 * xr_rpc_get_timeout() stores it; XR_TIMEOUT_NEVER is no limit. */
enum xr_status xr_rpc_set_timeout(int64_t timeout, struct xr_error *err);
enum xr_status xr_rpc_get_timeout(int64_t *timeout, struct xr_error *err);

/* xr_rpc_wait_begin() - collect the futures of all xr_rpc_async() of this thread
 * until xr_rpc_wait_end(), which waits for them, and gives the first error. They
 * nest: each has its own. @timeout as of xr_future_wait(): 0 does not wait, and
 * XR_TIMEOUT_DEFAULT is XR_TIMEOUT_NEVER; each call has its own limit. */
enum xr_status xr_rpc_wait_begin(struct xr_error *err);
enum xr_status xr_rpc_wait_end(int64_t timeout, struct xr_error *err);

/* --- of many -------------------------------------------------------------- */

/* Who takes part: the same set for all of them. */
struct xr_rpc_meeting {
	uint32_t size; /* sizeof(struct xr_rpc_meeting) */
	const char *const
		*names; /* [count], in any order; NULL: all members now */
	size_t count;
	int64_t timeout; /* ns; 0 and XR_TIMEOUT_DEFAULT: that of the agent;
			  * XR_TIMEOUT_NEVER */
};

/*
 * xr_rpc_allgather() - a value of each of them, to each of them.
 *
 * @meeting: NULL: all members, the agent's timeout
 * @value:   borrowed
 * @all:     receives a DICT of name and value
 *
 * Returns  XR_OK; XR_E_TIMEOUT, XR_E_PEER_LOST: @err names who is missing, with
 *          each of them; XR_E_INVAL: this worker is not among them
 */
enum xr_status xr_rpc_allgather(const struct xr_rpc_meeting *meeting,
	struct xr_value *value, struct xr_value **all, struct xr_error *err);

/* xr_rpc_barrier() - wait until all of them are here. Several at once may be under
 * way, of other members or in other threads. */
enum xr_status xr_rpc_barrier(const struct xr_rpc_meeting *meeting,
	struct xr_error *err);

/* --- figures -------------------------------------------------------------- */

/*
 * What the agent counts, and what its process has counted so far:
 *
 *	agent.thread_pool_size           threads that run functions, at most
 *	agent.num_idle_threads           those that could run one now
 *	agent.client_active_calls        calls whose callbacks have not all run
 *	agent.num_pending_requests       questions of any kind without an answer
 *	agent.server_active_calls        calls of others that are not answered
 *	agent.server_active_async_calls  those whose function has returned
 *	num_owner_rrefs, num_pending_futures, num_pending_users, num_forks
 *	                                 of remote references
 *	net.calls, net.errors, net.timeouts
 *	                                 calls that have ended; that failed, in
 *	                                 whatever way; of those, in time
 *	net.oneway, net.served           calls that nobody answers; of others
 *	net.bytes_out, net.bytes_in      of bodies of messages
 *	net.call_ns, net.call_ns_p50, net.call_ns_p99
 *	                                 all that calls took; half of them, 99 of
 *	                                 100 took no more, rounded up by a quarter
 *	peer.NAME.bytes_out, .bytes_in, .calls, .errors
 *	                                 of each member, this one too
 *
 * Of net. only what grows does so for the life of the process; peer. is the
 * agent's.
 */

/* xr_metrics_get() - one; XR_E_NOTFOUND; XR_E_STATE: no agent. */
enum xr_status xr_metrics_get(const char *name, int64_t *value);

/* Called for each figure, on the calling thread. @name: borrowed for the call. */
typedef void xr_metrics_fn(const char *name, int64_t value, void *ctx);

/* xr_metrics_each() - all of them, each once, in the order of their names; @fn may
 * call anything. XR_E_STATE, XR_E_NOMEM. */
enum xr_status xr_metrics_each(xr_metrics_fn *fn, void *ctx);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_RPC_H */
