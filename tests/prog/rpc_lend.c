/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_lend.c - memory that is lent to a call, and taken back before it was read.
 *
 *   xrun -n 2 rpc_lend [--transport shm|tcp]
 *
 * Rank 0 calls rank 1, which was stopped, with much of its memory; nobody answers
 * in time, and the memory is unmapped. When rank 1 goes on, nothing of that call
 * may harm it: it never comes, or comes whole.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include <xrun/call.h>
#include <xrun/func.h>
#include <xrun/job.h>
#include <xrun/rpc.h>

#include "tests/kit/backend.h"
#include "tests/prog/prog.h"

#define BYTES   (16u << 20)
#define TIMEOUT (XR_SECONDS(1) / 5)

static struct xr_error err;

static void
check(enum xr_status status, const char *what)
{
	if (status != XR_OK)
		prog_die(0, "%s: %s: %s", what, xr_status_name(status),
			err.text);
}

/* --- rank 1 ---------------------------------------------------------------- */

static _Atomic int whole, torn;

static enum xr_status
take(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	const unsigned char *p = data;
	bool good = len == BYTES;

	(void)call;
	(void)ctx;
	for (size_t i = 0; i < len && good; i++)
		good = p[i] == 7;
	atomic_fetch_add(good ? &whole : &torn, 1);
	return XR_OK;
}

static enum xr_status
tell(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	int figures[3] = { getpid(), atomic_load(&whole), atomic_load(&torn) };

	(void)data;
	(void)len;
	(void)ctx;
	return xr_reply_bytes(call, figures, sizeof(figures));
}

static const struct xr_func functions[] = {
	{ .size = sizeof(functions[0]), .name = "take", .raw = take },
	{ .size = sizeof(functions[0]), .name = "tell", .raw = tell },
};

/* --- rank 0 ---------------------------------------------------------------- */

static struct xr_raw_call
call_of(const char *name, int64_t timeout)
{
	struct xr_raw_call call = {
		.size = sizeof(call),
		.timeout = timeout,
	};

	check(xr_peer_find(NULL, 1, &call.to, &err), "peer");
	check(xr_method_find(name, &call.method, &err), "method");
	return call;
}

static void
ask(int figures[3])
{
	struct xr_raw_call call = call_of("tell", XR_SECONDS(60));
	struct xr_raw_reply reply = { 0 };

	call.reply = figures;
	call.reply_cap = 3 * sizeof(figures[0]);
	check(xr_call_sync(&call, &reply, &err), "tell");
}

static void *
map(void)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		prog_die(1, "no memory");
	memset(at, 7, BYTES);
	return at;
}

/* All of its threads stand. */
static void
await_stopped(int pid)
{
	char path[64], state = ' ';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (state != 'T') {
		f = fopen(path, "r");
		if (f == NULL || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			prog_die(1, "%s", path);
		fclose(f);
	}
}

static void
sync_in_vain(void *data)
{
	struct xr_raw_call call = call_of("take", TIMEOUT);
	struct xr_raw_reply reply = { 0 };
	enum xr_status status;

	call.data = data;
	call.len = BYTES;
	status = xr_call_sync(&call, &reply, &err);
	if (status != XR_E_TIMEOUT)
		prog_die(0, "nobody answers: %s", xr_status_name(status));
}

static void
async_in_vain(void *data)
{
	struct xr_raw_call call = call_of("take", XR_TIMEOUT_NEVER);
	struct xr_future *future = NULL;

	call.data = data;
	call.len = BYTES;
	check(xr_call_async(&call, &future, &err), "async");
	xr_future_cancel(future);
	xr_future_unref(future);
}

static void
lend(void (*in_vain)(void *data))
{
	void *data = map();
	int figures[3];

	ask(figures);
	kill(figures[0], SIGSTOP);
	await_stopped(figures[0]);
	in_vain(data);
	munmap(data, BYTES);
	kill(figures[0], SIGCONT);
	ask(figures);
}

static void
lend_all(void)
{
	struct xr_raw_call call = call_of("take", XR_SECONDS(60));
	struct xr_raw_reply reply = { 0 };
	int figures[3];
	void *data = map();

	/* What was tried first comes in the same way. */
	call.data = data;
	call.len = BYTES;
	check(xr_call_sync(&call, &reply, &err), "take");
	munmap(data, BYTES);
	lend(sync_in_vain);
	lend(async_in_vain);
	lend(sync_in_vain);
	ask(figures);
	printf("whole %d, torn %d\n", figures[1], figures[2]);
}

int
main(int argc, char **argv)
{
	const char *transport = "shm";
	const struct prog_opt options[] = {
		{ "transport", PROG_TEXT, &transport, "shm or tcp" },
		{ 0 },
	};
	struct xr_rpc_opts opts = { .size = sizeof(opts) };
	char name[32];

	prog_opts(argc, argv, options);
	snprintf(name, sizeof(name), "worker%u", xr_job_rank());
	check(xr_module_static(functions, 2, &err), "register");
	check(xr_rpc_opts_init(tested_backend(), &opts, &err), "options");
	opts.transports = &transport;
	opts.transport_count = 1;
	check(xr_rpc_init(name, -1, -1, &opts, &err), "init");
	if (xr_job_rank() == 0)
		lend_all();
	check(xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, XR_SECONDS(60), &err),
		"shutdown");
	return 0;
}
