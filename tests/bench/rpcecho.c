/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpcecho.c - how long a call takes, and how many there are in a second.
 *
 *   xrun -n 2 rpcecho [--bytes N] [--calls N] [--window W] [--values] [--pause US]
 *                     [--private] [--transport NAME] [--pairs]
 *                     [--callee take|read]
 *
 * Rank 0 calls rank 1, or with --pairs each even rank the next, which sends back
 * what came; every byte that comes back is compared, and no two calls carry the
 * same. --window 0 waits for each call, another keeps that many under way. --values
 * calls with values instead of bytes. --pause lets the callee fall asleep before
 * each call; --private calls with the program's own memory, where others would hand
 * over xr_buffer_new()'s. --callee has bytes taken instead of sent back: "take" looks
 * at the first and the last word, "read" at all, and eight bytes come back. A line of
 * JSON for each caller.
 */
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/resource.h>

#include <xrun/call.h>
#include <xrun/func.h>
#include <xrun/job.h>
#include <xrun/rpc.h>
#include <xrun/tensor.h>

#include "tests/kit/backend.h"
#include "tests/prog/prog.h"

struct settings {
	size_t bytes;
	uint32_t calls, window;
	int values, private, pairs;
	const char *transport; /* NULL: any */
	const char *callee;    /* "echo", "take", "read" */
	long pause_us;
};

struct bench {
	struct settings s;
	struct xr_peer *peer;
	int64_t callee;
	struct xr_method_ref *method;
	uint8_t *data, *reply;
	uint64_t found; /* by a callee that gives a sum */
	int64_t *took;  /* [calls], ns */
};

static int64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
check(enum xr_status status, const struct xr_error *err, const char *what)
{
	if (status != XR_OK)
		prog_die(0, "%s: %s: %s", what, xr_status_name(status),
			err->text);
}

/* --- rank 1 --------------------------------------------------------------- */

static enum xr_status
echo(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)ctx;
	return xr_reply_bytes(call, data, len);
}

/* Each word, or the first and the last one, which have the call's number. */
static uint64_t
sum(const void *data, size_t len, int all)
{
	const uint64_t *word = data;
	size_t n = len / sizeof(*word);
	uint64_t sum = 0;

	if (n == 0)
		return 0;
	if (!all)
		return word[0] + word[n - 1];
	for (size_t i = 0; i < n; i++)
		sum += word[i];
	return sum;
}

static enum xr_status
take(struct xr_call *call, const void *data, size_t len, void *all)
{
	uint64_t found = sum(data, len, all != NULL);

	return xr_reply_bytes(call, &found, sizeof(found));
}

static enum xr_status
echo_value(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call, xr_value_ref(xr_value_at(args, 0)));
}

static const struct xr_func functions[] = {
	{ .size = sizeof(functions[0]),
		.name = "echo",
		.flags = XR_FN_SHORT,
		.raw = echo },
	{ .size = sizeof(functions[0]),
		.name = "take",
		.flags = XR_FN_SHORT,
		.raw = take },
	{ .size = sizeof(functions[0]),
		.name = "read",
		.flags = XR_FN_SHORT,
		.raw = take,
		.ctx = (void *)functions },
	{ .size = sizeof(functions[0]),
		.name = "echo.value",
		.schema = "?",
		.flags = XR_FN_SHORT,
		.fn = echo_value },
};

/* --- rank 0 --------------------------------------------------------------- */

/* No two calls alike: the number of the call in each 8 bytes of the first line and
 * of the last. */
static void
fill(struct bench *b, uint64_t number)
{
	for (size_t i = 0; i + 8 <= b->s.bytes; i += 8) {
		if (i >= 64 && i + 64 < b->s.bytes)
			i = (b->s.bytes - 64) & ~(size_t)7;
		memcpy(b->data + i, &number, sizeof(number));
	}
	if (b->s.bytes > 0 && b->s.bytes < 8)
		b->data[0] = (uint8_t)number;
}

static void
compare(const struct bench *b, const void *data, size_t len)
{
	if (len != b->s.bytes || (len > 0 && memcmp(data, b->data, len) != 0))
		prog_die(0, "what came back is not what was sent");
}

/* Not within the time that is measured. */
static void
check_found(const struct bench *b)
{
	int all = strcmp(b->s.callee, "read") == 0;

	if (strcmp(b->s.callee, "echo") != 0 &&
		b->found != sum(b->data, b->s.bytes, all))
		prog_die(0, "what was read is not what was sent");
}

static void
call_bytes(struct bench *b)
{
	struct xr_raw_call call = {
		.size = sizeof(call),
		.to = b->peer,
		.method = b->method,
		.data = b->data,
		.len = b->s.bytes,
		.timeout = XR_TIMEOUT_DEFAULT,
		.reply = b->reply,
		.reply_cap = b->s.bytes + 8,
	};
	struct xr_raw_reply reply = { 0 };
	struct xr_error err = { 0 };

	check(xr_call_sync(&call, &reply, &err), &err, "call");
	if (strcmp(b->s.callee, "echo") == 0)
		compare(b, reply.data, reply.len);
	else if (reply.len == sizeof(b->found))
		memcpy(&b->found, reply.data, sizeof(b->found));
	xr_raw_reply_free(&reply);
}

static void
call_value(struct bench *b)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_value *item = xr_value_new_bytes(b->data, b->s.bytes);
	struct xr_value *value = NULL;
	struct xr_error err = { 0 };
	const void *data;
	size_t len;

	call.id = b->callee;
	call.func = "echo.value";
	call.args = xr_value_new_list_of(&item, 1);
	check(xr_rpc_sync(&call, &value, &err), &err, "call");
	data = xr_value_data(value, &len);
	compare(b, data, len);
	xr_value_unref(value);
	xr_value_unref(call.args);
}

static int
by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void
rest(const struct bench *b)
{
	struct timespec t = { 0, b->s.pause_us * 1000 };

	if (b->s.pause_us > 0)
		nanosleep(&t, NULL);
}

static void
one_by_one(struct bench *b)
{
	for (uint32_t i = 0; i < b->s.calls; i++) {
		int64_t begin;

		fill(b, i);
		rest(b);
		begin = now();
		if (b->s.values)
			call_value(b);
		else
			call_bytes(b);
		b->took[i] = now() - begin;
		check_found(b);
	}
	qsort(b->took, b->s.calls, sizeof(b->took[0]), by_time);
}

/* All of a window carry the same; the next carries something else. */
static void
many_at_once(struct bench *b)
{
	struct xr_future **futures = calloc(b->s.window, sizeof(*futures));
	struct xr_raw_call call = {
		.size = sizeof(call),
		.to = b->peer,
		.method = b->method,
		.data = b->data,
		.len = b->s.bytes,
		.timeout = XR_TIMEOUT_DEFAULT,
	};
	struct xr_error err = { 0 };
	struct xr_value *value;
	const void *data;
	size_t len;

	for (uint32_t i = 0; i + b->s.window <= b->s.calls; i += b->s.window) {
		fill(b, i);
		for (uint32_t k = 0; k < b->s.window; k++)
			check(xr_call_async(&call, &futures[k], &err), &err,
				"call");
		for (uint32_t k = 0; k < b->s.window; k++) {
			value = NULL;
			check(xr_future_wait(futures[k], XR_SECONDS(60), &value,
				      &err),
				&err, "answer");
			data = xr_value_data(value, &len);
			compare(b, data, len);
			xr_value_unref(value);
			xr_future_unref(futures[k]);
		}
	}
	free(futures);
}

static double
seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void
measure(struct bench *b)
{
	struct rusage before, after;
	uint32_t calls = b->s.calls;
	int64_t begin, took;

	/* Warm-up: every buffer, both ways. */
	b->s.calls = calls < 100000 ? calls / 10 + 1 : 10000;
	if (b->s.window > 0)
		many_at_once(b);
	else
		one_by_one(b);
	b->s.calls = calls;
	xr_job_ready();
	getrusage(RUSAGE_SELF, &before);
	begin = now();
	if (b->s.window > 0)
		many_at_once(b);
	else
		one_by_one(b);
	took = now() - begin;
	getrusage(RUSAGE_SELF, &after);
	printf("{\"bytes\":%zu,\"window\":%u,\"values\":%s,\"calls\":%u,"
	       "\"rate\":%.0f",
		b->s.bytes, b->s.window, b->s.values ? "true" : "false", calls,
		calls / ((double)took / 1e9));
	if (b->s.window == 0)
		printf(",\"p50_us\":%.3f,\"p99_us\":%.3f",
			(double)b->took[calls / 2] / 1e3,
			(double)b->took[calls - calls / 100 - 1] / 1e3);
	printf(",\"cpu_us\":%.3f}\n",
		(seconds(after.ru_utime) + seconds(after.ru_stime) -
			seconds(before.ru_utime) - seconds(before.ru_stime)) *
			1e6 / calls);
}

static void
parse(int argc, char **argv, struct settings *s)
{
	static const struct option options[] = {
		{ "bytes", required_argument, NULL, 'b' },
		{ "calls", required_argument, NULL, 'c' },
		{ "window", required_argument, NULL, 'w' },
		{ "values", no_argument, NULL, 'v' },
		{ "pause", required_argument, NULL, 'p' },
		{ "private", no_argument, NULL, 'm' },
		{ "pairs", no_argument, NULL, 'P' },
		{ "transport", required_argument, NULL, 't' },
		{ "callee", required_argument, NULL, 'k' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	*s = (struct settings){ .bytes = 8, .calls = 100000, .callee = "echo" };
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 'b':
			s->bytes = strtoul(optarg, NULL, 10);
			break;
		case 'c':
			s->calls = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'w':
			s->window = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'v':
			s->values = 1;
			break;
		case 'p':
			s->pause_us = strtol(optarg, NULL, 10);
			break;
		case 'm':
			s->private = 1;
			break;
		case 'P':
			s->pairs = 1;
			break;
		case 't':
			s->transport = optarg;
			break;
		case 'k':
			s->callee = optarg;
			break;
		default:
			exit(2);
		}
}

int
main(int argc, char **argv)
{
	struct bench b = { 0 };
	struct xr_rpc_opts opts = { .size = sizeof(opts) };
	struct xr_error err = { 0 };
	char name[32];

	parse(argc, argv, &b.s);
	check(xr_rpc_opts_init(tested_backend(), &opts, &err), &err, "options");
	opts.transports = &b.s.transport;
	opts.transport_count = b.s.transport != NULL;
	snprintf(name, sizeof(name), "worker%u", xr_job_rank());
	check(xr_module_static(functions,
		      sizeof(functions) / sizeof(functions[0]), &err),
		&err, "register");
	check(xr_rpc_init(name, -1, -1, &opts, &err), &err, "init");
	/* Rank 0 calls rank 1; or each even one the next. */
	if (xr_job_rank() == 0 || (b.s.pairs && xr_job_rank() % 2 == 0)) {
		b.callee = xr_job_rank() + 1;
		b.data = b.s.private ? malloc(b.s.bytes + 8) :
				       xr_buffer_new(b.s.bytes + 8);
		b.reply = calloc(1, b.s.bytes + 8);
		b.took = calloc(b.s.calls, sizeof(b.took[0]));
		if (b.data == NULL || b.reply == NULL || b.took == NULL)
			prog_die(0, "out of memory");
		memset(b.data, 1, b.s.bytes + 8);
		check(xr_peer_find(NULL, b.callee, &b.peer, &err), &err,
			"peer");
		check(xr_method_find(b.s.callee, &b.method, &err), &err,
			"method");
		measure(&b);
		if (b.s.private)
			free(b.data);
		else
			xr_buffer_free(b.data);
		free(b.reply);
		free(b.took);
	}
	check(xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, XR_SECONDS(60), &err), &err,
		"shutdown");
	return 0;
}
