/* SPDX-License-Identifier: Apache-2.0 */
/* test_immune.c - sessions that do not react to a signal (src/proc/immune.h). */
#include <sched.h>

#include <sys/syscall.h>

#include "proc/immune.h"
#include "tests/unit/forked.h"

enum place {
	LEADER, /* PID 1 is the leader itself, */
	BELOW,  /* a child of it, */
	BESIDE, /* or one whose parent has exited */
	NOWHERE,
};

/* As fork(); PID 1 of a namespace of its own. -1 with EPERM: not allowed here. */
static pid_t
fork_init(void)
{
	return (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
}

static void
on_term(sighandler_t how)
{
	const struct sigaction action = { .sa_handler = how };

	sigaction(SIGTERM, &action, NULL);
}

static void
sleep_here(int ready)
{
	(void)!write(ready, "x", 1);
	for (;;)
		pause();
}

/* The leader of a session, and all of it are ready. @how: of the leader's SIGTERM */
static void
lead(enum place where, sighandler_t how, int ready)
{
	pid_t pid;

	setsid();
	on_term(SIG_DFL);
	if (where == BELOW && fork_init() == 0)
		sleep_here(ready);
	if (where == BESIDE) {
		pid = fork();
		if (pid == 0 && fork_init() == 0)
			sleep_here(ready);
		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	on_term(how);
	sleep_here(ready);
}

static void
end_all(void)
{
	pid_t pid;

	forked_sweep();
	do
		pid = waitpid(-1, NULL, __WALL);
	while (pid > 0);
}

static bool
is_immune(enum place where, sighandler_t how)
{
	int ready[2], n = where == BELOW || where == BESIDE ? 2 : 1;
	bool immune;
	char c;
	pid_t leader;

	NEED(pipe(ready) == 0);
	leader = where == LEADER ? fork_init() : fork();
	NEED(leader != -1);
	if (leader == 0)
		lead(where, how, ready[1]);
	close(ready[1]);
	for (int i = 0; i < n; i++)
		NEED(read(ready[0], &c, 1) == 1);
	close(ready[0]);
	immune = immune_session(leader, SIGTERM);
	end_all();
	return immune;
}

static void
handle(int sig)
{
	(void)sig;
}

FORKED_TEST(immune, a_session_with_pid_1_of_a_namespace_below_its_leader)
{
	pid_t pid = fork_init();

	if (pid == -1)
		return; /* not root */
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	EXPECT(is_immune(LEADER, SIG_DFL));
	EXPECT(!is_immune(LEADER, handle));
	EXPECT(is_immune(BELOW, SIG_IGN));
	EXPECT(!is_immune(BELOW, SIG_DFL));
	EXPECT(!is_immune(BESIDE, SIG_IGN));
}

FORKED_TEST(immune, a_session_without_pid_1_of_a_namespace_is_not)
{
	EXPECT(!is_immune(NOWHERE, SIG_DFL));
	EXPECT(!is_immune(NOWHERE, SIG_IGN));
}
