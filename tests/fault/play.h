/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play.h - what poolplay and queueplay share: rounds by chance, each of which is to end in time.
 *
 * What does not hold ends the process with status 1, and a line with the round that plays it
 * again: `--seed N --one N`.
 */
#ifndef TESTS_FAULT_PLAY_H
#define TESTS_FAULT_PLAY_H

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include <xrun/error.h>

#include "tests/prog/line.h"
#include "tests/prog/prog.h"

#define PATIENCE 60 /* s of a round */

static int64_t rounds = 50, seed = 1, one = -1;
static int64_t round_now;
static const char *about = ""; /* the round */
static _Thread_local struct xr_error err;

#define PLAY_OPTIONS \
	{ "rounds", PROG_NUM, &rounds, "of it" }, \
		{ "seed", PROG_NUM, &seed, "of chance" }, \
		{ "one", PROG_NUM, &one, "this round alone" }

#define EXPECT(x) \
	do { \
		if (!(x)) \
			violation(__LINE__, #x); \
	} while (0)

static inline void
violation(int line, const char *what)
{
	fprintf(stderr,
		"VIOLATION line %d: %s: %s: round %" PRId64 " of seed %" PRId64
		": %s\n",
		line, what, err.text, round_now, seed, about);
	_exit(1);
}

static inline void
late(int sig)
{
	(void)sig;
	violation(__LINE__, "it does not end");
}

static inline uint64_t
draw(uint64_t *chance, uint64_t below)
{
	return line_random(chance) % below;
}

/* Of something that has a number, which nothing else has. */
static inline uint64_t
chance_of(uint64_t number)
{
	uint64_t chance = number * 2654435761u + 88172645463325252u;

	for (int i = 0; i < 8; i++)
		line_random(&chance);
	return chance;
}

static inline void
play_all(void (*play_round)(void))
{
	const struct sigaction alarmed = { .sa_handler = late };

	EXPECT(sigaction(SIGALRM, &alarmed, NULL) == 0);
	round_now = one >= 0 ? one : 0;
	if (one >= 0)
		rounds = one + 1;
	for (; round_now < rounds; round_now++) {
		alarm(PATIENCE);
		play_round();
		alarm(0);
	}
}

#endif /* TESTS_FAULT_PLAY_H */
