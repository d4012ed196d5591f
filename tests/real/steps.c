/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.c - a program as people write them: printf, no flush, no library.
 *
 *   steps [N [crash RANK | overflow RANK | exit RANK CODE | ask]]
 *
 * Prints N steps. "crash": that rank writes through NULL half-way; "overflow":
 * past the end of the heap block; "exit": leaves with CODE. "ask": after the
 * first step each rank waits for a line on stdin or its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
number(const char *text)
{
	return text == NULL ? -1 : (int)strtol(text, NULL, 10);
}

static void
stumble(const char *how, int code)
{
	int *volatile nowhere = NULL;
	volatile char *block;

	if (strcmp(how, "crash") == 0)
		*nowhere = code;
	if (strcmp(how, "overflow") == 0) {
		block = malloc(8);
		if (block != NULL)
			block[8] = (char)code;
		free((void *)block);
	}
	exit(code);
}

int
main(int argc, char **argv)
{
	int steps = argc > 1 ? number(argv[1]) : 10, i;
	const char *how = argc > 2 ? argv[2] : "";
	int which = argc > 3 ? number(argv[3]) : -1;
	int code = argc > 4 ? number(argv[4]) : 1;
	int rank = number(getenv("RANK"));

	for (i = 0; i < steps; i++) {
		printf("rank %d of %s, step %d\n", rank, getenv("WORLD_SIZE"),
			i);
		if (rank == which && i == steps / 2)
			stumble(how, code);
		if (strcmp(how, "ask") == 0 && i == 0)
			getchar();
	}
	fprintf(stderr, "rank %d is done\n", rank);
	return 0;
}
