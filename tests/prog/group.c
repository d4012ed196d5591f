/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c - groups of names, a case at a time.
 *
 *   xrun -n N group CASE [tcp]
 *
 * The worker of rank 1 is "1". What a case did not expect ends it with status 1, and
 * a line that says what.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/group.h>
#include <xrun/job.h>

#include "tests/kit/backend.h"
#include "tests/prog/group_case.h"

struct xr_world *world;
struct xr_group *all;

enum xr_status
make_group(const char *name, const char *const *members, size_t count,
	struct xr_group **g)
{
	return xr_group_new(world,
		&(struct xr_group_opts){ .size = sizeof(struct xr_group_opts),
			.name = name,
			.members = members,
			.count = count },
		g, &err);
}

void
meet_all(void)
{
	EXPECT(xr_rpc_barrier(NULL, &err) == XR_OK);
}

int64_t
bytes_out(void)
{
	int64_t n = -1;

	EXPECT(xr_metrics_get("net.bytes_out", &n) == XR_OK);
	return n;
}

struct xr_value *
list_of(int64_t a, int64_t b)
{
	struct xr_value *items[] = { xr_value_new_i64(a), xr_value_new_i64(b) };

	return xr_value_new_list_of(items, 2);
}

int64_t
number_of(struct xr_value *v)
{
	int64_t n = -1;

	EXPECT(v != NULL && xr_value_get_i64(v, &n) == XR_OK);
	xr_value_unref(v);
	return n;
}

static enum xr_status
add(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t a, b;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &a);
	xr_value_get_i64(xr_value_at(args, 1), &b);
	return xr_reply(call, xr_value_new_i64(a + b));
}

/* --- worlds ----------------------------------------------------------------- */

static void
names_of_world(void)
{
	const char *name[3];
	char own[8];

	snprintf(own, sizeof(own), "%u", rank);
	EXPECT(size == 3 && xr_rank() == rank && strcmp(xr_name(), own) == 0);
	EXPECT(xr_world_members(world, name, 3) == 3);
	for (uint32_t i = 0; i < 3; i++) {
		snprintf(own, sizeof(own), "%u", i);
		EXPECT(strcmp(xr_world_member(world, i), own) == 0);
		EXPECT(strcmp(name[i], own) == 0);
	}
}

static void
second_world(void)
{
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_world *other = NULL;

	EXPECT(xr_world_new(&opts, &other, &err) == XR_E_STATE);
	EXPECT(other == NULL && xr_world_get() == world);
	printf("rank %u: %s\n", rank, err.text);
}

static void
closed_twice(void)
{
	struct xr_world_opts opts = XR_WORLD_OPTS;
	const char *name[3];

	EXPECT(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
		       &err) == XR_OK);
	EXPECT(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
		       &err) == XR_E_STATE);
	EXPECT(xr_group_barrier(all, XR_TIMEOUT_DEFAULT, &err) == XR_E_STATE);
	xr_world_free(world);
	/* By names that are not in the order of ranks. */
	opts.name = rank == 0 ? "c" : rank == 1 ? "a" : "b";
	EXPECT(xr_world_new(&opts, &world, &err) == XR_OK);
	EXPECT(xr_world_members(world, name, 3) == 3);
	EXPECT(name[0][0] == 'a' && name[1][0] == 'b' && name[2][0] == 'c');
	EXPECT(xr_group_barrier(all, XR_TIMEOUT_DEFAULT, &err) == XR_E_STATE);
	printf("rank %u: %s\n", rank, err.text);
	xr_group_free(all);
	EXPECT(make_group("all", NULL, 0, &all) == XR_OK);
	EXPECT(xr_group_barrier(all, XR_TIMEOUT_DEFAULT, &err) == XR_OK);
}

static void
calls_only(void)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_value *sum = NULL;

	call.to = "0";
	call.func = "add";
	call.args = list_of(1, 2);
	EXPECT(xr_rpc_sync(&call, &sum, &err) == XR_OK);
	xr_value_unref(call.args);
	EXPECT(number_of(sum) == 3);
}

/* --- making ------------------------------------------------------------------- */

static void
late_member(void)
{
	const struct xr_group_opts opts = { .size = sizeof(opts),
		.name = "absent",
		.timeout = XR_SECONDS(0.5) };
	struct xr_group *g = NULL, *none = NULL;
	int64_t begun = now();

	if (rank == 2)
		sleep(2);
	EXPECT(make_group("late", NULL, 0, &g) == XR_OK);
	EXPECT(rank == 2 || now() - begun > XR_SECONDS(1.5));
	if (rank != 2) {
		EXPECT(xr_group_new(world, &opts, &none, &err) == XR_E_TIMEOUT);
		EXPECT(none == NULL);
		printf("rank %u: %s\n", rank, err.text);
	}
	meet_all();
	xr_group_free(g);
}

static void
outsider(void)
{
	static const char *const some[] = { "1", "0" };
	struct xr_group *g = NULL;
	int64_t sent = bytes_out();

	if (rank == 2) {
		EXPECT(make_group("some", some, 2, &g) == XR_E_NOTMEMBER);
		EXPECT(g == NULL && bytes_out() == sent);
		printf("rank %u: %s\n", rank, err.text);
	} else {
		EXPECT(make_group("some", some, 2, &g) == XR_OK);
		EXPECT(xr_group_barrier(g, XR_TIMEOUT_DEFAULT, &err) == XR_OK);
	}
	meet_all();
	xr_group_free(g);
}

static void
refused(void)
{
	static const char *const no_worker[] = { "0", "1", "2", "nobody" };
	static const char *const twice[] = { "0", "1", "2", "1" };
	struct xr_group *g = NULL;

	EXPECT(make_group("all", NULL, 0, &g) == XR_E_EXISTS);
	printf("rank %u: %s\n", rank, err.text);
	EXPECT(make_group("x", no_worker, 4, &g) == XR_E_NOTFOUND);
	EXPECT(strstr(err.text, "nobody") != NULL);
	EXPECT(make_group("x", twice, 4, &g) == XR_E_INVAL);
	EXPECT(make_group("no/name", NULL, 0, &g) == XR_E_INVAL);
	EXPECT(xr_group_new(NULL, NULL, &g, &err) == XR_E_STATE);
	EXPECT(g == NULL);
	meet_all();
}

static void
sorted_members(void)
{
	static const char *const some[] = { "2", "0", "1" };
	const char *name[4] = { 0 };
	struct xr_group *g = NULL;

	EXPECT(make_group("unsorted", some, 3, &g) == XR_OK);
	EXPECT(xr_group_size(g) == 3 && xr_group_members(g, name, 4) == 3);
	EXPECT(name[0][0] == '0' && name[1][0] == '1' && name[2][0] == '2');
	EXPECT(xr_group_members(g, name, 0) == 3);
	EXPECT(strcmp(xr_group_name(g), "unsorted") == 0);
	EXPECT(xr_group_is_member(g, NULL) && xr_group_is_member(g, "2"));
	EXPECT(!xr_group_is_member(g, "3"));
	xr_group_free(g);
}

static void
again_and_again(void)
{
	struct xr_value *v = xr_value_new_i64(rank);
	char key[16];
	bool is = true;

	snprintf(key, sizeof(key), "key%u", rank);
	for (int i = 0; i < 100; i++) {
		struct xr_group *g = NULL;

		EXPECT(make_group("again", NULL, 0, &g) == XR_OK);
		EXPECT(xr_group_is_paired(g, key, &is, &err) == XR_OK && !is);
		EXPECT(xr_group_pair(g, key, v, &err) == XR_OK);
		EXPECT(xr_group_barrier(g, XR_TIMEOUT_DEFAULT, &err) == XR_OK);
		EXPECT(xr_group_is_paired(g, i % 2 ? "key0" : "key2", &is,
			       &err) == XR_OK);
		EXPECT(is);
		EXPECT(xr_group_barrier(g, XR_TIMEOUT_DEFAULT, &err) == XR_OK);
		xr_group_close(g);
		xr_group_close(g);
		EXPECT(xr_group_barrier(g, XR_TIMEOUT_DEFAULT, &err) ==
			XR_E_CLOSED);
		xr_group_free(g);
	}
	xr_value_unref(v);
}

static void
after_fork(void)
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0) {
		bool is;

		EXPECT(xr_group_is_paired(all, "x", &is, &err) == XR_E_STATE);
		EXPECT(xr_group_barrier(all, XR_TIMEOUT_DEFAULT, &err) ==
			XR_E_STATE);
		xr_group_close(all);
		_exit(0);
	}
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	EXPECT(xr_group_barrier(all, XR_TIMEOUT_DEFAULT, &err) == XR_OK);
}

static const struct group_case cases[] = {
	{ "world", names_of_world },
	{ "second-world", second_world },
	{ "closed-twice", closed_twice },
	{ "calls-only", calls_only },
	{ "late", late_member },
	{ "outsider", outsider },
	{ "refused", refused },
	{ "sorted", sorted_members },
	{ "again", again_and_again },
	{ "fork", after_fork },
	{ NULL, NULL },
};

static const struct group_case *
find(const struct group_case *c, const char *name)
{
	while (c->name != NULL && strcmp(c->name, name) != 0)
		c++;
	return c->name != NULL ? c : NULL;
}

int
main(int argc, char **argv)
{
	const struct xr_func func = { .size = sizeof(func),
		.name = "add",
		.schema = "ii",
		.fn = add };
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_rpc_opts rpc = { .size = sizeof(rpc) };
	const char *const tcp[] = { "tcp" };
	const struct group_case *c;
	char name[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	EXPECT(argc > 1);
	c = find(cases, argv[1]);
	if (c == NULL)
		c = find(key_cases, argv[1]);
	if (c == NULL)
		c = find(round_cases, argv[1]);
	EXPECT(c != NULL);
	snprintf(name, sizeof(name), "%d", (int)xr_job_rank());
	opts.name = name;
	EXPECT(xr_rpc_opts_init(tested_backend(), &rpc, &err) == XR_OK);
	rpc.transports = tcp;
	rpc.transport_count = argc > 2;
	opts.rpc = &rpc;
	EXPECT(xr_fn_register(&func, &err) == XR_OK);
	EXPECT(xr_world_new(&opts, &world, &err) == XR_OK);
	rank = (uint32_t)xr_rank();
	size = xr_world_size(world);
	EXPECT(make_group("all", NULL, 0, &all) == XR_OK);
	c->run();
	xr_group_free(all);
	EXPECT(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
		       &err) == XR_OK);
	xr_world_free(world);
	return 0;
}
