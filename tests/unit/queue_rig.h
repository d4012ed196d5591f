/* SPDX-License-Identifier: Apache-2.0 */
/* queue_rig.h - queues for tests of one process. */
#ifndef TESTS_UNIT_QUEUE_RIG_H
#define TESTS_UNIT_QUEUE_RIG_H

#include <sys/resource.h>

#include "tests/unit/forked.h"
#include "worker/queue/queue_inner.h"

static struct xr_error err;

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

#define OPTS(...) { .size = sizeof(struct xr_queue_opts), __VA_ARGS__ }

static inline struct xr_queue *
queue_of(const struct xr_queue_opts *opts)
{
	struct xr_queue *q = NULL;

	NEED(xr_queue_new(opts, &q, NULL) == XR_OK);
	return q;
}

#define QUEUE(...) queue_of(&(struct xr_queue_opts)OPTS(__VA_ARGS__))

/* A descriptor that is left open takes it. */
static inline int
lowest_fd(void)
{
	int fd = dup(STDOUT_FILENO);

	close(fd);
	return fd;
}

static inline void
limit_descriptors(rlim_t most)
{
	struct rlimit limit;

	NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = most;
	NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

#endif /* TESTS_UNIT_QUEUE_RIG_H */
