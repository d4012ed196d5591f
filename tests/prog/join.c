/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join.c - a rank that joins the others, and says how, or why not.
 *
 *   xrun -n N join well        and by which way they came together
 *   xrun -n N join same-name   rank 1 calls itself as rank 0
 *   xrun -n 3 join absent      rank 2 does not come until the others gave up
 *   xrun -n N join broken      by sockets, and rank 1 has no interface to listen on
 *   xrun -n N join again       and leave, and join again
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/job.h>
#include <xrun/rpc.h>
#include <xrun/store.h>

#define WAY "rpc/0/way"

static struct xr_error err;
static uint32_t rank, size;
static struct xr_rpc_opts opts = { .size = sizeof(opts) };
static const char *const sockets[] = { "tcp" };

static void
must(enum xr_status status)
{
	if (status == XR_OK)
		return;
	fprintf(stderr, "rank %u: %s\n", rank, err.text);
	exit(1);
}

static bool
is(const char *what, const char *name)
{
	return strcmp(what, name) == 0;
}

/* What the store knows of the way that ranks took; and whether of their cards. */
static void
say_way(struct xr_store *store)
{
	const char *const member = "rpc/0/member/0";
	struct xr_store_value way = { 0 };
	bool there = false;

	must(xr_store_get(store, WAY, XR_SECONDS(10), &way, &err));
	must(xr_store_check(store, &member, 1, &there, &err));
	printf("rank %u: by the %s, %s\n", rank, (const char *)way.data,
		there ? "written down" : "not written down");
	xr_store_value_free(&way);
}

/* Until the others have given up. */
static void
stay_away(struct xr_store *store)
{
	const char *const over[] = { "over/0", "over/1" };

	must(xr_store_wait(store, over, 2, XR_SECONDS(60), &err));
	xr_store_free(store);
	exit(0);
}

static enum xr_status
join(const char *how, struct xr_store *store)
{
	uint32_t named = is(how, "same-name") && rank == 1 ? 0 : rank;
	enum xr_status status;
	char name[32];

	if (is(how, "absent")) {
		if (rank == 2)
			stay_away(store);
		opts.timeout = XR_SECONDS(1);
	}
	if (is(how, "broken")) {
		opts.transports = sockets;
		opts.transport_count = 1;
		if (rank == 1)
			setenv("TP_SOCKET_IFNAME", "nowhere0", 1);
	}
	snprintf(name, sizeof(name), "rank%u", named);
	status = xr_rpc_init(name, -1, -1, &opts, &err);
	snprintf(name, sizeof(name), "over/%u", rank);
	xr_store_set(store, name, "1", 1, NULL);
	return status;
}

static void
leave(void)
{
	must(xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30), &err));
}

int
main(int argc, char **argv)
{
	struct xr_store_options o = XR_STORE_OPTIONS;
	const char *how = argc > 1 ? argv[1] : "well";
	struct xr_store *store = NULL;

	rank = (uint32_t)xr_job_rank();
	size = (uint32_t)xr_job_size();
	must(xr_rpc_opts_init(0, &opts, &err));
	must(xr_store_open(NULL, &o, &store, &err));
	if (join(how, store) != XR_OK) {
		printf("rank %u: %s\n", rank, err.text);
		xr_store_free(store);
		return 0;
	}
	say_way(store);
	leave();
	if (is(how, "again")) {
		must(join(how, store));
		printf("rank %u: again\n", rank);
		leave();
	}
	xr_store_free(store);
	return 0;
}
