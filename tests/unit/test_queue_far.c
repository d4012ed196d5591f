/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_queue_far.c - calls of a client of a queue to the process that serves it (far.h).
 * The test is both: its agent calls itself.
 */
#include <errno.h>
#include <poll.h>

#include <xrun/call.h>

#include "tests/unit/agent_rig.h"
#include "worker/queue/far/far.h"
#include "worker/queue/far/wire.h"
#include "worker/rpc/ask.h"

TestSuite(queue_far, .timeout = 60);

static _Atomic unsigned watches; /* calls FAR_WATCH */
static struct xr_error err;

enum xr_status __real_call_within(const struct xr_raw_call *call, int64_t limit,
	struct xr_future **future, struct xr_error *err);
enum xr_status __wrap_call_within(const struct xr_raw_call *call, int64_t limit,
	struct xr_future **future, struct xr_error *err);

enum xr_status
__wrap_call_within(const struct xr_raw_call *call, int64_t limit,
	struct xr_future **future, struct xr_error *e)
{
	struct far_ask ask;

	if (call->len >= sizeof(ask)) {
		memcpy(&ask, call->data, sizeof(ask));
		if (ask.op == FAR_WATCH)
			atomic_fetch_add(&watches, 1);
	}
	return __real_call_within(call, limit, future, e);
}

static struct xr_queue *
serve_queue(struct far **far)
{
	const struct xr_queue_opts opts = { .size = sizeof(opts) };
	const struct where_queue self = { .worker = 0 };
	char text[XR_QUEUE_TEXT_MAX];
	struct xr_queue *q = NULL;

	cr_assert_eq(xr_queue_new(&opts, &q, &err), XR_OK, "%s", err.text);
	cr_assert_eq(xr_queue_text(q, text, sizeof(text), &err), XR_OK, "%s",
		err.text);
	cr_assert_eq(far_open(text, &self, far, &err), XR_OK, "%s", err.text);
	far_come(*far);
	return q;
}

static short
poll_for(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	cr_assert_neq(poll(&p, 1, timeout_ms), -1);
	return p.revents;
}

/* The server needs a thread for each FAR_WATCH. */
Test(queue_far, empty_gets_share_one_watch)
{
	struct xr_queue *q, handle = { .count = 1 };
	struct far *far = NULL;
	uint64_t count;
	int fd = -1;

	join(0);
	q = serve_queue(&far);
	handle.far = far;
	cr_assert_eq(far_fd(&handle, &fd, &err), XR_OK, "%s", err.text);
	cr_expect_eq(atomic_load(&watches), 1);
	for (int i = 0; i < 10; i++)
		far_darken(far, false);
	cr_expect_eq(atomic_load(&watches), 1);
	cr_expect_eq(poll_for(fd, 0), 0);

	/* A get came after the call, so the reply may be outdated: the client asks again. */
	cr_assert_eq(xr_queue_put_bytes(q, "x", 1, 0, &err), XR_OK);
	cr_expect_eq(poll_for(fd, 30000), POLLIN);
	cr_expect_eq(atomic_load(&watches), 2);

	/* Both calls are complete, so the next empty get makes one; also if the descriptor
	 * is not readable, which is no error. */
	cr_assert_eq(read(fd, &count, sizeof(count)), (ssize_t)sizeof(count));
	errno = 0;
	far_darken(far, false);
	cr_expect_eq(errno, 0);
	cr_expect_eq(atomic_load(&watches), 3);
	cr_expect_eq(poll_for(fd, 30000), POLLIN);
	far_go(far);
	far_unref(far);
	xr_queue_free(q);
	leave();
}

static void *
make_text(void *queue)
{
	char text[XR_QUEUE_TEXT_MAX];
	struct xr_error why = { 0 };

	cr_expect_eq(xr_queue_text(queue, text, sizeof(text), &why), XR_OK,
		"%s", why.text);
	gate_pass();
	return NULL;
}

/* The agent waits for threads that are inside of it. */
Test(queue_far, a_thread_that_made_a_text_is_outside_the_agent)
{
	const struct xr_queue_opts opts = { .size = sizeof(opts) };
	struct xr_queue *q = NULL;
	pthread_t thread;

	join(0);
	cr_assert_eq(xr_queue_new(&opts, &q, &err), XR_OK, "%s", err.text);
	cr_assert_eq(pthread_create(&thread, NULL, make_text, q), 0);
	gate_await(1);
	xr_queue_free(q);
	leave();
	gate_open();
	pthread_join(thread, NULL);
}
