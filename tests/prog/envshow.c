/* SPDX-License-Identifier: Apache-2.0 */
/*
 * envshow.c - the environment, sorted, or the variables named as operands:
 * "NAME=value", or "NAME unset". A newline in a value is shown as "\n".
 * --rank R: the other ranks print nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/prog/prog.h"

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
show(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text == '\n')
			fputs("\\n", stdout);
		else
			putchar(*text);
	putchar('\n');
}

static void
show_all(void)
{
	size_t n = 0, i;

	while (environ[n] != NULL)
		n++;
	qsort(environ, n, sizeof(*environ), compare);
	for (i = 0; i < n; i++)
		show(environ[i]);
}

int
main(int argc, char **argv)
{
	int64_t rank = -1;
	const struct prog_opt table[] = {
		{ "rank", PROG_NUM, &rank, "only this one prints" },
		{ 0 },
	};
	int i = prog_opts(argc, argv, table);
	const char *value;

	if (rank != -1 && rank != prog_rank())
		return 0;
	if (i == argc)
		show_all();
	for (; i < argc; i++) {
		value = getenv(argv[i]);
		fputs(argv[i], stdout);
		putchar(value != NULL ? '=' : ' ');
		show(value != NULL ? value : "unset");
	}
	return fflush(stdout) == 0 ? 0 : 2;
}
