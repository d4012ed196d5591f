/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tty.c - what stdin is to this rank, and what comes in.
 *
 * Prints "stdin: terminal|pipe|socket|null|file|closed|other", "controlling:
 * yes|no", "foreground: yes|no"; then "read: LINE" for each line and "eof".
 * --raw puts a terminal into raw mode and leaves it so. --none reads nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tests/prog/prog.h"

static const char *
kind_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return "closed";
	if (isatty(fd))
		return "terminal";
	if (S_ISFIFO(st.st_mode))
		return "pipe";
	if (S_ISSOCK(st.st_mode))
		return "socket";
	if (S_ISREG(st.st_mode))
		return "file";
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		return "null";
	return "other";
}

static void
show_terminal(void)
{
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	printf("stdin: %s\n", kind_of(STDIN_FILENO));
	printf("controlling: %s\n", fd == -1 ? "no" : "yes");
	printf("foreground: %s\n",
		fd != -1 && tcgetpgrp(fd) == getpgrp() ? "yes" : "no");
	fflush(stdout);
	if (fd != -1)
		close(fd);
}

static void
go_raw(void)
{
	struct termios mode;

	if (tcgetattr(STDIN_FILENO, &mode) == -1)
		prog_die(errno, "stdin");
	cfmakeraw(&mode);
	if (tcsetattr(STDIN_FILENO, TCSANOW, &mode) == -1)
		prog_die(errno, "raw mode");
}

static void
read_lines(void)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		printf("read: %s\n", line);
		fflush(stdout);
	}
	free(line);
	if (ferror(stdin))
		printf("error: %s\n", strerror(errno));
	else
		printf("eof\n");
}

int
main(int argc, char **argv)
{
	bool raw = false, none = false;
	int64_t last = 60000;
	const struct prog_opt table[] = {
		{ "raw", PROG_FLAG, &raw, "leave the terminal raw" },
		{ "none", PROG_FLAG, &none, "read nothing" },
		{ "last", PROG_NUM, &last, "ms it never outlives" },
		{ 0 },
	};

	prog_opts(argc, argv, table);
	prog_lifetime(last);
	show_terminal();
	if (raw)
		go_raw();
	if (!none)
		read_lines();
	return 0;
}
