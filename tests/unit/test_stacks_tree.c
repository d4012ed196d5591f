/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_tree.c - whose the processes of a machine are, which the test makes up. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "launcher/stacks/tree.h"
#include "proc/descend.h"

static struct one {
	pid_t pid, ppid, session;
	const char *comm;
	bool exiting, gone;
} table[200];

static uint32_t ones;
static struct stacks s;

void __wrap_proc_each(const char *path, proc_each_fn *fn, void *arg);
bool __wrap_proc_stat_read(pid_t pid, struct proc_stat *out);

void
__wrap_proc_each(const char *path, proc_each_fn *fn, void *arg)
{
	cr_assert_str_eq(path, "/proc");
	for (uint32_t i = 0; i < ones; i++)
		fn(table[i].pid, arg);
}

bool
__wrap_proc_stat_read(pid_t pid, struct proc_stat *out)
{
	for (uint32_t i = 0; i < ones; i++)
		if (table[i].pid == pid) {
			memset(out, 0, sizeof(*out));
			out->ppid = table[i].ppid;
			out->session = table[i].session;
			out->exiting = table[i].exiting;
			snprintf(out->comm, sizeof(out->comm), "%s",
				table[i].comm);
			return !table[i].gone;
		}
	cr_assert_fail("%d", (int)pid);
	return false;
}

static void
end(void)
{
	stacks_fini(&s);
}

TestSuite(stacks_tree, .fini = end);

static struct one *
process(pid_t pid, pid_t ppid, pid_t session, const char *comm)
{
	table[ones] = (struct one){ pid, ppid, session, comm, false, false };
	return &table[ones++];
}

/* "0:10/0 train; 0:11/1 sleep; ": rank, pid, depth, name. */
static void
expect_tree(const char *want)
{
	struct buf out = { 0 };

	tree_find(&s);
	for (uint32_t i = 0; i < s.count; i++)
		buf_fmt(&out, "%u:%d/%u %s; ", s.process[i].rank,
			(int)s.process[i].pid, s.process[i].depth,
			s.process[i].comm);
	cr_expect_str_eq(buf_text(&out), want, "%s", buf_text(&out));
	buf_fini(&out);
}

Test(stacks_tree, ranks_with_those_below_them)
{
	stacks_add_rank(&s, 5, 30);
	stacks_add_rank(&s, 2, 10);
	stacks_add_rank(&s, 7, 99);
	process(12, 11, 10, "grand\nchild");
	process(31, 30, 30, "b");
	process(11, 10, 10, "child");
	process(30, 1, 30, "train");
	process(10, 1, 10, "train");
	process(1, 0, 1, "init");
	process(40, 1, 40, "other");
	expect_tree("5:30/0 train; 5:31/1 b; "
		    "2:10/0 train; 2:11/1 child; 2:12/2 grand?child; ");
	cr_expect_not(s.rank[0].ended);
	cr_expect_not(s.rank[1].ended);
	cr_expect(s.rank[2].ended);
}

Test(stacks_tree, without_processes_all_have_ended)
{
	stacks_add_rank(&s, 0, 10);
	expect_tree("");
	cr_expect(s.rank[0].ended);
}

Test(stacks_tree, one_process_alone)
{
	stacks_add_rank(&s, 0, 10);
	process(10, 1, 10, "train");
	expect_tree("0:10/0 train; ");
	cr_expect_not(s.rank[0].ended);
}

Test(stacks_tree, those_that_are_gone_or_exit_are_none)
{
	stacks_add_rank(&s, 0, 10);
	stacks_add_rank(&s, 1, 20);
	process(10, 1, 10, "train")->exiting = true;
	process(20, 1, 20, "train");
	process(21, 20, 20, "gone")->gone = true;
	process(22, 21, 20, "orphan");
	process(11, 10, 10, "left");
	expect_tree("0:11/1 left; 1:20/0 train; 1:22/1 orphan; ");
	cr_expect(s.rank[0].ended);
}

Test(stacks_tree, who_left_its_parents_is_known_by_its_session)
{
	stacks_add_rank(&s, 0, 10);
	stacks_add_rank(&s, 1, 0);
	process(10, 1, 10, "train");
	process(50, 1, 10, "daemon");
	process(51, 50, 10, "below");
	process(60, 1, 0, "elsewhere");
	expect_tree("0:10/0 train; 0:50/1 daemon; 0:51/1 below; ");
}

/* A rank below another one is its own. */
Test(stacks_tree, a_rank_below_a_rank)
{
	stacks_add_rank(&s, 0, 10);
	stacks_add_rank(&s, 1, 11);
	process(10, 1, 10, "outer");
	process(11, 10, 11, "inner");
	process(12, 11, 11, "below");
	process(13, 10, 10, "beside");
	expect_tree(
		"0:10/0 outer; 0:13/1 beside; 1:11/0 inner; 1:12/1 below; ");
}

Test(stacks_tree, shells_that_run_others_are_left_out)
{
	static const char *const names[] = { "sh", "bash", "dash", "ash", "zsh",
		"ksh", "mksh", "fish", "csh", "tcsh", "busybox", "timeout",
		"time", "xrun", "xrun-super" };
	char want[2000] = "", one[80];

	for (int i = 0; i < 15; i++) {
		pid_t pid = 100 + 10 * i;

		stacks_add_rank(&s, (uint32_t)i, pid);
		process(pid, 1, pid, names[i]);
		process(pid + 1, pid, pid, names[i]);
		snprintf(one, sizeof(one), "%d:%d/1 %s; ", i, (int)pid + 1,
			names[i]);
		strncat(want, one, sizeof(want) - strlen(want) - 1);
	}
	stacks_add_rank(&s, 15, 400);
	process(400, 1, 400, "shell");
	process(401, 400, 400, "x");
	strncat(want, "15:400/0 shell; 15:401/1 x; ",
		sizeof(want) - strlen(want) - 1);
	expect_tree(want);
}

Test(stacks_tree, no_more_than_16_of_a_rank)
{
	stacks_add_rank(&s, 0, 10);
	stacks_add_rank(&s, 1, 50);
	process(10, 1, 10, "a");
	for (pid_t i = 11; i < 29; i++)
		process(i, 10, 10, "a");
	process(50, 1, 50, "b");
	for (pid_t i = 51; i < 66; i++)
		process(i, 50, 50, "b");
	tree_find(&s);
	cr_expect_eq(s.count, 32);
	cr_expect_eq(s.rank[0].left_out, 3);
	cr_expect_eq(s.rank[1].left_out, 0);
	cr_expect_eq(s.process[15].pid, 25);
	cr_expect_eq(s.process[16].pid, 50);
}

/* 64 generations are looked through. */
Test(stacks_tree, a_chain_of_processes)
{
	stacks_add_rank(&s, 0, 1000);
	process(1000, 1, 5, "a");
	for (pid_t i = 1; i < 70; i++)
		process(1000 + i, 999 + i, 5, "a");
	tree_find(&s);
	cr_expect_eq(s.count, 16);
	cr_expect_eq(s.rank[0].left_out, 48);
}

Test(stacks_tree, its_memory_is_given_back)
{
	size_t before = 0;

	for (int i = 0; i < 20; i++) {
		stacks_fini(&s);
		s = (struct stacks){ 0 };
		ones = 0;
		stacks_add_rank(&s, 0, 10);
		process(10, 1, 10, "a");
		process(11, 10, 10, "b");
		tree_find(&s);
		if (i == 10)
			before = mallinfo2().uordblks;
	}
	cr_expect_eq(mallinfo2().uordblks, before);
}
