/* SPDX-License-Identifier: Apache-2.0 */
/* test_child.c - deaths in the order in which they happened. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#include "event/child.h"
#include "tests/unit/folder.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"

#define MOST 600

static struct loop *loop;
static struct children *children;

/* One child, until its death is told; then told says when. */
struct kid {
	pid_t pid;
	int pidfd;
	int gate; /* a byte ends it */
	int status;
	uint32_t told; /* 1 for the first */
};

static struct kid kids[MOST];
static uint32_t told, afters, told_at_after;

static void
reap(struct kid *kid)
{
	struct rusage usage;

	EXPECT(child_reap(kid->pidfd, kid->pid, &kid->status, &usage));
	children_remove(children, kid->pidfd);
	close(kid->pidfd);
	kid->pidfd = -1;
}

static void
on_death(uint32_t id, void *ctx)
{
	EXPECT(ctx == kids);
	EXPECT_EQ(kids[id].told, 0);
	kids[id].told = ++told;
	reap(&kids[id]);
}

static void
after(void *ctx)
{
	EXPECT(ctx == kids);
	afters++;
	told_at_after = told;
}

static void
begin(child_fn *fn, child_after_fn *after_fn)
{
	loop = loop_new();
	NEED(loop != NULL);
	children = children_open(loop, fn, after_fn, kids);
	NEED(children != NULL);
}

static void
end(void)
{
	children_close(children);
	loop_free(loop);
}

static void
watch(struct kid *kid)
{
	kid->pidfd = (int)syscall(SYS_pidfd_open, kid->pid, 0);
	NEED(kid->pidfd != -1);
	EXPECT(children_add(children, kid->pidfd, (uint32_t)(kid - kids)));
}

/* A child that ends with @code when its gate is opened. */
static void
make(uint32_t id, int code)
{
	struct kid *kid = &kids[id];
	int p[2];
	char c;

	NEED(pipe2(p, O_CLOEXEC) == 0);
	kid->pid = fork();
	NEED(kid->pid != -1);
	if (kid->pid == 0) {
		close(p[1]);
		_exit(read(p[0], &c, 1) == 1 ? code : 99);
	}
	close(p[0]);
	kid->gate = p[1];
	kid->told = 0;
	watch(kid);
}

static void
await_death(const struct kid *kid)
{
	struct pollfd p = { .fd = kid->pidfd, .events = POLLIN };

	EXPECT_EQ(poll(&p, 1, -1), 1);
}

static void
let_die(uint32_t id)
{
	EXPECT_EQ(write(kids[id].gate, ".", 1), 1);
	close(kids[id].gate);
	await_death(&kids[id]);
}

static void
shuffle(uint32_t *order, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = (uint32_t)random() % i, other = order[i - 1];

		order[i - 1] = order[k];
		order[k] = other;
	}
}

static void
expect_order(const uint32_t *order, uint32_t n)
{
	EXPECT_EQ(told, n);
	for (uint32_t i = 0; i < n; i++)
		EXPECT_EQ(kids[order[i]].told, i + 1);
}

/* @n children die one after the other, in any order, and nobody looks at the
 * set meanwhile. */
static void
expect_exact(uint32_t n)
{
	uint32_t order[MOST];

	told = afters = 0;
	for (uint32_t i = 0; i < n; i++)
		make(i, 0);
	shuffle(order, n);
	for (uint32_t i = 0; i < n; i++)
		let_die(order[i]);
	EXPECT_EQ(told, 0);
	children_turn(children);
	expect_order(order, n);
	EXPECT_EQ(afters, 1);
	EXPECT_EQ(told_at_after, n);
}

FORKED_TEST(child, deaths_that_nobody_saw_are_told_in_their_order)
{
	srandom(20261121);
	begin(on_death, after);
	for (int round = 0; round < 3; round++)
		expect_exact(64);
	end();
}

/* More than one look at the kernel's list gives. */
FORKED_TEST(child, many_deaths_are_told_in_their_order)
{
	struct rlimit files;

	NEED(getrlimit(RLIMIT_NOFILE, &files) == 0);
	files.rlim_cur = files.rlim_max;
	NEED(setrlimit(RLIMIT_NOFILE, &files) == 0);
	srandom(20261121);
	begin(on_death, after);
	expect_exact(256);
	expect_exact(257);
	expect_exact(files.rlim_max > 3 * MOST ? MOST : 300);
	end();
}

static void
stop_after(void *ctx)
{
	after(ctx);
	loop_stop(loop);
}

FORKED_TEST(child, a_death_wakes_the_loop)
{
	begin(on_death, stop_after);
	make(0, 3);
	EXPECT_EQ(write(kids[0].gate, ".", 1), 1);
	loop_run(loop);
	EXPECT_EQ(told, 1);
	EXPECT_EQ(afters, 1);
	EXPECT_EQ(kids[0].status, 3 << 8);
	close(kids[0].gate);
	end();
}

FORKED_TEST(child, one_that_was_dead_before_is_told_as_well)
{
	begin(on_death, after);
	kids[0].pid = fork();
	NEED(kids[0].pid != -1);
	if (kids[0].pid == 0)
		_exit(5);
	EXPECT_EQ(waitid(P_PID, (id_t)kids[0].pid, &(siginfo_t){ 0 },
			  WEXITED | WNOWAIT),
		0);
	watch(&kids[0]);
	children_turn(children);
	EXPECT_EQ(told, 1);
	EXPECT_EQ(kids[0].status, 5 << 8);
	end();
}

FORKED_TEST(child, without_a_death_nothing_is_told)
{
	begin(on_death, after);
	make(0, 0);
	children_turn(children);
	EXPECT_EQ(told, 0);
	EXPECT_EQ(afters, 1);
	let_die(0);
	children_turn(children);
	EXPECT_EQ(told, 1);
	end();
}

FORKED_TEST(child, one_that_is_watched_no_more_is_not_told)
{
	begin(on_death, after);
	make(0, 0);
	make(1, 0);
	let_die(0);
	let_die(1);
	children_remove(children, kids[0].pidfd);
	children_turn(children);
	EXPECT_EQ(told, 1);
	EXPECT_EQ(kids[1].told, 1);
	reap(&kids[0]);
	end();
}

static void
never(void *ctx)
{
	(void)ctx;
	EXPECT(!"called after the close");
}

static void
bury_the_rest(uint32_t n)
{
	struct rusage usage;

	for (uint32_t i = 0; i < n; i++) {
		if (kids[i].pidfd == -1)
			continue;
		EXPECT(child_reap(kids[i].pidfd, kids[i].pid, &kids[i].status,
			&usage));
		close(kids[i].pidfd);
	}
}

/* remove() before close(); the set is gone here. */
static void
close_first(uint32_t id, void *ctx)
{
	(void)ctx;
	kids[id].told = ++told;
	children_close(children);
}

FORKED_TEST(child, it_may_be_closed_by_the_first_death)
{
	begin(close_first, never);
	for (uint32_t i = 0; i < 5; i++) {
		make(i, 0);
		let_die(i);
	}
	children_turn(children);
	EXPECT_EQ(told, 1);
	EXPECT_EQ(kids[0].told, 1);
	bury_the_rest(5);
	loop_free(loop);
}

static void
close_after(void *ctx)
{
	stop_after(ctx);
	children_close(children);
}

FORKED_TEST(child, it_may_be_closed_by_the_judgement)
{
	begin(on_death, close_after);
	make(0, 0);
	make(1, 0);
	let_die(0);
	loop_run(loop);
	EXPECT_EQ(told, 1);
	let_die(1);
	bury_the_rest(2);
	loop_free(loop);
}

static uint32_t depth;

static void
look_again(uint32_t id, void *ctx)
{
	on_death(id, ctx);
	if (depth++ == 0)
		children_turn(children);
	else
		children_close(children);
}

/* A callback that looks for more, which closes. */
FORKED_TEST(child, it_may_be_closed_in_a_turn_within_a_turn)
{
	begin(look_again, never);
	for (uint32_t i = 0; i < 4; i++) {
		make(i, 0);
		let_die(i);
	}
	children_turn(children);
	EXPECT_EQ(told, 2);
	bury_the_rest(4);
	loop_free(loop);
}

FORKED_TEST(child, closing_keeps_no_descriptor)
{
	int before = folder_entries("/proc/self/fd");

	for (int i = 0; i < 3; i++) {
		begin(on_death, after);
		end();
	}
	children_close(NULL);
	EXPECT_EQ(folder_entries("/proc/self/fd"), before);
}

FORKED_TEST(child, what_cannot_be_watched_is_refused)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	begin(on_death, after);
	EXPECT(!children_add(children, -1, 0));
	EXPECT(!children_add(children, null, 0));
	EXPECT_EQ(errno, EPERM);
	close(null);
	end();
}

/* What waitid(2) says, as waitpid(2) would say it. */
static int
status_of(int sig, int code)
{
	struct rusage usage = { 0 };
	const struct sigaction plain = { .sa_handler = SIG_DFL };
	const struct rlimit none = { 0 };
	int status = -1, pidfd;
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		sigaction(sig, &plain, NULL); /* sanitizers have their own */
		if (sig != 0)
			raise(sig);
		_exit(code);
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	EXPECT_EQ(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 },
			  WEXITED | WNOWAIT),
		0);
	EXPECT(child_reap(pidfd, pid, &status, &usage));
	EXPECT(usage.ru_maxrss > 0);
	EXPECT(!child_reap(pidfd, pid, &status, &usage));
	close(pidfd);
	return status;
}

FORKED_TEST(child_reap, statuses_are_those_of_waitpid)
{
	for (int code = 0; code < 256; code++)
		EXPECT_EQ(status_of(0, code), code << 8);
	EXPECT_EQ(status_of(0, 256), 0);
	EXPECT_EQ(status_of(SIGKILL, 0), SIGKILL);
	EXPECT_EQ(status_of(SIGTERM, 0), SIGTERM);
	EXPECT_EQ(status_of(SIGRTMAX, 0), SIGRTMAX);
	EXPECT_EQ(status_of(SIGSEGV, 0) & 0x7f, SIGSEGV);
}

FORKED_TEST(child_reap, a_core_is_told)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	struct rusage usage;
	int status, pidfd, plain;
	pid_t pid[2];

	folder_make(); /* for the core, one after the other: it has one name */
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		NEED(pid[i] != -1);
		if (pid[i] == 0) {
			setrlimit(RLIMIT_CORE, &all);
			abort();
		}
		if (i == 0)
			EXPECT_EQ(waitpid(pid[0], &plain, 0), pid[0]);
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid[1], 0);
	EXPECT_EQ(waitid(P_PID, (id_t)pid[1], &(siginfo_t){ 0 },
			  WEXITED | WNOWAIT),
		0);
	EXPECT(child_reap(pidfd, pid[1], &status, &usage));
	EXPECT_EQ(status & 0x7f, SIGABRT);
	EXPECT_EQ(WCOREDUMP(status), WCOREDUMP(plain));
	close(pidfd);
	folder_remove();
}

FORKED_TEST(child_reap, the_living_and_the_stopped_are_not_reaped)
{
	struct rusage usage;
	int status = 77, pidfd;
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0) {
		raise(SIGSTOP);
		_exit(0);
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	EXPECT(!child_reap(pidfd, pid, &status, &usage));
	EXPECT_EQ(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 },
			  WSTOPPED | WNOWAIT),
		0);
	EXPECT(!child_reap(pidfd, pid, &status, &usage));
	EXPECT_EQ(status, 77);
	EXPECT_EQ(kill(pid, SIGKILL), 0);
	EXPECT_EQ(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 },
			  WEXITED | WNOWAIT),
		0);
	EXPECT(child_reap(pidfd, pid, &status, &usage));
	EXPECT_EQ(status, SIGKILL);
	EXPECT(!child_reap(-1, pid, &status, &usage));
	close(pidfd);
}

/* In the sandbox. */
static int
reaped_otherwise(void)
{
	struct rusage usage;
	int status = 77, pidfd;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(3);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == -1 ||
		seccomp_refuse(SYS_waitid, EPERM) == -1)
		return 1;
	if (!child_reap(pidfd, pid, &status, &usage))
		return 2;
	if (WEXITSTATUS(status) != 3)
		return 3;
	return child_reap(pidfd, pid, &status, &usage) ? 4 : 0;
}

FORKED_TEST(child_reap, a_sandbox_that_knows_no_waitid_is_asked_otherwise)
{
	int status = -1;
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0)
		_exit(reaped_otherwise());
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}
