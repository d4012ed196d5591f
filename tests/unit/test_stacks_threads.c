/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_threads.c - the processes of a rank, their threads in /proc, the right to attach
 * to them, and the functions of Python that a process tells itself. */
#include <poll.h>

#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "launcher/stacks/attach.h"
#include "launcher/stacks/handler.h"
#include "launcher/stacks/threads.h"
#include "launcher/stacks/tree.h"
#include "tests/unit/seccomp.h"
#include "tests/unit/stacks_child.h"

#define NOBODY_UID 65534

/* --- threads -------------------------------------------------------------- */

static void
waits_for_events(int fd)
{
	struct epoll_event e;

	(void)fd;
	epoll_wait(epoll_create1(0), &e, 1, -1);
}

static void
waits_for_files(int fd)
{
	char some[512];

	(void)fd;
	(void)!read(inotify_init1(0), some, sizeof(some));
}

/* The kernel looks at the lower half of a descriptor only. */
static void
reads_beyond_int(int fd)
{
	char byte;

	syscall(SYS_read, (long)fd | 1L << 32, &byte, 1);
}

static void
reads_below_zero(int fd)
{
	char byte;

	syscall(SYS_read, (long)fd | 1L << 63, &byte, 1);
}

static void
reads(int fd)
{
	char byte;

	(void)!read(fd, &byte, 1);
}

/* A call that is not in the table of names. */
static void
splices_memory(int fd)
{
	static char page[4096];
	struct iovec part = { page, sizeof(page) };

	while (syscall(SYS_vmsplice, fd, &part, 1, 0) > 0)
		continue;
}

/* Reads the threads of @pid until the main thread sleeps in the call @want. */
static void
call_becomes(pid_t pid, const char *want)
{
	struct stacks s = { 0 };
	struct process *p;
	bool same = false;

	while (!same) {
		stacks_fini(&s);
		p = stacks_add_process(&s, 0, pid);
		threads_read(p);
		NEED(p->threads == 1 && p->thread[0].tid == pid);
		same = strcmp(p->thread[0].call, want) == 0 &&
			p->thread[0].state == 'S';
		if (!same)
			poll(NULL, 0, 1);
	}
	EXPECT(!p->stopped);
	stacks_fini(&s);
}

FORKED_TEST(stacks_threads, a_thread_names_its_call_and_the_kind_of_its_file)
{
	char vmsplice_text[32];
	const struct {
		void (*run)(int);
		int end; /* of a pipe */
		const char *call;
	} rows[] = {
#ifdef SYS_epoll_wait
		{ waits_for_events, 0, "epoll_wait eventpoll" },
#else
		{ waits_for_events, 0, "epoll_pwait eventpoll" },
#endif
		{ waits_for_files, 0, "read inotify" },
		{ reads, 0, "read pipe" },
		{ reads_beyond_int, 0, "read" },
		{ reads_below_zero, 0, "read" },
		{ splices_memory, 1, vmsplice_text },
	};
	int fd[2];
	pid_t pid;

	snprintf(vmsplice_text, sizeof(vmsplice_text), "system call %d",
		(int)SYS_vmsplice);
	NEED(pipe(fd) == 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pid = start(rows[i].run, fd[rows[i].end]);
		call_becomes(pid, rows[i].call);
		stop(pid);
	}
}

static void
spins(int arg)
{
	(void)arg;
	for (;;)
		continue;
}

FORKED_TEST(stacks_threads, a_thread_that_runs_is_in_no_call)
{
	struct stacks s = { 0 };
	struct process *p = NULL;
	pid_t pid = start(spins, 0);

	do {
		stacks_fini(&s);
		p = stacks_add_process(&s, 0, pid);
		threads_read(p);
		NEED(p->threads == 1);
	} while (p->thread[0].state != 'R' || p->thread[0].call[0] != '\0');
	EXPECT_STR(p->thread[0].wchan, "");
	stacks_fini(&s);
	stop(pid);
	EXPECT(!threads_state(pid, &(struct thread){ .tid = pid }));
}

FORKED_TEST(stacks_threads, the_stack_in_the_kernel_is_for_root)
{
	struct stacks s = { 0 };
	struct process *p;
	pid_t pid;

	if (geteuid() == 0)
		NEED(setresuid(NOBODY_UID, NOBODY_UID, NOBODY_UID) == 0);
	NEED(prctl(PR_SET_DUMPABLE, 1) == 0);
	pid = start(sleeps, 0);
	p = stacks_add_process(&s, 0, pid);
	threads_read(p);
	NEED(p->threads == 1);
	EXPECT_EQ(p->thread[0].kernel.count, 0);
	stacks_fini(&s);
	stop(pid);
}

/* --- the right to attach -------------------------------------------------- */

/* Why @pid may not be attached to. */
static const char *
refusal(pid_t pid)
{
	static struct process p;

	p = (struct process){ .pid = pid };
	EXPECT_EQ(attach_allowed(&p), p.why[0] == '\0');
	return p.why;
}

static void
cannot_be_dumped(int fd)
{
	prctl(PR_SET_DUMPABLE, 0);
	NEED(write(fd, "", 1) == 1);
	sleeps(0);
}

FORKED_TEST(stacks_threads, a_process_that_cannot_be_attached_to_has_a_reason)
{
	char scope = '0', byte, want[128];
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	pid_t pid = start(sleeps, 0);
	int fd[2];

	EXPECT_STR(refusal(pid), "");
	stop(pid);
	EXPECT_STR(refusal(pid), "it has ended");
	if (f != NULL) {
		NEED(fread(&scope, 1, 1, f) == 1);
		fclose(f);
	}
	if (geteuid() == 0)
		NEED(setresuid(NOBODY_UID, NOBODY_UID, NOBODY_UID) == 0);
	EXPECT_STR(refusal(getppid()),
		getuid() == NOBODY_UID ?
			"it is another user's (uid 0): root may look" :
			refusal(getppid()));
	NEED(pipe(fd) == 0);
	pid = start(cannot_be_dumped, fd[1]);
	NEED(read(fd[0], &byte, 1) == 1);
	if (scope >= '1')
		snprintf(want, sizeof(want),
			"/proc/sys/kernel/yama/ptrace_scope is %c: root may look",
			scope);
	else
		snprintf(want, sizeof(want), "it cannot be traced (%s)",
			strerror(EACCES));
	EXPECT_STR(refusal(pid), want);
	stop(pid);
}

/* --- the processes of a rank ---------------------------------------------- */

/* A chain of @left more processes, each the child of the one before. */
static void
makes_chain(int fd)
{
	for (int left = 70; left > 0; left--)
		if (fork() != 0)
			sleeps(0);
	NEED(write(fd, "", 1) == 1);
	sleeps(0);
}

FORKED_TEST(stacks_threads, a_rank_has_16_processes_of_64_generations)
{
	struct stacks s = { 0 };
	char byte;
	int fd[2];
	pid_t pid;

	NEED(pipe(fd) == 0);
	pid = start(makes_chain, fd[1]);
	NEED(read(fd[0], &byte, 1) == 1);
	stacks_add_rank(&s, 0, getpid());
	stacks_add_rank(&s, 7, pid);
	tree_find(&s);
	EXPECT_EQ(s.count, 1 + STACKS_A_RANK);
	EXPECT_EQ(s.process[0].pid, getpid());
	EXPECT_EQ(s.rank[0].left_out, 0);
	for (uint32_t i = 0; i < STACKS_A_RANK; i++) {
		EXPECT_EQ(s.process[1 + i].rank, 7);
		EXPECT_EQ(s.process[1 + i].depth, i);
	}
	EXPECT_EQ(s.process[1].pid, pid);
	EXPECT_EQ(s.rank[1].left_out, 64 - STACKS_A_RANK);
	stacks_fini(&s);
	stop(pid);
	forked_sweep();
}

static pid_t forked_parent; /* the body of the test */

/* Its child ends and leaves a process behind that is still of its session. */
static void
leads_a_session(int fd)
{
	setsid();
	if (fork() == 0) {
		if (fork() != 0)
			_exit(0);
		while (getppid() != forked_parent)
			poll(NULL, 0, 1);
		NEED(write(fd, &(pid_t){ getpid() }, sizeof(pid_t)) ==
			sizeof(pid_t));
	}
	sleeps(0);
}

FORKED_TEST(stacks_threads, a_process_is_of_the_rank_that_leads_its_session)
{
	struct stacks s = { 0 };
	pid_t pid, left, ended = start(_exit, 0);
	int fd[2];

	forked_parent = getpid();
	NEED(pipe(fd) == 0);
	pid = start(leads_a_session, fd[1]);
	NEED(read(fd[0], &left, sizeof(left)) == sizeof(left));
	stacks_add_rank(&s, 3, pid);
	EXPECT_EQ(waitpid(ended, NULL, 0), ended);
	stacks_add_rank(&s, 4, ended);
	tree_find(&s);
	EXPECT_EQ(s.count, 2);
	EXPECT_EQ(s.process[0].pid, pid);
	EXPECT_EQ(s.process[1].pid, left);
	EXPECT_EQ(s.process[1].rank, 3);
	EXPECT_EQ(s.process[1].depth, 1);
	EXPECT(!s.rank[0].ended);
	EXPECT(s.rank[1].ended);
	stacks_fini(&s);
	stop(pid);
	forked_sweep();
}

/* --- the process itself --------------------------------------------------- */

static int file;
static const char *answer;

static void
on_urgent(int sig)
{
	(void)sig;
	if (answer[0] != '\0')
		NEED(write(file, answer, strlen(answer)) ==
			(ssize_t)strlen(answer));
}

#define HANDLER_FRAME "  File \"a.py\", line 4 in train\n"

static const struct answer {
	const char *name;   /* of the file in memory */
	const char *text;   /* that the handler writes */
	const char *python; /* the innermost function that is read; NULL */
} answers[] = {
	{ "xrun-stacks", "Stack:\n" HANDLER_FRAME, "train" },
	/* a text that does not end is read as far as its last line */
	{ "xrun-stacks", HANDLER_FRAME "  File \"b.py\"", "train" },
	{ "xrun-stacks", "no frames\n", NULL },
	{ "xrun-stacks", "", NULL },
	{ "xrun-stackz", HANDLER_FRAME, NULL },
	{ "xrun-stacks-more", HANDLER_FRAME, NULL },
};

static void
answers_at_sigurg(int row)
{
	const struct sigaction act = { .sa_handler = on_urgent };

	file = memfd_create(answers[row].name, MFD_CLOEXEC);
	answer = answers[row].text;
	NEED(write(file, "  File \"z.py\", line 1 in before\n", 32) == 32);
	NEED(sigaction(SIGURG, &act, NULL) == 0);
	prctl(PR_SET_NAME, "has_handler");
	sleeps(0);
}

/* Waits until @pid has its handler. */
static void
await_handler(pid_t pid)
{
	struct thread t = { .tid = pid };

	while (threads_state(pid, &t) && strcmp(t.comm, "has_handler") != 0)
		poll(NULL, 0, 1);
}

FORKED_TEST(stacks_threads, a_process_tells_its_functions_of_python)
{
	struct stacks s;
	struct process *p;
	pid_t pid;

	for (int i = 0; i < (int)(sizeof(answers) / sizeof(answers[0])); i++) {
		pid = start(answers_at_sigurg, i);
		await_handler(pid);
		s = (struct stacks){ 0 };
		p = stacks_add_process(&s, 0, pid);
		handler_ask(&s);
		EXPECT_EQ(p->python_by != NULL, answers[i].python != NULL);
		if (answers[i].python != NULL && p->python_by != NULL) {
			EXPECT_STR(p->python_by, "faulthandler");
			EXPECT_EQ(p->thread[0].python.count, 1);
			EXPECT_STR(p->thread[0].python.at[0].function,
				answers[i].python);
		}
		stacks_fini(&s);
		stop(pid);
	}
}

/* A process of which the functions are known, or that is stopped, or that has ended. */
FORKED_TEST(stacks_threads, a_process_is_not_asked_in_vain)
{
	struct stacks s = { 0 };
	struct process *p;
	pid_t pid = start(answers_at_sigurg, 0);

	await_handler(pid);
	p = stacks_add_process(&s, 0, pid);
	p->stopped = true;
	handler_ask(&s);
	EXPECT(p->python_by == NULL);
	p->stopped = false;
	p->python_by = "py-spy";
	handler_ask(&s);
	EXPECT_STR(p->python_by, "py-spy");
	EXPECT_EQ(p->threads, 0);
	p->python_by = NULL;
	NEED(seccomp_refuse(SYS_tgkill, EPERM) == 0);
	handler_ask(&s);
	EXPECT(p->python_by == NULL);
	EXPECT_EQ(p->threads, 0);
	stop(pid);
	handler_ask(&s);
	EXPECT(p->python_by == NULL);
	stacks_fini(&s);
}
