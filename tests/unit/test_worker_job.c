/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_job.c - xr_job_*(): what a rank knows and tells. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#include <xrun/job.h>

#include "segment/layout.h"
#include "segment/owner.h"
#include "wire/control.h"
#include "worker/job/slot.h"

static int told = -1, teller = -1;
static char line[65536];
static struct control m;

/* A socket as xrun gives it; what is told comes out of `told`. */
static void
join_job(void)
{
	int fd[2];
	struct stat st;
	char name[64];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
	cr_assert_eq(fstat(fd[1], &st), 0);
	told = fd[0];
	teller = fd[1];
	snprintf(name, sizeof(name), "%d:%llu", fd[1],
		(unsigned long long)st.st_ino);
	setenv("XRUN_CONTROL_FD", name, 1);
	setenv("XRUN_RANK", "3", 1);
}

/* The next message, as xrun reads it; false: nothing more was told. */
static bool
next(void)
{
	ssize_t n = recv(told, line, sizeof(line) - 1, MSG_DONTWAIT);
	struct xr_error err = { 0 };

	if (n <= 0)
		return false;
	line[n] = '\0';
	cr_assert_eq(control_read(&m, line, (size_t)n, CONTROL_BY_RANK, &err),
		XR_OK, "%s", err.text);
	return true;
}

Test(worker_job, outside_of_a_job_it_is_rank_0_of_1)
{
	unsetenv("XRUN_JOB");
	unsetenv("XRUN_RANK");
	unsetenv("XRUN_SIZE");
	unsetenv("XRUN_CONTROL_FD");
	unsetenv("XRUN_DEVICE");
	cr_expect_str_eq(xr_job_id(), "");
	cr_expect_eq(xr_job_rank(), 0);
	cr_expect_eq(xr_job_size(), 1);
	cr_expect_eq(xr_job_nodes(), 1);
	cr_expect_str_eq(xr_job_device(), "cpu");
	cr_expect_eq(xr_job_ready(), XR_OK);
	cr_expect_eq(xr_job_extend(1), XR_OK);
}

Test(worker_job, each_figure_of_a_job_has_its_variable_and_a_default)
{
	static const struct {
		const char *name;
		uint32_t (*get)(void);
		uint32_t otherwise;
	} rows[] = {
		{ "XRUN_ATTEMPT", xr_job_attempt, 0 },
		{ "XRUN_RANK", xr_job_rank, 0 },
		{ "XRUN_SIZE", xr_job_size, 1 },
		{ "XRUN_LOCAL_RANK", xr_job_local_rank, 0 },
		{ "XRUN_LOCAL_SIZE", xr_job_local_size, 1 },
		{ "XRUN_NODE", xr_job_node, 0 },
		{ "XRUN_NODES", xr_job_nodes, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsetenv(rows[i].name);
		cr_expect_eq(rows[i].get(), rows[i].otherwise, "%s",
			rows[i].name);
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setenv(rows[i].name, "7", 1);
		cr_expect_eq(rows[i].get(), 7, "%s", rows[i].name);
		unsetenv(rows[i].name);
	}
	setenv("XRUN_DEVICE", "cuda:1", 1);
	cr_expect_str_eq(xr_job_device(), "cuda:1");
}

Test(worker_job, what_is_no_number_is_as_if_it_were_not_there)
{
	static const char *const texts[] = { "", "x", "-1", "1x", " 1",
		"4294967296", "99999999999999999999" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		setenv("XRUN_SIZE", texts[i], 1);
		cr_expect_eq(xr_job_size(), 1, "%s", texts[i]);
	}
	setenv("XRUN_SIZE", "4294967295", 1);
	cr_expect_eq(xr_job_size(), UINT32_MAX);
}

Test(worker_job, what_is_told_is_a_message_of_the_protocol)
{
	struct xr_metric metrics[] = { { "loss", 0.25 }, { "a.B-c_9", -1e300 },
		{ "bad", NAN }, { "worse", INFINITY } };
	struct xr_progress p = {
		.size = sizeof(p),
		.step = INT64_C(9007199254740991),
		.total = 0,
		.metrics = metrics,
		.metric_count = 4,
	};

	join_job();
	cr_expect_eq(xr_job_ready(), XR_OK);
	cr_assert(next());
	cr_expect_eq((int)m.type, CONTROL_READY);
	cr_expect_eq(m.ready.rank, 3);
	cr_expect_eq(xr_job_progress(&p), XR_OK);
	cr_assert(next());
	cr_expect_eq(m.progress.step, INT64_C(9007199254740991));
	cr_expect_eq(m.progress.total, CONTROL_NONE);
	cr_expect_eq(strncmp(m.progress.metrics.at,
			     "{\"loss\":0.25,\"a.B-c_9\":-1", 24),
		0);
	cr_expect_eq(xr_job_extend(INT64_C(1500000000)), XR_OK);
	cr_assert(next());
	cr_expect_eq((int)m.type, CONTROL_GRACE);
	cr_expect_float_eq(m.grace.seconds, 1.5, 1e-9);
}

Test(worker_job, the_last_step_is_told_however_soon_it_comes)
{
	struct xr_progress p = { .size = sizeof(p), .total = 1000 };
	int count = 0;

	join_job();
	for (p.step = 1; p.step <= 1000; p.step++)
		cr_expect_eq(xr_job_progress(&p), XR_OK);
	while (next())
		count++;
	cr_expect_eq(m.progress.step, 1000);
	cr_expect_leq(count, 10, "%d", count);
}

Test(worker_job, as_much_as_may_be_told_fits)
{
	char name[XR_METRICS_MAX][80];
	struct xr_metric metrics[XR_METRICS_MAX];
	struct xr_progress p = {
		.size = sizeof(p),
		.metrics = metrics,
		.metric_count = XR_METRICS_MAX,
	};

	for (int i = 0; i < XR_METRICS_MAX; i++) {
		snprintf(name[i], sizeof(name[i]), "%064d", i);
		metrics[i] =
			(struct xr_metric){ name[i], -1.2345678901234567e-300 };
	}
	join_job();
	cr_expect_eq(xr_job_progress(&p), XR_OK);
	cr_assert(next());
	cr_expect_leq(m.progress.metrics.len, 4096);
}

Test(worker_job, what_makes_no_sense_is_refused_and_not_told)
{
	struct xr_metric metric = { "no spaces", 1 };
	struct xr_progress good = { .size = sizeof(good), .step = 1 }, bad;

	join_job();
	cr_expect_eq(xr_job_progress(NULL), XR_E_INVAL);
	bad = good;
	bad.size = 4;
	cr_expect_eq(xr_job_progress(&bad), XR_E_INVAL);
	bad = good;
	bad.step = -1;
	cr_expect_eq(xr_job_progress(&bad), XR_E_INVAL);
	bad = good;
	bad.total = -1;
	cr_expect_eq(xr_job_progress(&bad), XR_E_INVAL);
	bad = good;
	bad.metric_count = 1;
	cr_expect_eq(xr_job_progress(&bad), XR_E_INVAL);
	bad.metrics = &metric;
	cr_expect_eq(xr_job_progress(&bad), XR_E_INVAL);
	metric.name = NULL;
	cr_expect_eq(xr_job_progress(&bad), XR_E_INVAL);
	metric.name = "";
	cr_expect_eq(xr_job_progress(&bad), XR_E_INVAL);
	metric.name = "ok";
	bad.metric_count = XR_METRICS_MAX + 1;
	cr_expect_eq(xr_job_progress(&bad), XR_E_INVAL);
	cr_expect_eq(xr_job_extend(0), XR_E_INVAL);
	cr_expect_eq(xr_job_extend(-1), XR_E_INVAL);
	cr_expect_not(next());
}

Test(worker_job, a_whole_number_beyond_what_json_counts_with_is_told)
{
	struct xr_metric metrics[] = { { "a", 2e16 }, { "b", -1e16 },
		{ "c", 3 }, { "d", 1e17 } };
	struct xr_progress p = {
		.size = sizeof(p),
		.step = INT64_MAX,
		.total = INT64_MAX,
		.metrics = metrics,
		.metric_count = 4,
	};

	join_job();
	cr_expect_eq(xr_job_progress(&p), XR_OK);
	cr_assert(next());
	cr_expect_eq(m.progress.step, INT64_C(9007199254740991));
	cr_expect_eq(m.progress.total, INT64_C(9007199254740991));
	cr_expect_not_null(strstr(line,
		"{\"a\":20000000000000000.0,\"b\":-10000000000000000.0,"
		"\"c\":3.0,\"d\":1e+17}"));
}

/* Makes the locale of Pashto, whose point has two bytes, in @folder. */
static bool
made_locale(const char *folder)
{
	char path[256];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/ps_AF.UTF-8", folder);
	pid = fork();
	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		execlp("localedef", "localedef", "-i", "ps_AF", "-f", "UTF-8",
			path, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	setenv("LOCPATH", folder, 1);
	return setlocale(LC_NUMERIC, "ps_AF.UTF-8") != NULL &&
		strlen(localeconv()->decimal_point) == 2;
}

static void
remove_locale(const char *folder)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", "--", folder, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

Test(worker_job, a_point_of_two_bytes_is_told_as_one)
{
	struct xr_metric metric = { "loss", 0.25 };
	struct xr_progress p = {
		.size = sizeof(p),
		.step = 1,
		.metrics = &metric,
		.metric_count = 1,
	};
	char folder[] = "/tmp/xrun-locale-XXXXXX";
	bool made;

	cr_assert_not_null(mkdtemp(folder));
	made = made_locale(folder);
	remove_locale(folder);
	if (!made)
		cr_skip_test("localedef made no ps_AF.UTF-8");
	join_job();
	cr_expect_eq(xr_job_progress(&p), XR_OK);
	setlocale(LC_NUMERIC, "C");
	cr_assert(next());
	cr_expect_not_null(strstr(line, "{\"loss\":0.25}"), "%s", line);
}

/* As a rank does that tells too much. */
static void
fill_queue(void)
{
	static const char much[999];

	while (send(teller, much, sizeof(much), MSG_DONTWAIT) > 0)
		continue;
}

/* How many messages there were, but for what filled the queue. */
static long
drained(void)
{
	long count = 0;
	ssize_t n;

	while ((n = recv(told, line, sizeof(line), MSG_DONTWAIT)) > 0)
		count += line[0] == '{';
	return count;
}

/* --- waiting -------------------------------------------------------------- */

/* What is tested waits with poll(). While these are not 0, it does not wait: time passes
 * in its calls alone, and the @room_at th of them makes room. */
static int64_t frozen_ns;
static int room_at;
static int polls; /* calls */
static long drained_by_poll;

int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);

int
__wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	polls++;
	if (frozen_ns == 0)
		return __real_poll(fds, n, ms);
	frozen_ns += ms * 1000000LL;
	if (polls == room_at)
		drained_by_poll = drained();
	return 0;
}

int
__wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	if (frozen_ns == 0)
		return __real_clock_gettime(id, t);
	*t = (struct timespec){ .tv_sec = frozen_ns / 1000000000,
		.tv_nsec = frozen_ns % 1000000000 };
	return 0;
}

static enum xr_status
last_step(void)
{
	struct xr_progress p = { .size = sizeof(p), .step = 9, .total = 9 };

	return xr_job_progress(&p);
}

static enum xr_status
save(void)
{
	return xr_job_extend(1000000000);
}

static enum xr_status (*const told_once[])(void) = { xr_job_ready, save,
	last_step };

Test(worker_job, what_is_told_once_waits_for_room)
{
	join_job();
	frozen_ns = 1;
	room_at = 5;
	for (size_t i = 0; i < 3; i++) {
		polls = 0;
		fill_queue();
		cr_expect_eq(told_once[i](), XR_OK, "%zu", i);
		cr_expect_eq(polls, 5, "%zu", i);
		cr_expect_eq(drained_by_poll, 0, "%zu", i);
		cr_expect_eq(drained(), 1, "%zu", i);
	}
}

Test(worker_job, what_is_told_once_and_found_no_room_is_said_to_be_lost)
{
	enum xr_status status;
	int after;

	join_job();
	fill_queue();
	frozen_ns = 1;
	for (size_t i = 0; i < 3; i++) {
		polls = 0;
		errno = EDOM;
		status = told_once[i]();
		after = errno;
		cr_expect_eq(status, XR_E_AGAIN, "%zu", i);
		cr_expect_eq(after, EDOM, "%zu", i);
		cr_expect_geq(polls, 2, "%zu", i);
	}
	cr_expect_eq(drained(), 0);
	close(told);
	for (size_t i = 0; i < 3; i++)
		cr_expect_eq(told_once[i](), XR_OK, "%zu", i);
}

Test(worker_job, progress_never_waits_for_room)
{
	struct xr_progress p = { .size = sizeof(p), .step = 1, .total = 9 };

	join_job();
	fill_queue();
	frozen_ns = 1;
	polls = 0;
	cr_expect_eq(xr_job_progress(&p), XR_OK);
	cr_expect_eq(polls, 0);
	cr_expect_eq(drained(), 0);
}

Test(worker_job, a_descriptor_that_is_something_else_is_left_alone)
{
	int fd[2];
	char name[64], byte;

	cr_assert_eq(pipe2(fd, 0), 0);
	snprintf(name, sizeof(name), "%d:1", fd[1]);
	setenv("XRUN_CONTROL_FD", name, 1);
	cr_expect_eq(xr_job_ready(), XR_OK);
	setenv("XRUN_CONTROL_FD", "rubbish", 1);
	cr_expect_eq(xr_job_ready(), XR_OK);
	setenv("XRUN_CONTROL_FD", "1000000:1", 1);
	cr_expect_eq(xr_job_ready(), XR_OK);
	close(fd[1]);
	cr_expect_eq(read(fd[0], &byte, 1), 0);
}

/* --- the slot ------------------------------------------------------------- */

/* A segment as xrun gives it to local rank 1. */
static int
join_segment(void)
{
	const struct segment_wish wish = { .job = "k7m2", .ranks = 2 };
	int fd = segment_create(&wish);
	struct stat st;
	char name[64];

	cr_assert_neq(fd, -1);
	cr_assert_eq(fstat(fd, &st), 0);
	snprintf(name, sizeof(name), "%d:%llu", fd,
		(unsigned long long)st.st_ino);
	setenv("XRUN_SEGMENT_FD", name, 1);
	setenv("XRUN_LOCAL_RANK", "1", 1);
	setenv("XRUN_JOB", "k7m2", 1);
	slot_init();
	return fd;
}

static struct segment_view
seen(int fd)
{
	struct segment_view view;

	cr_assert(segment_look(fd, 1, INT64_MAX, &view));
	return view;
}

Test(worker_job, each_step_is_stored_and_few_are_sent)
{
	struct xr_progress p = { .size = sizeof(p), .total = INT64_MAX };
	int fd = join_segment();

	join_job();
	for (p.step = 1; p.step < 5000; p.step++)
		cr_assert_eq(xr_job_progress(&p), XR_OK);
	cr_expect_eq(seen(fd).step, 4999);
	cr_expect_eq(seen(fd).total, INT64_C(9007199254740991));
	cr_expect_eq(seen(fd).tick, 4999);
	cr_expect_gt(seen(fd).when, 0);
	cr_expect_leq(drained(), 2);
	p.step = INT64_MAX;
	p.total = 0;
	cr_expect_eq(xr_job_progress(&p), XR_OK);
	cr_expect_eq(seen(fd).step, INT64_C(9007199254740991));
	cr_expect_eq(seen(fd).total, -1);
}

Test(worker_job, what_is_refused_is_not_stored)
{
	struct xr_progress p = { .size = sizeof(p), .step = -1 };
	int fd = join_segment();

	cr_expect_eq(xr_job_progress(&p), XR_E_INVAL);
	cr_expect_eq(seen(fd).tick, 0);
}

Test(worker_job, messages_without_room_are_counted)
{
	struct xr_progress p = { .size = sizeof(p), .step = 1, .total = 9 };
	int fd = join_segment();

	join_job();
	fill_queue();
	cr_expect_eq(xr_job_progress(&p), XR_OK);
	cr_expect_eq(xr_job_ready(), XR_E_AGAIN);
	cr_expect_eq(seen(fd).lost, 2);
	cr_expect_eq(seen(fd).step, 1);
}

Test(worker_job, a_heartbeat_is_a_store_and_keeps_errno)
{
	int fd = join_segment();

	join_job();
	errno = EDOM;
	for (int i = 0; i < 100; i++)
		xr_heartbeat();
	cr_expect_eq(errno, EDOM);
	cr_expect_eq(seen(fd).tick, 100);
	cr_expect_eq(seen(fd).step, -1);
	cr_expect_eq(drained(), 0);
}

Test(worker_job, a_segment_that_is_none_is_as_if_it_were_not_there)
{
	static const char *const names[] = { "", "x", "98", "0:0", "98:x",
		"1000000:1" };
	struct xr_progress p = { .size = sizeof(p), .step = 1 };
	struct xr_error err = { 0 };

	join_segment();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		setenv("XRUN_SEGMENT_FD", names[i], 1);
		slot_init();
		cr_expect_not(slot_beat(), "%s", names[i]);
		cr_expect_eq(xr_job_progress(&p), XR_OK);
		cr_expect_eq(xr_job_attach(&err), XR_E_NOTFOUND);
	}
	setenv("XRUN_LOCAL_RANK", "99999999999999999999", 1);
	errno = EDOM;
	slot_init();
	cr_expect_eq(errno, EDOM);
	cr_expect_str_eq(err.text, "job k7m2 has no segment here");
	unsetenv("XRUN_JOB");
	cr_expect_eq(xr_job_attach(&err), XR_OK);
	xr_job_detach();
}

Test(worker_job, a_process_is_the_rank_until_it_says_not)
{
	int fd = join_segment(), status;
	struct xr_error err = { 0 };
	pid_t pid;

	setenv("XRUN_RANK", "5", 1);
	cr_expect_eq(xr_job_attach(&err), XR_OK);
	cr_expect_eq((pid_t)seen(fd).holder, getpid());
	cr_expect(seen(fd).held);
	pid = fork();
	if (pid == 0) {
		char text[80];

		snprintf(text, sizeof(text), "rank 5 is held by process %d (",
			getppid());
		_exit(xr_job_attach(&err) == XR_E_EXISTS &&
					strncmp(err.text, text, strlen(text)) ==
						0 ?
				0 :
				1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	xr_job_detach();
	cr_expect_eq(seen(fd).holder, 0);
}

static void
count_stop(void *ctx)
{
	(*(volatile int *)ctx)++;
}

static volatile int before;

static void
count_before(int sig)
{
	before += sig;
}

Test(worker_job, who_is_told_to_stop_has_its_function_called)
{
	const struct sigaction action = { .sa_handler = count_before };
	volatile int first = 0, second = 0;

	cr_assert_eq(sigaction(SIGTERM, &action, NULL), 0);
	cr_expect_eq(xr_job_stopping(), 0);
	cr_expect_eq(xr_job_on_stop(count_stop, (void *)&first, NULL), XR_OK);
	cr_expect_eq(xr_job_on_stop(count_stop, (void *)&second, NULL), XR_OK);
	raise(SIGTERM);
	cr_expect_eq(first, 0);
	cr_expect_eq(second, 1);
	cr_expect_eq(before, SIGTERM);
	cr_expect_eq(xr_job_stopping(), 1);
	cr_expect_eq(xr_job_on_stop(NULL, NULL, NULL), XR_OK);
	raise(SIGTERM);
	cr_expect_eq(second, 1);
}

static void
count_info(int sig, siginfo_t *info, void *context)
{
	before += sig == SIGTERM && info->si_pid == getpid() && context != NULL;
}

Test(worker_job, a_handler_that_was_there_before_is_called_as_it_was_set)
{
	static const struct {
		struct sigaction action;
		int calls;
	} rows[] = {
		{ { .sa_sigaction = count_info, .sa_flags = SA_SIGINFO }, 1 },
		{ { .sa_handler = SIG_IGN }, 0 },
		{ { .sa_handler = SIG_DFL }, 0 },
	};
	volatile int stops = 0;

	for (int i = 0; i < 3; i++) {
		before = 0;
		cr_assert_eq(sigaction(SIGTERM, &rows[i].action, NULL), 0);
		cr_expect_eq(xr_job_on_stop(count_stop, (void *)&stops, NULL),
			XR_OK);
		errno = 77;
		raise(SIGTERM);
		cr_expect_eq(errno, 77);
		cr_expect_eq(stops, i + 1);
		cr_expect_eq(before, rows[i].calls, "row %d", i);
	}
}

/* --- how often ------------------------------------------------------------ */

/* Expects that progress is told after @ns, and not before. */
static void
expect_interval(struct xr_progress *p, int64_t ns)
{
	p->step++;
	cr_expect_eq(xr_job_progress(p), XR_OK);
	drained();
	frozen_ns += ns - 1;
	cr_expect_eq(xr_job_progress(p), XR_OK);
	cr_expect_eq(drained(), 0);
	frozen_ns++;
	cr_expect_eq(xr_job_progress(p), XR_OK);
	cr_expect_eq(drained(), 1);
	frozen_ns += 10000000000;
}

Test(worker_job, what_a_slot_has_is_told_less_often)
{
	struct xr_metric metric = { .name = "loss", .value = 1 };
	struct xr_progress p = { .size = sizeof(p) };
	char name[67];

	join_job();
	frozen_ns = 5000000000;
	expect_interval(&p, 100000000);
	join_segment();
	expect_interval(&p, 1000000000);
	p.metrics = &metric;
	p.metric_count = 1;
	expect_interval(&p, 100000000);
	p.step = p.total = 1;
	for (int i = 0; i < 3; i++)
		cr_expect_eq(xr_job_progress(&p), XR_OK);
	cr_expect_eq(drained(), 3); /* the last one is told always */
	/* A metric has a name of 1 to 64 bytes. */
	for (size_t len = 0; len < sizeof(name); len++) {
		memset(name, 'n', len);
		name[len] = '\0';
		metric.name = name;
		cr_expect_eq(xr_job_progress(&p),
			len > 0 && len <= 64 ? XR_OK : XR_E_INVAL);
		cr_expect_eq(drained(), len > 0 && len <= 64);
	}
}
