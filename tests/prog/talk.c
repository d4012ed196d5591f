/* SPDX-License-Identifier: Apache-2.0 */
/*
 * talk.c - a program as people write them: printf, no flush, no library.
 *
 * Prints --lines lines "line 0", "line 1", ... and then --part TEXT without a
 * newline. --ask: behind each line it waits for one on stdin, or its end.
 * --crash: at last it writes through NULL, and nothing is flushed on purpose.
 */
#include <stdio.h>

#include "tests/prog/prog.h"

static void
wait_for_line(void)
{
	int c;

	do {
		c = getchar();
	} while (c != '\n' && c != EOF);
}

int
main(int argc, char **argv)
{
	int64_t lines = 1, last = 60000, i;
	const char *part = NULL;
	bool ask = false, crash = false;
	const struct prog_opt table[] = {
		{ "lines", PROG_NUM, &lines, "lines to print" },
		{ "part", PROG_TEXT, &part, "a last one without newline" },
		{ "ask", PROG_FLAG, &ask, "wait for stdin behind each line" },
		{ "crash", PROG_FLAG, &crash, "end by SIGSEGV" },
		{ "last", PROG_NUM, &last, "ms it never outlives" },
		{ 0 },
	};
	volatile int *volatile nowhere = NULL;

	prog_opts(argc, argv, table);
	prog_lifetime(last);
	for (i = 0; i < lines; i++) {
		printf("line %lld\n", (long long)i);
		if (ask)
			wait_for_line();
	}
	if (part != NULL)
		fputs(part, stdout);
	if (part != NULL && ask)
		wait_for_line();
	if (crash)
		*nowhere = 1;
	return 0;
}
