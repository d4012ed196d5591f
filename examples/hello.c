/* SPDX-License-Identifier: Apache-2.0 */
/* hello.c - a plain program: what a rank is told, it is told by variables. */
#include <stdio.h>
#include <stdlib.h>

int
main(void)
{
	const char *rank = getenv("XRUN_RANK"), *size = getenv("XRUN_SIZE");

	printf("hello from rank %s of %s\n", rank ? rank : "0",
		size ? size : "1");
	return 0;
}
