/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.c - lines of 100 bytes at a steady pace, and what a rank has to say of
 * its end: the time (CLOCK_MONOTONIC, ns) at which it was told to, or died.
 *
 * A rank that cannot keep its pace does not catch up: it writes less.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/prog/prog.h"

static bool deaf; /* to SIGTERM */

static void
say_clock(const char *what)
{
	dprintf(STDERR_FILENO, "%s=%lld\n", what, (long long)clock_now());
}

static void
on_term(int sig)
{
	(void)sig;
	if (deaf)
		return;
	say_clock("told");
	_exit(0);
}

int
main(int argc, char **argv)
{
	int64_t rate = 1000, ms = 1000, die = -1, after = 0;
	const struct prog_opt table[] = {
		{ "rate", PROG_NUM, &rate, "lines a second; 0: none" },
		{ "for", PROG_NUM, &ms, "ms" },
		{ "die", PROG_NUM, &die, "this rank dies of 3 in attempt 0" },
		{ "after", PROG_NUM, &after, "ms" },
		{ "deaf", PROG_FLAG, &deaf, "SIGTERM does nothing" },
		{ 0 },
	};
	struct sigaction act = { .sa_handler = on_term };
	int64_t begin = clock_now(), end, pause;
	const char *attempt = getenv("XRUN_ATTEMPT");
	char line[101];

	prog_opts(argc, argv, table);
	memset(line, 'x', 99);
	line[99] = '\n';
	sigaction(SIGTERM, &act, NULL);
	if (prog_rank() == die && (attempt == NULL || *attempt == '0'))
		ms = after;
	pause = rate > 0 ? 1000 / rate + (rate > 1000) : 100;
	for (end = begin + ms * NS_PER_MS; clock_now() < end;) {
		prog_pause_ms(pause);
		for (int64_t i = 0; rate > 0 && i < (rate + 999) / 1000; i++)
			if (write(STDOUT_FILENO, line, 100) != 100)
				return 1;
	}
	if (prog_rank() != die || (attempt != NULL && *attempt != '0'))
		return 0;
	say_clock("died");
	_exit(3);
}
