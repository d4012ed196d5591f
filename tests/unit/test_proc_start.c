/* SPDX-License-Identifier: Apache-2.0 */
/* test_proc_start.c - processes and threads that cannot be started, or are asked wrongly. */
#include <pthread.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include <xrun/event.h>
#include <xrun/final.h>
#include <xrun/proc.h>
#include <xrun/spawn.h>

#include "base/status.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"
#include "tests/unit/short_memory.h"
#include "worker/proc/given.h"
#include "worker/proc/meet.h"
#include "worker/proc/proc.h"
#include "worker/proc/report.h"
#include "worker/rpc/future.h"

TestSuite(proc_start, .timeout = 120);

#define ALLOCATIONS 300 /* there are less */
#define COUNT(a)    (sizeof(a) / sizeof((a)[0]))

static struct xr_error error;

/* --- functions ------------------------------------------------------------------------- */

static enum xr_status
well(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	(void)ordinal;
	(void)arg;
	(void)ctx;
	(void)err;
	return XR_OK;
}

static enum xr_status
badly(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	(void)ordinal;
	(void)arg;
	(void)ctx;
	return xr_error_set(err, XR_E_CLOSED, "badly");
}

static enum xr_status
sleeps(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	(void)ordinal;
	(void)arg;
	(void)ctx;
	(void)err;
	while (pause() == -1)
		;
	return XR_OK;
}

/* The descriptors that it was given, and one signal that is blocked. */
static enum xr_status
looks(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	uint32_t count;
	const int *fds = given_fds(&count);
	sigset_t mask;

	(void)arg;
	(void)ctx;
	sigprocmask(SIG_SETMASK, NULL, &mask);
	if (ordinal != 7 || count != 2 || fds[0] != 0 || fds[1] != 1 ||
		!sigismember(&mask, SIGUSR1) || sigismember(&mask, SIGUSR2))
		return xr_error_set(err, XR_E_STATE, "other ones");
	return XR_OK;
}

/* A child's memory is its own. */
static void
have_enough(void)
{
	until_short = 0;
}

static void
register_all(void)
{
	NEED(xr_proc_register("well", well, NULL, NULL) == XR_OK);
	NEED(xr_proc_register("badly", badly, NULL, NULL) == XR_OK);
	NEED(xr_proc_register("sleeps", sleeps, NULL, NULL) == XR_OK);
	NEED(xr_proc_register("looks", looks, NULL, NULL) == XR_OK);
	pthread_atfork(NULL, NULL, have_enough);
}

static struct xr_proc *
start(const char *func)
{
	const struct xr_proc_opts o = { .size = sizeof(o),
		.func = func,
		.method = "fork" };
	struct xr_proc *proc = NULL;

	NEED(xr_proc_start(&o, &proc, &error) == XR_OK);
	return proc;
}

static int
lowest_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static void
expect(size_t row, enum xr_status status, enum xr_status want, const char *text)
{
	if (status != want || strcmp(error.text, text) != 0)
		forked_note(__LINE__, "row %zu: %s: %s", row,
			xr_status_name(status), error.text);
}

/* --- registering ----------------------------------------------------------------------- */

FORKED_TEST(proc_start, a_function_is_registered_under_1_to_127_bytes_once)
{
	char name[129];

	memset(name, 'n', sizeof(name));
	name[128] = '\0';
	EXPECT_EQ(xr_proc_register(NULL, well, NULL, &error), XR_E_INVAL);
	EXPECT_STR(error.text,
		"xr_proc_register: a name of 1 to 127 bytes, and a function");
	EXPECT_EQ(xr_proc_register("", well, NULL, &error), XR_E_INVAL);
	EXPECT_EQ(xr_proc_register(name, well, NULL, &error), XR_E_INVAL);
	name[127] = '\0';
	EXPECT_EQ(xr_proc_register(name, NULL, NULL, &error), XR_E_INVAL);
	until_short = 1;
	EXPECT_EQ(xr_proc_register(name, well, NULL, &error), XR_E_NOMEM);
	EXPECT_EQ(xr_proc_register(name, well, NULL, &error), XR_OK);
	EXPECT_EQ(xr_proc_register(name, well, NULL, &error), XR_E_EXISTS);
	EXPECT_EQ(xr_proc_register("n", well, NULL, &error), XR_OK);
}

/* --- starting -------------------------------------------------------------------------- */

#define FIELDS "struct xr_proc_opts: size, func and flags"

FORKED_TEST(proc_start, options_of_a_process_are_rejected)
{
	const struct {
		struct xr_proc_opts o;
		enum xr_status status;
		const char *text;
	} row[] = {
		{ { .size = sizeof(row[0].o) - 1, .func = "well" }, XR_E_INVAL,
			FIELDS },
		{ { .func = NULL }, XR_E_INVAL, FIELDS },
		{ { .func = "well", .flags = 2 }, XR_E_INVAL, FIELDS },
		{ { .func = "well", .method = "exec" }, XR_E_INVAL,
			"method 'exec' is not one of zygote, fork, spawn" },
		{ { .func = "none", .method = "fork" }, XR_E_NO_FUNCTION,
			"none is not registered" },
		{ { .func = "well", .cleaner = "none", .method = "fork" },
			XR_E_NO_FUNCTION, "none is not registered" },
		{ { .func = "well", .module = "m.so", .method = "fork" },
			XR_E_INVAL, "a module, and method fork" },
		{ { .func = "none", .module = "/no/m.so" }, XR_E_NOTFOUND,
			"module /no/m.so: No such file or directory" },
		{ { .func = "well" }, XR_E_STATE,
			"xr_init() comes first, or a module, or method fork" },
	};
	const struct proc_more many = { .place = -1,
		.give_count = GIVEN_MAX + 1 };
	struct xr_proc *proc = NULL;

	register_all();
	for (size_t i = 0; i < COUNT(row); i++) {
		struct xr_proc_opts o = row[i].o;

		if (o.size == 0)
			o.size = sizeof(o);
		memset(&error, 0, sizeof(error));
		expect(i, xr_proc_start(&o, &proc, &error), row[i].status,
			row[i].text);
	}
	expect(0, xr_proc_start(NULL, &proc, &error), XR_E_INVAL, FIELDS);
	expect(0,
		proc_start(&(struct xr_proc_opts){ .size = sizeof(row[0].o),
				   .func = "well",
				   .method = "fork" },
			&many, &proc, &error),
		XR_E_RANGE, "too many descriptors");
	EXPECT(proc == NULL);
	xr_proc_free(NULL);
}

FORKED_TEST(proc_start, a_forked_process_has_what_it_is_given)
{
	const struct xr_proc_opts o = { .size = sizeof(o),
		.func = "looks",
		.ordinal = 7,
		.method = "fork" };
	struct proc_more more = { .place = -1,
		.give = (int[]){ 0, 1 },
		.give_count = 2 };
	struct xr_proc *proc = NULL;
	sigset_t mask;

	register_all();
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	more.mask = &mask;
	NEED(proc_start(&o, &more, &proc, &error) == XR_OK);
	EXPECT_EQ(xr_proc_watch(proc, XR_TIMEOUT_NEVER, &error), XR_OK);
	EXPECT(xr_proc_report(proc, 0) == NULL);
	xr_proc_free(proc);
}

FORKED_TEST(proc_start, each_allocation_of_a_start_may_fail)
{
	const struct xr_proc_opts o = { .size = sizeof(o),
		.func = "well",
		.method = "fork" };
	unsigned n = 0, failed = 0;
	struct xr_proc *proc;
	enum xr_status status;
	int lowest;

	register_all();
	lowest = lowest_fd();
	do {
		proc = NULL;
		was_short = false;
		until_short = ++n;
		status = xr_proc_start(&o, &proc, &error);
		until_short = 0;
		failed += was_short;
		EXPECT_EQ(status, was_short ? XR_E_NOMEM : XR_OK);
		EXPECT_EQ(proc != NULL, status == XR_OK);
		if (proc != NULL)
			EXPECT_EQ(xr_proc_watch(proc, XR_TIMEOUT_NEVER, &error),
				XR_OK);
		xr_proc_free(proc);
		EXPECT(forked_childless());
		EXPECT_EQ(lowest_fd(), lowest);
	} while (was_short && n < ALLOCATIONS);
	EXPECT(failed >= 2);
}

static void
without(int nr, int sys, const char *text)
{
	const struct xr_proc_opts o = { .size = sizeof(o),
		.func = "sleeps",
		.method = "fork" };
	struct xr_proc *proc = NULL;
	int lowest = lowest_fd();

	NEED(seccomp_refuse(nr, sys) == 0);
	EXPECT_EQ(xr_proc_start(&o, &proc, &error), XR_E_SYS);
	EXPECT_STR(error.text, text);
	EXPECT(proc == NULL);
	EXPECT(forked_childless());
	EXPECT_EQ(lowest_fd(), lowest);
}

FORKED_TEST(proc_start, without_pidfds_no_process_stays)
{
	register_all();
	without(SYS_pidfd_open, ENOSYS, "pidfd_open: Function not implemented");
}

FORKED_TEST(proc_start, without_a_fork_nothing_stays)
{
	register_all();
	NEED(seccomp_refuse(SYS_clone3, EAGAIN) == 0);
	without(SYS_clone, EAGAIN, "fork: Resource temporarily unavailable");
}

/* --- asking ---------------------------------------------------------------------------- */

FORKED_TEST(proc_start, the_end_of_a_process_is_told_to_its_starter)
{
	struct xr_proc_end how = { .size = sizeof(how) - 1 };
	struct xr_proc *proc;
	int status = -1;
	pid_t pid;

	register_all();
	proc = start("badly");
	EXPECT_EQ(xr_proc_wait(proc, -2, NULL, &error), XR_E_INVAL);
	EXPECT_EQ(xr_proc_wait(proc, XR_TIMEOUT_NEVER, &how, &error),
		XR_E_INVAL);
	EXPECT(strncmp(error.text, "struct xr_proc_end: size is", 27) == 0);
	how.size = sizeof(how);
	EXPECT_EQ(xr_proc_wait(proc, XR_TIMEOUT_NEVER, &how, &error), XR_OK);
	EXPECT_EQ(how.signal, 0);
	EXPECT(how.code > 0);
	EXPECT_EQ(xr_proc_watch(proc, 0, &error), XR_E_REMOTE);
	EXPECT(strstr(error.text, "): badly") != NULL);
	EXPECT(xr_proc_report(proc, 0) != NULL);
	EXPECT(xr_proc_report(proc, 1) == NULL);
	pid = fork();
	if (pid == 0) {
		EXPECT_EQ(xr_proc_wait(proc, 0, NULL, &error), XR_E_STATE);
		EXPECT(strncmp(error.text, "badly is of process ", 20) == 0);
		EXPECT(xr_proc_report(proc, 0) == NULL);
		xr_proc_free(proc);
		_exit(forked_wrong > 0);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(xr_proc_kill(proc, SIGTERM, &error), XR_E_STATE);
	EXPECT(strstr(error.text, ") has ended") != NULL);
	xr_proc_free(proc);
}

FORKED_TEST(proc_start, a_process_that_runs_is_killed_with_its_handle)
{
	struct xr_proc *proc;

	register_all();
	proc = start("sleeps");
	EXPECT_EQ(xr_proc_wait(proc, 0, NULL, &error), XR_E_TIMEOUT);
	EXPECT(xr_proc_report(proc, 0) == NULL);
	EXPECT_EQ(xr_proc_kill(proc, 9999, &error), XR_E_INVAL);
	EXPECT(strstr(error.text, "): Invalid argument") != NULL);
	NEED(seccomp_refuse(SYS_pidfd_send_signal, EPERM) == 0);
	EXPECT_EQ(xr_proc_kill(proc, SIGTERM, &error), XR_E_SYS);
	EXPECT(strstr(error.text, "): Operation not permitted") != NULL);
	kill(xr_proc_pid(proc), SIGKILL);
	EXPECT_EQ(xr_proc_watch(proc, XR_TIMEOUT_NEVER, &error),
		XR_E_WORKER_LOST);
	EXPECT(strstr(error.text, ") was ended by SIGKILL") != NULL);
	xr_proc_free(proc);
	proc = start("sleeps");
	NEED(waitpid(xr_proc_pid(proc), NULL, WNOHANG) == 0);
	kill(xr_proc_pid(proc), SIGKILL);
	NEED(waitpid(xr_proc_pid(proc), NULL, 0) == xr_proc_pid(proc));
	EXPECT_EQ(xr_proc_wait(proc, XR_TIMEOUT_NEVER, NULL, &error), XR_E_SYS);
	EXPECT(strstr(error.text, "somebody else waited for it") != NULL);
	xr_proc_free(proc);
}

/* --- several --------------------------------------------------------------------------- */

#define SPAWN \
	"xr_spawn: func is NULL, or size or flags of struct xr_spawn_opts are invalid"

FORKED_TEST(proc_start, options_of_a_spawn_are_rejected)
{
	const struct {
		const char *func;
		struct xr_spawn_opts o;
		enum xr_status status;
		const char *text;
	} row[] = {
		{ NULL, { .nprocs = 2 }, XR_E_INVAL, SPAWN },
		{ "well", { .size = sizeof(row[0].o) - 1 }, XR_E_INVAL, SPAWN },
		{ "well", { .flags = 4 }, XR_E_INVAL, SPAWN },
		{ "well", { .grace = -2 }, XR_E_INVAL,
			"timeout: -2 ns is negative and not XR_TIMEOUT_DEFAULT" },
		{ "well", { .flags = XR_SPAWN_NO_JOIN }, XR_E_INVAL,
			"xr_spawn: nobody joins them, and there is no set" },
		{ "well", { .method = "exec" }, XR_E_INVAL,
			"method 'exec' is not one of zygote, fork, spawn" },
		{ "none", { .nprocs = 1 }, XR_E_NO_FUNCTION,
			"none is not registered" },
		{ "none", { .nprocs = 2, .method = "fork" }, XR_E_NO_FUNCTION,
			"none is not registered" },
	};

	register_all();
	for (size_t i = 0; i < COUNT(row); i++) {
		struct xr_spawn_opts o = row[i].o;

		if (o.size == 0)
			o.size = sizeof(o);
		memset(&error, 0, sizeof(error));
		expect(i, xr_spawn(row[i].func, NULL, &o, NULL, &error),
			row[i].status, row[i].text);
	}
	expect(0, xr_spawn("none", NULL, NULL, NULL, &error), XR_E_NO_FUNCTION,
		"none is not registered");
}

FORKED_TEST(proc_start, each_allocation_of_a_spawn_may_fail)
{
	const struct xr_spawn_opts o = { .size = sizeof(o),
		.nprocs = 2,
		.method = "fork" };
	unsigned n = 0, failed = 0;
	struct xr_procset *set;
	enum xr_status status;
	int lowest;

	register_all();
	NEED(xr_spawn("well", NULL, &o, NULL, &error) == XR_OK);
	lowest = lowest_fd();
	do {
		set = NULL;
		was_short = false;
		until_short = ++n;
		status = xr_spawn("well", NULL, &o, &set, &error);
		until_short = 0;
		failed += status != XR_OK;
		if (status != (was_short ? XR_E_NOMEM : XR_OK))
			forked_note(__LINE__, "%u: %s: %s", n,
				xr_status_name(status), error.text);
		EXPECT_EQ(set != NULL, status == XR_OK);
		xr_procset_free(set);
		EXPECT(forked_childless());
		EXPECT_EQ(lowest_fd(), lowest);
	} while (was_short && n < ALLOCATIONS && forked_wrong < 10);
	EXPECT(failed > 5);
}

FORKED_TEST(proc_start, a_set_is_joined_in_time_or_for_want_of_memory_not)
{
	const struct xr_spawn_opts o = { .size = sizeof(o),
		.flags = XR_SPAWN_NO_JOIN,
		.nprocs = 2,
		.method = "fork",
		.grace = 1 };
	struct xr_spawn_end how = { .size = sizeof(how) - 1 };
	struct xr_procset *set = NULL;
	int32_t pids[3] = { 0 };

	register_all();
	NEED(xr_spawn("sleeps", NULL, &o, &set, &error) == XR_OK);
	EXPECT_EQ(xr_procset_join(set, -2, NULL, &error), XR_E_INVAL);
	EXPECT_EQ(xr_procset_join(set, 0, &how, &error), XR_E_INVAL);
	EXPECT(strncmp(error.text, "struct xr_spawn_end: size is", 28) == 0);
	EXPECT_EQ(xr_procset_join(set, 0, NULL, &error), XR_E_TIMEOUT);
	EXPECT_STR(error.text, "2 of 2 run still");
	until_short = 1;
	EXPECT_EQ(xr_procset_join(set, XR_TIMEOUT_NEVER, NULL, &error),
		XR_E_NOMEM);
	EXPECT_EQ(until_short, 0);
	EXPECT_EQ(xr_procset_pids(set, pids, 1), 2);
	EXPECT(pids[0] > 0 && pids[1] == 0);
	EXPECT_EQ(xr_procset_pids(set, pids, 3), 2);
	EXPECT(pids[1] > 0 && pids[2] == 0);
	kill(pids[1], SIGKILL);
	how.size = sizeof(how);
	EXPECT_EQ(xr_procset_join(set, XR_TIMEOUT_NEVER, &how, &error),
		XR_E_WORKER_LOST);
	EXPECT_EQ(how.index, 1);
	EXPECT_EQ(how.pid, pids[1]);
	EXPECT_EQ(how.signal, SIGKILL);
	EXPECT_EQ(how.size, sizeof(how));
	EXPECT(forked_childless());
	xr_procset_free(set);
	xr_procset_free(NULL);
}

/* --- meeting --------------------------------------------------------------------------- */

FORKED_TEST(proc_start, ranks_do_not_meet_where_there_is_no_place)
{
	char bytes[56]; /* of a place for two */
	struct stat st;
	int fd, wrong;

	meet_take(-1, 0);
	EXPECT(!meet_is_here());
	NEED(meet_make(2, &fd, &error) == XR_OK);
	NEED(fstat(fd, &st) == 0);
	EXPECT_EQ(st.st_size, sizeof(bytes));
	meet_take(fd, 2);
	EXPECT(!meet_is_here());
	NEED(pread(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes));
	wrong = memfd_create("wrong", MFD_CLOEXEC);
	for (size_t len = 0; len < sizeof(bytes); len += 4) {
		NEED(pwrite(wrong, bytes, len, 0) == (ssize_t)len);
		meet_take(wrong, 0);
		EXPECT(!meet_is_here());
	}
	NEED(pwrite(wrong, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes));
	NEED(ftruncate(wrong, st.st_size - 1) == 0);
	meet_take(wrong, 0);
	EXPECT(!meet_is_here());
	NEED(ftruncate(wrong, st.st_size) == 0);
	bytes[0] ^= 1;
	NEED(pwrite(wrong, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes));
	meet_take(wrong, 0);
	EXPECT(!meet_is_here());
	meet_take(fd, 1);
	EXPECT(meet_is_here());
	close(wrong);
}

static void
no_place(int nr, int sys, const char *text)
{
	int lowest = lowest_fd(), fd = -7;

	NEED(seccomp_refuse(nr, sys) == 0);
	EXPECT_EQ(meet_make(2, &fd, &error), XR_E_SYS);
	EXPECT_STR(error.text, text);
	EXPECT_EQ(fd, -7);
	EXPECT_EQ(lowest_fd(), lowest);
}

FORKED_TEST(proc_start, a_place_to_meet_is_not_made_of_what_fails)
{
	no_place(SYS_ftruncate, ENOSPC,
		"memfd_create: No space left on device");
	no_place(SYS_memfd_create, EMFILE, "memfd_create: Too many open files");
}

/* --- threads --------------------------------------------------------------------------- */

FORKED_TEST(proc_start, a_thread_is_not_started_of_what_is_wrong)
{
	struct xr_thread_opts o = { .size = sizeof(o) - 1, .fn = well };
	struct xr_thread *thread = NULL;

	EXPECT_EQ(xr_thread_start(NULL, &thread, &error), XR_E_INVAL);
	EXPECT_EQ(xr_thread_start(&o, &thread, &error), XR_E_INVAL);
	EXPECT_STR(error.text,
		"struct xr_thread_opts: its size, and a function");
	o.size = sizeof(o);
	o.fn = NULL;
	EXPECT_EQ(xr_thread_start(&o, &thread, &error), XR_E_INVAL);
	o.fn = badly;
	until_short = 1;
	EXPECT_EQ(xr_thread_start(&o, &thread, &error), XR_E_NOMEM);
	EXPECT(thread == NULL);
	NEED(xr_thread_start(&o, &thread, &error) == XR_OK);
	EXPECT_EQ(xr_thread_wait(thread, -2, &error), XR_E_INVAL);
	EXPECT_EQ(xr_thread_wait(thread, INT64_MAX - 1, &error), XR_OK);
	EXPECT_EQ(xr_thread_watch(thread, 0, NULL), XR_E_CLOSED);
	EXPECT_EQ(xr_thread_watch(thread, 0, &error), XR_E_CLOSED);
	EXPECT_STR(error.text, "badly");
	EXPECT(xr_thread_report(thread, 0) != NULL);
	EXPECT(xr_thread_report(thread, 1) == NULL);
	xr_thread_free(thread);
	xr_thread_free(NULL);
	thread = NULL;
	NEED(seccomp_refuse(SYS_clone3, EAGAIN) == 0);
	NEED(seccomp_refuse(SYS_clone, EAGAIN) == 0);
	EXPECT_EQ(xr_thread_start(&o, &thread, &error), XR_E_SYS);
	EXPECT_STR(error.text,
		"pthread_create: Resource temporarily unavailable");
	EXPECT(thread == NULL);
}

static enum xr_status raised_status;

static enum xr_status
raises(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	struct xr_value *value = ordinal == 0 ? NULL :
		ordinal == 1                  ? xr_value_new_nil() :
						failure_new(XR_OK, "fine");

	(void)arg;
	(void)ctx;
	raised_status = xr_proc_raise(value, err);
	return raised_status;
}

FORKED_TEST(proc_start, only_an_error_is_raised)
{
	const char *const text[] = { "out of memory",
		"xr_proc_raise: that is no error",
		"xr_proc_raise: that is no error" };
	struct run run = { .fn = raises, .name = "raises", .func = "raises" };

	for (run.ordinal = 0; run.ordinal < 3; run.ordinal++) {
		struct xr_value *report = NULL;

		EXPECT_EQ(run_do(&run, &error, &report),
			run.ordinal == 0 ? XR_E_NOMEM : XR_E_INVAL);
		EXPECT_STR(error.text, text[run.ordinal]);
		EXPECT_EQ(xr_value_kind(report), XR_ERROR);
		xr_value_unref(report);
	}
}

static enum xr_status
fails_silently(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	(void)ordinal;
	(void)arg;
	(void)ctx;
	(void)err;
	return XR_E_CLOSED;
}

FORKED_TEST(proc_start, a_failure_without_a_text_has_that_of_its_status)
{
	const struct run run = { .fn = fails_silently,
		.name = "f",
		.func = "f" };
	struct xr_value *report = NULL;

	EXPECT_EQ(run_do(&run, &error, &report), XR_E_CLOSED);
	EXPECT_STR(error.text, xr_status_text(XR_E_CLOSED));
	EXPECT_EQ(xr_value_kind(report), XR_ERROR);
	xr_value_unref(report);
}

FORKED_TEST(proc_start, milliseconds_are_rounded_up_and_have_an_end)
{
	int64_t deadline = 0;

	EXPECT_EQ(run_ms(INT64_MAX), -1);
	EXPECT_EQ(run_ms(0), 0);
	EXPECT_EQ(run_ms(INT64_MAX - 1), INT32_MAX);
	EXPECT_EQ(run_deadline(XR_TIMEOUT_DEFAULT, &deadline, NULL), XR_OK);
	EXPECT_EQ(deadline, INT64_MAX);
	EXPECT_EQ(run_deadline(INT64_MAX - 1, &deadline, NULL), XR_OK);
	EXPECT_EQ(deadline, INT64_MAX);
}

/* --- events ---------------------------------------------------------------------------- */

FORKED_TEST(proc_start, an_event_has_at_most_so_many_parts)
{
	static struct xr_event *many[XR_EVENT_PARTS_MAX + 1];
	struct xr_event *one = xr_event_new(), *all, *two[2];

	NEED(one != NULL);
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = one;
	xr_event_set(one);
	all = xr_event_new_all(many, XR_EVENT_PARTS_MAX);
	NEED(all != NULL);
	EXPECT(xr_event_new_all(many, XR_EVENT_PARTS_MAX + 1) == NULL);
	EXPECT(xr_event_new_all(NULL, 1) == NULL);
	EXPECT_EQ(xr_wait_all(many, XR_EVENT_PARTS_MAX, 0, &error), XR_OK);
	EXPECT_EQ(xr_wait_all(many, XR_EVENT_PARTS_MAX + 1, 0, &error),
		XR_E_INVAL);
	EXPECT_STR(error.text, "an event that is NULL, or more than 4096");
	two[0] = all;
	two[1] = one;
	EXPECT_EQ(xr_wait_all(two, 1, 0, &error), XR_OK);
	EXPECT_EQ(xr_wait_all(two, 2, 0, &error), XR_E_INVAL);
	EXPECT(xr_event_new_any(two, 2) == NULL);
	two[1] = NULL;
	EXPECT_EQ(xr_wait_all(two, 2, 0, &error), XR_E_INVAL);
	until_short = 1;
	EXPECT(xr_event_new() == NULL);
	until_short = 1;
	EXPECT_EQ(xr_wait_all(many, 1, 0, &error), XR_E_NOMEM);
	EXPECT_EQ(xr_wait_all(many, 1, 0, &error), XR_OK);
	xr_event_unref(all);
	xr_event_unref(one);
	xr_event_unref(NULL);
}

/* --- finalisers ------------------------------------------------------------------------ */

static int finals;

static void
final(void *ctx)
{
	finals += *(int *)ctx;
}

FORKED_TEST(proc_start, a_finaliser_runs_once_in_its_process)
{
	struct xr_final *f = NULL;
	int one = 1, how = -1;
	pid_t pid;

	EXPECT_EQ(xr_final_new(NULL, &one, 0, &f, &error), XR_E_INVAL);
	EXPECT_STR(error.text, "xr_final_new: no function");
	until_short = 1;
	EXPECT_EQ(xr_final_new(final, &one, 0, &f, &error), XR_E_NOMEM);
	EXPECT(f == NULL);
	EXPECT(!xr_final_run(NULL));
	xr_final_drop(NULL);
	NEED(xr_final_new(final, &one, 0, &f, &error) == XR_OK);
	pid = fork();
	if (pid == 0) {
		EXPECT(!xr_final_run(f));
		EXPECT_EQ(finals, 0);
		_exit(forked_wrong > 0);
	}
	NEED(waitpid(pid, &how, 0) == pid);
	EXPECT_EQ(how, 0);
	EXPECT(xr_final_run(f));
	EXPECT_EQ(finals, 1);
	EXPECT(!xr_final_run(f)); /* it is in no list any more */
	xr_final_drop(f);
	EXPECT_EQ(finals, 1);
}
