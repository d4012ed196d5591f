/* SPDX-License-Identifier: Apache-2.0 */
/* expect.h - a rank of a test: what it expects, and what it says when that is not so. */
#ifndef TESTS_PROG_EXPECT_H
#define TESTS_PROG_EXPECT_H

#include <stdint.h>

#include <xrun/error.h>
#include <xrun/func.h>
#include <xrun/time.h>

/* Which it is, and of how many; the program's own to set. */
extern uint32_t rank, size;

/* What the calls of its main thread are given. */
extern struct xr_error err;

#define EXPECT(x) \
	do { \
		if (!(x)) \
			give_up(#x, __LINE__); \
	} while (0)

/* give_up() - says where what was not as expected, and what err says; it has failed. */
_Noreturn void give_up(const char *what, int line);

/* die() - a function that kills the process that runs it. */
enum xr_status die(struct xr_call *call, struct xr_value *args, void *ctx);

/* now() - ns of CLOCK_MONOTONIC. */
int64_t now(void);

#endif /* TESTS_PROG_EXPECT_H */
