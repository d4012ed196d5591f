/* SPDX-License-Identifier: Apache-2.0 */
/* test_usage.c - which processes of a tree are found, and what that costs. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <sys/wait.h>

#include "proc/usage.h"
#include "tests/unit/forked.h"

#define MANY (USAGE_THREADS + 20)

static int ready[2]; /* a byte of each that stands */

static void
say_ready(void)
{
	EXPECT(write(ready[1], "", 1) == 1);
}

static void
await_ready(unsigned count)
{
	char byte;

	for (; count > 0; count--)
		EXPECT(read(ready[0], &byte, 1) == 1);
}

/* A child that waits for its end. */
static void
make_child(void)
{
	if (fork() == 0) {
		say_ready();
		for (;;)
			pause();
	}
}

static void *
wait_for_ever(void *arg)
{
	if (arg != NULL)
		make_child();
	say_ready();
	for (;;)
		pause();
	return NULL;
}

static void
make_thread(void *arg)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	EXPECT(pthread_create(&thread, &small, wait_for_ever, arg) == 0);
	pthread_attr_destroy(&small);
}

/* A process with @threads, the last of which has a child, and one of its own, in a
 * process group. */
static pid_t
make_tree(unsigned threads)
{
	pid_t pid;

	EXPECT(pipe(ready) == 0);
	pid = fork();
	if (pid != 0)
		return pid;
	setpgid(0, 0);
	make_child();
	for (unsigned i = 1; i < threads; i++)
		make_thread(i + 1 == threads ? &ready : NULL);
	for (;;)
		pause();
}

static void
end_tree(pid_t pid)
{
	kill(-pid, SIGKILL);
	while (wait(NULL) != -1 || errno == EINTR)
		continue;
	close(ready[0]);
	close(ready[1]);
}

FORKED_TEST(usage, the_child_of_another_thread_is_found_by_who_asks_for_it)
{
	struct usage near = { 0 }, all = { 0 };
	pid_t pid = make_tree(3);

	await_ready(4);
	EXPECT(usage_near(pid, &near));
	EXPECT(near.processes == 2);
	EXPECT(near.others == 2);
	EXPECT(near.asked == 0);
	EXPECT(near.leaf != 0 && near.leaf != pid);
	EXPECT(usage_tree(pid, &all));
	EXPECT(all.processes == 3);
	EXPECT(all.asked == 2);
	EXPECT(all.leaf == near.leaf);
	end_tree(pid);
	EXPECT(!usage_near(pid, &near));
	EXPECT(!usage_tree(pid, &all));
}

FORKED_TEST(usage, a_process_of_one_thread_is_asked_for_no_other)
{
	struct usage near = { 0 }, all = { 0 };
	pid_t pid = make_tree(1);

	await_ready(1);
	EXPECT(usage_near(pid, &near));
	EXPECT(usage_tree(pid, &all));
	EXPECT(near.processes == 2 && all.processes == 2);
	EXPECT(near.others == 0 && all.asked == 0);
	end_tree(pid);
}

FORKED_TEST(usage, there_is_an_end_to_the_threads_that_are_asked)
{
	struct usage all = { 0 };
	pid_t pid = make_tree(MANY);

	await_ready(MANY + 1);
	EXPECT(usage_tree(pid, &all));
	EXPECT(all.others == MANY - 1);
	EXPECT(all.asked == USAGE_THREADS);
	EXPECT(all.processes == 2);
	end_tree(pid);
}
