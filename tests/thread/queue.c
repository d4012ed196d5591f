/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - threads that put and get, under the thread sanitizer. TAP.
 *
 * OPERATIONS is how many, 200000 otherwise.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/queue.h>

#define MOST 4

static struct xr_queue *queue;
static uint32_t each; /* items of one who puts */
static _Atomic uint64_t sum, count;
static atomic_bool wrong;
static int test;

static void
claim(bool holds, const char *what)
{
	printf("%sok %d - %s\n", holds ? "" : "not ", ++test, what);
}

static size_t
bytes_of(uint32_t i)
{
	return i % 5 == 0 ? 8 + i % 3000 : 8;
}

static void *
put(void *arg)
{
	uint8_t data[4096] = { 0 };

	(void)arg;
	for (uint32_t i = 0; i < each; i++) {
		uint64_t item = i;

		memcpy(data, &item, sizeof(item));
		if (xr_queue_put_bytes(queue, data, bytes_of(i),
			    XR_TIMEOUT_NEVER, NULL) != XR_OK)
			atomic_store(&wrong, true);
	}
	return NULL;
}

static void *
get(void *arg)
{
	enum xr_status status;

	(void)arg;
	for (;;) {
		uint8_t data[4096];
		struct xr_queue_buf buf = { data, sizeof(data), 0 };
		uint64_t item;

		status =
			xr_queue_get_bytes(queue, &buf, XR_TIMEOUT_NEVER, NULL);
		if (status != XR_OK)
			break;
		memcpy(&item, data, sizeof(item));
		if (buf.len != bytes_of((uint32_t)item))
			atomic_store(&wrong, true);
		atomic_fetch_add(&sum, item);
		atomic_fetch_add(&count, 1);
		xr_queue_done(queue);
	}
	if (status != XR_E_CLOSED)
		atomic_store(&wrong, true);
	return NULL;
}

/* Looks in between, as who polls does. */
static void *
look(void *arg)
{
	struct xr_queue_buf none = { (void *)"", 0, 0 };
	int fd;

	(void)arg;
	if (xr_queue_fd(queue, &fd, NULL) != XR_OK)
		atomic_store(&wrong, true);
	while (xr_queue_get_bytes(queue, &none, 0, NULL) != XR_E_CLOSED &&
		!atomic_load(&wrong))
		xr_queue_count(queue);
	return NULL;
}

static void
play(const struct xr_queue_opts *opts, int threads, bool looks,
	const char *what)
{
	pthread_t in[MOST], out[MOST], looker;
	uint64_t want;

	sum = count = 0;
	if (xr_queue_new(opts, &queue, NULL) != XR_OK)
		exit(2);
	want = (uint64_t)each * (each - 1) / 2 * (uint64_t)threads;
	if (looks)
		pthread_create(&looker, NULL, look, NULL);
	for (int i = 0; i < threads; i++) {
		pthread_create(&out[i], NULL, get, NULL);
		pthread_create(&in[i], NULL, put, NULL);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(in[i], NULL);
	xr_queue_close(queue);
	for (int i = 0; i < threads; i++)
		pthread_join(out[i], NULL);
	if (looks)
		pthread_join(looker, NULL);
	claim(!wrong && sum == want && count == (uint64_t)each * threads, what);
	xr_queue_free(queue);
}

int
main(void)
{
	const char *operations = getenv("OPERATIONS");
	struct xr_queue_opts opts = { .size = sizeof(opts),
		.items = 64,
		.bytes = 64 << 10 };

	puts("1..4");
	each = (uint32_t)(operations != NULL ? strtol(operations, NULL, 10) :
					       200000) /
		8 / MOST;
	play(&opts, MOST, false, "four put, four get");
	opts.items = 3;
	opts.redeliver = true;
	play(&opts, MOST, true,
		"three cells, and what was got is said to be done");
	opts = (struct xr_queue_opts){ .size = sizeof(opts),
		.kind = XR_QUEUE_P2P,
		.items = 64 };
	each *= 4;
	play(&opts, 1, false, "one puts, one gets");
	opts.lanes = 3;
	play(&opts, 1, false, "by several lanes");
	return 0;
}
