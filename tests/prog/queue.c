/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - queues, by the acceptance checks: in one process, and (queue_many.c, queue_end.c) in many.
 *
 *   queue CASE
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <xrun/job.h>
#include <xrun/tensor.h>

#include "tests/prog/queue_far.h"
#include "tests/prog/queue_rig.h"

/* --- times ------------------------------------------------------------------------------ */

/* Returns the time in ns that an operation takes which is to end with XR_E_TIMEOUT: to get,
 * or to put @bytes. */
static int64_t
time_of(struct xr_queue *q, size_t bytes, int64_t timeout)
{
	static const uint8_t x[4096];
	struct xr_queue_buf buf = { 0 };
	int64_t at = rig_now();

	EXPECT((bytes > 0 ? xr_queue_put_bytes(q, x, bytes, timeout, &rig_err) :
			    xr_queue_get_bytes(q, &buf, timeout, &rig_err)) ==
		XR_E_TIMEOUT);
	at = rig_now() - at;
	EXPECT(at >= timeout);
	return at;
}

/* An operation with @timeout ends with XR_E_TIMEOUT, and within 50 ms after that in one of
 * several tries: a loaded machine may keep some of them for longer. */
static void
ends_in_time(struct xr_queue *q, size_t bytes, int64_t timeout)
{
	for (int i = 0; i < 50; i++)
		if (time_of(q, bytes, timeout) < timeout + XR_SECONDS(0.05))
			return;
	EXPECT(!"an operation ends in time");
}

static void
empty_now(void)
{
	struct xr_queue *q = QUEUE(0);
	struct xr_queue_buf buf = { 0 };

	ends_in_time(q, 0, 0);
	ends_in_time(q, 0, XR_SECONDS(0.1));
	EXPECT(xr_queue_get_bytes(q, &buf, -2, &rig_err) == XR_E_INVAL);
	EXPECT(xr_queue_put_bytes(q, "", 0, -7, &rig_err) == XR_E_INVAL);
	EXPECT(xr_queue_empty(q) && xr_queue_count(q) == 0);
	xr_queue_free(q);
}

static void
fill(struct xr_queue *q, uint32_t items, size_t bytes)
{
	for (uint32_t i = 0; i < items; i++)
		rig_put(q, 0, i, bytes);
}

static void
refuses(struct xr_queue *q, size_t bytes)
{
	ends_in_time(q, bytes, 0);
	ends_in_time(q, bytes, XR_SECONDS(0.1));
}

/* What a process elsewhere put too late is counted until a reader has passed it. */
static void
holds(struct xr_queue *q, size_t items)
{
	size_t count = xr_queue_count(q);

	EXPECT(count == items || (far_is_on() && count > items));
}

static void
drain(struct xr_queue *q, uint32_t items, size_t bytes)
{
	struct rig_item item;
	size_t len;

	for (uint32_t i = 0; i < items; i++)
		EXPECT(rig_get(q, &item, &len) && item.seq == i &&
			len == bytes);
	EXPECT(xr_queue_empty(q));
}

/* By items, and by bytes; and of several what has room is put. */
static void
full(void)
{
	const struct xr_part three[3] = { { "abcdefgh", 8 }, { "ijklmnop", 8 },
		{ "qrstuvwx", 8 } };
	struct xr_queue *q = QUEUE(.items = 5);
	static const uint8_t block[512];
	size_t count = 3;

	for (int turn = 0; turn < 3; turn++) {
		fill(q, 5, 8);
		holds(q, 5);
		refuses(q, 8);
		holds(q, 5);
		drain(q, 5, 8);
	}
	fill(q, 3, 8);
	EXPECT(xr_queue_put_many_bytes(q, three, &count, 0, &rig_err) ==
		XR_E_TIMEOUT);
	EXPECT(count == 2);
	xr_queue_free(q);

	/* 17 blocks, of which one is left over; and there still when it was refused. */
	q = QUEUE(.items = 100, .bytes = 8704);
	for (int turn = 0; turn < 3; turn++) {
		fill(q, 8, 1000);
		refuses(q, 1000);
		holds(q, 8);
		drain(q, 8, 1000);
	}
	/* Not at once: what was refused elsewhere may have room for a moment. */
	for (int i = 0; i < 17; i++)
		EXPECT(xr_queue_put_bytes(q, block, sizeof(block),
			       XR_SECONDS(20), &rig_err) == XR_OK);
	refuses(q, sizeof(block));
	xr_queue_free(q);
}

/* --- what is long ------------------------------------------------------------------------- */

#define HUGE_BYTES (100 << 20)

static uint8_t
huge_at(size_t i)
{
	return (uint8_t)(i * 7 + i / 4096);
}

static uint8_t *
huge(void)
{
	uint8_t *data = malloc(HUGE_BYTES);

	EXPECT(data != NULL);
	for (size_t i = 0; i < HUGE_BYTES; i++)
		data[i] = huge_at(i);
	return data;
}

static void
get_huge(struct xr_queue *q, uint32_t part)
{
	const size_t len = HUGE_BYTES / part;
	struct xr_queue_buf buf = { 0 };
	size_t same = 0;

	EXPECT(xr_queue_get_bytes(q, &buf, XR_TIMEOUT_NEVER, &rig_err) ==
		XR_OK);
	EXPECT(buf.len == len);
	for (size_t i = 0; i < len; i++)
		same += ((const uint8_t *)buf.data)[i] == huge_at(i);
	EXPECT(same == len);
	free(buf.data);
	EXPECT(xr_queue_get_bytes(q, &(struct xr_queue_buf){ 0 }, 0,
		       &rig_err) == XR_OK);
}

/* Through a queue of 1 MiB, in both kinds; and there is no more room for a fifth. To another
 * machine, where it takes long, a fifth of the bytes in the second kind. */
static void
hundred_mib(void)
{
	uint8_t *data = huge();

	for (int kind = XR_QUEUE_ANY; kind <= XR_QUEUE_P2P; kind++) {
		struct xr_queue *q = QUEUE(.kind = (enum xr_queue_kind)kind,
			.bytes = 1 << 20);
		uint32_t part = far_is_on() && kind == XR_QUEUE_P2P ? 5 : 1;
		pid_t pid;

		EXPECT(xr_queue_put_bytes(q, data, HUGE_BYTES / part, 0,
			       &rig_err) == XR_OK);
		EXPECT(xr_queue_put_bytes(q, "behind", 6, 0, &rig_err) ==
			XR_OK);
		pid = rig_fork(get_huge, q, part);
		rig_join(&pid, 1);
		for (int i = 0; i < XR_QUEUE_LONG_MOST; i++)
			EXPECT(xr_queue_put_bytes(q, data, 300 << 10, 0,
				       &rig_err) == XR_OK);
		EXPECT(xr_queue_put_bytes(q, data, 300 << 10, 0, &rig_err) ==
			XR_E_TIMEOUT);
		xr_queue_free(q);
	}
	free(data);
}

/* --- bytes and values ---------------------------------------------------------------------- */

static void
room(void)
{
	struct xr_queue *q = QUEUE(0);
	char small[4], large[16];
	struct xr_queue_buf buf = { .data = small, .room = sizeof(small) };

	EXPECT(xr_queue_put_bytes(q, "0123456789", 10, 0, &rig_err) == XR_OK);
	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_E_RANGE);
	EXPECT(buf.len == 10 && xr_queue_count(q) == 1);
	buf = (struct xr_queue_buf){ .data = large, .room = sizeof(large) };
	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_OK);
	EXPECT(buf.len == 10 && memcmp(large, "0123456789", 10) == 0);
	EXPECT(xr_queue_put_bytes(q, NULL, 0, 0, &rig_err) == XR_OK);
	buf = (struct xr_queue_buf){ 0 };
	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_OK);
	EXPECT(buf.len == 0 && buf.data != NULL);
	free(buf.data);
	xr_queue_free(q);
}

static struct xr_value *
list_of(int64_t n)
{
	struct xr_value *list = xr_value_new_list();

	EXPECT(xr_value_append(list, xr_value_new_i64(n)) == XR_OK);
	EXPECT(xr_value_append(list, xr_value_new_text("a text", 6)) == XR_OK);
	return list;
}

static void
values(void)
{
	struct xr_queue *q = QUEUE(0);
	struct xr_value *in[40], *out[50];
	size_t count = 40;

	for (int i = 0; i < 40; i++)
		in[i] = list_of(i);
	EXPECT(xr_queue_put_many(q, in, &count, 0, &rig_err) == XR_OK);
	EXPECT(count == 40 && xr_queue_count(q) == 40);
	count = 50;
	EXPECT(xr_queue_get_many(q, out, &count, 0, &rig_err) == XR_OK);
	EXPECT(count == 40);
	for (int i = 0; i < 40; i++) {
		EXPECT(xr_value_equal(in[i], out[i]));
		xr_value_unref(in[i]);
		xr_value_unref(out[i]);
	}
	EXPECT(xr_queue_put_bytes(q, "raw", 3, 0, &rig_err) == XR_OK);
	EXPECT(xr_queue_get(q, &out[0], 0, &rig_err) == XR_OK);
	EXPECT(xr_value_kind(out[0]) == XR_BYTES &&
		memcmp(xr_value_data(out[0], &count), "raw", 3) == 0 &&
		count == 3);
	xr_value_unref(out[0]);
	EXPECT(xr_queue_put(q, NULL, 0, &rig_err) == XR_E_INVAL);
	xr_queue_free(q);
}

static struct xr_value *
tensor(int64_t elements)
{
	struct xr_tensor_desc desc = { .size = sizeof(desc),
		.dtype = XR_DT_U8,
		.ndim = 1,
		.shape = { elements } };
	struct xr_value *t = NULL;

	EXPECT(xr_tensor_new(&desc, &t, &rig_err) == XR_OK);
	memset(xr_tensor_data(t, NULL), 1, (size_t)elements);
	return t;
}

static void
write_to(struct xr_queue *q, uint32_t index)
{
	struct xr_value *t = NULL;
	uint8_t *data;
	size_t bytes;

	EXPECT(xr_queue_get(q, &t, XR_TIMEOUT_NEVER, &rig_err) == XR_OK);
	data = xr_tensor_data(t, &bytes);
	EXPECT(data[5] == 1);
	data[5] = (uint8_t)index;
	xr_value_unref(t);
}

/* What the reader writes the writer sees; and with copies it does not. */
static void
shared(void)
{
	struct xr_value *t = tensor(100000);

	for (int mode = XR_ENC_COPY; mode <= XR_ENC_SHARE; mode++) {
		struct xr_queue *q = QUEUE(.mode = (enum xr_enc_mode)mode);
		pid_t pid;

		EXPECT(xr_queue_put(q, t, 0, &rig_err) == XR_OK);
		pid = rig_fork(write_to, q, 77);
		rig_join(&pid, 1);
		EXPECT(((uint8_t *)xr_tensor_data(t, NULL))[5] ==
			(mode == XR_ENC_SHARE ? 77 : 1));
		xr_queue_free(q);
	}
	xr_value_unref(t);
}

static void
share_and_end(struct xr_queue *q, uint32_t index)
{
	struct xr_value *t = tensor(100000);

	(void)index;
	EXPECT(xr_queue_put(q, t, 0, &rig_err) == XR_OK);
}

/* Who refers to memory is to live; who does not is said to be gone. */
static void
shared_by_the_dead(void)
{
	struct xr_queue *q = QUEUE(.mode = XR_ENC_SHARE);
	pid_t pid = rig_fork(share_and_end, q, 0);
	struct xr_value *t = NULL;

	rig_join(&pid, 1);
	EXPECT(xr_queue_get(q, &t, 0, &rig_err) == XR_E_PEER_LOST);
	EXPECT(xr_queue_get(q, &t, 0, &rig_err) == XR_E_TIMEOUT);
	xr_queue_free(q);
}

/* --- how it is handed on -------------------------------------------------------------------- */

static void
roles(void)
{
	struct xr_queue *q = QUEUE(0);
	struct xr_queue_buf buf = { 0 };

	EXPECT(xr_queue_put_bytes(q, "x", 1, 0, &rig_err) == XR_OK);
	rig_leave(q, XR_QUEUE_WRITER);
	EXPECT(xr_queue_put_bytes(q, "x", 1, 0, &rig_err) == XR_E_STATE);
	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_OK);
	free(buf.data);
	buf.data = NULL;
	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_E_CLOSED);
	rig_leave(q, XR_QUEUE_READER);
	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_E_STATE);
	xr_queue_free(q);
}

/* Sent by a text, and by descriptors; the second handle is like the first. */
static void
handed(void)
{
	struct xr_queue *q = QUEUE(.items = 7), *other = NULL;
	char text[XR_QUEUE_TEXT_MAX];
	int fds[XR_QUEUE_FDS];
	struct rig_item item;
	size_t len;

	EXPECT(xr_queue_text(q, text, sizeof(text), &rig_err) == XR_OK);
	EXPECT(xr_queue_text(q, text, 5, &rig_err) == XR_E_RANGE);
	EXPECT(xr_queue_text(q, text, sizeof(text), &rig_err) == XR_OK);
	EXPECT(xr_queue_open(text, &other, &rig_err) == XR_OK);
	rig_put(other, 3, 1, 400);
	EXPECT(rig_get(q, &item, &len) && item.writer == 3 && len == 400);
	xr_queue_free(other);
	xr_queue_fds(q, fds);
	EXPECT(xr_queue_adopt(fds, &other, &rig_err) == XR_OK);
	rig_leave(q, XR_QUEUE_WRITER);
	rig_put(other, 4, 1, 8);
	xr_queue_free(other);
	EXPECT(rig_get(q, &item, &len) && item.writer == 4);
	EXPECT(!rig_get(q, &item, &len));
	xr_queue_free(q);
	EXPECT(xr_queue_open(text, &other, &rig_err) == XR_E_NOTFOUND);
	EXPECT(xr_queue_open("1:2", &other, &rig_err) == XR_E_INVAL);
	fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	EXPECT(xr_queue_adopt(fds, &other, &rig_err) == XR_E_INVAL);
	close(fds[0]);
}

/* --- threads --------------------------------------------------------------------------------- */

#define THREADS 3

struct putter {
	struct xr_queue *q;
	uint32_t writer;
};

static void *
put_some(void *arg)
{
	const struct putter *p = arg;
	const uint32_t count = rig_many(20000);

	for (uint32_t i = 0; i < count; i++) {
		struct rig_item item = { p->writer, i };

		EXPECT(xr_queue_put_bytes(p->q, &item, sizeof(item),
			       XR_TIMEOUT_NEVER, &rig_err) == XR_OK);
	}
	return NULL;
}

static void *
get_all(void *arg)
{
	const uint32_t most = rig_many(20000);
	uint32_t next[THREADS] = { 0 };
	struct xr_error err = { 0 };
	size_t count = 0;

	for (;;) {
		struct rig_item item;
		struct xr_queue_buf buf = { .data = &item,
			.room = sizeof(item) };
		enum xr_status status =
			xr_queue_get_bytes(arg, &buf, XR_TIMEOUT_NEVER, &err);

		if (status == XR_E_CLOSED)
			break;
		EXPECT(status == XR_OK && buf.len == sizeof(item));
		EXPECT(item.writer < THREADS && item.seq < most);
		/* A reader gets the items of each writer in order. */
		EXPECT(item.seq >= next[item.writer]);
		next[item.writer] = item.seq + 1;
		EXPECT(atomic_fetch_add(&rig_board->seen[item.writer][item.seq],
			       1) == 0);
		count++;
	}
	atomic_fetch_add(&rig_board->got, count);
	return NULL;
}

static void
threads(void)
{
	struct xr_queue *q = QUEUE(.items = 32);
	pthread_t put[THREADS], get[THREADS];
	struct putter putter[THREADS];

	for (uint32_t i = 0; i < THREADS; i++) {
		putter[i] = (struct putter){ q, i };
		EXPECT(pthread_create(&get[i], NULL, get_all, q) == 0);
		EXPECT(pthread_create(&put[i], NULL, put_some, &putter[i]) ==
			0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(put[i], NULL);
	xr_queue_close(q);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(get[i], NULL);
	EXPECT(atomic_load(&rig_board->got) == THREADS * rig_many(20000));
	xr_queue_free(q);
}

/* --- ranks ----------------------------------------------------------------------------------- */

/* Rank 0 makes a queue and gets, the others find it by its name and put. */
static void
ranks(void)
{
	uint32_t rank = xr_job_rank(), size = xr_job_size(), sum = 0;
	struct xr_store *store = NULL;
	struct xr_queue *q = NULL;
	struct rig_item item;
	size_t len;

	EXPECT(xr_store_open(NULL, NULL, &store, &rig_err) == XR_OK);
	if (rank == 0) {
		q = QUEUE(0);
		EXPECT(xr_queue_share(q, store, "numbers", &rig_err) == XR_OK);
		for (uint32_t n = 0; n < (size - 1) * 1000; n++) {
			EXPECT(rig_get(q, &item, &len));
			sum += item.writer;
		}
		EXPECT(sum == 1000 * (size - 1) * size / 2);
		printf("%u items of %u ranks\n", (size - 1) * 1000, size - 1);
	} else {
		EXPECT(xr_queue_find(store, "numbers", XR_SECONDS(30), &q,
			       &rig_err) == XR_OK);
		for (uint32_t i = 0; i < 1000; i++)
			rig_put(q, rank, i, 8);
	}
	xr_queue_free(q);
	xr_store_free(store);
}

static const struct rig_case cases[] = {
	{ "empty-now", empty_now },
	{ "full", full },
	{ "hundred-mib", hundred_mib },
	{ "room", room },
	{ "values", values },
	{ "shared", shared },
	{ "shared-by-the-dead", shared_by_the_dead },
	{ "roles", roles },
	{ "handed", handed },
	{ "threads", threads },
	{ "ranks", ranks },
	{ NULL, NULL },
};

int
main(int argc, char **argv)
{
	many_init();
	away_init();
	rig_init(0);
	if (far_is_on())
		far_begin();
	if (argc != 2 ||
		(!rig_run(cases, argv[1]) && !rig_run(many_cases, argv[1]) &&
			!rig_run(end_cases, argv[1]) &&
			!rig_run(away_cases, argv[1]))) {
		fprintf(stderr, "usage: queue CASE\n");
		return 2;
	}
	return 0;
}
