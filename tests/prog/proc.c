/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.c - processes of libxrun, by the acceptance checks: its arguments say what to
 * do, and how they are started.
 *
 *	proc CASE METHOD
 *
 * A case prints what it saw; tests/e2e/proc.bats knows what that has to be.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/final.h>
#include <xrun/proc.h>

#include "tests/prog/proc.h"

/* --- what the program does ------------------------------------------------- */

static const char *method, *module;
static struct xr_error err;

static void
finalise(void *ctx)
{
	printf("%d: final %s\n", getpid() == *(pid_t *)ctx, "of the program");
}

static void
check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, err.text);
	exit(1);
}

static struct xr_proc *
start(const char *func, uint32_t ordinal)
{
	struct xr_proc_opts o = {
		.size = sizeof(o),
		.func = func,
		.ordinal = ordinal,
		.method = method,
	};
	struct xr_proc *p = NULL;

	check(xr_proc_start(&o, &p, &err) == XR_OK, func);
	return p;
}

static struct xr_proc_end
end_of(struct xr_proc *p)
{
	struct xr_proc_end end = { .size = sizeof(end) };

	check(xr_proc_wait(p, XR_SECONDS(30), &end, &err) == XR_OK, "wait");
	return end;
}

static void
tell_report(struct xr_proc *p, size_t i)
{
	struct xr_failure f = { .size = sizeof(f) };
	struct xr_value *report = xr_proc_report(p, i);

	if (report == NULL) {
		printf("no report %zu\n", i);
		return;
	}
	xr_value_failure(report, &f);
	printf("report of %s: %s: %s\n", f.func, xr_status_name(f.status),
		strlen(f.text) > 80 ? "long" : f.text);
}

static void
run_say(void)
{
	struct xr_proc_opts o = {
		.size = sizeof(o),
		.func = "say",
		.ordinal = 7,
		.method = method,
		.arg = xr_value_new_text("hello", 5),
	};
	struct xr_proc *p = NULL;

	check(xr_proc_start(&o, &p, &err) == XR_OK, "start");
	xr_value_unref(o.arg);
	check(xr_proc_watch(p, XR_SECONDS(30), &err) == XR_OK, "watch");
	printf("code %d\n", end_of(p).code);
	xr_proc_free(p);
}

static void
run_fail(void)
{
	struct xr_proc *p = start("break_down", 0);
	struct xr_failure f = { .size = sizeof(f) };
	enum xr_status status = xr_proc_watch(p, XR_SECONDS(30), &err);
	int lines = 0;

	printf("code %d, %s\n", end_of(p).code, xr_status_name(status));
	printf("%s\n", strstr(err.text, "): "));
	tell_report(p, 0);
	tell_report(p, 1);
	xr_value_failure(xr_proc_report(p, 0), &f);
	for (const char *at = f.backtrace; *at != '\0'; at++)
		lines += *at == '\n';
	printf("frame 0: %.*s, frames: %s\n",
		(int)strcspn(f.backtrace + 6, "+"), f.backtrace + 6,
		lines >= 2 && lines <= 16 ? "2 to 16" : f.backtrace);
	err.text[0] = '\0';
	printf("again %s", xr_status_name(xr_proc_watch(p, 0, &err)));
	printf(" %s\n", strstr(err.text, "sample"));
	xr_proc_free(p);
}

static void
run_cleaner(void)
{
	static const char *const funcs[] = { "break_down", "nothing", "leave" };

	for (int i = 0; i < 3; i++) {
		struct xr_proc_opts o = {
			.size = sizeof(o),
			.func = funcs[i],
			.cleaner = "clean_badly",
			.ordinal = 3,
			.method = method,
		};
		struct xr_proc *p = NULL;

		check(xr_proc_start(&o, &p, &err) == XR_OK, "start");
		printf("code %d\n", end_of(p).code);
		for (size_t n = 0; n < 2; n++)
			tell_report(p, n);
		xr_proc_free(p);
	}
}

static void
run_long(void)
{
	struct xr_proc *p = start("say_much", 0);
	struct xr_failure f = { .size = sizeof(f) };

	check(xr_proc_watch(p, XR_SECONDS(30), &err) == XR_E_REMOTE, "watch");
	xr_value_failure(xr_proc_report(p, 0), &f);
	printf("%zu bytes, %s, %s\n", strlen(f.text), f.type,
		xr_status_name(f.status));
	xr_proc_free(p);
}

static void
run_exit(void)
{
	struct xr_proc *p = start("leave", 3);
	enum xr_status status = xr_proc_watch(p, XR_SECONDS(30), &err);

	printf("code %d, %s, %s\n", end_of(p).code, xr_status_name(status),
		strstr(err.text, "ended"));
	tell_report(p, 0);
	xr_proc_free(p);
}

static void
run_signal(void)
{
	struct xr_proc *p = start("die", SIGKILL);
	enum xr_status status = xr_proc_watch(p, XR_SECONDS(30), &err);
	struct xr_proc_end end = end_of(p);

	printf("code %d, signal %d, %s, %s\n", end.code, end.signal,
		xr_status_name(status), strstr(err.text, "was"));
	xr_proc_free(p);
	p = start("stay", 0);
	check(xr_proc_wait(p, 0, NULL, &err) == XR_E_TIMEOUT, "wait");
	check(xr_proc_kill(p, SIGTERM, &err) == XR_OK, "kill");
	printf("signal %d\n", end_of(p).signal);
	printf("%s\n", xr_status_name(xr_proc_kill(p, SIGTERM, &err)));
	xr_proc_free(p);
}

static void
run_report(void)
{
	struct xr_proc_opts o = {
		.size = sizeof(o),
		.func = "break_down",
		.name = "loader",
		.method = method,
	};
	struct xr_failure f = { .size = sizeof(f) };
	struct xr_proc *p = NULL;
	char want[128], since[64];
	time_t seconds;

	check(xr_proc_start(&o, &p, &err) == XR_OK, "start");
	end_of(p);
	xr_value_failure(xr_proc_report(p, 0), &f);
	seconds = (time_t)(xr_proc_started(p) / 1000000000);
	strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%S", gmtime(&seconds));
	snprintf(want, sizeof(want), "loader, process %d, since %s",
		xr_proc_pid(p), since);
	check(strncmp(f.worker, want, strlen(want)) == 0, f.worker);
	check((int32_t)f.worker_id == xr_proc_pid(p), "pid");
	check(time(NULL) - seconds < 60, "time");
	printf("named\n");
	xr_proc_free(p);
}

static void
run_around(void)
{
	struct xr_proc *p;

	proc_shared = 2;
	setenv("COLOUR", "green", 1);
	check(chdir("/") == 0, "chdir");
	p = start("look_around", 0);
	check(xr_proc_watch(p, XR_SECONDS(30), &err) == XR_OK, "watch");
	xr_proc_free(p);
}

static void
run_poll(void)
{
	struct xr_proc *p = start("stay", 0);
	struct pollfd on = { .fd = xr_proc_fd(p), .events = POLLIN };

	printf("%d\n", poll(&on, 1, 0));
	check(xr_proc_kill(p, SIGKILL, &err) == XR_OK, "kill");
	printf("%d", poll(&on, 1, 30000));
	printf(" %s", xr_status_name(xr_proc_wait(p, 0, NULL, &err)));
	printf(" %d\n", poll(&on, 1, 0));
	xr_proc_free(p);
}

/* Descriptors and mappings of this process. */
static int
lines_of(const char *command)
{
	FILE *in;
	int count, c;

	in = fopen(command, "r");
	for (count = 0; (c = getc(in)) != EOF;)
		count += c == '\n';
	fclose(in);
	return count;
}

static int
descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

static int
children(void)
{
	char path[64];
	FILE *in;
	int count = 0, pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	in = fopen(path, "r");
	while (fscanf(in, "%d", &pid) == 1)
		count++;
	fclose(in);
	return count;
}

static void
run_cycles(void)
{
	int fds = 0, maps = 0, below = 0;

	for (int i = 0; i < 1000; i++) {
		struct xr_proc *p = start("nothing", 0);

		check(end_of(p).code == 0, "code");
		xr_proc_free(p);
		if (i == 9) {
			fds = descriptors();
			maps = lines_of("/proc/self/maps");
			below = children();
		}
	}
	check(descriptors() == fds, "descriptors");
	check(children() == below, "children");
	check(lines_of("/proc/self/maps") <= maps + 2, "mappings");
	printf("none left, %d below\n", below);
}

static void
run_tree(void)
{
	struct xr_proc *p = start("have_children", 0);
	struct xr_proc *other = start("have_children", 0);
	char line[16];

	check(fgets(line, sizeof(line), stdin) != NULL, "told to go on");
	check(xr_proc_kill_tree(p, SIGKILL, &err) == XR_OK, "kill");
	printf("signal %d\n", end_of(p).signal);
	fflush(stdout);
	check(fgets(line, sizeof(line), stdin) != NULL, "told to go on");
	xr_proc_free(p);
	xr_proc_free(other);
}

static void
run_orphans(void)
{
	bool alone = strcmp(method, "fork") == 0;

	for (int i = 0; i < 3; i++)
		start(alone ? "stay" : "have_children", 0);
	pause();
}

static void
run_wait(void)
{
	struct xr_proc_opts o = {
		.size = sizeof(o),
		.func = "say",
		.method = method,
	};
	struct xr_proc *p = NULL;

	start("nothing", 0);
	check(xr_proc_start(&o, &p, &err) == XR_OK, "start");
	o.func = "stay";
	o.flags = XR_PROC_DAEMON;
	check(xr_proc_start(&o, &p, &err) == XR_OK, "start");
}

static void
run_final(void)
{
	static pid_t self;
	struct xr_final *f[3];
	struct xr_proc *p;

	self = getpid();
	check(xr_final_new(proc_note_end, "low", -5, NULL, &err) == XR_OK,
		"new");
	check(xr_final_new(proc_note_end, "high", 5, NULL, &err) == XR_OK,
		"new");
	check(xr_final_new(finalise, &self, 9, NULL, &err) == XR_OK, "new");
	for (int i = 0; i < 3; i++)
		check(xr_final_new(proc_note_end, "early", 0, &f[i], &err) ==
				XR_OK,
			"new");
	printf("%d", xr_final_run(f[0]));
	printf("%d\n", xr_final_run(f[0]));
	xr_final_drop(f[1]);
	fflush(stdout);
	if (fork() == 0)
		exit(0);
	wait(NULL);
	p = start("have_finals", 0);
	check(end_of(p).code == 0, "code");
	xr_proc_free(p);
}

static void
run_refused(void)
{
	struct xr_proc_opts o = { .size = sizeof(o), .func = "say" };
	struct xr_proc *p = NULL;

	o.method = "thread";
	printf("%s\n", xr_status_name(xr_proc_start(&o, &p, &err)));
	printf("%s\n", err.text);
	o.method = method;
	o.func = "nobody";
	printf("%s\n", xr_status_name(xr_proc_start(&o, &p, &err)));
	o.func = "say";
	o.module = "/nowhere/module.so";
	printf("%s\n", xr_status_name(xr_proc_start(&o, &p, &err)));
}

static void
run_late(void)
{
	struct xr_proc_opts o = {
		.size = sizeof(o),
		.func = "say",
		.method = method,
	};
	struct xr_proc *p = NULL;

	printf("%s\n", xr_status_name(xr_proc_start(&o, &p, &err)));
	printf("%s\n", err.text);
}

static void *
wait_for_end(void *arg)
{
	while (pause() == -1)
		continue;
	return NULL;
}

static void
run_threads(void)
{
	pthread_t id;

	check(pthread_create(&id, NULL, wait_for_end, NULL) == 0, "thread");
	run_late();
}

#define CROWD 8

static void *
start_many(void *arg)
{
	for (int i = 0; i < 50; i++) {
		struct xr_proc *p = start("leave", (uint32_t)(i % 7));

		check(end_of(p).code == i % 7, "code");
		xr_proc_free(p);
	}
	return NULL;
}

/* Threads start some at once. */
static void
run_crowd(void)
{
	pthread_t ids[CROWD];

	for (int i = 0; i < CROWD; i++)
		check(pthread_create(&ids[i], NULL, start_many, NULL) == 0,
			"thread");
	for (int i = 0; i < CROWD; i++)
		pthread_join(ids[i], NULL);
	printf("all told\n");
}

static void *
start_first(void *arg)
{
	struct xr_proc **p = arg;

	*p = start("stay", 0);
	return NULL;
}

/* The thread that started the first of them, and so the zygote, ends. */
static void
run_thread_ends(void)
{
	struct xr_proc *first = NULL, *p;
	pthread_t id;

	check(pthread_create(&id, NULL, start_first, &first) == 0, "thread");
	pthread_join(id, NULL);
	p = start("leave", 5);
	printf("code %d", end_of(p).code);
	xr_proc_free(p);
	printf(", %s\n", xr_status_name(xr_proc_wait(first, 0, NULL, NULL)));
	xr_proc_free(first);
}

/* Who ignores SIGCHLD has no zombies, and does not hear of children. */
static void
run_deaf(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct xr_proc *p;

	sigaction(SIGCHLD, &ignore, NULL);
	p = start("leave", 5);
	printf("code %d\n", end_of(p).code);
	xr_proc_free(p);
}

/* Somebody in this process reaps whatever ends. */
static void *
reap_all(void *arg)
{
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	return NULL;
}

static void
run_reaped(void)
{
	struct xr_proc *p = start("stay", 0);
	pthread_t id;

	check(pthread_create(&id, NULL, reap_all, NULL) == 0, "thread");
	xr_proc_kill(p, SIGTERM, &err);
	printf("signal %d\n", end_of(p).signal);
	xr_proc_free(p);
}

static void
run_zygote(void)
{
	struct xr_proc *p = start("stay", 0);
	char path[64];
	FILE *in;
	int zygote;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	in = fopen(path, "r");
	check(fscanf(in, "%d", &zygote) == 1, "children");
	fclose(in);
	kill(zygote, SIGKILL);
	printf("signal %d", end_of(p).signal);
	fflush(stdout);
	xr_proc_free(p);
	p = start("nothing", 0);
	printf(", then %d\n", end_of(p).code);
	xr_proc_free(p);
}

static void
run_module(void)
{
	struct xr_proc_opts o = {
		.size = sizeof(o),
		.func = "say_in_module",
		.ordinal = 7,
		.method = method,
		.module = module,
		.arg = xr_value_new_text("hello", 5),
	};
	struct xr_proc *p = NULL;

	check(xr_proc_start(&o, &p, &err) == XR_OK, "start");
	xr_value_unref(o.arg);
	check(xr_proc_watch(p, XR_SECONDS(10), &err) == XR_OK, "watch");
	xr_proc_free(p);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "say", run_say },
	{ "fail", run_fail },
	{ "cleaner", run_cleaner },
	{ "long", run_long },
	{ "exit", run_exit },
	{ "signal", run_signal },
	{ "report", run_report },
	{ "around", run_around },
	{ "poll", run_poll },
	{ "cycles", run_cycles },
	{ "tree", run_tree },
	{ "orphans", run_orphans },
	{ "wait", run_wait },
	{ "final", run_final },
	{ "refused", run_refused },
	{ "late", run_late },
	{ "threads", run_threads },
	{ "zygote", run_zygote },
	{ "crowd", run_crowd },
	{ "thread-ends", run_thread_ends },
	{ "deaf", run_deaf },
	{ "reaped", run_reaped },
	{ "absent", run_late },
	{ "early", run_late },
	{ "module", run_module },
};

int
main(int argc, char **argv)
{
	pthread_t id;

	if (argc < 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	method = argv[2];
	module = argv[3]; /* or NULL */
	for (const struct proc_function *f = proc_functions; f->name; f++)
		check(xr_proc_register(f->name, f->fn, NULL, &err) == XR_OK,
			"register");
	if (strcmp(argv[1], "absent") == 0 && getenv("XRUN_ZYGOTE_FD") != NULL)
		return 4; /* before xr_init() */
	if (strcmp(argv[1], "early") == 0)
		check(pthread_create(&id, NULL, wait_for_end, NULL) == 0,
			"thread");
	if (strcmp(argv[1], "late") != 0)
		check(xr_init(&err) == XR_OK, "init");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(argv[1], cases[i].name) == 0) {
			cases[i].run();
			return 0;
		}
	return 2;
}
