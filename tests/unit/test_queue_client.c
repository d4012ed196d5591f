/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_queue_client.c - a client of a queue of another machine (far.h), whose server answers
 * what the test says. The server is a function of the test: its agent calls itself.
 */
#include "tests/unit/agent_rig.h"
#include "tests/unit/short_memory.h"
#include "worker/queue/far/wire.h"
#include "worker/queue/queue_inner.h"

TestSuite(queue_client, .timeout = 60);

/* Of process ids that are none of ours, by worker 0. */
#define TEXT        "1:1:1:1:1:1:0"
#define NONSENSE    "who serves the queue answers nonsense"
#define OPS         (FAR_DETACH + 1)
#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static struct xr_error err;

/* The answer to an op, and the last message that asked for it. */
struct scripted {
	struct far_answer a;
	struct far_item item[2];
	char body[8];
	size_t len; /* of the answer; 0: struct far_answer */
};

static struct scripted script[OPS];
static struct far_ask asked[OPS];
static _Atomic unsigned asks[OPS];
static struct far_shape shape;
static size_t shape_len;

static enum xr_status
serve(struct xr_call *call, const void *data, size_t len, void *unused)
{
	struct far_ask ask;
	struct scripted s;

	(void)unused;
	cr_assert(len >= sizeof(ask));
	memcpy(&ask, data, sizeof(ask));
	cr_assert(ask.op < OPS);
	s = script[ask.op];
	asked[ask.op] = ask;
	atomic_fetch_add(&asks[ask.op], 1);
	if (ask.op == FAR_ATTACH && s.a.status == XR_OK && s.len == 0) {
		memcpy(s.item, &shape, sizeof(shape));
		s.len = shape_len;
	}
	/* What is said once: the bytes that wait. */
	if (s.a.status == XR_E_AGAIN)
		script[ask.op].a = (struct far_answer){ .count = 1 };
	xr_reply_bytes(call, &s, s.len > 0 ? s.len : sizeof(s.a));
	return XR_OK;
}

static void
serve_queue(void)
{
	static const struct xr_func func = { .size = sizeof(func),
		.name = FAR_FUNC,
		.flags = XR_FN_SHORT,
		.raw = serve };

	join(0);
	cr_assert_eq(xr_fn_register(&func, &err), XR_OK, "%s", err.text);
	shape = (struct far_shape){ .lanes = 2,
		.roles = XR_QUEUE_READER | XR_QUEUE_WRITER };
	shape_len = sizeof(struct far_answer) + sizeof(shape);
}

static struct xr_queue *
open_queue(void)
{
	struct xr_queue *q = NULL;

	cr_assert_eq(xr_queue_open(TEXT, &q, &err), XR_OK, "%s", err.text);
	return q;
}

/* --- opening ---------------------------------------------------------------------------- */

Test(queue_client, a_queue_of_another_machine_needs_an_agent_at_both_ends)
{
	struct xr_queue *q = NULL;

	cr_expect_eq(xr_queue_open(TEXT, &q, &err), XR_E_STATE);
	cr_expect_str_eq(err.text,
		"the queue is on another machine: xr_rpc_init() comes first");
	serve_queue();
	cr_expect_eq(xr_queue_open("1:1:1:1:1:1:-1", &q, &err), XR_E_NOTFOUND);
	cr_expect(strstr(err.text, "had no agent") != NULL, "%s", err.text);
	cr_expect_eq(asks[FAR_ATTACH], 0);
	cr_expect_null(q);
	leave();
}

Test(queue_client, an_answer_of_another_shape_opens_nothing)
{
	struct xr_queue *q = NULL;

	serve_queue();
	for (int more = -1; more <= 1; more += 2) {
		shape_len = sizeof(struct far_answer) + sizeof(shape) +
			(size_t)more;
		cr_expect_eq(xr_queue_open(TEXT, &q, &err), XR_E_VERSION);
		cr_expect_str_eq(err.text,
			"who serves the queue is of another version");
	}
	shape_len = sizeof(struct far_answer) - 1;
	cr_expect_eq(xr_queue_open(TEXT, &q, &err), XR_E_PROTO);
	cr_expect_str_eq(err.text, NONSENSE);
	script[FAR_ATTACH] = (struct scripted){ .a.status = XR_E_NOTFOUND,
		.len = sizeof(struct far_answer) + 3 };
	memcpy(script[FAR_ATTACH].item, "why", 3);
	cr_expect_eq(xr_queue_open(TEXT, &q, &err), XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "why");
	cr_expect_null(q);
	leave();
}

Test(queue_client, a_handle_is_that_of_the_text_and_of_its_lanes)
{
	struct xr_queue *q, *lane = NULL;
	char text[XR_QUEUE_TEXT_MAX];
	int fds[XR_QUEUE_FDS] = { 0, 0 };

	serve_queue();
	q = open_queue();
	xr_queue_fds(q, fds);
	cr_expect(fds[0] == -1 && fds[1] == -1);
	cr_expect_eq(xr_queue_text(q, text, sizeof(text), &err), XR_OK);
	cr_expect_str_eq(text, TEXT);
	cr_expect_eq(xr_queue_text(q, text, strlen(TEXT), &err), XR_E_RANGE);
	cr_expect_eq(xr_queue_lane(q, 2, &lane, &err), XR_E_RANGE);
	until_short = 1;
	cr_expect_eq(xr_queue_lane(q, 1, &lane, &err), XR_E_NOMEM);
	until_short = 0;
	cr_expect_null(lane);
	cr_expect_eq(xr_queue_lane(q, 1, &lane, &err), XR_OK);
	script[FAR_COUNT].a.count = 7;
	cr_expect_eq(xr_queue_count(lane), 7);
	cr_expect(asked[FAR_COUNT].first == 1 && asked[FAR_COUNT].lanes == 1);
	cr_expect_not(xr_queue_empty(q));
	cr_expect(asked[FAR_COUNT].first == 0 && asked[FAR_COUNT].lanes == 2);
	script[FAR_COUNT].a.status = XR_E_PEER_LOST;
	cr_expect_eq(xr_queue_count(q), 0);
	xr_queue_free(q);
	cr_expect_eq(asks[FAR_DETACH], 0);
	xr_queue_free(lane);
	leave();
	cr_expect_eq(asks[FAR_DETACH], 1);
}

Test(queue_client, a_role_that_was_left_there_is_rejected_here)
{
	struct xr_queue_buf buf = { 0 };
	struct xr_queue *q;

	serve_queue();
	shape.roles = XR_QUEUE_READER;
	q = open_queue();
	cr_expect_eq(xr_queue_put_bytes(q, "x", 1, 0, &err), XR_E_STATE);
	cr_expect_str_eq(err.text, "this process is no writer of the queue");
	xr_queue_free(q);
	shape.roles = XR_QUEUE_WRITER;
	q = open_queue();
	cr_expect_eq(xr_queue_get_bytes(q, &buf, 0, &err), XR_E_STATE);
	cr_expect_str_eq(err.text, "this process is no reader of the queue");
	xr_queue_free(q);
	cr_expect(asks[FAR_OFFER] == 0 && asks[FAR_GET] == 0);
	leave();
}

Test(queue_client, a_handle_of_an_agent_that_was_shut_down_is_dead)
{
	struct xr_queue_buf buf = { 0 };
	struct xr_queue *q;

	serve_queue();
	q = open_queue();
	leave();
	cr_expect_eq(xr_queue_get_bytes(q, &buf, 0, &err), XR_E_STATE);
	cr_expect_eq(xr_queue_count(q), 0);
	join(0);
	cr_expect_eq(xr_queue_get_bytes(q, &buf, 0, &err), XR_E_STATE);
	cr_expect_str_eq(err.text,
		"the agent by which the queue was opened was shut down");
	cr_expect_eq(xr_queue_put_bytes(q, "x", 1, 0, &err), XR_E_STATE);
	cr_expect_eq(xr_queue_count(q), 0);
	xr_queue_free(q);
	leave();
	cr_expect(asks[FAR_GET] == 0 && asks[FAR_DETACH] == 0);
}

/* --- getting ---------------------------------------------------------------------------- */

#define HEAD(items) \
	(sizeof(struct far_answer) + (items) * sizeof(struct far_item))

Test(queue_client, an_answer_to_a_get_is_checked)
{
	static const struct {
		struct scripted answer;
		enum xr_status status;
		const char *text;
	} rows[] = {
		{ { .len = HEAD(0) - 1 }, XR_E_PROTO, NONSENSE },
		{ { .len = HEAD(0) }, XR_E_PROTO, NONSENSE },
		{ { .a.count = 1, .len = HEAD(0) }, XR_E_PROTO, NONSENSE },
		{ { .a.count = 1, .len = HEAD(1) - 1 }, XR_E_PROTO, NONSENSE },
		{ { .a.count = 1, .item[0].len = 9, .len = HEAD(1) + 8 },
			XR_E_PROTO, NONSENSE },
		{ { .a.count = 1,
			  .item[0].len = UINT64_MAX,
			  .len = HEAD(1) + 8 },
			XR_E_PROTO, NONSENSE },
		{ { .a.count = 1, .item[0].len = 0, .len = HEAD(1) }, XR_OK,
			"" },
		{ { .a.count = 1, .item[0].len = 8, .len = HEAD(1) + 8 }, XR_OK,
			"" },
		{ { .a.count = 1, .item[0].len = 24, .len = HEAD(1) + 24 },
			XR_OK, "" },
		{ { .a.status = XR_E_TIMEOUT }, XR_E_TIMEOUT, "" },
		{ { .a.status = XR_E_CLOSED }, XR_E_CLOSED, "" },
		{ { .a.status = XR_E_RANGE, .a.number = 77 }, XR_E_RANGE, "" },
	};
	struct xr_queue *q;

	serve_queue();
	q = open_queue();
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct xr_queue_buf buf = { 0 };

		script[FAR_GET] = rows[i].answer;
		err.text[0] = '\0';
		cr_expect_eq(xr_queue_get_bytes(q, &buf, 0, &err),
			rows[i].status, "row %zu", i);
		cr_expect_str_eq(err.text, rows[i].text, "row %zu", i);
		cr_expect_eq(buf.data != NULL, rows[i].status == XR_OK);
		if (rows[i].status == XR_OK)
			cr_expect_eq(buf.len, rows[i].answer.item[0].len);
		if (rows[i].status == XR_E_RANGE)
			cr_expect_eq(buf.len, 77);
		free(buf.data);
	}
	cr_expect_eq(asks[FAR_ACK] + asks[FAR_RETURN], 0);
	xr_queue_free(q);
	leave();
}

Test(queue_client, an_item_that_does_not_fit_goes_back)
{
	char room[8] = "........";
	struct xr_queue_buf buf = { .data = room, .room = 7 };
	struct xr_queue *q;

	serve_queue();
	q = open_queue();
	script[FAR_GET] = (struct scripted){ .a = { .count = 1, .number = 5 },
		.item[0].len = 8,
		.len = HEAD(1) + 8 };
	cr_expect_eq(xr_queue_get_bytes(q, &buf, 0, &err), XR_E_RANGE);
	cr_expect_str_eq(err.text, "an item of 8 bytes does not fit");
	cr_expect_eq(room[0], '.');
	cr_expect_eq(asks[FAR_RETURN], 1);
	cr_expect_eq(asked[FAR_RETURN].number, 5);
	cr_expect_eq(asks[FAR_ACK], 0);
	buf.room = 8;
	cr_expect_eq(xr_queue_get_bytes(q, &buf, 0, &err), XR_OK);
	cr_expect_neq(room[0], '.');
	cr_expect_eq(asks[FAR_RETURN], 1);
	/* The next message says so again, whether the acknowledgement came or not. */
	xr_queue_count(q);
	cr_expect_eq(asked[FAR_COUNT].acked, 5);
	cr_expect_eq(asked[FAR_ACK].number, 5);
	xr_queue_free(q);
	leave();
}

/* Without a number, it is not held where it was got. */
Test(queue_client, an_item_without_a_number_stays_for_the_next_get)
{
	char room[8] = "........";
	struct xr_queue_buf buf = { .data = room, .room = 7 };
	struct xr_queue *q;

	serve_queue();
	q = open_queue();
	script[FAR_GET] = (struct scripted){ .a.count = 1,
		.item[0].len = 8,
		.len = HEAD(1) + 8 };
	cr_expect_eq(xr_queue_get_bytes(q, &buf, XR_TIMEOUT_NEVER, &err),
		XR_E_RANGE);
	cr_expect_eq(asks[FAR_RETURN], 0);
	buf.room = 8;
	cr_expect_eq(xr_queue_get_bytes(q, &buf, XR_TIMEOUT_NEVER, &err),
		XR_OK);
	cr_expect_eq(buf.len, 8);
	cr_expect_eq(asks[FAR_GET], 1);
	xr_queue_free(q);
	leave();
}

/* Also if it is not to be acknowledged. */
Test(queue_client, what_came_beside_the_item_is_there_for_the_next_get)
{
	struct xr_queue *q;

	serve_queue();
	q = open_queue();
	for (uint64_t number = 0; number <= 5; number += 5) {
		unsigned gets = asks[FAR_GET];

		script[FAR_GET] = (struct scripted){ .a = { .count = 2,
							     .number = number },
			.item = { { CELL_BYTES, 0, 3 }, { CELL_BYTES, 0, 5 } },
			.body = "abcdefgh",
			.len = HEAD(2) + 8 };
		for (size_t len = 3; len <= 5; len += 2) {
			struct xr_queue_buf buf = { 0 };

			cr_expect_eq(xr_queue_get_bytes(q, &buf, 0, &err),
				XR_OK);
			cr_assert_eq(buf.len, len);
			cr_expect_eq(memcmp(buf.data,
					     len == 3 ? "abc" : "defgh", len),
				0);
			free(buf.data);
		}
		cr_expect_eq(asks[FAR_GET], gets + 1);
	}
	xr_queue_free(q);
	leave();
}

Test(queue_client, a_get_asks_again_for_the_bytes_that_wait)
{
	static const struct {
		uint64_t waits, want;
	} rows[] = { { 1, 1 }, { UINT64_C(1) << 40, UINT64_C(1) << 40 },
		{ UINT64_MAX, UINT64_C(1) << 40 } };
	struct xr_queue *q;

	serve_queue();
	q = open_queue();
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct xr_queue_buf buf = { 0 };
		unsigned gets = asks[FAR_GET];

		script[FAR_GET] =
			(struct scripted){ .a = { .status = XR_E_AGAIN,
						   .number = rows[i].waits },
				.item[0].len = 1,
				.len = HEAD(1) + 1 };
		cr_expect_eq(xr_queue_get_bytes(q, &buf, 0, &err), XR_OK);
		cr_expect_eq(asks[FAR_GET], gets + 2);
		cr_expect_eq(asked[FAR_GET].number, rows[i].want, "row %zu", i);
		free(buf.data);
	}
	xr_queue_free(q);
	leave();
}

/* --- putting ---------------------------------------------------------------------------- */

static const struct xr_part two[] = { { "ab", 2 }, { "c", 1 } };

Test(queue_client, a_put_without_a_timeout_counts_what_was_put)
{
	static const struct {
		struct far_answer a;
		size_t count;
	} rows[] = {
		{ { XR_OK, 2, 0 }, 2 },
		{ { XR_OK, 3, 0 }, 2 },
		{ { XR_E_CLOSED, 1, 0 }, 1 },
		{ { XR_E_CLOSED, 0, 0 }, 0 },
	};
	struct xr_queue *q;

	serve_queue();
	q = open_queue();
	for (size_t i = 0; i < ROWS(rows); i++) {
		size_t count = 2;

		script[FAR_PUT].a = rows[i].a;
		cr_expect_eq(xr_queue_put_many_bytes(q, two, &count,
				     XR_TIMEOUT_NEVER, &err),
			rows[i].a.status, "row %zu", i);
		cr_expect_eq(count, rows[i].count, "row %zu", i);
	}
	cr_expect_eq(asked[FAR_PUT].count, 2);
	cr_expect_eq(asked[FAR_PUT].timeout, INT64_MAX);
	cr_expect_eq(asks[FAR_OFFER], 0);
	xr_queue_free(q);
	leave();
}

Test(queue_client, a_put_commits_what_has_room_until_all_is_put)
{
	static const struct {
		struct far_answer offer, commit;
		enum xr_status status;
		size_t count;
		unsigned offers, commits;
	} rows[] = {
		{ { XR_OK, 2, 9 }, { 0 }, XR_OK, 2, 1, 1 },
		{ { XR_OK, 1, 9 }, { 0 }, XR_OK, 2, 2, 2 },
		{ { XR_OK, 9, 9 }, { 0 }, XR_OK, 2, 1, 1 },
		{ { XR_E_TIMEOUT, 0, 0 }, { 0 }, XR_E_TIMEOUT, 0, 1, 0 },
		{ { XR_OK, 1, 9 }, { XR_E_PEER_LOST, 0, 0 }, XR_E_PEER_LOST, 0,
			1, 1 },
	};
	struct xr_queue *q;

	serve_queue();
	q = open_queue();
	for (size_t i = 0; i < ROWS(rows); i++) {
		size_t count = 2;

		script[FAR_OFFER].a = rows[i].offer;
		script[FAR_COMMIT].a = rows[i].commit;
		atomic_store(&asks[FAR_OFFER], 0);
		atomic_store(&asks[FAR_COMMIT], 0);
		asked[FAR_COMMIT].number = 9;
		cr_expect_eq(xr_queue_put_many_bytes(q, two, &count,
				     XR_SECONDS(30), &err),
			rows[i].status, "row %zu", i);
		cr_expect_eq(count, rows[i].count, "row %zu", i);
		cr_expect_eq(asks[FAR_OFFER], rows[i].offers, "row %zu", i);
		cr_expect_eq(asks[FAR_COMMIT], rows[i].commits, "row %zu", i);
		cr_expect_eq(asked[FAR_COMMIT].number, 9);
	}
	cr_expect_eq(asks[FAR_PUT], 0);
	xr_queue_free(q);
	leave();
}

Test(queue_client, nothing_is_asked_for_no_items)
{
	struct xr_queue_buf buf = { 0 };
	struct xr_queue *q;
	size_t count = 0;

	serve_queue();
	q = open_queue();
	cr_expect_eq(xr_queue_put_many_bytes(q, two, &count, 0, &err), XR_OK);
	cr_expect_eq(xr_queue_get_many_bytes(q, &buf, &count, 0, &err), XR_OK);
	cr_expect_eq(count, 0);
	cr_expect_eq(asks[FAR_OFFER] + asks[FAR_PUT] + asks[FAR_GET], 0);
	xr_queue_free(q);
	leave();
}

/* --- memory ----------------------------------------------------------------------------- */

Test(queue_client, a_message_without_memory_is_not_sent)
{
	static const int64_t timeouts[] = { 0, 0, XR_TIMEOUT_NEVER };
	struct xr_queue_buf buf = { 0 };
	struct xr_queue *q, *other = NULL;

	serve_queue();
	q = open_queue();
	for (unsigned i = 0; i < ROWS(timeouts); i++) {
		until_short = i == 1 ? 2 : 1; /* that of FAR_COMMIT */
		cr_expect_eq(xr_queue_put_bytes(q, "x", 1, timeouts[i], &err),
			XR_E_NOMEM);
		cr_expect_str_eq(err.text, "out of memory");
	}
	until_short = 1;
	cr_expect_eq(xr_queue_get_bytes(q, &buf, 0, &err), XR_E_NOMEM);
	script[FAR_COUNT].a.count = 7;
	until_short = 1;
	cr_expect_eq(xr_queue_count(q), 0);
	until_short = 1;
	xr_queue_close(q);
	until_short = 1;
	xr_queue_done(q);
	cr_expect_eq(until_short, 0);
	cr_expect_eq(asks[FAR_OFFER] + asks[FAR_PUT] + asks[FAR_GET] +
			asks[FAR_COUNT] + asks[FAR_CLOSE] + asks[FAR_DONE],
		0);
	until_short = 1;
	cr_expect_eq(xr_queue_open(TEXT, &other, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "out of memory");
	cr_expect_null(other);
	cr_expect_eq(xr_queue_count(q), 7);
	xr_queue_free(q);
	leave();
}
