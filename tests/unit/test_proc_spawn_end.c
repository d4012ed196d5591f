/* SPDX-License-Identifier: Apache-2.0 */
/* test_proc_spawn_end.c - what ranks of xr_spawn() are told, and how they end together
 * (worker/proc/spawn.c). */
#include <sys/socket.h>

#include <xrun/spawn.h>

#include "place/port.h"
#include "tests/unit/proc_rig.h"

TestSuite(proc_spawn_end, .timeout = 150);

/* --- functions of ranks ----------------------------------------------------------- */

static int ready[2]; /* a pipe: a byte of each rank that waits */

/* Rank 0 waits until it is killed, and ignores SIGTERM if @ctx is "i". Rank 1 ends as @ctx
 * says once rank 0 waits. */
static enum xr_status
last_ends(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	const char *how = ctx;
	char one;

	(void)arg;
	if (ordinal % 2 == 0) {
		if (how[0] == 'i')
			sigaction(SIGTERM,
				&(struct sigaction){ .sa_handler = SIG_IGN },
				NULL);
		NEED(write(ready[1], "r", 1) == 1);
		while (pause() == -1)
			continue;
	}
	NEED(read(ready[0], &one, 1) == 1);
	if (how[0] == 'f')
		return xr_error_set(err, XR_E_CLOSED, "it failed");
	if (how[0] == 'k')
		kill(getpid(), SIGKILL);
	_exit(3);
}

/* Ends with the byte that comes by the pipe. */
static enum xr_status
told_to_end(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	unsigned char code = 0;

	(void)ordinal;
	(void)arg;
	(void)ctx;
	(void)err;
	_exit(read(ready[0], &code, 1) == 1 ? code : 98);
}

static enum xr_status
waits(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	(void)ordinal;
	(void)arg;
	(void)ctx;
	(void)err;
	while (pause() == -1)
		continue;
	return XR_OK;
}

static int output[2]; /* a pipe */

static const char *
var(const char *name)
{
	const char *value = getenv(name);

	return value != NULL ? value : "-";
}

/* One packet of each rank. */
static enum xr_status
says(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	char text[512];
	int64_t n = -1;
	int len;

	(void)ctx;
	(void)err;
	xr_value_get_i64(arg, &n);
	len = snprintf(text, sizeof(text), "%u %lld %s/%s %s/%s %s %s", ordinal,
		(long long)n, var("RANK"), var("WORLD_SIZE"), var("LOCAL_RANK"),
		var("LOCAL_WORLD_SIZE"), var("XRUN_NODE"),
		var("XRT_MESH_SERVICE_ADDRESS"));
	return write(output[1], text, (size_t)len) == len ? XR_OK : XR_E_SYS;
}

static void
register_ranks(void)
{
	static char exit_3[] = "e", fail[] = "f", killed[] = "k",
		    ignored[] = "i";

	NEED(xr_proc_register("exits", last_ends, exit_3, NULL) == XR_OK);
	NEED(xr_proc_register("fails", last_ends, fail, NULL) == XR_OK);
	NEED(xr_proc_register("killed", last_ends, killed, NULL) == XR_OK);
	NEED(xr_proc_register("ignores", last_ends, ignored, NULL) == XR_OK);
	NEED(xr_proc_register("told", told_to_end, NULL, NULL) == XR_OK);
	NEED(xr_proc_register("waits", waits, NULL, NULL) == XR_OK);
	NEED(xr_proc_register("says", says, NULL, NULL) == XR_OK);
	NEED(pipe2(ready, O_CLOEXEC) == 0);
	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, output) ==
		0);
	unsetenv("XRT_TPU_CONFIG");
	unsetenv("XRT_LOCAL_WORKER");
	most_ms = 20000;
	asked = 0;
	memset(&error, 0, sizeof(error));
}

#define OPTS(n, ...) \
	(const struct xr_spawn_opts) \
	{ \
		.size = sizeof(struct xr_spawn_opts), .nprocs = (n), \
		.method = "fork", __VA_ARGS__ \
	}

static enum xr_status
spawn(const char *func, struct xr_spawn_opts o, struct xr_procset **set)
{
	*set = NULL;
	return xr_spawn(func, NULL, &o, set, &error);
}

/* --- the end of them ------------------------------------------------------------------ */

/* Expects how @set ended, twice: @text behind "rank 1 (process PID)". */
static void
expect_joined(struct xr_procset *set, enum xr_status status, int code, int sig,
	const char *text)
{
	struct xr_spawn_end how = { .size = sizeof(how) };
	int32_t pids[2] = { 0 };
	char want[300];

	EXPECT_EQ(xr_procset_pids(set, pids, 2), 2);
	snprintf(want, sizeof(want), "rank 1 (process %d)%s", pids[1], text);
	for (int i = 0; i < 2; i++) {
		memset(&error, 0, sizeof(error));
		EXPECT_EQ(xr_procset_join(set, 0, &how, &error), status);
		EXPECT_STR(error.text, want);
		EXPECT_EQ(error.status, status);
		EXPECT_EQ(how.size, sizeof(how));
		EXPECT_EQ(how.index, 1);
		EXPECT_EQ(how.pid, pids[1]);
		EXPECT_EQ(how.code, code);
		EXPECT_EQ(how.signal, sig);
		EXPECT_EQ(how.error != NULL, status == XR_E_REMOTE);
	}
	EXPECT_EQ(xr_procset_join(set, 0, NULL, NULL), status);
}

FORKED_TEST(proc_spawn_end,
	who_does_not_end_well_decides_and_the_others_are_ended)
{
	struct xr_procset *set;
	unsigned open;

	register_ranks();
	open = descriptors();
	EXPECT_EQ(spawn("exits", OPTS(2, .flags = 0), &set), XR_E_WORKER_LOST);
	NEED(set != NULL);
	EXPECT(forked_childless());
	expect_joined(set, XR_E_WORKER_LOST, 3, 0, " ended with exit code 3");
	xr_procset_free(set);
	EXPECT_EQ(spawn("fails", OPTS(2, .flags = 0), &set), XR_E_REMOTE);
	NEED(set != NULL);
	EXPECT(forked_childless());
	expect_joined(set, XR_E_REMOTE, XR_EXIT_RANK_FAILED, 0, ": it failed");
	xr_procset_free(set);
	EXPECT_EQ(spawn("killed", OPTS(2, .flags = 0), &set), XR_E_WORKER_LOST);
	NEED(set != NULL);
	expect_joined(set, XR_E_WORKER_LOST, -1, SIGKILL,
		" was ended by SIGKILL");
	xr_procset_free(set);
	EXPECT_EQ(descriptors(), open);
	/* Who has no use for the set has none. */
	EXPECT_EQ(xr_spawn("exits", NULL, &OPTS(2, .flags = 0), NULL, &error),
		XR_E_WORKER_LOST);
	EXPECT(forked_childless());
	EXPECT_EQ(descriptors(), open);
}

FORKED_TEST(proc_spawn_end, one_that_does_not_end_is_killed_after_the_grace)
{
	static const struct {
		int64_t grace;
		int ms;
	} row[] = {
		{ 0, 10000 },
		{ XR_TIMEOUT_DEFAULT, 10000 },
		{ 3 * NS_PER_S, 3000 },
		{ 1, 1 },
	};
	struct xr_procset *set;

	register_ranks();
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		asked = 0;
		EXPECT_EQ(spawn("ignores", OPTS(2, .grace = row[i].grace),
				  &set),
			XR_E_WORKER_LOST);
		NEED(set != NULL);
		EXPECT_EQ(asked, 1);
		EXPECT_EQ(asked_ms[0], row[i].ms);
		EXPECT(forked_childless());
		xr_procset_free(set);
	}
}

/* --- joining -------------------------------------------------------------------------- */

FORKED_TEST(proc_spawn_end, a_join_in_time_says_how_many_run)
{
	struct xr_spawn_end how = { sizeof(how), 7, 7, 7, 7, NULL };
	struct xr_procset *set;
	int32_t pids[3] = { 0 };
	siginfo_t info;

	register_ranks();
	EXPECT_EQ(spawn("told", OPTS(2, .flags = XR_SPAWN_NO_JOIN), &set),
		XR_OK);
	NEED(set != NULL);
	EXPECT_EQ(xr_procset_join(set, 5 * NS_PER_MS, &how, &error),
		XR_E_TIMEOUT);
	EXPECT_STR(error.text, "2 of 2 run still");
	EXPECT_EQ(asked, 1);
	EXPECT_EQ(asked_ms[0], 5);
	EXPECT_EQ(how.index, 7); /* nothing is said */
	EXPECT_EQ(xr_procset_pids(set, pids, 0), 2);
	EXPECT_EQ(pids[0], 0);
	EXPECT_EQ(write(ready[1], "", 1), 1);
	NEED(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) == 0);
	EXPECT_EQ(xr_procset_join(set, 0, &how, &error), XR_E_TIMEOUT);
	EXPECT_STR(error.text, "1 of 2 run still");
	EXPECT_EQ(write(ready[1], "", 1), 1);
	EXPECT_EQ(xr_procset_join(set, XR_TIMEOUT_NEVER, &how, &error), XR_OK);
	EXPECT_EQ(how.size, sizeof(how));
	EXPECT_EQ(how.index, 0);
	EXPECT_EQ(how.pid, 0);
	EXPECT_EQ(how.code, 0);
	EXPECT_EQ(how.signal, 0);
	EXPECT(how.error == NULL);
	EXPECT_EQ(xr_procset_join(set, 0, NULL, NULL), XR_OK);
	how.size--;
	EXPECT_EQ(xr_procset_join(set, 0, &how, &error), XR_E_INVAL);
	xr_procset_free(set);
}

static int32_t victim;    /* process of rank 1 */
static unsigned readings; /* until rank 1 ends; 0: it has ended */
static bool waited;       /* the join waited before that */

static void
end_rank_1(bool waits)
{
	siginfo_t info;

	if (readings == 0 || (--readings > 0 && !waits))
		return;
	waited = waits;
	readings = 0;
	NEED(kill(victim, SIGKILL) == 0);
	NEED(waitid(P_PID, (id_t)victim, &info, WEXITED | WNOWAIT) == 0);
}

FORKED_TEST(proc_spawn_end, a_join_notices_a_failure_at_any_moment)
{
	struct xr_procset *set;
	int32_t pids[2];
	unsigned n;

	register_ranks();
	for (n = 1; !waited && n < 100; n++) {
		NEED(spawn("waits", OPTS(2, .flags = XR_SPAWN_NO_JOIN), &set) ==
			XR_OK);
		xr_procset_pids(set, pids, 2);
		victim = pids[1];
		readings = n;
		at_clock = end_rank_1;
		EXPECT_EQ(xr_procset_join(set, XR_TIMEOUT_NEVER, NULL, &error),
			XR_E_WORKER_LOST);
		at_clock = NULL;
		EXPECT(strstr(error.text, "was ended by SIGKILL") != NULL);
		xr_procset_free(set);
	}
	EXPECT(waited);
	EXPECT(n > 2);
}

FORKED_TEST(proc_spawn_end, a_set_that_is_released_is_killed)
{
	struct xr_procset *set;

	register_ranks();
	EXPECT_EQ(spawn("told", OPTS(2, .flags = XR_SPAWN_NO_JOIN), &set),
		XR_OK);
	xr_procset_free(set);
	EXPECT(forked_childless());
}

FORKED_TEST(proc_spawn_end, daemons_are_ended_and_others_waited_for)
{
	struct xr_procset *set, *daemons;

	register_ranks();
	EXPECT_EQ(spawn("told", OPTS(2, .flags = XR_SPAWN_NO_JOIN), &set),
		XR_OK);
	EXPECT_EQ(spawn("waits",
			  OPTS(2, .flags = XR_SPAWN_NO_JOIN | XR_SPAWN_DAEMON),
			  &daemons),
		XR_OK);
	EXPECT_EQ(write(ready[1], "\0", 2), 2);
	patient = true;
	final_run_all();
	EXPECT(forked_childless());
	EXPECT_EQ(xr_procset_join(set, 0, NULL, &error), XR_OK);
	EXPECT_EQ(xr_procset_join(daemons, 0, NULL, &error), XR_E_WORKER_LOST);
	EXPECT(strstr(error.text, "was ended by SIGTERM") != NULL);
	xr_procset_free(set);
	xr_procset_free(daemons);
}

/* --- what ranks are told ------------------------------------------------------------------ */

/* What rank @index of @set said; each says one packet. */
static void
expect_said(const char *want[2])
{
	char got[2][512] = { "", "" };
	ssize_t n;
	int swap;

	for (int i = 0; i < 2; i++) {
		n = recv(output[0], got[i], sizeof(got[i]) - 1, MSG_DONTWAIT);
		EXPECT(n > 0);
	}
	swap = strcmp(got[0], got[1]) > 0;
	EXPECT_STR(got[swap], want[0]);
	EXPECT_STR(got[!swap], want[1]);
}

FORKED_TEST(proc_spawn_end, ranks_have_their_numbers_and_the_argument)
{
	struct xr_value *arg = xr_value_new_i64(42);
	const char *want[] = { "0 42 0/2 0/2 0 -", "1 42 1/2 1/2 0 -" };

	register_ranks();
	unsetenv("XRT_MESH_SERVICE_ADDRESS");
	EXPECT_EQ(xr_spawn("says", arg, &OPTS(2, .flags = 0), NULL, &error),
		XR_OK);
	expect_said(want);
	xr_value_unref(arg);
}

FORKED_TEST(proc_spawn_end,
	ranks_of_the_second_host_are_numbered_from_its_first)
{
	const char *want[] = { "2 -1 2/4 0/2 1 h:1", "3 -1 3/4 1/2 1 h:1" };

	register_ranks();
	setenv("XRT_TPU_CONFIG", "c;0;h:1|d;1;h:2", 1);
	setenv("XRT_LOCAL_WORKER", "d:1", 1);
	setenv("XRT_MESH_SERVICE_ADDRESS", "h:1", 1);
	setenv("XRT_SHARD_WORLD_SIZE", "2", 1);
	setenv("TPU_NUM_DEVICES", "2", 1);
	EXPECT_EQ(xr_spawn("says", NULL, &OPTS(0, .flags = 0), NULL, &error),
		XR_OK);
	EXPECT_STR(error.text, "");
	expect_said(want);
}

FORKED_TEST(proc_spawn_end, a_port_is_held_for_ranks_that_need_one)
{
	char text[2][96], got[96] = "";
	const char *want[] = { text[0], text[1] };
	struct xr_procset *set;
	unsigned open;
	int port = 0;

	register_ranks();
	setenv("XRT_TPU_CONFIG", "c;0;h:1", 1);
	setenv("XRT_LOCAL_WORKER", "c:0", 1);
	setenv("TPU_NUM_DEVICES", "2", 1);
	unsetenv("XRT_MESH_SERVICE_ADDRESS");
	open = descriptors();
	EXPECT_EQ(spawn("says", OPTS(2, .flags = 0), &set), XR_OK);
	NEED(set != NULL);
	NEED(recv(output[0], got, sizeof(got) - 1, MSG_PEEK) > 0);
	NEED(strstr(got, "localhost:") != NULL);
	sscanf(strstr(got, "localhost:"), "localhost:%d", &port);
	EXPECT(port > 1023 && port < 65536);
	for (int i = 0; i < 2; i++)
		snprintf(text[i], sizeof(text[i]),
			"%d -1 %d/2 %d/2 0 localhost:%d", i, i, i, port);
	expect_said(want);
	/* A card and a pidfd of each, and the port. */
	EXPECT_EQ(descriptors(), open + 5);
	xr_procset_free(set);
	EXPECT_EQ(descriptors(), open);
}

/* --- one rank, which is this process -------------------------------------------------------- */

/* Spawns one rank of @func in a fork, whose standard error comes by a pipe. */
static void
expect_alone(const char *func, int code, const char *first_line)
{
	const struct xr_spawn_opts o = OPTS(1, .flags = 0);
	char text[4096] = "";
	int ends[2], status = -1;
	ssize_t n;
	pid_t pid;

	NEED(pipe2(ends, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		alarm(20);
		NEED(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
		xr_spawn(func, NULL, &o, NULL, &error);
		_exit(77);
	}
	close(ends[1]);
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status));
	EXPECT_EQ(WEXITSTATUS(status), code);
	n = read(ends[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(ends[0]);
	if (strchr(text, '\n') != NULL)
		*strchr(text, '\n') = '\0';
	EXPECT_STR(text, first_line);
}

static enum xr_status
fails_alone(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	(void)ordinal;
	(void)ctx;
	return fail(err, XR_E_CLOSED, "kind %d of rank %s",
		(int)xr_value_kind(arg), var("XRUN_RANK"));
}

FORKED_TEST(proc_spawn_end, one_rank_is_this_process_and_ends_it)
{
	char got[512] = "", want[96];

	register_ranks();
	NEED(xr_proc_register("alone", fails_alone, NULL, NULL) == XR_OK);
	unsetenv("XRT_MESH_SERVICE_ADDRESS");
	unsetenv("XRUN_DEVICE");
	unsetenv("XRT_MULTI_PROCESSING_DEVICE");
	expect_alone("says", 0, "");
	EXPECT(recv(output[0], got, sizeof(got) - 1, MSG_DONTWAIT) > 0);
	EXPECT_STR(got, "0 -1 0/1 0/1 0 -");
	snprintf(want, sizeof(want), "cpu: rank 0: kind %d of rank 0", XR_NIL);
	expect_alone("alone", XR_EXIT_RANK_FAILED, want);
	expect_alone("none", 77, "");
}
