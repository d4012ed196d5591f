/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tick.c - rank 0 writes the time, CLOCK_MONOTONIC in ns, every --gap ms.
 *
 * Each line is one write(2). The gap lets everybody fall asleep, so what a
 * reader measures is the way of a first line, wake-ups included. The other
 * ranks are there, silent, for as long.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/prog/prog.h"

int
main(int argc, char **argv)
{
	int64_t count = 200, gap = 10;
	const struct prog_opt table[] = {
		{ "count", PROG_NUM, &count, "lines" },
		{ "gap", PROG_NUM, &gap, "ms between them" },
		{ 0 },
	};

	prog_opts(argc, argv, table);
	while (count-- > 0) {
		prog_pause_ms(gap);
		if (prog_rank() <= 0)
			dprintf(STDOUT_FILENO, "stamp=%lld\n",
				(long long)clock_now());
	}
	return 0;
}
