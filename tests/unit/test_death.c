/* SPDX-License-Identifier: Apache-2.0 */
/* test_death.c - which dead children of the supervisor launcher/sup/death.c reaps. */
#include <sys/wait.h>

#include "launcher/job/sup.h"
#include "launcher/sup/sup.h"
#include "tests/unit/forked.h"

TestSuite(death, .timeout = 60);

static struct rank ranks[2];
static struct sup sup;
static struct job job = { .rank = ranks, .sup = &sup };

/* A child that has ended and was not reaped. */
static pid_t
dead_child(void)
{
	siginfo_t info;
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0)
		_exit(0);
	NEED(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	return pid;
}

static bool
is_reaped(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == -1 && errno == ECHILD;
}

/* The kernel may give a stranger the process id of a rank that was reaped. */
FORKED_TEST(death, only_a_rank_that_was_not_reaped_keeps_its_process_id)
{
	pid_t stranger = dead_child();

	job.plan.local_size = 2;
	ranks[0] = (struct rank){ .pid = dead_child(), .pidfd = -1 };
	ranks[1] = (struct rank){ .pid = dead_child(), .pidfd = 7 };
	death_reap_strangers(&job);
	EXPECT(is_reaped(stranger));
	EXPECT(is_reaped(ranks[0].pid));
	EXPECT(!is_reaped(ranks[1].pid));
}
