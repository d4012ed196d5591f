/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c - members come and go under calls, under the thread sanitizer: two stay
 * and call all the time, of several threads each; one comes, is called, calls, and
 * leaves, again and again.
 *
 * XRUN_TEST_CYCLES is how often: 1000 is a campaign.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/func.h>
#include <xrun/rpc.h>

#define CYCLES  60
#define THREADS 3 /* of each who stays */
#define STAY    2

static const char *const names[] = { "ann", "bob", "guest" };
static int side;
static char method[64];
static _Atomic int failures;
static _Atomic bool over;
static _Atomic long answered; /* calls of the guest */

static bool
check(bool ok, const char *what, const struct xr_error *err)
{
	if (!ok && atomic_fetch_add(&failures, 1) < 20)
		fprintf(stderr, "# %s: %s: %s\n", names[side], what, err->text);
	return ok;
}

static enum xr_status
twice(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t n = 0;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &n);
	return xr_reply(call, xr_value_new_i64(2 * n));
}

/* The guest has left for good. */
static enum xr_status
end(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	atomic_store(&over, true);
	return xr_reply(call, xr_value_new_nil());
}

static const struct xr_func functions[] = {
	{ .size = sizeof(functions[0]),
		.name = "twice",
		.schema = "i",
		.fn = twice },
	{ .size = sizeof(functions[0]),
		.name = "short",
		.schema = "i",
		.flags = XR_FN_SHORT,
		.fn = twice },
	{ .size = sizeof(functions[0]),
		.name = "end",
		.schema = "",
		.fn = end },
};

static enum xr_status
ask(const char *to, const char *func, int64_t n, struct xr_error *err)
{
	struct xr_value *items[1] = { xr_value_new_i64(n) }, *v = NULL;
	struct xr_rpc_call call = XR_RPC_CALL;
	enum xr_status status;
	int64_t got = 0;

	call.to = to;
	call.func = func;
	call.timeout = XR_SECONDS(100);
	call.args = xr_value_new_list_of(items, 1);
	status = xr_rpc_sync(&call, &v, err);
	if (status == XR_OK)
		check(xr_value_get_i64(v, &got) == XR_OK && got == 2 * n,
			"a wrong answer", err);
	xr_value_unref(v);
	xr_value_unref(call.args);
	return status;
}

/* One that left is not found, or went in the middle of it. */
static bool
may_be(enum xr_status status)
{
	return status == XR_OK || status == XR_E_NOTFOUND ||
		status == XR_E_PEER_LOST || status == XR_E_CANCELLED;
}

static void *
keep_calling(void *arg)
{
	long which = (long)arg;
	struct xr_error err = { 0 };
	struct xr_worker w = { .size = sizeof(w) };
	enum xr_status status;
	size_t count;

	for (int64_t n = 0; !atomic_load(&over); n++) {
		status = ask(names[2], which % 2 == 0 ? "twice" : "short", n,
			&err);
		check(may_be(status), "the guest", &err);
		if (status == XR_OK)
			atomic_fetch_add(&answered, 1);
		status = ask(names[1 - side], "short", n, &err);
		check(may_be(status), "who stays", &err);
		if (xr_worker_find(names[2], &w, NULL) == XR_OK)
			check(strcmp(w.name, names[2]) == 0, "its name", &err);
		xr_worker_list(NULL, 0, &count, NULL);
	}
	return NULL;
}

static bool
join(struct xr_error *err)
{
	struct xr_rpc_opts opts = { .size = sizeof(opts) };

	xr_rpc_opts_init(0, &opts, NULL);
	opts.init_method = method;
	opts.timeout = XR_SECONDS(100);
	opts.threads = 4;
	return xr_rpc_init(names[side], side, 0, &opts, err) == XR_OK;
}

static void
stay(void)
{
	pthread_t thread[THREADS];
	struct xr_error err = { 0 };

	if (!check(join(&err), "it stays", &err))
		return;
	for (long t = 0; t < THREADS; t++)
		pthread_create(&thread[t], NULL, keep_calling, (void *)t);
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	check(atomic_load(&answered) > 0, "the guest was never met", &err);
	check(xr_rpc_shutdown(0, XR_SECONDS(100), &err) == XR_OK, "it leaves",
		&err);
}

/* They begin at the same time as the guest does. */
static void
await_hosts(void)
{
	struct xr_worker w = { .size = sizeof(w) };

	for (int k = 0; k < STAY; k++)
		while (xr_worker_find(names[k], &w, NULL) != XR_OK)
			sched_yield();
}

static void
visit(int cycles)
{
	struct xr_rpc_call last = XR_RPC_CALL;
	struct xr_error err = { 0 };
	bool good = true;

	for (int i = 0; i <= cycles && good; i++) {
		good = check(join(&err), "it comes", &err);
		if (good)
			await_hosts();
		for (int k = 0; k < STAY && good; k++)
			check(ask(names[k], k == 0 ? "twice" : "short", i,
				      &err) == XR_OK,
				"it calls", &err);
		for (int k = 0; k < STAY && good && i == cycles; k++) {
			last.to = names[k];
			last.func = "end";
			check(xr_rpc_sync(&last, NULL, &err) == XR_OK,
				"the end", &err);
		}
		good = good &&
			check(xr_rpc_shutdown(0, XR_SECONDS(100), &err) ==
					XR_OK,
				"it goes", &err);
	}
	/* Nobody else will tell them. */
	if (!good)
		exit(1);
}

static pid_t
begin(int which)
{
	char text[8];
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	snprintf(text, sizeof(text), "%d", which);
	execl("/proc/self/exe", "group", method, text, NULL);
	_exit(127);
}

int
main(int argc, char **argv)
{
	const char *cycles = getenv("XRUN_TEST_CYCLES");
	int how[3] = { -1, -1, -1 };
	pid_t pid[3];

	alarm(cycles != NULL ? 3600 : 250);
	if (xr_module_static(functions,
		    sizeof(functions) / sizeof(functions[0]), NULL) != XR_OK)
		return 2;
	if (argc > 2) {
		snprintf(method, sizeof(method), "%s", argv[1]);
		side = (int)strtol(argv[2], NULL, 10);
		if (side < STAY)
			stay();
		else
			visit(cycles != NULL ? (int)strtol(cycles, NULL, 10) :
					       CYCLES);
		return atomic_load(&failures) != 0;
	}
	puts("1..1");
	snprintf(method, sizeof(method), "file:///tmp/xrun-test-group.%d",
		(int)getpid());
	for (int i = 0; i < 3; i++)
		pid[i] = begin(i);
	for (int i = 2; i >= 0; i--) {
		waitpid(pid[i], &how[i], 0);
		/* Those who stay are told by the guest, if by anybody. */
		if (how[i] != 0 && i == 2) {
			kill(pid[0], SIGTERM);
			kill(pid[1], SIGTERM);
		}
	}
	unlink(method + strlen("file://"));
	printf("%s 1 - AC-M19 members come and go under calls\n",
		how[0] == 0 && how[1] == 0 && how[2] == 0 ? "ok" : "not ok");
	return how[0] != 0 || how[1] != 0 || how[2] != 0;
}
