/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_gather_turns.c - which tool is asked about which process, when, and for how
 * long. Tools, processes and the clock are the test's. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/stacks/attach.h"
#include "launcher/stacks/gather.h"
#include "launcher/stacks/handler.h"
#include "launcher/stacks/threads.h"
#include "launcher/stacks/tool.h"
#include "launcher/stacks/tree.h"
#include "tests/unit/told.h"

#define EU   "eu-stack"
#define GDB  "gdb"
#define SPY  "py-spy"
#define WORK "TID 1:\n#0  0x1 work - /m\n"
#define EVAL "TID 1:\n#0  0x1 _PyEval_EvalFrameDefault - /m\n"
#define BT   "Thread 1 (LWP 1):\n#0  work () at x.c:7\n"
#define PY   "Thread 1\n    train (a.py:4)\n"
#define BTPY BT "  File \"a.py\", line 3, in work\n"
#define NONE \
	"neither eu-stack nor gdb is installed   try: apt-get install elfutils"

/* What a tool says of a process; no row: it ends and tells nothing. */
struct answer {
	const char *tool;
	pid_t pid;
	const char *text;
	int sys;      /* it cannot be started */
	bool late;    /* it does not end by itself */
	bool crashes; /* it ends by a signal */
};

static const struct answer *answers;
static size_t count_answers;
static const char *there[4]; /* tools; NULL ends them */
static int64_t now;
static int cpus = 1;
static bool no_cpus, allowed[16];
static uint32_t processes;
static const char *comm = "train";
static struct stacks s;
static const struct gather settings = { .patience = 80 * NS_PER_MS,
	.signals = 77 };

/* The tools that run, by their descriptors: 100 and on, and 200 and on. */
static const struct answer *run[40];
static int runs;

char *__wrap_tool_find(const char *name);
bool __wrap_tool_start(struct tool *t, char *const *argv);
void __wrap_tool_read(struct tool *t);
bool __wrap_tool_end(struct tool *t);
void __wrap_tree_find(struct stacks *of);
void __wrap_threads_read(struct process *p);
bool __wrap_attach_allowed(struct process *p);
void __wrap_attach_undo(const struct process *p);
void __wrap_handler_ask(struct stacks *of);
int64_t __wrap_clock_now(void);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
DIR *__wrap_opendir(const char *path);

char *
__wrap_tool_find(const char *name)
{
	for (int i = 0; there[i] != NULL; i++)
		if (strcmp(there[i], name) == 0)
			return strdup(name);
	return NULL;
}

bool
__wrap_tool_start(struct tool *t, char *const *argv)
{
	const char *name = argv[0];
	pid_t pid = (pid_t)strtol(argv[strcmp(name, EU) == 0             ? 3 :
						  strcmp(name, GDB) == 0 ? 6 :
									   3],
		NULL, 10);

	cr_assert_lt(runs, 40);
	run[runs] = NULL;
	for (size_t i = 0; i < count_answers; i++)
		if (strcmp(answers[i].tool, name) == 0 && answers[i].pid == pid)
			run[runs] = &answers[i];
	tell("%s %d", name, (int)pid);
	if (run[runs] != NULL && run[runs]->sys != 0) {
		tell("! ");
		errno = run[runs]->sys;
		return false;
	}
	tell(" ");
	*t = (struct tool){ .pid = pid,
		.pidfd = 100 + runs,
		.out = 200 + runs };
	runs++;
	return true;
}

void
__wrap_tool_read(struct tool *t)
{
	const struct answer *a = run[t->pidfd - 100];

	if (a != NULL && a->text != NULL && t->text.len == 0)
		buf_put_text(&t->text, a->text);
}

bool
__wrap_tool_end(struct tool *t)
{
	const struct answer *a = run[t->pidfd - 100];

	cr_assert_null(t->text.data);
	tell("end %d ", (int)t->pid);
	return a == NULL || !a->crashes;
}

void
__wrap_tree_find(struct stacks *of)
{
	for (uint32_t i = 0; i < processes; i++) {
		struct process *p = stacks_add_process(of, i, (pid_t)(1 + i));

		snprintf(p->comm, sizeof(p->comm), "%s", comm);
	}
}

void
__wrap_threads_read(struct process *p)
{
	stacks_thread(p, 1);
}

bool
__wrap_attach_allowed(struct process *p)
{
	return allowed[p->rank];
}

void
__wrap_attach_undo(const struct process *p)
{
	tell("undo %d ", (int)p->pid);
}

void
__wrap_handler_ask(struct stacks *of)
{
	cr_assert_eq(of, &s);
	tell("ask ");
}

int64_t
__wrap_clock_now(void)
{
	return now;
}

/* The first that ends by itself does; else the time passes. */
int
__wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	cr_assert_eq(p[0].fd, settings.signals);
	tell("[%d %d] ", (int)n, ms);
	for (nfds_t i = 0; i < n; i++)
		p[i].revents = 0;
	for (nfds_t i = 1; i < n; i += 2) {
		const struct answer *a = run[p[i].fd - 100];

		cr_expect_eq(p[i].events, POLLIN);
		cr_expect_eq(p[i + 1].events, POLLIN);
		cr_expect_eq(p[i + 1].fd, p[i].fd + 100);
		if (a != NULL && a->late)
			continue;
		p[i].revents = POLLIN;
		return 1;
	}
	now += ms * NS_PER_MS;
	return 0;
}

int
__wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	cr_assert_eq(pid, 0);
	cr_assert_eq(size, sizeof(*set));
	CPU_ZERO(set);
	for (int i = 0; i < cpus; i++)
		CPU_SET(i, set);
	return no_cpus ? -1 : 0;
}

DIR *
__wrap_opendir(const char *path)
{
	cr_assert_str_eq(path, "/usr/share/gdb/auto-load/usr/bin");
	return NULL;
}

/* --- the scene -------------------------------------------------------------- */

static void
begin(void)
{
	alarm(20); /* where a loop has no end */
	for (int i = 0; i < 16; i++)
		allowed[i] = true;
}

static void
end(void)
{
	stacks_fini(&s);
}

TestSuite(stacks_gather_turns, .init = begin, .fini = end);

/* Gathers of @count processes; @want is how what was done begins. */
static void
gather(uint32_t count, const struct answer *say, size_t says, const char *want)
{
	stacks_fini(&s);
	s = (struct stacks){ 0 };
	answers = say;
	count_answers = says;
	processes = count;
	runs = 0;
	now = 1000;
	told[0] = '\0';
	told_len = 0;
	cr_expect_eq(gather_stacks(&s, &settings), 0);
	cr_expect_eq(strncmp(told, want, strlen(want)), 0, "'%s'", told);
	if (strstr(want, "ask") != NULL)
		cr_expect_eq(strlen(told), strlen(want), "'%s'", told);
	cr_expect_eq(s.count, count);
}

#define GATHER(count, say, want) \
	gather(count, say, sizeof(say) / sizeof((say)[0]), want)

static void
tools(const char *a, const char *b, const char *c)
{
	there[0] = a;
	there[1] = b;
	there[2] = c;
}

static void
expect_process(uint32_t i, enum stacks_by by, const char *python_by,
	const char *why)
{
	const struct process *p = &s.process[i];

	cr_expect_eq(p->by, by, "%u", i);
	cr_expect_str_eq(p->python_by == NULL ? "-" : p->python_by, python_by);
	cr_expect_str_eq(p->why, why, "%u: %s", i, p->why);
}

/* --- in which order ----------------------------------------------------------- */

Test(stacks_gather_turns, the_first_tool_that_tells_is_enough)
{
	static const struct answer say[] = {
		{ .tool = EU, .pid = 1, .text = WORK },
		{ .tool = GDB, .pid = 2, .text = BT }
	};

	tools(EU, GDB, SPY);
	GATHER(2, say,
		"eu-stack 1 eu-stack 2 [5 41] end 1 [3 41] end 2 gdb 2 [3 41] end 2 ask ");
	expect_process(0, STACKS_BY_EU, "-", "");
	expect_process(1, STACKS_BY_GDB, "-", "");
	cr_expect_eq(s.took_ns, 0);
	cr_expect_not(s.process[0].python);
	cr_expect_str_eq(s.process[0].thread[0].native.at[0].function, "work");
}

Test(stacks_gather_turns, nobody_is_asked_where_there_is_no_tool)
{
	static const struct answer say[] = { { .tool = EU, .pid = 9 } };

	GATHER(1, say, "ask ");
	expect_process(0, STACKS_BY_PROC, "-", NONE);
	tools(SPY, NULL, NULL);
	GATHER(1, say, "ask ");
	expect_process(0, STACKS_BY_PROC, "-", NONE);
	allowed[0] = false;
	GATHER(1, say, "ask ");
	expect_process(0, STACKS_BY_PROC, "-", "");
}

Test(stacks_gather_turns, of_what_may_not_be_looked_at_nobody_is_asked)
{
	static const struct answer say[] = {
		{ .tool = EU, .pid = 2, .text = WORK }
	};

	tools(EU, NULL, NULL);
	allowed[0] = false;
	GATHER(2, say, "eu-stack 2 [3 41] end 2 ask ");
	expect_process(0, STACKS_BY_PROC, "-", "");
	expect_process(1, STACKS_BY_EU, "-", "");
}

Test(stacks_gather_turns, of_python_py_spy_tells)
{
	static const struct answer say[] = {
		{ .tool = EU, .pid = 1, .text = EVAL },
		{ .tool = SPY, .pid = 1, .text = PY },
		{ .tool = EU, .pid = 2, .text = WORK }
	};

	tools(EU, GDB, SPY);
	GATHER(2, say,
		"eu-stack 1 eu-stack 2 [5 41] end 1 py-spy 1 [5 41] end 1 [3 41] end 2 ask ");
	expect_process(0, STACKS_BY_EU, SPY, "");
	expect_process(1, STACKS_BY_EU, "-", "");
	cr_expect(s.process[0].python);
	cr_expect_not(s.process[1].python);
	cr_expect_eq(s.process[0].thread[0].python.count, 1);
	comm = "python3";
	GATHER(2, say,
		"eu-stack 1 eu-stack 2 [5 41] end 1 py-spy 1 [5 41] end 1 [3 41] end 2 py-spy 2 [3 41] end 2 ask ");
	expect_process(1, STACKS_BY_EU, "-", "");
	cr_expect(s.process[1].python);
}

Test(stacks_gather_turns, if_gdb_told_of_python_py_spy_is_not_asked)
{
	static const struct answer say[] = {
		{ .tool = GDB, .pid = 1, .text = BTPY }
	};

	comm = "python3";
	tools(GDB, SPY, NULL);
	GATHER(1, say, "gdb 1 [3 41] end 1 ask ");
	expect_process(0, STACKS_BY_GDB, GDB, "");
}

/* --- how many, and how long ------------------------------------------------------ */

Test(stacks_gather_turns, two_for_each_processor_up_to_sixteen)
{
	static const struct answer say[] = { { .tool = EU, .pid = 99 } };

	tools(EU, NULL, NULL);
	GATHER(6, say, "eu-stack 1 eu-stack 2 [5 41] end 1 eu-stack 3 [5 41] ");
	cpus = 4;
	no_cpus = true;
	GATHER(6, say, "eu-stack 1 eu-stack 2 [5 41] end 1 ");
	no_cpus = false;
	cpus = 2;
	GATHER(6, say,
		"eu-stack 1 eu-stack 2 eu-stack 3 eu-stack 4 [9 41] end 1 ");
	cpus = 7;
	GATHER(16, say, "eu-stack 1 ");
	cr_expect_not_null(strstr(told, " eu-stack 14 [29 41] end 1 "));
	cpus = 8;
	GATHER(16, say, "eu-stack 1 ");
	cr_expect_not_null(strstr(told, " eu-stack 16 [33 41] end 1 "));
	allowed[15] = false;
	cpus = 9;
	GATHER(16, say, "eu-stack 1 ");
	cr_expect_not_null(strstr(told, " eu-stack 15 [31 41] end 1 "));
}

Test(stacks_gather_turns, a_tool_has_half_of_what_is_left)
{
	static const struct answer say[] = {
		{ .tool = EU, .pid = 1, .late = true },
		{ .tool = GDB, .pid = 1, .text = BT }
	};

	tools(EU, GDB, NULL);
	GATHER(1, say, "eu-stack 1 [3 41] end 1 gdb 1 [3 20] end 1 ask ");
	expect_process(0, STACKS_BY_GDB, "-", "");
	cr_expect_eq(s.took_ns, 41 * NS_PER_MS);
}

Test(stacks_gather_turns, late_ones_have_no_answer)
{
	static const struct answer say[] = {
		{ .tool = EU, .pid = 1, .late = true },
		{ .tool = GDB, .pid = 1, .late = true }
	};

	tools(EU, GDB, NULL);
	GATHER(1, say, "eu-stack 1 [3 41] end 1 gdb 1 [3 20] end 1 ask ");
	expect_process(0, STACKS_BY_PROC, "-", "gdb had no answer");
	cr_expect_eq(s.took_ns, 61 * NS_PER_MS);
}

/* What it has told by then counts. */
Test(stacks_gather_turns, a_late_one_may_have_told_enough)
{
	static const struct answer say[] = {
		{ .tool = EU, .pid = 1, .text = WORK, .late = true }
	};

	tools(EU, NULL, NULL);
	GATHER(1, say, "eu-stack 1 [3 41] end 1 ask ");
	expect_process(0, STACKS_BY_EU, "-", "");
}

Test(stacks_gather_turns, one_that_crashes_may_have_left_its_process_stopped)
{
	static const struct answer say[] = {
		{ .tool = EU, .pid = 1, .text = WORK, .crashes = true }
	};

	tools(EU, NULL, NULL);
	GATHER(1, say, "eu-stack 1 [3 41] end 1 undo 1 ask ");
	expect_process(0, STACKS_BY_EU, "-", "");
}

Test(stacks_gather_turns, one_that_cannot_start_is_the_reason)
{
	static const struct answer say[] = {
		{ .tool = EU, .pid = 1, .sys = EACCES }
	};
	char why[100];

	tools(EU, NULL, NULL);
	snprintf(why, sizeof(why), "eu-stack: %s", strerror(EACCES));
	GATHER(1, say, "eu-stack 1! ask ");
	expect_process(0, STACKS_BY_PROC, "-", why);
	tools(EU, GDB, NULL);
	GATHER(1, say, "eu-stack 1! gdb 1 [3 41] end 1 ask ");
	expect_process(0, STACKS_BY_PROC, "-", "gdb: told nothing");
}
