/* SPDX-License-Identifier: Apache-2.0 */
/* test_descend.c - ending what a job left behind, whatever it did. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "proc/descend.h"
#include "tests/unit/folder.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"

#define PATIENCE (20 * NS_PER_S)

/* Every process of a tree holds the write end; its end is the end of all. */
static int family[2];

static void
begin_family(void)
{
	NEED(pipe2(family, O_CLOEXEC) == 0);
}

/* A process of the tree says that it is there. */
static void
report(void)
{
	if (write(family[1], ".", 1) != 1)
		_exit(1);
}

static void
await(int count)
{
	char c;

	for (int i = 0; i < count; i++)
		NEED(read(family[0], &c, 1) == 1);
}

/* Nobody of them lives; what is left of their reports is read. */
static void
expect_extinct(void)
{
	struct pollfd p = { .fd = family[0], .events = POLLIN };
	char text[4096];

	close(family[1]);
	while (poll(&p, 1, 0) == 1 && read(family[0], text, sizeof(text)) > 0)
		continue;
	EXPECT_EQ(poll(&p, 1, 0), 1);
	EXPECT_EQ(read(family[0], text, 1), 0);
	EXPECT(forked_childless());
	close(family[0]);
}

static void __attribute__((noreturn))
sleep_for_ever(void)
{
	report();
	for (;;)
		pause();
}

typedef void life_fn(void);

static pid_t
child(life_fn *life)
{
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0) {
		life();
		_exit(0);
	}
	return pid;
}

static uint32_t
end_all(void)
{
	const struct descend everybody = { 0 };

	return descend_end(&everybody, clock_now() + PATIENCE);
}

static void
run_deaf(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &ignore, NULL);
	setsid();
	sleep_for_ever();
}

/* A daemon: two forks and a session of its own. */
static void
daemonize(void)
{
	setsid();
	child(run_deaf);
}

FORKED_TEST(descend, daemons_that_ignore_every_signal_end)
{
	begin_family();
	for (int i = 0; i < 10; i++)
		child(daemonize);
	await(10);
	EXPECT_EQ(end_all(), 0);
	expect_extinct();
}

static int depth;

/* Each has one child; the last reports for all. */
static void
dig(void)
{
	if (--depth == 0)
		sleep_for_ever();
	child(dig);
	for (;;)
		pause();
}

FORKED_TEST(descend, a_deep_tree_ends)
{
	begin_family();
	depth = 60;
	child(dig);
	await(1);
	EXPECT_EQ(end_all(), 0);
	expect_extinct();
}

/* Each has three, as many levels as there are left. */
static void
branch(void)
{
	if (depth-- > 0)
		for (int i = 0; i < 3; i++)
			child(branch);
	sleep_for_ever();
}

FORKED_TEST(descend, a_bushy_tree_ends)
{
	begin_family();
	depth = 4;
	child(branch);
	await(1 + 3 + 9 + 27 + 81);
	EXPECT_EQ(end_all(), 0);
	expect_extinct();
}

static void
stop_oneself(void)
{
	report();
	raise(SIGSTOP);
}

FORKED_TEST(descend, the_stopped_and_the_dead_end)
{
	begin_family();
	for (int i = 0; i < 3; i++)
		child(stop_oneself);
	child(report);
	await(4);
	EXPECT_EQ(end_all(), 0);
	expect_extinct();
}

/* Runs away from whoever looks for it: by the time it is found it has gone on
 * as its own child. Not for ever, or a failing test would not end. */
static int64_t weary_ns;

static void
run_away(void)
{
	if (depth++ == 0)
		report();
	while (clock_now() < weary_ns) {
		if (fork() != 0)
			_exit(0);
		if (depth++ % 8 == 0)
			setsid();
	}
	report();
}

FORKED_TEST(descend, a_chain_that_keeps_forking_is_caught)
{
	for (int round = 0; round < 20; round++) {
		begin_family();
		depth = 0;
		weary_ns = clock_now() + PATIENCE;
		child(run_away);
		await(1);
		EXPECT_EQ(end_all(), 0);
		expect_extinct();
		EXPECT(clock_now() < weary_ns);
	}
}

/* The list of children is not there in every kernel. */
FORKED_TEST(descend, without_a_list_of_children_all_of_proc_is_looked_through)
{
	NEED(seccomp_refuse(SYS_access, EACCES) == 0);
	NEED(seccomp_refuse(SYS_faccessat, EACCES) == 0);
	NEED(access("/proc/self/stat", R_OK) == -1);
	begin_family();
	depth = 20;
	child(dig);
	child(daemonize);
	child(stop_oneself);
	await(3);
	EXPECT_EQ(end_all(), 0);
	expect_extinct();
}

FORKED_TEST(descend, no_children_are_no_work)
{
	const struct descend everybody = { 0 };
	int64_t begun = clock_now();

	EXPECT_EQ(descend_end(&everybody, begun + PATIENCE), 0);
	EXPECT_EQ(descend_reap(&everybody), 0);
	EXPECT(clock_now() - begun < PATIENCE / 2);
}

static bool
is_kept(pid_t pid, void *ctx)
{
	return pid == *(pid_t *)ctx;
}

FORKED_TEST(descend, who_is_kept_is_neither_killed_nor_reaped)
{
	pid_t kept;
	const struct descend d = { .keep = is_kept, .ctx = &kept };
	siginfo_t info = { 0 };

	begin_family();
	kept = child(sleep_for_ever);
	for (int i = 0; i < 5; i++)
		child(sleep_for_ever);
	await(6);
	EXPECT_EQ(descend_end(&d, clock_now() + PATIENCE), 0);
	EXPECT_EQ(kill(kept, 0), 0);
	EXPECT_EQ(kill(kept, SIGKILL), 0);
	EXPECT_EQ(waitid(P_PID, (id_t)kept, &info, WEXITED | WNOWAIT), 0);
	EXPECT_EQ(descend_end(&d, clock_now() + PATIENCE), 0);
	EXPECT_EQ(descend_reap(&d), 0);
	EXPECT_EQ(waitpid(kept, NULL, 0), kept);
	expect_extinct();
}

FORKED_TEST(descend, a_look_ends_and_reaps_without_waiting)
{
	const struct descend everybody = { 0 };
	uint32_t alive;

	begin_family();
	for (int i = 0; i < 3; i++)
		child(sleep_for_ever);
	await(3);
	EXPECT_EQ(descend_look(&everybody, &alive), 3);
	EXPECT_EQ(alive, 3);
	while (descend_look(&everybody, &alive) > 0)
		poll(NULL, 0, 1);
	EXPECT_EQ(alive, 0);
	expect_extinct();
}

/* The first look kills, but what it met is not gone yet. */
FORKED_TEST(descend, a_deadline_that_has_passed_ends_the_wait)
{
	const struct descend everybody = { 0 };

	begin_family();
	for (int i = 0; i < 3; i++)
		child(sleep_for_ever);
	await(3);
	EXPECT_EQ(descend_end(&everybody, clock_now()), 3);
	EXPECT_EQ(end_all(), 0);
	expect_extinct();
}

struct told {
	int count;
	char comm[32];
};

static void
note(pid_t pid, const char *comm, void *ctx)
{
	struct told *t = ctx;

	EXPECT_EQ(kill(pid, 0), 0);
	t->count++;
	snprintf(t->comm, sizeof(t->comm), "%s", comm);
}

static void
take_a_name(void)
{
	prctl(PR_SET_NAME, "left (behind) x");
	sleep_for_ever();
}

FORKED_TEST(descend, the_living_are_told_of_once_and_by_name)
{
	struct told told = { 0 };
	const struct descend d = { .tell = note, .ctx = &told };
	siginfo_t info = { 0 };
	pid_t dead;

	begin_family();
	child(take_a_name);
	dead = child(report);
	await(2);
	EXPECT_EQ(waitid(P_PID, (id_t)dead, &info, WEXITED | WNOWAIT), 0);
	EXPECT_EQ(descend_end(&d, clock_now() + PATIENCE), 0);
	EXPECT_EQ(told.count, 1);
	EXPECT_STR(told.comm, "left (behind) x");
	expect_extinct();
}

static void
sleep_in_turn(void)
{
	child(sleep_for_ever);
	sleep_for_ever();
}

FORKED_TEST(descend, children_of_children_are_not_told_of)
{
	struct told told = { 0 };
	const struct descend d = { .tell = note, .ctx = &told };

	begin_family();
	child(sleep_in_turn);
	await(2);
	EXPECT_EQ(descend_end(&d, clock_now() + PATIENCE), 0);
	EXPECT_EQ(told.count, 1);
	expect_extinct();
}

/* Memory that takes a while to be given back. */
static void
touch(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		_exit(1);
	memset(p, 'x', size);
}

/* A child that is on its way out, and not dead yet; 0: it was too fast. */
static pid_t
catch_exiting(size_t size)
{
	struct proc_stat st;
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0) {
		touch(size);
		_exit(0);
	}
	do {
		NEED(proc_stat_read(pid, &st));
	} while (!st.exiting);
	if (st.state != 'Z')
		return pid;
	NEED(waitpid(pid, NULL, 0) == pid);
	return 0;
}

FORKED_TEST(descend, who_ends_by_himself_is_not_told_of)
{
	struct told told = { 0 };
	const struct descend d = { .tell = note, .ctx = &told };
	pid_t pid = 0;

	for (size_t mib = 32; mib <= 256 && pid == 0; mib *= 2)
		pid = catch_exiting(mib << 20);
	EXPECT_EQ(descend_end(&d, clock_now() + PATIENCE), 0);
	EXPECT_EQ(told.count, 0);
}

FORKED_TEST(descend, reaping_signals_nobody)
{
	const struct descend everybody = { 0 };
	siginfo_t info = { 0 };
	pid_t dead[3];

	begin_family();
	child(sleep_for_ever);
	child(sleep_for_ever);
	for (int i = 0; i < 3; i++)
		dead[i] = child(report);
	await(5);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(waitid(P_PID, (id_t)dead[i], &info,
				  WEXITED | WNOWAIT),
			0);
	EXPECT_EQ(descend_reap(&everybody), 2);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(waitpid(dead[i], NULL, WNOHANG), -1);
	EXPECT_EQ(descend_reap(&everybody), 2);
	EXPECT_EQ(end_all(), 0);
	expect_extinct();
}

static void
exit_with_orphans(void)
{
	for (int i = 0; i < 3; i++)
		child(report);
}

/* They were nobody's; a subreaper has them now. */
FORKED_TEST(descend, orphans_that_end_are_reaped)
{
	const struct descend everybody = { 0 };
	siginfo_t info = { 0 };

	begin_family();
	NEED(waitpid(child(exit_with_orphans), NULL, 0) > 0);
	await(3);
	while (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) == 0)
		descend_reap(&everybody);
	expect_extinct();
}

static unsigned met;

static bool
leaves_another(pid_t pid, void *ctx)
{
	pid_t next = fork();

	(void)pid;
	(void)ctx;
	if (next == 0)
		_exit(0);
	NEED(next != -1);
	NEED(waitid(P_PID, (id_t)next, &(siginfo_t){ 0 }, WEXITED | WNOWAIT) ==
		0);
	met++;
	return false;
}

/* It scans at most four times. */
FORKED_TEST(descend, a_scan_that_always_finds_another_dead_child_ends)
{
	const struct descend everybody = { 0 }, d = { .keep = leaves_another };

	begin_family();
	leaves_another(0, NULL);
	met = 0;
	EXPECT_EQ(descend_reap(&d), 0);
	EXPECT_EQ(met, 4);
	EXPECT_EQ(descend_reap(&everybody), 0);
	expect_extinct();
}

static bool
is_another(pid_t pid, void *ctx)
{
	return pid != *(pid_t *)ctx;
}

/* More than one read of the list gives; those to keep stand first. */
FORKED_TEST(descend, many_kept_ones_hide_nobody)
{
	pid_t last;
	const struct descend d = { .keep = is_another, .ctx = &last };

	begin_family();
	for (int i = 0; i < 1000; i++)
		child(sleep_for_ever);
	last = child(report);
	await(1001);
	EXPECT_EQ(waitid(P_PID, (id_t)last, &(siginfo_t){ 0 },
			  WEXITED | WNOWAIT),
		0);
	EXPECT_EQ(descend_reap(&d), 0);
	EXPECT_EQ(waitpid(last, NULL, WNOHANG), -1);
	last = child(sleep_for_ever);
	await(1);
	EXPECT_EQ(descend_reap(&d), 1);
	EXPECT_EQ(descend_end(&d, clock_now() + PATIENCE), 0);
	EXPECT_EQ(descend_reap(&(struct descend){ 0 }), 1000);
	EXPECT_EQ(end_all(), 0);
	expect_extinct();
}

static int leave[2];

static void
leave_a_child(void)
{
	char c;

	report();
	NEED(read(leave[0], &c, 1) == 1);
	child(sleep_for_ever);
}

/* Asked about a child that is on the list already: at this moment it forks and
 * dies, and what it made comes to us. */
static bool
let_it_fork(pid_t pid, void *ctx)
{
	pid_t *parent = ctx;

	if (pid == *parent) {
		NEED(write(leave[1], ".", 1) == 1);
		EXPECT_EQ(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 },
				  WEXITED | WNOWAIT),
			0);
		*parent = 0;
	}
	return false;
}

FORKED_TEST(descend, what_came_while_it_looked_ends_as_well)
{
	pid_t parent;
	const struct descend d = { .keep = let_it_fork, .ctx = &parent };

	begin_family();
	NEED(pipe2(leave, O_CLOEXEC) == 0);
	parent = child(leave_a_child);
	await(1);
	EXPECT_EQ(descend_end(&d, clock_now() + PATIENCE), 0);
	expect_extinct();
}

FORKED_TEST(descend, reaping_counts_what_came_while_it_looked)
{
	pid_t parent;
	const struct descend d = { .keep = let_it_fork, .ctx = &parent };

	begin_family();
	NEED(pipe2(leave, O_CLOEXEC) == 0);
	parent = child(leave_a_child);
	await(1);
	EXPECT_EQ(descend_reap(&d), 1);
	EXPECT_EQ(end_all(), 0);
	expect_extinct();
}

static void
hear(int sig)
{
	(void)sig;
	report();
}

/* Nobody dies of SIGURG: should it ever go to everybody, no harm is done. */
static void
listen_for_ever(void)
{
	const struct sigaction listen = { .sa_handler = hear };

	NEED(sigaction(SIGURG, &listen, NULL) == 0);
	sleep_for_ever();
}

static void
listen_in_turn(void)
{
	child(listen_for_ever);
	listen_for_ever();
}

/* A session of three: the leader, its child, its grandchild. */
static void
lead_a_session(void)
{
	setsid();
	child(listen_in_turn);
	listen_for_ever();
}

FORKED_TEST(descend, a_signal_goes_to_a_session_and_to_nobody_else)
{
	struct pollfd p = { .events = POLLIN };
	pid_t leader;

	begin_family();
	leader = child(lead_a_session);
	child(listen_for_ever);
	await(4);
	EXPECT_EQ(descend_signal(leader, SIGURG), 3);
	await(3);
	p.fd = family[0];
	EXPECT_EQ(poll(&p, 1, 0), 0);
	EXPECT_EQ(kill(leader, SIGKILL), 0);
	EXPECT_EQ(waitpid(leader, NULL, 0), leader);
	EXPECT_EQ(descend_signal(leader, SIGURG), 2);
	await(2);
	EXPECT_EQ(end_all(), 0);
	EXPECT_EQ(descend_signal(leader, SIGURG), 0);
	expect_extinct();
}

FORKED_TEST(descend, sweeping_keeps_no_descriptor)
{
	int before = folder_entries("/proc/self/fd");

	for (int i = 0; i < 3; i++) {
		begin_family();
		child(lead_a_session);
		await(3);
		descend_signal(getpid(), 0);
		EXPECT_EQ(end_all(), 0);
		expect_extinct();
	}
	EXPECT_EQ(folder_entries("/proc/self/fd"), before);
}

FORKED_TEST(proc_stat, a_process_says_who_it_is)
{
	struct proc_stat st;

	EXPECT(proc_stat_read(getpid(), &st));
	EXPECT_EQ(st.state, 'R');
	EXPECT_EQ(st.ppid, getppid());
	EXPECT_EQ(st.session, getsid(0));
	EXPECT(!st.exiting);
	EXPECT(proc_stat_read(1, &st));
	EXPECT_EQ(st.ppid, 0);
}

FORKED_TEST(proc_stat, a_name_may_hold_what_parts_the_fields)
{
	static const char *const names[] = { "a) R 1 2 3", "((((", "))))", ")",
		"", "123456789012345", "new\nline", "a b c" };
	struct proc_stat st;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		NEED(prctl(PR_SET_NAME, names[i]) == 0);
		st = (struct proc_stat){ 0 };
		EXPECT(proc_stat_read(getpid(), &st));
		EXPECT_EQ(st.ppid, getppid());
		EXPECT_EQ(st.session, getsid(0));
		EXPECT_STR(st.comm, names[i]);
	}
}

FORKED_TEST(proc_stat, the_dead_and_the_gone_are_told_apart)
{
	struct proc_stat st = { .ppid = 77 };
	siginfo_t info = { 0 };
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0)
		_exit(0);
	NEED(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	EXPECT(proc_stat_read(pid, &st));
	EXPECT_EQ(st.state, 'Z');
	EXPECT(st.exiting);
	EXPECT_EQ(st.ppid, getpid());
	NEED(waitpid(pid, NULL, 0) == pid);
	st.ppid = 77;
	EXPECT(!proc_stat_read(pid, &st));
	EXPECT_EQ(st.ppid, 77);
	EXPECT(!proc_dumps_core(pid));
}

static void *
live_on(void *arg)
{
	(void)arg;
	sleep_for_ever();
}

static void
leave_to_a_thread(void)
{
	pthread_t thread;

	NEED(pthread_create(&thread, NULL, live_on, NULL) == 0);
	pthread_exit(NULL);
}

/* A zombie by its main thread, and as alive as any. */
FORKED_TEST(proc_stat, a_process_lives_while_one_of_its_threads_does)
{
	struct told told = { 0 };
	const struct descend d = { .tell = note, .ctx = &told };
	struct proc_stat st;
	pid_t pid;

	begin_family();
	pid = child(leave_to_a_thread);
	await(1);
	do {
		NEED(proc_stat_read(pid, &st));
	} while (st.state != 'Z');
	EXPECT(!st.exiting);
	EXPECT_EQ(descend_end(&d, clock_now() + PATIENCE), 0);
	EXPECT_EQ(told.count, 1);
	expect_extinct();
}

FORKED_TEST(proc_stat, a_name_is_no_core)
{
	EXPECT(!proc_dumps_core(getpid()));
	NEED(prctl(PR_SET_NAME, "CoreDumping:\t1") == 0);
	EXPECT(!proc_dumps_core(getpid()));
	NEED(prctl(PR_SET_NAME, "\nCoreDumping: 1") == 0);
	EXPECT(!proc_dumps_core(getpid()));
}

static void
pause_for_ever(void)
{
	for (;;)
		pause();
}

/* What the kernel has of it stays until it is reaped. */
FORKED_TEST(proc_stat, one_that_is_killed_is_seen_and_one_that_ends_is_not)
{
	siginfo_t info = { 0 };
	pid_t pid[2];

	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		NEED(pid[i] != -1);
		if (pid[i] == 0 && i == 0)
			pause_for_ever();
		if (pid[i] == 0)
			_exit(0);
	}
	EXPECT(!proc_is_killed(getpid()));
	EXPECT(!proc_is_killed(pid[0]));
	NEED(kill(pid[0], SIGKILL) == 0);
	for (int i = 0; i < 2; i++)
		NEED(waitid(P_PID, (id_t)pid[i], &info, WEXITED | WNOWAIT) ==
			0);
	EXPECT(proc_is_killed(pid[0]));
	EXPECT(!proc_is_killed(pid[1]));
	for (int i = 0; i < 2; i++)
		NEED(waitpid(pid[i], NULL, 0) == pid[i]);
	EXPECT(!proc_is_killed(pid[0]));
}

/* With so much memory that its core takes a while. */
static pid_t
crash(size_t size)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	pid_t pid = fork();
	char *p;

	NEED(pid != -1);
	if (pid != 0)
		return pid;
	setrlimit(RLIMIT_CORE, &all);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p != MAP_FAILED)
		memset(p, 'x', size);
	abort();
}

/* A core is written, and 1 was said while it was. */
static bool
core_was_seen(size_t size, bool *written)
{
	pid_t pid = crash(size);
	bool seen = false;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0)
		seen = seen || proc_dumps_core(pid);
	*written = WCOREDUMP(status);
	return seen;
}

FORKED_TEST(proc_stat, a_core_in_the_making_is_seen)
{
	bool written = true, seen = false;
	char dir[] = "/dev/shm/xrun-test-XXXXXX";

	folder_make();
	if (mkdtemp(dir) != NULL)
		NEED(chdir(dir) == 0);
	for (size_t mib = 16; mib <= 128 && written && !seen; mib *= 2) {
		seen = core_was_seen(mib << 20, &written);
		unlink("core");
	}
	EXPECT(seen || !written);
	NEED(chdir("/") == 0);
	nftw(dir, folder_forget, 4, FTW_DEPTH | FTW_PHYS);
	folder_remove();
}

FORKED_TEST(descend_wake, who_is_stopped_and_bears_the_name_goes_on)
{
	siginfo_t info = { 0 };
	char name[17] = "";
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0) {
		raise(SIGSTOP);
		_exit(3);
	}
	EXPECT_EQ(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
	prctl(PR_GET_NAME, name);
	descend_wake(getpid(), "another");
	descend_wake(1, name);
	info.si_pid = 0;
	EXPECT_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG), 0);
	EXPECT_EQ(info.si_pid, 0);
	descend_wake(getpid(), name);
	EXPECT_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
	EXPECT_EQ(info.si_status, 3);
}
