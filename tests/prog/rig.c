/* SPDX-License-Identifier: Apache-2.0 */
/* rig.c - see rig.h. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/prog/rig.h"

struct xr_error rig_err;
_Atomic uint32_t *rig_word;

void
rig_fail(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s, line %d: %s: %s\n", file, line, what,
		rig_err.text);
	fflush(NULL);
	_exit(1);
}

int64_t
rig_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

uint32_t
rig_many(uint32_t rounds)
{
	if (getenv("QUEUE_FAR") != NULL)
		return rounds / 20;
	return getenv("SANITIZED") != NULL ? rounds / 8 : rounds;
}

void *
rig_memory(size_t bytes, int fd)
{
	int flags = fd == -1 ? MAP_ANONYMOUS | MAP_NORESERVE : 0;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags,
		fd, 0);

	EXPECT(at != MAP_FAILED);
	return at;
}

void
rig_post(uint32_t word)
{
	atomic_fetch_add(&rig_word[word], 1);
	syscall(SYS_futex, &rig_word[word], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void
rig_await(uint32_t word, uint32_t value)
{
	uint32_t now;

	while ((now = atomic_load(&rig_word[word])) < value)
		syscall(SYS_futex, &rig_word[word], FUTEX_WAIT, now, NULL, NULL,
			0);
}

bool
rig_run(const struct rig_case *cases, const char *name)
{
	for (; cases->name != NULL; cases++)
		if (strcmp(cases->name, name) == 0) {
			cases->fn();
			return true;
		}
	return false;
}

unsigned
rig_patience(void)
{
	const char *text = getenv("RIG_PATIENCE");

	return text != NULL ? (unsigned)strtoul(text, NULL, 10) :
			      RIG_PATIENCE_S;
}
