/* SPDX-License-Identifier: Apache-2.0 */
/* hello.c - a rank that writes one line to each stream. */
#include <stdio.h>
#include <unistd.h>

#include "tests/prog/prog.h"

int
main(void)
{
	long long rank = prog_rank();

	dprintf(STDOUT_FILENO, "rank %lld says hello\n", rank);
	dprintf(STDERR_FILENO, "rank %lld says so on stderr\n", rank);
	return 0;
}
