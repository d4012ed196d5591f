/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.c - a tool that looks at a process and does not come back: called as
 * eu-stack -m -p PID, it attaches as that does, and stays. With HOLD=blind it does
 * not take note of the stop, so that the process stands still when it is killed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>

int
main(int argc, char **argv)
{
	const char *how = getenv("HOLD");
	pid_t pid = 0;

	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "-p") == 0)
			pid = (pid_t)strtol(argv[i + 1], NULL, 10);
	if (pid <= 0 || ptrace(PTRACE_ATTACH, pid, NULL, NULL) == -1) {
		perror("ptrace");
		return 1;
	}
	if (how == NULL || strcmp(how, "blind") != 0)
		waitpid(pid, NULL, __WALL);
	for (;;)
		pause();
}
