/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.c - a pretended device runtime that writes down what it was told.
 *
 * Real runtimes read their variables when they are loaded, so a variable that
 * comes later comes too late. This one, linked, preloaded or opened, appends
 * its whole environment to the file FAKE_RUNTIME_RECORD names, at load:
 *
 *	PID <tab> NAME=VALUE <newline>     newlines in values as \n
 *
 * in one write, so that the records of several ranks do not mix.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* Bytes of all records, or what they are if @out is not NULL. */
static size_t
put_all(char *out)
{
	size_t len = 0;
	char pid[16];

	snprintf(pid, sizeof(pid), "%d\t", (int)getpid());
	for (char **v = environ; *v != NULL; v++) {
		for (const char *p = pid; *p != '\0'; p++, len++)
			if (out != NULL)
				out[len] = *p;
		for (const char *p = *v; *p != '\0'; p++) {
			if (out != NULL && *p == '\n')
				memcpy(out + len, "\\n", 2);
			else if (out != NULL)
				out[len] = *p;
			len += *p == '\n' ? 2 : 1;
		}
		if (out != NULL)
			out[len] = '\n';
		len++;
	}
	return len;
}

__attribute__((constructor)) static void
record(void)
{
	const char *path = getenv("FAKE_RUNTIME_RECORD");
	size_t len = 0;
	char *all = NULL;
	int fd = -1;

	if (path == NULL)
		return;
	len = put_all(NULL);
	all = malloc(len);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (all == NULL || fd == -1)
		abort();
	put_all(all);
	if (write(fd, all, len) != (ssize_t)len)
		abort();
	close(fd);
	free(all);
}
