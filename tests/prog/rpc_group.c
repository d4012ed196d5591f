/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_group.c - a rank that joins, does what it is told with the others, and leaves.
 *
 *   xrun -n 4 ./rpc_group           a group of all ranks: each calls each, all meet
 *   xrun -n 4 ./rpc_group --change  one whose members come and go: rank 0 is there
 *                                   first; each of the others comes, calls it, goes,
 *                                   comes again and calls all it sees; then all meet
 *   --threads N                     that run functions
 *   --tcp                           by no other way
 *   --die R                         rank R dies when it has joined; who begins it
 *                                   again in the same rank finds it cured
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/func.h>
#include <xrun/job.h>
#include <xrun/rpc.h>
#include <xrun/store.h>

#include "tests/kit/backend.h"
#include "tests/prog/prog.h"

static bool changes, by_tcp;
static int64_t threads = 16, dies = -1;
static const struct prog_opt table[] = {
	{ "change", PROG_FLAG, &changes, "members come and go" },
	{ "tcp", PROG_FLAG, &by_tcp, "by no other way" },
	{ "threads", PROG_NUM, &threads, "that run functions" },
	{ "die", PROG_NUM, &dies, "the rank that dies once" },
	{ NULL, PROG_FLAG, NULL, NULL },
};

static struct xr_error err;

static void
need(enum xr_status status, const char *what)
{
	if (status != XR_OK)
		prog_die(0, "rank %u: %s: %s: %s", xr_job_rank(), what,
			xr_status_name(status), err.text);
}

static enum xr_status
whoami(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply(call, xr_value_new_i64(xr_job_rank()));
}

static const struct xr_func function = {
	.size = sizeof(function),
	.name = "whoami",
	.schema = "",
	.fn = whoami,
};

static void
name_of(uint32_t rank, char name[32])
{
	snprintf(name, 32, "rank-%u:x", rank);
}

static void
join(void)
{
	static const char *const tcp[] = { "tcp" };
	struct xr_rpc_opts opts = { .size = sizeof(opts) };
	char name[32];

	xr_rpc_opts_init(tested_backend(), &opts, NULL);
	opts.threads = (uint32_t)threads;
	if (by_tcp) {
		opts.transports = tcp;
		opts.transport_count = 1;
	}
	name_of(xr_job_rank(), name);
	need(xr_rpc_init(name, -1, changes ? 0 : -1, &opts, &err), "join");
}

static void
call(const char *name, uint32_t id)
{
	struct xr_rpc_call c = XR_RPC_CALL;
	struct xr_value *v = NULL;
	int64_t n = -1;

	c.to = name;
	c.func = function.name;
	need(xr_rpc_sync(&c, &v, &err), name);
	if (xr_value_get_i64(v, &n) != XR_OK || n != id)
		prog_die(0, "%s is %lld", name, (long long)n);
	xr_value_unref(v);
}

/* All it sees; how many. */
static size_t
call_all(void)
{
	size_t count = 0, cap = xr_job_size();
	struct xr_worker *w = calloc(cap, sizeof(*w));

	for (size_t i = 0; i < cap; i++)
		w[i].size = sizeof(*w);
	need(xr_worker_list(w, cap, &count, &err), "list");
	for (size_t i = 0; i < count && i < cap; i++)
		call(w[i].name, w[i].id);
	free(w);
	return count;
}

/* Until all ranks have done @what; the store knows. */
static void
together(struct xr_store *store, const char *what)
{
	struct xr_store_value v = { 0 };
	char all[64];
	int64_t n = 0;

	snprintf(all, sizeof(all), "%s.all", what);
	need(xr_store_add(store, what, 1, &n, &err), what);
	if (n == xr_job_size())
		need(xr_store_set(store, all, "1", 1, &err), what);
	need(xr_store_get(store, all, XR_SECONDS(60), &v, &err), what);
	xr_store_value_free(&v);
}

static void
shut_down(void)
{
	need(xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, XR_SECONDS(60), &err),
		"leave");
}

static void
come_and_go(struct xr_store *store)
{
	struct xr_store_value v = { 0 };

	if (xr_job_rank() == 0) {
		join();
		need(xr_store_set(store, "begun", "1", 1, &err), "begun");
		together(store, "went");
	} else {
		need(xr_store_get(store, "begun", XR_SECONDS(60), &v, &err),
			"begun");
		xr_store_value_free(&v);
		join();
		call("rank-0:x", 0);
		shut_down();
		together(store, "went");
		join();
		call_all();
	}
	together(store, "came"); /* no call is under way when a rank dies */
}

static void
die_once(struct xr_store *store)
{
	int64_t lives = 0;

	if (dies != xr_job_rank())
		return;
	need(xr_store_add(store, "lives", 1, &lives, &err), "lives");
	if (lives == 1)
		abort();
}

int
main(int argc, char **argv)
{
	struct xr_store_options o = XR_STORE_OPTIONS;
	struct xr_store *store = NULL;

	prog_opts(argc, argv, table);
	o.prefix = "test";
	need(xr_store_open(NULL, &o, &store, &err), "store");
	need(xr_fn_register(&function, &err), "function");
	if (changes)
		come_and_go(store);
	else
		join();
	die_once(store);
	together(store, "joined");
	if (call_all() != xr_job_size())
		prog_die(0, "not all are members");
	together(store, "called");
	need(xr_rpc_barrier(NULL, &err), "barrier");
	together(store, "met");
	shut_down();
	printf("rank %u: all of %u\n", xr_job_rank(), xr_job_size());
	xr_store_free(store);
	return 0;
}
