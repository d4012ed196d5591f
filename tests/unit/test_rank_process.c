/* SPDX-License-Identifier: Apache-2.0 */
/* test_rank_process.c - whether the process of a rank of this machine has ended
 * (worker/proc/rank_process.c): here are ranks 10 to 13, and this is rank 12. */
#include <sys/stat.h>

#include "segment/owner.h"
#include "tests/unit/forked.h"
#include "worker/proc/rank_process.h"

TestSuite(rank_process, .timeout = 60);

/* A child that has ended: as a zombie, or reaped. */
static pid_t
ended_child(bool reaped)
{
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	NEED(waitid(P_PID, (id_t)pid, &info,
		     reaped ? WEXITED : WEXITED | WNOWAIT) == 0);
	return pid;
}

FORKED_TEST(rank_process, who_is_a_zombie_or_reaped_has_ended)
{
	pid_t zombie = ended_child(false);

	EXPECT(!rank_process_ended(getpid()));
	EXPECT(!rank_process_ended(getppid()));
	EXPECT(rank_process_ended(zombie));
	NEED(waitpid(zombie, NULL, 0) == zombie);
	EXPECT(rank_process_ended(zombie));
}

/* The slots have, from rank 10 on: a reaped process, none yet, this session, a zombie.
 * @own is what stands in that of this rank. */
static int
join_segment(pid_t own, pid_t zombie)
{
	const struct segment_wish wish = { .job = "k7m2",
		.first = 10,
		.ranks = 4,
		.spare = 1 };
	int fd = segment_create(&wish);
	struct stat st;
	char name[64];

	NEED(fd != -1 && fstat(fd, &st) == 0);
	segment_name(fd, 0, ended_child(true));
	segment_name(fd, 2, own);
	segment_name(fd, 3, zombie);
	segment_name(fd, 4, zombie); /* of no rank */
	snprintf(name, sizeof(name), "%d:%llu", fd,
		(unsigned long long)st.st_ino);
	setenv("XRUN_SEGMENT_FD", name, 1);
	setenv("XRUN_JOB", "k7m2", 1);
	setenv("XRUN_RANK", "12", 1);
	setenv("XRUN_SIZE", "20", 1);
	setenv("XRUN_LOCAL_RANK", "2", 1);
	setenv("XRUN_LOCAL_SIZE", "4", 1);
	return fd;
}

FORKED_TEST(rank_process, a_rank_of_this_machine_is_known_by_its_slot)
{
	pid_t zombie = ended_child(false);
	int fd = join_segment(getsid(0), zombie);

	EXPECT(rank_process_died(10));
	EXPECT(!rank_process_died(11));
	EXPECT(!rank_process_died(12));
	EXPECT(rank_process_died(13));
	EXPECT(!rank_process_died(9));
	EXPECT(!rank_process_died(14));
	EXPECT(!rank_process_died(0));
	EXPECT(!rank_process_died(UINT32_MAX));
	segment_name(fd, 1, getsid(0));
	EXPECT(!rank_process_died(11));
	segment_recycle(fd, 1, 1); /* its process has ended */
	EXPECT(rank_process_died(11));
	NEED(waitpid(zombie, NULL, 0) == zombie);
}

FORKED_TEST(rank_process, in_another_namespace_nobody_is_known)
{
	int fd = join_segment(getsid(0) + 1, ended_child(true));

	for (uint32_t rank = 9; rank < 15; rank++)
		EXPECT(!rank_process_died(rank));
	close(fd);
}

FORKED_TEST(rank_process, who_is_not_of_the_machine_knows_nobody)
{
	int fd = join_segment(getsid(0), ended_child(true));

	setenv("XRUN_LOCAL_SIZE", "2", 1);
	for (uint32_t rank = 9; rank < 15; rank++)
		EXPECT(!rank_process_died(rank));
	close(fd);
}
