/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rig.h - what the programs that test pools and queues share: cases, and words that all
 * processes of a case see.
 *
 * What a case did not expect ends its process with status 1, and a line that says what. A
 * case has a minute.
 */
#ifndef TESTS_PROG_RIG_H
#define TESTS_PROG_RIG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/error.h>

#define RIG_PATIENCE_S \
	60 /* or $RIG_PATIENCE: on a machine that is loaded on purpose */

/* rig_patience() - seconds after which a program is stuck. */
unsigned rig_patience(void);

#define EXPECT(x) \
	do { \
		if (!(x)) \
			rig_fail(#x, __FILE__, __LINE__); \
	} while (0)

extern struct xr_error rig_err; /* of the last call */

_Noreturn void rig_fail(const char *what, const char *file, int line);

int64_t rig_now(void); /* ns */

/* rig_many() - so many rounds, or fewer where each takes longer: an eighth of them under
 * sanitizers, a twentieth with queues of another machine (queue_far.h). */
uint32_t rig_many(uint32_t rounds);

/* rig_memory() - @bytes bytes that are 0, of file @fd; -1: that children have, too. */
void *rig_memory(size_t bytes, int fd);

/* In such memory, the program's own to set: for the case; futexes. */
extern _Atomic uint32_t *rig_word;

/* rig_post() - one more of a word; rig_await() - until it is @value or more. */
void rig_post(uint32_t word);
void rig_await(uint32_t word, uint32_t value);

/* A table of them ends with a row without a name. */
struct rig_case {
	const char *name;
	void (*fn)(void);
};

/* rig_run() - the one of that name; false: there is none. */
bool rig_run(const struct rig_case *cases, const char *name);

#endif /* TESTS_PROG_RIG_H */
