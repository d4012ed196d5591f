/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigshow.c - what a rank was born with, and the signals it gets.
 *
 * First one line each for SigBlk, SigIgn, SigCgt, pid, parent, group, session,
 * terminal, umask and every open descriptor; then "ready". With --wait N or
 * --until SIG it prints one line per signal and ends with 0 at the last one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "tests/prog/prog.h"

/* fopen's own descriptor is closed before descriptors are listed. */
static void
show_status(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	mode_t mask;

	if (file == NULL)
		prog_die(errno, "/proc/self/status");
	while (fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, "SigBlk:", 7) == 0 ||
			strncmp(line, "SigIgn:", 7) == 0 ||
			strncmp(line, "SigCgt:", 7) == 0)
			fputs(line, stdout);
	fclose(file);
	mask = umask(0);
	umask(mask);
	printf("umask: %03o\n", (unsigned)mask);
}

static void
show_place(void)
{
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	printf("pid: %d\nparent: %d\ngroup: %d\nsession: %d\nterminal: %s\n",
		getpid(), getppid(), getpgrp(), getsid(0),
		fd == -1 ? "none" : "yes");
	if (fd != -1)
		close(fd);
}

static void
show_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	char target[512];
	struct dirent *entry;
	ssize_t n;

	if (dir == NULL)
		prog_die(errno, "/proc/self/fd");
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' ||
			prog_num("fd", entry->d_name) == dirfd(dir))
			continue;
		n = readlinkat(dirfd(dir), entry->d_name, target,
			sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		printf("fd: %s %s\n", entry->d_name, target);
	}
	closedir(dir);
}

static void
show_signals(int64_t count, int until)
{
	siginfo_t info;
	sigset_t all;
	int sig;

	sigfillset(&all);
	while (count != 0) {
		sig = sigwaitinfo(&all, &info);
		if (sig == -1 || sig == SIGALRM)
			_exit(sig == -1 ? 2 : 98);
		printf("signal: %s from %d\n",
			sigabbrev_np(sig) != NULL ? sigabbrev_np(sig) : "RT",
			info.si_pid);
		fflush(stdout);
		count -= count > 0;
		if (sig == until)
			return;
	}
}

int
main(int argc, char **argv)
{
	int64_t count = 0, last = 60000;
	int until = 0;
	const struct prog_opt table[] = {
		{ "wait", PROG_NUM, &count, "signals to wait for" },
		{ "until", PROG_SIGNAL, &until, "end at this one" },
		{ "last", PROG_NUM, &last, "ms it never outlives (then 98)" },
		{ 0 },
	};
	sigset_t all;

	prog_opts(argc, argv, table);
	show_status();
	show_place();
	show_descriptors();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	prog_lifetime(last);
	printf("ready\n");
	fflush(stdout);
	show_signals(until != 0 && count == 0 ? -1 : count, until);
	return 0;
}
