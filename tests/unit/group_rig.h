/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_rig.h - several processes that are members of a group, in one test.
 *
 * together(n, body) runs body(0) .. body(n - 1), each in a process of its own, and
 * fails with what any of them noted by EXPECT() or NEED(). They meet in a store in
 * a file. stage_set() and stage_await() bring them into an order; text_of[] is seen
 * by all.
 */
#ifndef TESTS_UNIT_GROUP_RIG_H
#define TESTS_UNIT_GROUP_RIG_H

#include <criterion/criterion.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <xrun/func.h>
#include <xrun/rpc.h>

#include "tests/kit/backend.h"

#define MEMBERS_MAX 16
#define PATIENCE_S  100

static struct shared {
	_Atomic uint32_t stage;                   /* a futex */
	_Atomic uint32_t count;                   /* the test's */
	_Atomic uint32_t entered[3][MEMBERS_MAX]; /* the test's */
	_Atomic uint32_t noted;
	char notes[8192];
	char text_of[MEMBERS_MAX][256];
	_Atomic pid_t pid[MEMBERS_MAX];
} *shared;

static char place[64], store_address[128];
static struct xr_error err;
static int self_index;

static inline void
rig_begin(void)
{
	snprintf(place, sizeof(place), "/tmp/xrun-test-group.XXXXXX");
	cr_assert_not_null(mkdtemp(place));
	snprintf(store_address, sizeof(store_address), "file://%s/store",
		place);
	unsetenv("XRUN_STORE");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(shared, MAP_FAILED);
}

static inline void
rig_end(void)
{
	unlink(store_address + strlen("file://"));
	rmdir(place);
}

/* rig_fresh() - the next to join find a store that nobody used. */
static inline void
rig_fresh(void)
{
	unlink(store_address + strlen("file://"));
	atomic_store(&shared->stage, 0);
}

static inline void __attribute__((format(printf, 2, 3)))
note(int line, const char *fmt, ...)
{
	uint32_t at = atomic_load(&shared->noted);
	char text[1024];
	va_list ap;
	int n = snprintf(text, sizeof(text), "member %d, line %d: ", self_index,
		line);

	va_start(ap, fmt);
	n += vsnprintf(text + n, sizeof(text) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(text) - 2)
		n = (int)sizeof(text) - 2;
	text[n++] = '\n';
	do {
		if (at + (uint32_t)n >= sizeof(shared->notes))
			return;
	} while (!atomic_compare_exchange_weak(&shared->noted, &at,
		at + (uint32_t)n));
	memcpy(shared->notes + at, text, (size_t)n);
}

#define EXPECT(x) \
	do { \
		if (!(x)) \
			note(__LINE__, "%s (last error: %s)", #x, err.text); \
	} while (0)

/* Without it the rest makes no sense. */
#define NEED(x) \
	do { \
		if (!(x)) { \
			note(__LINE__, "%s (last error: %s)", #x, err.text); \
			_exit(1); \
		} \
	} while (0)

static inline void
stage_set(uint32_t stage)
{
	atomic_store(&shared->stage, stage);
	syscall(SYS_futex, &shared->stage, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* stage_add() - for those who count up together. */
static inline void
stage_add(void)
{
	atomic_fetch_add(&shared->stage, 1);
	syscall(SYS_futex, &shared->stage, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline void
stage_await(uint32_t stage)
{
	uint32_t now;

	while ((now = atomic_load(&shared->stage)) < stage)
		syscall(SYS_futex, &shared->stage, FUTEX_WAIT, now, NULL, NULL,
			0);
}

static inline int64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* start() - body(i) in a process of its own. */
static inline pid_t
start(int i, void (*body)(int i))
{
	pid_t pid = fork();

	if (pid != 0) {
		if (pid > 0)
			atomic_store(&shared->pid[i], pid);
		return pid;
	}
	alarm(PATIENCE_S);
	self_index = i;
	body(i);
	_exit(0);
}

/* ended() - waits for it: that it ended by itself, with 0. */
static inline void
ended(int i, pid_t pid)
{
	int status = -1;

	if (waitpid(pid, &status, 0) != pid || status != 0) {
		self_index = i;
		note(__LINE__, "it ended with %#x", (unsigned)status);
	}
}

static inline void
told(void)
{
	cr_assert_eq(atomic_load(&shared->noted), 0, "%s", shared->notes);
}

static inline void
together(int n, void (*body)(int i))
{
	pid_t pid[MEMBERS_MAX];

	for (int i = 0; i < n; i++) {
		pid[i] = start(i, body);
		cr_assert_gt(pid[i], 0);
	}
	for (int i = 0; i < n; i++)
		ended(i, pid[i]);
	told();
}

/* --- members ---------------------------------------------------------------- */

static inline struct xr_rpc_opts
usual(void)
{
	struct xr_rpc_opts opts = { .size = sizeof(opts) };

	xr_rpc_opts_init(tested_backend(), &opts, NULL);
	opts.init_method = store_address;
	opts.timeout = XR_SECONDS(60);
	return opts;
}

/* join() - @size 0: a group whose members come and go. */
static inline enum xr_status
join(const char *name, int64_t rank, int64_t size)
{
	struct xr_rpc_opts opts = usual();

	return xr_rpc_init(name, rank, size, &opts, &err);
}

static enum xr_status
add_one(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t n = 0;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &n);
	return xr_reply(call, xr_value_new_i64(n + 1));
}

static const struct xr_func rig_functions[] = {
	{ .size = sizeof(rig_functions[0]),
		.name = "add_one",
		.schema = "i",
		.fn = add_one },
};

/* offer() - others may call add_one. */
static inline void
offer(void)
{
	NEED(xr_module_static(rig_functions, 1, &err) == XR_OK);
}

/* call_with() - add_one of @to, with this timeout. */
static inline enum xr_status
call_with(const char *to, int64_t timeout)
{
	struct xr_value *value = NULL, *items[1] = { xr_value_new_i64(41) };
	struct xr_rpc_call c = XR_RPC_CALL;
	enum xr_status status;
	int64_t n = 0;

	c.to = to;
	c.func = "add_one";
	c.timeout = timeout;
	c.args = xr_value_new_list_of(items, 1);
	status = xr_rpc_sync(&c, &value, &err);
	if (status == XR_OK &&
		(xr_value_get_i64(value, &n) != XR_OK || n != 42))
		status = XR_E_PROTO;
	xr_value_unref(c.args);
	xr_value_unref(value);
	return status;
}

static inline enum xr_status
call(const char *to)
{
	return call_with(to, XR_TIMEOUT_DEFAULT);
}

static inline enum xr_status
leave(void)
{
	return xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, XR_SECONDS(60), &err);
}

#endif /* TESTS_UNIT_GROUP_RIG_H */
