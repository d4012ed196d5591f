/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_proc_end.c - how processes of xr_proc_start() run and end (worker/proc/proc.c), of
 * method fork and by a zygote that was forked here.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/unit/proc_rig.h"

TestSuite(proc_end, .timeout = 150);

/* --- how one ended ------------------------------------------------------------------ */

static void
ends_of_all_kinds(void)
{
	const struct {
		const char *func;
		uint32_t ordinal;
		int code, signal;
		enum xr_status status;
		const char *text;
	} row[] = {
		{ "exits", 0, 0, 0, XR_OK, "" },
		{ "exits", 1, 1, 0, XR_E_WORKER_LOST,
			" ended with exit code 1" },
		{ "exits", 255, 255, 0, XR_E_WORKER_LOST,
			" ended with exit code 255" },
		{ "leaves", 2, 2, 0, XR_E_WORKER_LOST,
			" ended with exit code 2" },
		{ "dies", SIGTERM, -1, SIGTERM, XR_E_WORKER_LOST,
			" was ended by SIGTERM" },
		{ "dies", SIGKILL, -1, SIGKILL, XR_E_WORKER_LOST,
			" was ended by SIGKILL" },
		{ "fails", 0, XR_EXIT_RANK_FAILED, 0, XR_E_REMOTE,
			": it failed" },
	};
	unsigned open = descriptors();

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct xr_proc *proc = start(row[i].func, row[i].ordinal);
		struct pollfd on = { .fd = xr_proc_fd(proc), .events = POLLIN };

		EXPECT_EQ(poll(&on, 1, -1), 1);
		expect_end(proc, row[i].code, row[i].signal);
		expect_end(proc, row[i].code, row[i].signal);
		expect_watched(proc, row[i].status, row[i].text);
		EXPECT_EQ(xr_proc_report(proc, 0) != NULL,
			row[i].status == XR_E_REMOTE);
		EXPECT(xr_proc_report(proc, 1) == NULL);
		EXPECT_EQ(poll(&on, 1, 0), 1);
		EXPECT_EQ(xr_proc_wait(proc, 0, NULL, NULL), XR_OK);
		xr_proc_free(proc);
		EXPECT_EQ(descriptors(), open);
	}
}

FORKED_TEST(proc_end, an_end_is_told_as_it_was_as_often_as_it_is_asked_for)
{
	of_both(ends_of_all_kinds);
}

static void
cleaner_that_fails(void)
{
	struct xr_proc *proc =
		start_with((struct xr_proc_opts){ .func = "leaves",
				   .cleaner = "fails" },
			(struct proc_more){ .place = -1 });

	expect_end(proc, 0, 0);
	expect_watched(proc, XR_E_REMOTE, ": it failed");
	xr_proc_free(proc);
}

FORKED_TEST(proc_end, a_report_counts_more_than_an_exit_code_of_0)
{
	of_both(cleaner_that_fails);
}

static void
two_that_failed(void)
{
	struct xr_proc *proc =
		start_with((struct xr_proc_opts){ .func = "fails",
				   .cleaner = "fails" },
			(struct proc_more){ .place = -1 });

	expect_end(proc, XR_EXIT_RANK_FAILED, 0);
	EXPECT(xr_proc_report(proc, 0) != NULL);
	EXPECT(xr_proc_report(proc, 1) != NULL);
	EXPECT(xr_proc_report(proc, 2) == NULL);
	xr_proc_free(proc);
}

FORKED_TEST(proc_end, function_and_cleaner_report_each)
{
	of_both(two_that_failed);
}

/* --- what is said of one --------------------------------------------------------------- */

static void
what_it_is(void)
{
	char name[128], want[300];
	int64_t before = clock_wall();
	struct xr_proc *proc = start("exits", 0), *other;
	struct stat st;

	EXPECT_STR(xr_proc_name(proc), "exits");
	EXPECT(xr_proc_pid(proc) > 0 && xr_proc_pid(proc) != getpid());
	EXPECT(xr_proc_started(proc) >= before);
	EXPECT(xr_proc_started(proc) <= clock_wall());
	EXPECT(fstat(xr_proc_fd(proc), &st) == 0);
	EXPECT_EQ(S_ISSOCK(st.st_mode), by_zygote);
	expect_end(proc, 0, 0);
	snprintf(want, sizeof(want), "exits (process %d) has ended",
		xr_proc_pid(proc));
	EXPECT_EQ(xr_proc_kill(proc, SIGTERM, &error), XR_E_STATE);
	EXPECT_STR(error.text, want);
	memset(&error, 0, sizeof(error));
	EXPECT_EQ(xr_proc_kill_tree(proc, SIGTERM, &error), XR_E_STATE);
	EXPECT_STR(error.text, want);
	xr_proc_free(proc);

	memset(name, 'n', 127);
	name[127] = '\0';
	other = start_with((struct xr_proc_opts){ .func = "exits",
				   .name = name,
				   .ordinal = 5 },
		(struct proc_more){ .place = -1 });
	EXPECT_STR(xr_proc_name(other), name);
	EXPECT_EQ(xr_proc_watch(other, XR_TIMEOUT_NEVER, &error),
		XR_E_WORKER_LOST);
	snprintf(want, sizeof(want),
		"%.100s (process %d) ended with exit code 5", name,
		xr_proc_pid(other));
	EXPECT_STR(error.text, want);
	xr_proc_free(other);
}

FORKED_TEST(proc_end, a_process_has_the_name_of_its_function_or_its_own)
{
	of_both(what_it_is);
}

static void
still_running(void)
{
	struct xr_proc_end how = { .size = sizeof(how) - 1 };
	struct xr_proc *proc;
	char want[300];
	int ends[2];

	NEED(pipe2(ends, O_CLOEXEC) == 0);
	NEED(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
	proc = start("reads", STDIN_FILENO);
	asked = 0;
	EXPECT_EQ(xr_proc_wait(proc, 7 * NS_PER_MS - 1, NULL, &error),
		XR_E_TIMEOUT);
	EXPECT_EQ(asked, 1);
	EXPECT_EQ(asked_ms[0], 7);
	snprintf(want, sizeof(want), "reads (process %d) runs still",
		xr_proc_pid(proc));
	EXPECT_STR(error.text, want);
	EXPECT_EQ(xr_proc_watch(proc, 0, &error), XR_E_TIMEOUT);
	EXPECT_STR(error.text, want);
	EXPECT(xr_proc_report(proc, 0) == NULL);
	EXPECT_EQ(xr_proc_wait(proc, 0, &how, &error), XR_E_INVAL);
	snprintf(want, sizeof(want),
		"struct xr_proc_end: size is %zu, at least %zu",
		sizeof(how) - 1, sizeof(how));
	EXPECT_STR(error.text, want);
	EXPECT_EQ(write(ends[1], "\7", 1), 1);
	expect_end(proc, 7, 0);
	xr_proc_free(proc);
	close(ends[0]);
	close(ends[1]);
}

FORKED_TEST(proc_end, one_that_runs_is_waited_for_as_long_as_is_asked)
{
	of_both(still_running);
}

/* --- what one has ------------------------------------------------------------------------ */

static char told[1024];

/* Runs "tells" with a pipe as standard output. */
static const char *
told_by(struct xr_proc_opts o, struct proc_more more)
{
	int ends[2], kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
	struct xr_proc *proc;
	ssize_t n;

	NEED(kept != -1 && pipe2(ends, O_CLOEXEC) == 0);
	NEED(dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO);
	o.func = "tells";
	proc = start_with(o, more);
	NEED(dup2(kept, STDOUT_FILENO) == STDOUT_FILENO);
	close(kept);
	close(ends[1]);
	expect_watched(proc, XR_OK, "");
	n = read(ends[0], told, sizeof(told) - 1);
	told[n > 0 ? n : 0] = '\0';
	close(ends[0]);
	xr_proc_free(proc);
	return told;
}

#define BIG (8u << 20)

static void
all_that_is_given(void)
{
	static const char *const env[] = { "TOLD=by the options", NULL };
	struct proc_more more = { .place = -1 };
	struct xr_value *arg;
	char *bytes = calloc(1, BIG);
	sigset_t mask;

	NEED(bytes != NULL);
	memcpy(bytes, "an argument of 20 b", 19);
	bytes[19] = '.';
	arg = xr_value_new_bytes(bytes, BIG);
	free(bytes);
	NEED(arg != NULL);
	setenv("TOLD", "by the starter", 1);
	setenv("OTHER", "is there", 1);
	changed = by_zygote ? 3 : 2; /* the zygote has been forked before */
	NEED(chdir("/") == 0);
	EXPECT_STR(told_by((struct xr_proc_opts){ .ordinal = 4 }, more),
		"4 ; /; TOLD=by the starter OTHER=is there; alone; open; memory 2");
	NEED(chdir("/dev") == 0);
	NEED(meet_make(9, &more.place, &error) == XR_OK);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	more.mask = &mask;
	most_asked = 0;
	EXPECT_STR(told_by((struct xr_proc_opts){ .arg = arg,
				   .env = env,
				   .ordinal = 8 },
			   more),
		"8 an argument of 20 b.; /dev; TOLD=by the options OTHER=; meets; blocked; memory 2");
	if (!by_zygote)
		EXPECT(most_asked < BIG / 8); /* its memory has it */
	close(more.place);
	xr_value_unref(arg);
}

FORKED_TEST(proc_end,
	a_process_has_what_it_is_given_and_else_what_its_starter_has)
{
	of_both(all_that_is_given);
}

FORKED_TEST(proc_end, method_spawn_executes_and_others_fork)
{
	const struct proc_more more = { .place = -1 };
	struct xr_proc *none = NULL;

	register_all();
	changed = 1;
	NEED(zygote_fork(&of, &error) == XR_OK);
	NEED(chdir("/") == 0);
	unsetenv("TOLD");
	unsetenv("OTHER");
	by_zygote = true;
	EXPECT_STR(told_by((struct xr_proc_opts){ .method = "zygote" }, more),
		"0 ; /; TOLD= OTHER=; alone; open; memory 1");
	EXPECT_STR(told_by((struct xr_proc_opts){ .method = "fork" }, more),
		"0 ; /; TOLD= OTHER=; alone; open; memory 1");
	EXPECT_STR(told_by((struct xr_proc_opts){ .method = "spawn" }, more),
		"0 ; /; TOLD= OTHER=; alone; open; memory 0");
	zygote_end(&of);
	EXPECT_EQ(xr_proc_start(
			  &(struct xr_proc_opts){
				  .size = sizeof(struct xr_proc_opts),
				  .func = "none",
				  .cleaner = "neither" },
			  &none, &error),
		XR_E_NO_FUNCTION);
	EXPECT_STR(error.text, "none is not registered");
	EXPECT_EQ(proc_method(NULL, &error), XR_OK);
	EXPECT_EQ(proc_method("zygote", &error), XR_OK);
	EXPECT_EQ(proc_method("fork", &error), XR_OK);
	EXPECT_EQ(proc_method("spawn", &error), XR_OK);
	EXPECT_EQ(proc_method("spawn2", &error), XR_E_INVAL);
}

static void
without_stdio(void)
{
	struct xr_proc *proc[2];
	struct proc_more more = { .place = -1 };

	NEED(close_range(0, 2, 0) == 0);
	NEED(meet_make(2, &more.place, &error) == XR_OK);
	for (int i = 0; i < 2; i++)
		proc[i] = start_with(
			(struct xr_proc_opts){ .func = "lacks stdio" }, more);
	for (int i = 0; i < 2; i++) {
		expect_watched(proc[i], XR_OK, "");
		xr_proc_free(proc[i]);
	}
	proc[0] = start("fails", 0);
	expect_watched(proc[0], XR_E_REMOTE, ": it failed");
	xr_proc_free(proc[0]);
	close(more.place);
}

FORKED_TEST(proc_end, what_its_starter_has_not_open_a_process_has_not_either)
{
	NEED(close_range(0, 2, 0) == 0);
	of_both(without_stdio);
}

FORKED_TEST(proc_end, what_stdio_holds_is_written_once)
{
	char text[32] = "";
	struct xr_proc *proc;
	int fd = memfd_create("stdio", MFD_CLOEXEC);
	FILE *f = fdopen(fd, "w+e");

	NEED(f != NULL);
	register_all();
	fputs("once", f);
	proc = start("fails", 0); /* it flushes what it holds */
	expect_end(proc, XR_EXIT_RANK_FAILED, 0);
	xr_proc_free(proc);
	fflush(f);
	EXPECT_EQ(pread(fd, text, sizeof(text) - 1, 0), 4);
	EXPECT_STR(text, "once");
	NEED(ftruncate(fd, 0) == 0);
	rewind(f);
	fputs("again", f);
	NEED(zygote_fork(&of, &error) == XR_OK);
	by_zygote = true;
	proc = start("fails", 0);
	expect_end(proc, XR_EXIT_RANK_FAILED, 0);
	xr_proc_free(proc);
	zygote_end(&of);
	fflush(f);
	EXPECT_EQ(pread(fd, text, sizeof(text) - 1, 0), 5);
	EXPECT_STR(text, "again");
	fclose(f);
}

static FILE *printed;

static enum xr_status
prints(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	(void)ordinal;
	(void)arg;
	(void)ctx;
	(void)err;
	return fputs("printed;", printed) >= 0 ? XR_OK : XR_E_SYS;
}

/* As a cleaner it leaves within the end of the process. */
static enum xr_status
prints_and_leaves(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	prints(ordinal, arg, ctx, err);
	exit(5);
}

/* Runs @func and @cleaner, and expects @text in the file once it has ended. */
static void
expect_printed(const char *func, const char *cleaner, int code,
	const char *text)
{
	char got[64] = "";
	struct xr_proc *proc = start_with((struct xr_proc_opts){ .func = func,
						  .cleaner = cleaner },
		(struct proc_more){ .place = -1 });

	expect_end(proc, code, 0);
	xr_proc_free(proc);
	EXPECT(pread(fileno(printed), got, sizeof(got) - 1, 0) >= 0);
	EXPECT_STR(got, text);
	NEED(ftruncate(fileno(printed), 0) == 0);
	NEED(lseek(fileno(printed), 0, SEEK_SET) == 0);
}

static void
what_is_printed(void)
{
	expect_printed("prints", NULL, 0, "printed;");
	expect_printed("prints", "prints", 0, "printed;printed;");
	expect_printed("leaves", "prints", 0, "printed;");
	expect_printed("fails", "prints", XR_EXIT_RANK_FAILED, "printed;");
	expect_printed("exits", "prints", 0, "");
	expect_printed("prints", "prints and leaves", 5, "printed;printed;");
	expect_printed("prints and leaves", "prints and leaves", 5,
		"printed;printed;");
}

FORKED_TEST(proc_end, what_functions_print_is_written_and_cleaners_run_once)
{
	printed = fdopen(memfd_create("printed", MFD_CLOEXEC), "w+e");
	NEED(printed != NULL);
	NEED(xr_proc_register("prints", prints, NULL, NULL) == XR_OK);
	NEED(xr_proc_register("prints and leaves", prints_and_leaves, NULL,
		     NULL) == XR_OK);
	of_both(what_is_printed);
}

/* --- those that are left -------------------------------------------------------------------- */

/* A process with a child; both have the other end of the pipe that is returned. */
static int
start_two(struct xr_proc **proc)
{
	int ends[2], kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
	char one;

	NEED(pipe2(ends, O_CLOEXEC) == 0);
	NEED(dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO);
	*proc = start("descends", STDOUT_FILENO);
	NEED(dup2(kept, STDOUT_FILENO) == STDOUT_FILENO);
	close(kept);
	close(ends[1]);
	NEED(read(ends[0], &one, 1) == 1);
	return ends[0];
}

static void
those_below(void)
{
	struct xr_proc *proc;
	char one;
	int fd = start_two(&proc);

	EXPECT_EQ(xr_proc_kill_tree(proc, 9999, &error), XR_E_INVAL);
	EXPECT_EQ(xr_proc_wait(proc, 0, NULL, NULL), XR_E_TIMEOUT);
	EXPECT_EQ(xr_proc_kill_tree(proc, SIGTERM, &error), XR_OK);
	expect_end(proc, -1, SIGTERM);
	EXPECT_EQ(read(fd, &one, 1), 0);
	close(fd);
	xr_proc_free(proc);
	fd = start_two(&proc);
	xr_proc_free(proc);
	EXPECT_EQ(read(fd, &one, 1), 0);
	close(fd);
	/* Of a fork they are ours, and a pipe is closed before its holder is dead. */
	while (!by_zygote && waitpid(-1, NULL, 0) > 0)
		continue;
}

FORKED_TEST(proc_end, what_descends_from_one_ends_with_it)
{
	register_all();
	those_below();
	EXPECT(forked_childless());
}

FORKED_TEST(proc_end, what_descends_from_one_of_a_zygote_ends_with_it)
{
	register_all();
	NEED(zygote_fork(&of, &error) == XR_OK);
	by_zygote = true;
	those_below();
	zygote_end(&of);
	EXPECT(forked_childless());
}

static struct xr_proc *
start_daemon(const char *func, int fd)
{
	return start_with((struct xr_proc_opts){ .func = func,
				  .flags = XR_PROC_DAEMON,
				  .ordinal = (uint32_t)fd },
		(struct proc_more){ .place = -1 });
}

FORKED_TEST(proc_end, daemons_are_told_to_end_and_the_others_are_waited_for)
{
	struct xr_proc *daemon, *first, *second;
	int ends[2];

	register_all();
	NEED(pipe2(ends, O_CLOEXEC) == 0);
	daemon = start_daemon("reads", ends[0]);
	close(ends[1]);
	/* It waits for the end of the daemon, which has the other end now. */
	first = start("reads", (uint32_t)ends[0]);
	second = start("exits", 3);
	EXPECT_EQ(xr_proc_wait(daemon, 0, NULL, NULL), XR_E_TIMEOUT);
	EXPECT_EQ(xr_proc_wait(first, 0, NULL, NULL), XR_E_TIMEOUT);
	patient = true;
	final_run_all();
	EXPECT(forked_childless());
	expect_end(daemon, -1, SIGTERM);
	expect_end(first, 99, 0);
	expect_end(second, 3, 0);
	xr_proc_free(first);
	xr_proc_free(daemon);
	xr_proc_free(second);
	close(ends[0]);
}

FORKED_TEST(proc_end, a_daemon_that_does_not_end_is_killed_after_5_s)
{
	struct xr_proc *daemon, *other;
	int ends[2];
	char one;

	register_all();
	NEED(pipe2(ends, O_CLOEXEC) == 0);
	daemon = start_daemon("stays", ends[1]);
	NEED(read(ends[0], &one, 1) == 1);
	other = start("exits", 4);
	asked = 0;
	final_run_all();
	EXPECT_EQ(asked, 1);
	EXPECT_EQ(asked_ms[0], 5000);
	expect_end(daemon, -1, SIGKILL);
	expect_end(other, 4, 0);
	xr_proc_free(daemon);
	xr_proc_free(other);
	close(ends[0]);
	close(ends[1]);
}

/* A fork of the starter, which has processes of its own. */
static void __attribute__((noreturn))
be_other(struct xr_proc *parents, unsigned open)
{
	struct xr_proc *own;

	EXPECT_EQ(descriptors(), open); /* no zygote has its descriptors */
	by_zygote = false;
	own = start("exits", 6);
	final_run_all();
	expect_end(own, 6, 0);
	xr_proc_free(own);
	EXPECT_EQ(xr_proc_wait(parents, 0, NULL, &error), XR_E_STATE);
	xr_proc_free(parents);
	_exit(forked_wrong > 0);
}

FORKED_TEST(proc_end, a_fork_of_the_starter_does_not_end_its_processes)
{
	struct xr_proc *daemon, *other;
	int ends[2], status = -1;
	unsigned open;
	pid_t pid;

	register_all();
	open = descriptors();
	NEED(zygote_fork(&of, &error) == XR_OK);
	NEED(pipe2(ends, O_CLOEXEC) == 0);
	daemon = start_daemon("reads", ends[0]);
	other = start("reads", (uint32_t)ends[0]);
	pid = fork();
	if (pid == 0)
		be_other(daemon, open + 6);
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(xr_proc_wait(daemon, 0, NULL, NULL), XR_E_TIMEOUT);
	EXPECT_EQ(xr_proc_wait(other, 0, NULL, NULL), XR_E_TIMEOUT);
	EXPECT_EQ(write(ends[1], "\1\1", 2), 2);
	expect_end(daemon, 1, 0);
	expect_end(other, 1, 0);
	xr_proc_free(daemon);
	xr_proc_free(other);
	by_zygote = true;
	daemon = start("exits", 7); /* the zygote serves its parent still */
	expect_end(daemon, 7, 0);
	xr_proc_free(daemon);
	final_run_all(); /* ends the zygote */
	EXPECT(forked_childless());
	close(ends[0]);
	close(ends[1]);
	EXPECT_EQ(descriptors(), open);
}
