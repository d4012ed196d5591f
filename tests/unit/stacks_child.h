/* SPDX-License-Identifier: Apache-2.0 */
/* stacks_child.h - children of forked tests, of which launcher/stacks is asked. */
#ifndef TESTS_UNIT_STACKS_CHILD_H
#define TESTS_UNIT_STACKS_CHILD_H

#include "tests/unit/forked.h"

/* Starts a child that runs @run(@arg) once it has told that it is there. */
static inline pid_t
start(void (*run)(int), int arg)
{
	int ready[2];
	char byte;
	pid_t pid;

	NEED(pipe(ready) == 0);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		NEED(write(ready[1], "", 1) == 1);
		close(ready[0]);
		close(ready[1]);
		run(arg);
		_exit(0);
	}
	NEED(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static inline void
stop(pid_t pid)
{
	kill(pid, SIGKILL);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
}

static inline void
sleeps(int arg)
{
	(void)arg;
	for (;;)
		pause();
}

#endif /* TESTS_UNIT_STACKS_CHILD_H */
