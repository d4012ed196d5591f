/* SPDX-License-Identifier: Apache-2.0 */
/* at_end.h - what has to hold behind each test of a suite. */
#ifndef TESTS_UNIT_AT_END_H
#define TESTS_UNIT_AT_END_H

#include <stdio.h>
#include <stdlib.h>

/* AT_END() - for the .fini of a suite, where Criterion ignores a failed cr_expect(): without
 * @x the process crashes, and the test fails. */
#define AT_END(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: at the end: %s\n", __FILE__, \
				__LINE__, #x); \
			abort(); \
		} \
	} while (0)

#endif /* TESTS_UNIT_AT_END_H */
