/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst_inline.c - prints COUNT lines with printf(3) and putc_unlocked(3), which the
 * compiler expands: it changes stdout without a call and without the lock.
 */
#include <stdio.h>
#include <stdlib.h>

int
main(int argc, char **argv)
{
	long count = argc > 1 ? strtol(argv[1], NULL, 10) : 0;

	for (long i = 0; i < 1000 && i < count; i++)
		printf("%ld\n", i);
	for (long i = 1000; i < count; i++) {
		char text[32];

		snprintf(text, sizeof(text), "%ld\n", i);
		for (char *p = text; *p != '\0'; p++)
			putc_unlocked(*p, stdout);
	}
	return 0;
}
