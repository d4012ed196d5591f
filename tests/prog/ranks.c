/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - ranks of xr_spawn(), by the acceptance checks: its arguments say what they
 * do, how they are started, and how many.
 *
 *	ranks CASE METHOD COUNT [NUMBER]
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <xrun/spawn.h>

static struct xr_error err;
static int shared = 1;

static void
check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, err.text);
	exit(1);
}

static int64_t
number_of(const struct xr_value *arg)
{
	int64_t n = -1;

	xr_value_get_i64(arg, &n);
	return n;
}

/* --- what ranks do ---------------------------------------------------------- */

static const char *
var(const char *name)
{
	const char *value = getenv(name);

	return value != NULL ? value : "-";
}

/* Their place, as their environment has it, in one write. */
static enum xr_status
show(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *why)
{
	printf("%u: xrt %s %s %s %s %s %s, xrun %s/%s %s/%s, torch %s/%s, memory %d\n",
		ordinal, var("XRT_SHARD_WORLD_SIZE"), var("XRT_SHARD_ORDINAL"),
		var("XRT_SHARD_LOCAL_ORDINAL"),
		var("XRT_MULTI_PROCESSING_DEVICE"), var("XRT_LOCAL_WORKER"),
		getenv("XRT_TPU_CONFIG") != NULL ? "list" : "no-list",
		var("XRUN_RANK"), var("XRUN_SIZE"), var("XRUN_LOCAL_RANK"),
		var("XRUN_LOCAL_SIZE"), var("RANK"), var("WORLD_SIZE"), shared);
	return XR_OK;
}

/* Each variable, in a line, by one write: newlines are spaces. */
static enum xr_status
show_all(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *why)
{
	for (char **v = environ; *v != NULL; v++) {
		char *text = strdup(*v);

		for (char *c = text; *c != '\0'; c++)
			if (*c == '\n')
				*c = ' ';
		printf("%u: %s\n", ordinal, text);
		free(text);
	}
	return XR_OK;
}

static enum xr_status
show_pid(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *why)
{
	printf("rank %u is process %d\n", ordinal, (int)getpid());
	return XR_OK;
}

/* One of them fails, by its ordinal. */
static enum xr_status
fail_one(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *why)
{
	enum xr_status status = XR_OK;

	if (ordinal == number_of(arg))
		status = xr_error_set(why, XR_E_RANGE, "sample 1797 of 1797");
	__asm__ volatile("" ::: "memory");
	return status;
}

static enum xr_status
exit_one(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *why)
{
	if (ordinal == number_of(arg))
		exit(5);
	return XR_OK;
}

static enum xr_status
crash_one(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *why)
{
	if (ordinal == number_of(arg))
		raise(SIGINT);
	return XR_OK;
}

static enum xr_status
stay(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *why)
{
	while (pause() == -1)
		continue;
	return XR_OK;
}

/* Nobody who asks is heard. */
static enum xr_status
be_deaf(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *why)
{
	static const int asks[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
	struct sigaction a = { .sa_handler = SIG_IGN };

	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++)
		sigaction(asks[i], &a, NULL);
	return stay(ordinal, arg, ctx, why);
}

static void
end_slowly(int sig)
{
	const struct timespec slow = { .tv_nsec = 300000000 };

	nanosleep(&slow, NULL);
	_exit(0);
}

/* One fails, and the others take their time to end. */
static enum xr_status
end_late(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *why)
{
	struct sigaction a = { .sa_handler = end_slowly };
	struct xr_value *all = NULL;
	enum xr_status status;

	sigaction(SIGTERM, &a, NULL);
	status = xr_rendezvous("ready", NULL, XR_SECONDS(60), &all, why);
	xr_value_unref(all);
	if (status != XR_OK)
		return status;
	if (ordinal == number_of(arg))
		return xr_error_set(why, XR_E_RANGE, "sample 1797 of 1797");
	return stay(ordinal, arg, ctx, why);
}

/* One fails, and the others do not want to end. */
static enum xr_status
end_never(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *why)
{
	struct sigaction a = { .sa_handler = SIG_IGN };
	struct xr_value *all = NULL;
	enum xr_status status;

	sigaction(SIGTERM, &a, NULL);
	status = xr_rendezvous("ready", NULL, XR_SECONDS(60), &all, why);
	xr_value_unref(all);
	if (status == XR_OK && ordinal == number_of(arg))
		return xr_error_set(why, XR_E_RANGE, "sample 1797 of 1797");
	return status == XR_OK ? stay(ordinal, arg, ctx, why) : status;
}

static bool
is_payload(const struct xr_value *all, uint32_t rank, int round)
{
	char want[32];
	size_t len;
	const char *text = xr_value_data(xr_value_at(all, rank), &len);

	snprintf(want, sizeof(want), "%u in %d", rank, round);
	return text != NULL && len == strlen(want) &&
		memcmp(text, want, len) == 0;
}

/* Two tags by turns, each with rounds of its own. */
static enum xr_status
meet(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *why)
{
	enum xr_status status = XR_OK;

	for (int round = 0; round < 6 && status == XR_OK; round++) {
		struct xr_value *all = NULL, *own;
		char text[32];
		size_t count;

		snprintf(text, sizeof(text), "%u in %d", ordinal, round);
		own = xr_value_new_text(text, strlen(text));
		status = xr_rendezvous(round % 2 ? "odd" : "even", own,
			XR_SECONDS(30), &all, why);
		xr_value_unref(own);
		count = xr_value_count(all);
		for (uint32_t i = 0; i < count; i++)
			if (!is_payload(all, i, round))
				status = XR_E_CONFLICT;
		if (status == XR_OK && round == 5)
			printf("rank %u met %zu\n", ordinal, count);
		xr_value_unref(all);
	}
	return status;
}

/* One comes late, and the others come again. */
static enum xr_status
again(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *why)
{
	bool late = ordinal == number_of(arg);
	struct xr_value *all = NULL, *own = xr_value_new_u64(ordinal);
	enum xr_status status = XR_E_TIMEOUT;

	if (!late)
		status = xr_rendezvous("start", own, 0, &all, why);
	if (status == XR_E_TIMEOUT)
		status = xr_rendezvous("gate", NULL, XR_SECONDS(30), &all, why);
	xr_value_unref(all);
	all = NULL;
	if (status == XR_OK)
		status = xr_rendezvous("start", own, XR_SECONDS(30), &all, why);
	if (status == XR_OK)
		printf("rank %u met %zu\n", ordinal, xr_value_count(all));
	xr_value_unref(all);
	xr_value_unref(own);
	return status;
}

/* One does not come, and lives until the others have given up. */
static enum xr_status
miss(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *why)
{
	struct xr_value *all = NULL;
	enum xr_status status;

	if (ordinal != number_of(arg)) {
		status = xr_rendezvous("start", NULL, XR_SECONDS(0.2), &all,
			why);
		printf("rank %u: %s: %s\n", ordinal, xr_status_name(status),
			why->text);
	}
	status = xr_rendezvous("gate", NULL, XR_SECONDS(30), &all, why);
	xr_value_unref(all);
	return status;
}

/* One is killed while the others wait for it. */
static enum xr_status
die(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *why)
{
	struct xr_value *all = NULL;
	enum xr_status status =
		xr_rendezvous("start", NULL, XR_SECONDS(30), &all, why);

	xr_value_unref(all);
	if (status != XR_OK)
		return status;
	if (ordinal == number_of(arg))
		raise(SIGKILL);
	status = xr_rendezvous("gate", NULL, XR_SECONDS(60), &all, why);
	printf("rank %u: %s: %s\n", ordinal, xr_status_name(status), why->text);
	return XR_OK;
}

/* Can somebody listen at the service address, and nobody bind it? */
static enum xr_status
serve(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *why)
{
	const char *port = strrchr(var("XRT_MESH_SERVICE_ADDRESS"), ':');
	struct sockaddr_in at = { .sin_family = AF_INET };
	int plain = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	int server = socket(AF_INET, SOCK_STREAM, 0);

	if (port == NULL)
		return xr_error_set(why, XR_E_NOTFOUND, "no address");
	if (ordinal != 0)
		return XR_OK;
	at.sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10));
	printf("plain %d", bind(plain, (struct sockaddr *)&at, sizeof(at)));
	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	printf(", server %d", bind(server, (struct sockaddr *)&at, sizeof(at)));
	printf(" %d\n", listen(server, 1));
	return XR_OK;
}

/* One fails while all have started others. */
static enum xr_status
leave_some(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *why)
{
	struct xr_value *all = NULL;
	enum xr_status status;

	if (fork() == 0)
		return stay(ordinal, arg, ctx, why);
	status = xr_rendezvous("ready", NULL, XR_SECONDS(60), &all, why);
	xr_value_unref(all);
	if (status == XR_OK && ordinal == number_of(arg))
		return xr_error_set(why, XR_E_RANGE, "sample 1797 of 1797");
	return status == XR_OK ? stay(ordinal, arg, ctx, why) : status;
}

static const struct {
	const char *name;
	xr_proc_fn *fn;
} functions[] = {
	{ "show", show },
	{ "show_all", show_all },
	{ "show_pid", show_pid },
	{ "fail_one", fail_one },
	{ "exit_one", exit_one },
	{ "crash_one", crash_one },
	{ "stay", stay },
	{ "be_deaf", be_deaf },
	{ "end_late", end_late },
	{ "end_never", end_never },
	{ "meet", meet },
	{ "miss", miss },
	{ "die", die },
	{ "again", again },
	{ "serve", serve },
	{ "leave_some", leave_some },
};

/* --- who starts them -------------------------------------------------------- */

static struct xr_spawn_opts opts = { .size = sizeof(opts) };
static struct xr_value *number;

static void
tell_end(struct xr_procset *set, int64_t timeout)
{
	struct xr_spawn_end end = { .size = sizeof(end) };
	struct xr_failure f = { .size = sizeof(f) };
	enum xr_status status = xr_procset_join(set, timeout, &end, &err);
	int32_t pids[64];

	printf("%s", xr_status_name(status));
	if (status != XR_OK && status != XR_E_TIMEOUT) {
		xr_procset_pids(set, pids, 64);
		printf(" index %u, pid %s, code %d, signal %d", end.index,
			pids[end.index] == end.pid ? "fits" : "does not",
			end.code, end.signal);
		if (end.error != NULL &&
			xr_value_failure(end.error, &f) == XR_OK)
			printf(", report %s", f.text);
		printf(", text %s", strchr(err.text, ')'));
	}
	printf("\n");
}

/* The handle of those that run. */
static void
run_handle(void)
{
	struct xr_procset *set = NULL;
	int32_t pids[64];
	size_t count;

	opts.flags = XR_SPAWN_NO_JOIN;
	check(xr_spawn("stay", number, &opts, &set, &err) == XR_OK, "spawn");
	count = xr_procset_pids(set, pids, 64);
	for (size_t i = 0; i < count; i++)
		check(kill(pids[i], 0) == 0, "a pid that lives");
	printf("%zu live\n", count);
	tell_end(set, 0);
	kill(pids[1], SIGKILL);
	tell_end(set, XR_SECONDS(30));
	tell_end(set, 0);
	xr_procset_free(set);
}

/* Whatever they do, by the function that argv[1] names. */
static void
run_joined(const char *func)
{
	struct xr_procset *set = NULL;

	opts.flags = XR_SPAWN_NO_JOIN;
	check(xr_spawn(func, number, &opts, &set, &err) == XR_OK, "spawn");
	tell_end(set, XR_SECONDS(60));
	tell_end(set, 0);
	xr_procset_free(set);
}

static int
run_plain(const char *func)
{
	enum xr_status status;

	printf("process %d\n", (int)getpid());
	fflush(stdout);
	status = xr_spawn(func, number, &opts, NULL, &err);
	printf("returned %s %s\n", xr_status_name(status),
		status == XR_OK ? "" : err.text);
	return status == XR_OK ? 0 : 3;
}

/* Those that run when main() returns. */
static void
run_left(bool daemon)
{
	static struct xr_procset *set; /* for good */

	opts.flags = XR_SPAWN_NO_JOIN | (daemon ? XR_SPAWN_DAEMON : 0);
	check(xr_spawn(daemon ? "stay" : "show_pid", number, &opts, &set,
		      &err) == XR_OK,
		"spawn");
}

static void
run_killed(const char *func, bool daemon)
{
	struct xr_procset *set = NULL;

	opts.flags = XR_SPAWN_NO_JOIN | (daemon ? XR_SPAWN_DAEMON : 0);
	check(xr_spawn(func, number, &opts, &set, &err) == XR_OK, "spawn");
	pause();
}

static enum xr_status
in_job(uint32_t ordinal, void *ctx, struct xr_error *why)
{
	const char *name = ctx;

	if (strcmp(name, "job-die") == 0)
		return die(ordinal, number, NULL, why);
	return strcmp(name, "job-meet") == 0 ?
		meet(ordinal, number, NULL, why) :
		miss(ordinal, number, NULL, why);
}

int
main(int argc, char **argv)
{
	const char *name;

	if (argc < 4)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		check(xr_proc_register(functions[i].name, functions[i].fn, NULL,
			      &err) == XR_OK,
			"register");
	check(xr_init(&err) == XR_OK, "init");
	name = argv[1];
	number = xr_value_new_i64(argc > 4 ? strtol(argv[4], NULL, 10) : -1);
	opts.method = argv[2];
	opts.nprocs = (uint32_t)strtoul(argv[3], NULL, 10);
	opts.grace = XR_SECONDS(1);
	shared = 2;
	setenv("TEST_LATE", "of the caller", 1);
	if (strncmp(name, "job-", 4) == 0)
		return xr_main(in_job, argv[1]);
	if (strcmp(name, "handle") == 0)
		run_handle();
	else if (strncmp(name, "left", 4) == 0)
		run_left(strcmp(name, "left-daemon") == 0);
	else if (strncmp(name, "killed", 6) == 0)
		run_killed(strstr(name, "deaf") != NULL ? "be_deaf" : "stay",
			strstr(name, "daemon") != NULL);
	else if (strncmp(name, "joined-", 7) == 0)
		run_joined(name + 7);
	else
		return run_plain(name);
	return 0;
}
