/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queueplay.c - queues that are used in every way at once.
 *
 *   queueplay [--rounds N] [--seed N] [--one N] [--closes]
 *
 * A round is a queue of any kind, from one item to forty, with one to three lanes, into which
 * up to three processes of up to two threads put, and from which as many get: values and bytes,
 * of 1 byte to more than a lane has, one by one and several, with times and without. In every
 * fifth round it is closed meanwhile. What was put, and no other, is got once, whole, and in its
 * order; no call is later than its time; and all comes to an end: a round that takes longer than
 * a minute is a violation, and named. --one plays that round alone; --closes is of queues from one
 * to one that are closed meanwhile.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/wait.h>

#include <xrun/queue.h>
#include <xrun/tensor.h>

#include "tests/fault/play.h"

#define PROCESSES   3 /* of each role */
#define THREADS     2
#define WRITERS     (PROCESSES * THREADS)
#define ITEMS       400 /* of a writer */
#define MANY        8
#define LONG_ONE    200000
#define SHARED_FROM 4096 /* bytes of a tensor */
#define MAGIC       UINT64_C(0x7175657565706c61)
#define LATE        XR_SECONDS(5) /* what others may take of the processors */

/* An item: as bytes this and the rest of it, as a value a list of both numbers and the rest. */
struct head {
	uint64_t magic;
	uint32_t writer, seq;
};

struct board {
	_Atomic uint8_t put[WRITERS][ITEMS], got[WRITERS][ITEMS];
};

struct plan {
	struct xr_queue_opts opts;
	uint32_t writers, readers, threads; /* processes; of each */
	bool closes;
};

static struct board *board;
static struct plan plan;
static struct xr_queue *queue;
static bool closes;
static uint32_t process; /* of its role */

static int64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Of the round. */
static uint64_t
chance_in(uint64_t what)
{
	return chance_of((uint64_t)(seed * 1000003 + round_now) * 64 + what);
}

/* --- items ---------------------------------------------------------------------------- */

/* What an item is follows from whose it is. */
static size_t
rest_of(uint32_t writer, uint32_t seq)
{
	uint64_t chance = ((uint64_t)writer << 32 | seq) * 2654435761u + 1;
	uint64_t how;

	line_random(&chance);
	how = draw(&chance, 40);
	if (how == 0)
		return draw(&chance, LONG_ONE);
	return draw(&chance, how < 28 ? 90 : 4000);
}

static void
fill(uint8_t *rest, uint32_t writer, uint32_t seq, size_t len)
{
	memset(rest, (int)(writer * 31 + seq), len);
}

static void
check_rest(const void *rest, size_t len, uint32_t writer, uint32_t seq)
{
	static const uint8_t step = 31;
	const uint8_t *at = rest;
	uint8_t want = (uint8_t)(writer * step + seq);

	EXPECT(len == rest_of(writer, seq));
	for (size_t i = 0; i < len; i++)
		EXPECT(at[i] == want);
}

static size_t
make_bytes(uint8_t *to, uint32_t writer, uint32_t seq)
{
	const struct head head = { MAGIC, writer, seq };
	size_t len = rest_of(writer, seq);

	memcpy(to, &head, sizeof(head));
	fill(to + sizeof(head), writer, seq, len);
	return sizeof(head) + len;
}

/* Every other rest is a tensor; by reference those travel that are in shared memory. */
static struct xr_value *
make_value(uint8_t *room, uint32_t writer, uint32_t seq)
{
	size_t len = rest_of(writer, seq);
	struct xr_tensor_desc d = { .size = sizeof(d),
		.dtype = XR_DT_U8,
		.ndim = 1,
		.device_kind = XR_DEVICE_CPU,
		.shape = { (int64_t)len } };
	struct xr_value *items[3] = { xr_value_new_i64(writer),
		xr_value_new_i64(seq), NULL };

	if (seq % 2 == 0 ||
		(plan.opts.mode == XR_ENC_SHARE && len < SHARED_FROM)) {
		fill(room, writer, seq, len);
		items[2] = xr_value_new_bytes(room, len);
	} else {
		EXPECT(xr_tensor_new(&d, &items[2], &err) == XR_OK);
		fill(xr_tensor_data(items[2], NULL), writer, seq, len);
	}
	return xr_value_new_list_of(items, 3);
}

static void
check_value(const struct xr_value *v, struct head *head)
{
	const struct xr_value *rest = xr_value_at(v, 2);
	int64_t writer = -1, seq = -1;
	size_t len = 0;
	const void *data;

	EXPECT(xr_value_get_i64(xr_value_at(v, 0), &writer) == XR_OK);
	EXPECT(xr_value_get_i64(xr_value_at(v, 1), &seq) == XR_OK);
	EXPECT(writer >= 0 && writer < WRITERS && seq >= 0 && seq < ITEMS);
	*head = (struct head){ MAGIC, (uint32_t)writer, (uint32_t)seq };
	data = xr_value_kind(rest) == XR_TENSOR ?
		xr_tensor_data((struct xr_value *)rest, &len) :
		xr_value_data(rest, &len);
	check_rest(data, len, head->writer, head->seq);
}

static bool
is_raw(const void *data, size_t len)
{
	uint64_t magic = 0;

	if (len >= sizeof(struct head))
		memcpy(&magic, data, sizeof(magic));
	return magic == MAGIC;
}

static void
check_raw(const void *data, size_t len, struct head *head)
{
	memcpy(head, data, sizeof(*head));
	EXPECT(head->writer < WRITERS && head->seq < ITEMS);
	check_rest((const uint8_t *)data + sizeof(*head), len - sizeof(*head),
		head->writer, head->seq);
}

/* --- a time ----------------------------------------------------------------------------- */

struct limit {
	int64_t timeout, began;
};

static struct limit
limit(uint64_t *chance)
{
	static const int64_t times[] = { 0, 20000, 200000, 2000000,
		XR_TIMEOUT_NEVER, XR_TIMEOUT_NEVER };

	return (struct limit){ times[draw(chance, 6)], now_ns() };
}

static void
check_time(const struct limit *l)
{
	if (l->timeout != XR_TIMEOUT_NEVER)
		EXPECT(now_ns() - l->began < l->timeout + LATE);
}

/* --- who puts ---------------------------------------------------------------------------- */

static uint32_t
lanes(void)
{
	return plan.opts.lanes > 0 ? plan.opts.lanes : 1;
}

/* All of it, or a lane. */
static struct xr_queue *
some_of(uint64_t *chance)
{
	struct xr_queue *lane = NULL;

	if (lanes() == 1 || draw(chance, 2) == 0)
		return queue;
	EXPECT(xr_queue_lane(queue, (uint32_t)draw(chance, lanes()), &lane,
		       &err) == XR_OK);
	return lane;
}

static void
done_with(struct xr_queue *q)
{
	if (q != queue)
		xr_queue_free(q);
}

/* *@count: items from @seq on; receives how many were put. */
static enum xr_status
put_bytes(struct xr_queue *q, uint32_t writer, uint32_t seq, size_t *count,
	int64_t timeout)
{
	struct xr_part part[MANY] = { 0 };
	enum xr_status status;
	size_t n = *count;

	for (size_t i = 0; i < n; i++) {
		uint8_t *data = malloc(sizeof(struct head) + LONG_ONE);

		part[i] = (struct xr_part){ data,
			make_bytes(data, writer, seq + (uint32_t)i) };
	}
	if (n == 1) {
		status = xr_queue_put_bytes(q, part[0].data, part[0].len,
			timeout, &err);
		*count = status == XR_OK;
	} else {
		status = xr_queue_put_many_bytes(q, part, count, timeout, &err);
	}
	for (size_t i = 0; i < n; i++)
		free((void *)(uintptr_t)part[i].data);
	return status;
}

static enum xr_status
put_values(struct xr_queue *q, uint32_t writer, uint32_t seq, size_t *count,
	int64_t timeout)
{
	uint8_t *room = malloc(LONG_ONE);
	struct xr_value *value[MANY] = { NULL };
	enum xr_status status;
	size_t n = *count;

	for (size_t i = 0; i < n; i++)
		value[i] = make_value(room, writer, seq + (uint32_t)i);
	if (n == 1) {
		status = xr_queue_put(q, value[0], timeout, &err);
		*count = status == XR_OK;
	} else {
		status = xr_queue_put_many(q, value, count, timeout, &err);
	}
	for (size_t i = 0; i < n; i++)
		xr_value_unref(value[i]);
	free(room);
	return status;
}

static void *
writer(void *number)
{
	uint32_t me = process * THREADS + (uint32_t)(uintptr_t)number;
	uint64_t chance = chance_in(me);
	enum xr_status status = XR_OK;
	uint32_t seq = 0;

	while (seq < ITEMS && status != XR_E_CLOSED) {
		size_t want = draw(&chance, 2) == 0 ? 1 :
						      1 + draw(&chance, MANY),
		       count;
		struct xr_queue *q = some_of(&chance);
		struct limit l = limit(&chance);

		if (want > ITEMS - seq)
			want = ITEMS - seq;
		count = want;
		status = (draw(&chance, 2) == 0 ? put_bytes : put_values)(q, me,
			seq, &count, l.timeout);
		check_time(&l);
		EXPECT(status == XR_OK ? count == want : count < want);
		EXPECT(status == XR_OK || status == XR_E_CLOSED ||
			(status == XR_E_TIMEOUT &&
				l.timeout != XR_TIMEOUT_NEVER));
		EXPECT(status != XR_E_CLOSED || plan.closes);
		for (size_t i = 0; i < count; i++)
			board->put[me][seq++] = 1;
		done_with(q);
	}
	return NULL;
}

/* --- who gets ------------------------------------------------------------------------------- */

struct reader {
	uint64_t chance;
	int64_t last[WRITERS];
};

static void
note(struct reader *r, const struct head *head)
{
	int64_t *last = &r->last[head->writer];

	if (lanes() == 1)
		EXPECT((int64_t)head->seq > *last);
	*last = head->seq;
	EXPECT(atomic_fetch_add(&board->got[head->writer][head->seq], 1) == 0);
}

static void
take_value(struct reader *r, struct xr_value *value)
{
	struct head head;
	size_t len = 0;

	if (xr_value_kind(value) == XR_BYTES) {
		const void *data = xr_value_data(value, &len);

		EXPECT(is_raw(data, len));
		check_raw(data, len, &head);
	} else {
		check_value(value, &head);
	}
	note(r, &head);
	xr_value_unref(value);
}

static void
take_bytes(struct reader *r, const void *data, size_t len)
{
	const struct xr_part part = { data, len };
	struct xr_value *value = NULL;
	struct head head;

	if (is_raw(data, len)) {
		check_raw(data, len, &head);
		note(r, &head);
		return;
	}
	EXPECT(xr_decode(&part, 1, NULL, &value, &err) == XR_OK);
	take_value(r, value);
}

static enum xr_status
get_values(struct reader *r, struct xr_queue *q, size_t count, int64_t timeout)
{
	struct xr_value *value[MANY] = { NULL };
	enum xr_status status;

	if (count == 1) {
		status = xr_queue_get(q, &value[0], timeout, &err);
		count = status == XR_OK;
	} else {
		status = xr_queue_get_many(q, value, &count, timeout, &err);
	}
	EXPECT((status == XR_OK) == (count > 0));
	for (size_t i = 0; i < count; i++)
		take_value(r, value[i]);
	return status;
}

/* Into memory that may be too small, or that is made. */
static enum xr_status
get_bytes(struct reader *r, struct xr_queue *q, size_t count, int64_t timeout)
{
	static _Thread_local uint8_t room[MANY][200];
	struct xr_queue_buf buf[MANY];
	enum xr_status status;
	size_t n = count;

	for (size_t i = 0; i < n; i++)
		buf[i] = draw(&r->chance, 2) == 0 ?
			(struct xr_queue_buf){ .data = room[i],
				.room = sizeof(room[i]) } :
			(struct xr_queue_buf){ 0 };
	if (n == 1) {
		status = xr_queue_get_bytes(q, &buf[0], timeout, &err);
		count = status == XR_OK;
	} else {
		status = xr_queue_get_many_bytes(q, buf, &count, timeout, &err);
	}
	if (status == XR_E_RANGE) {
		EXPECT(buf[count].data == room[count] &&
			buf[count].len > sizeof(room[0]));
		status = XR_OK;
	}
	EXPECT(status == XR_OK || count == 0);
	for (size_t i = 0; i < count; i++) {
		take_bytes(r, buf[i].data, buf[i].len);
		if (buf[i].data != room[i])
			free(buf[i].data);
	}
	return status;
}

static void *
reader(void *number)
{
	uint32_t me = process * THREADS + (uint32_t)(uintptr_t)number;
	struct reader r = { .chance = chance_in(WRITERS + me) };
	/* By reference it is no encoding that could be had as bytes. */
	bool values = plan.opts.mode == XR_ENC_SHARE;
	enum xr_status status = XR_OK;

	for (uint32_t i = 0; i < WRITERS; i++)
		r.last[i] = -1;
	while (status != XR_E_CLOSED) {
		size_t count =
			draw(&r.chance, 2) == 0 ? 1 : 1 + draw(&r.chance, MANY);
		struct xr_queue *q = some_of(&r.chance);
		struct limit l = limit(&r.chance);
		bool is_lane = q != queue;

		/* One lane may stay empty for good. */
		if (is_lane && l.timeout == XR_TIMEOUT_NEVER)
			l.timeout = 100000;
		status = (values || draw(&r.chance, 2) == 0 ?
				get_values :
				get_bytes)(&r, q, count, l.timeout);
		check_time(&l);
		EXPECT(status == XR_OK || status == XR_E_CLOSED ||
			(status == XR_E_TIMEOUT &&
				l.timeout != XR_TIMEOUT_NEVER));
		if (is_lane && status == XR_E_CLOSED)
			status = XR_OK;
		if (plan.opts.redeliver)
			xr_queue_done(q);
		done_with(q);
	}
	return NULL;
}

/* --- a round ------------------------------------------------------------------------------------ */

static void
run_child(uint32_t role, uint32_t number)
{
	pthread_t thread[THREADS];

	alarm(PATIENCE);
	process = number;
	xr_queue_leave(queue,
		role == XR_QUEUE_WRITER ? XR_QUEUE_READER : XR_QUEUE_WRITER);
	for (uint32_t i = 0; i < plan.threads; i++)
		EXPECT(pthread_create(&thread[i], NULL,
			       role == XR_QUEUE_WRITER ? writer : reader,
			       (void *)(uintptr_t)i) == 0);
	for (uint32_t i = 0; i < plan.threads; i++)
		pthread_join(thread[i], NULL);
	/* What it has put by reference is had while it lives. */
	while (role == XR_QUEUE_WRITER && plan.opts.mode == XR_ENC_SHARE &&
		!xr_queue_empty(queue))
		usleep(100);
	xr_queue_free(queue);
	_exit(0);
}

static void
make_plan(uint64_t *chance)
{
	static const enum xr_enc_mode modes[] = { XR_ENC_COPY, XR_ENC_COPY,
		XR_ENC_SHARE };
	bool p2p = draw(chance, 3) == 0 || closes;

	plan = (struct plan){
		.opts = { .size = sizeof(plan.opts),
			.kind = p2p ? XR_QUEUE_P2P : XR_QUEUE_ANY,
			.items = 1 + (uint32_t)draw(chance, 40),
			.bytes = UINT64_C(512) << draw(chance, 10),
			.lanes = 1 + (uint32_t)draw(chance, 3),
			.mode = modes[draw(chance, 3)],
			.redeliver = !p2p && draw(chance, 3) == 0 },
		.writers = p2p ? 1 : 1 + (uint32_t)draw(chance, PROCESSES),
		.readers = p2p ? 1 : 1 + (uint32_t)draw(chance, PROCESSES),
		.threads = p2p ? 1 : 1 + (uint32_t)draw(chance, THREADS),
		.closes = draw(chance, 5) == 0 || closes,
	};
}

static void
describe(void)
{
	static char text[160];

	snprintf(text, sizeof(text),
		"%s%s%s%s, %u items, %" PRIu64
		" bytes, %u lanes, %u and %u of %u threads",
		plan.opts.kind == XR_QUEUE_P2P ? "p2p" : "any",
		plan.opts.mode == XR_ENC_SHARE ? " shared" : "",
		plan.opts.redeliver ? " redeliver" : "",
		plan.closes ? " closes" : "", plan.opts.items, plan.opts.bytes,
		plan.opts.lanes, plan.writers, plan.readers, plan.threads);
	about = text;
}

static void
judge(void)
{
	for (uint32_t w = 0; w < WRITERS; w++)
		for (uint32_t i = 0; i < ITEMS; i++) {
			bool is_one = w / THREADS < plan.writers &&
				w % THREADS < plan.threads;

			if (board->put[w][i] != board->got[w][i])
				snprintf(err.text, sizeof(err.text),
					"item %u of %u was put %u times, got %u",
					i, w, board->put[w][i],
					board->got[w][i]);
			EXPECT(board->put[w][i] == board->got[w][i]);
			EXPECT(plan.closes || board->put[w][i] == is_one);
		}
}

static void
play_round(void)
{
	uint64_t chance = chance_in(60);
	pid_t pid[2 * PROCESSES];
	uint32_t n = 0;
	int status;

	make_plan(&chance);
	describe();
	memset(board, 0, sizeof(*board));
	EXPECT(xr_queue_new(&plan.opts, &queue, &err) == XR_OK);
	for (; n < plan.writers + plan.readers; n++) {
		pid[n] = fork();
		EXPECT(pid[n] != -1);
		if (pid[n] == 0 && n < plan.writers)
			run_child(XR_QUEUE_WRITER, n);
		if (pid[n] == 0)
			run_child(XR_QUEUE_READER, n - plan.writers);
	}
	if (plan.closes) {
		usleep((unsigned)draw(&chance, 20000));
		xr_queue_close(queue);
	}
	xr_queue_leave(queue, XR_QUEUE_WRITER | XR_QUEUE_READER);
	for (uint32_t i = 0; i < n; i++) {
		EXPECT(waitpid(pid[i], &status, 0) == pid[i]);
		if (status != 0)
			_exit(1);
	}
	judge();
	EXPECT(xr_queue_empty(queue));
	xr_queue_free(queue);
}

int
main(int argc, char **argv)
{
	const struct prog_opt table[] = {
		PLAY_OPTIONS,
		{ "closes", PROG_FLAG, &closes, "one to one, closed" },
		{ 0 },
	};

	if (prog_opts(argc, argv, table) != argc)
		prog_die(0, "usage: queueplay [OPTION]...");
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	EXPECT(board != MAP_FAILED);
	play_all(play_round);
	printf("ok %" PRId64 " queues\n", one >= 0 ? 1 : rounds);
	return 0;
}
