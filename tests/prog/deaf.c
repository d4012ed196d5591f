/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deaf.c - a rank that does not listen to SIGTERM, with --int to SIGINT, with
 * --hup to SIGHUP. It says "ready" when it is deaf. --linger MS: it does hear,
 * and leaves with 0 that much later.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/prog/prog.h"

int
main(int argc, char **argv)
{
	int64_t last = 60000, linger = -1;
	bool deaf_int = false, deaf_hup = false;
	const struct prog_opt table[] = {
		{ "int", PROG_FLAG, &deaf_int, "ignore SIGINT, too" },
		{ "hup", PROG_FLAG, &deaf_hup, "ignore SIGHUP, too" },
		{ "linger", PROG_NUM, &linger, "ms from SIGTERM to exit 0" },
		{ "last", PROG_NUM, &last, "ms it never outlives" },
		{ 0 },
	};
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t term;

	prog_opts(argc, argv, table);
	prog_lifetime(last);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	if (linger >= 0)
		sigprocmask(SIG_BLOCK, &term, NULL);
	else
		sigaction(SIGTERM, &ignore, NULL);
	if (deaf_int)
		sigaction(SIGINT, &ignore, NULL);
	if (deaf_hup)
		sigaction(SIGHUP, &ignore, NULL);
	dprintf(STDOUT_FILENO, "ready\n");
	if (linger < 0)
		prog_rest();
	while (sigwaitinfo(&term, NULL) == -1 && errno == EINTR)
		;
	prog_pause_ms(linger);
	return 0;
}
