/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_queue_ward.c - what a process answers that serves a queue (ward.h): messages as any
 * client may send them. The test is both: its agent calls itself.
 */
#include <xrun/call.h>

#include "tests/unit/agent_rig.h"
#include "tests/unit/short_memory.h"
#include "worker/queue/far/wire.h"
#include "worker/queue/queue_inner.h"

TestSuite(queue_ward, .timeout = 60);

#define NOTHING "that asks nothing of a queue"
#define ITEMS   "those are no items"
#define ROOM    200000 /* bytes of a message */

static struct xr_error err;
static struct xr_peer *self;
static struct xr_method_ref *method;
static struct xr_queue *queue;
static char text[XR_QUEUE_TEXT_MAX];
static uint64_t token;

static struct far_answer answer;
static char words[sizeof(err.text)];
static struct far_item item; /* the first of an answer to FAR_GET */

/* --- asking ----------------------------------------------------------------------------- */

static void
send_raw(const void *data, size_t len)
{
	static char reply[ROOM];
	const struct xr_raw_call call = { .size = sizeof(call),
		.to = self,
		.method = method,
		.data = data,
		.len = len,
		.reply = reply,
		.reply_cap = sizeof(reply) };
	struct xr_raw_reply r = { 0 };
	size_t n;

	cr_assert_eq(xr_call_sync(&call, &r, &err), XR_OK, "%s", err.text);
	cr_assert(r.len >= sizeof(answer));
	memcpy(&answer, r.data, sizeof(answer));
	n = r.len - sizeof(answer);
	memset(&item, 0, sizeof(item));
	if (n >= sizeof(item))
		memcpy(&item, (const char *)r.data + sizeof(answer),
			sizeof(item));
	n = n < sizeof(words) ? n : sizeof(words) - 1;
	memcpy(words, (const char *)r.data + sizeof(answer), n);
	words[answer.status == XR_OK ? 0 : n] = '\0';
	xr_raw_reply_free(&r);
}

static enum xr_status
send_ask(struct far_ask ask, const void *rest, size_t len)
{
	static char whole[ROOM];

	if (ask.token == 0)
		ask.token = token;
	memcpy(whole, &ask, sizeof(ask));
	if (len > 0)
		memcpy(whole + sizeof(ask), rest, len);
	send_raw(whole, sizeof(ask) + len);
	return (enum xr_status)answer.status;
}

#define ASK(what, ...) \
	send_ask((struct far_ask){ .op = (what), \
			 .lanes = queue->count, \
			 __VA_ARGS__ }, \
		NULL, 0)

static enum xr_status
get(size_t count, uint64_t room, uint64_t bytes)
{
	uint64_t rooms[8];

	for (size_t i = 0; i < 8; i++)
		rooms[i] = room;
	return send_ask((struct far_ask){ .op = FAR_GET,
				.lanes = queue->count,
				.count = (uint32_t)count,
				.number = bytes },
		rooms, count * sizeof(rooms[0]));
}

static enum xr_status
offer_two(void)
{
	const struct {
		struct far_item item[2];
		char body[2];
	} rest = { { { CELL_BYTES, 0, 1 }, { CELL_BYTES, 0, 1 } }, "ab" };

	return send_ask((struct far_ask){ .op = FAR_OFFER,
				.lanes = queue->count,
				.count = 2 },
		&rest, 2 * sizeof(struct far_item) + 2);
}

static void
put(const char *data, size_t len)
{
	cr_assert_eq(xr_queue_put_bytes(queue, data, len, 0, &err), XR_OK, "%s",
		err.text);
}

/* --- coming and going ------------------------------------------------------------------- */

static void
attach(void)
{
	token = 1; /* of nobody */
	cr_assert_eq(send_ask((struct far_ask){ .op = FAR_ATTACH }, text,
			     strlen(text)),
		XR_OK, "%s", words);
	token = answer.number;
}

static void
begin_with(struct xr_queue_opts opts)
{
	opts.size = sizeof(opts);
	join(0);
	cr_assert_eq(xr_queue_new(&opts, &queue, &err), XR_OK);
	cr_assert_eq(xr_queue_text(queue, text, sizeof(text), &err), XR_OK);
	cr_assert_eq(xr_peer_find("self", 0, &self, &err), XR_OK);
	cr_assert_eq(xr_method_find(FAR_FUNC, &method, &err), XR_OK);
	attach();
}

#define BEGIN(...) begin_with((struct xr_queue_opts){ __VA_ARGS__ })

static void
end(void)
{
	xr_queue_free(queue);
	leave();
}

/* --- what is no message ----------------------------------------------------------------- */

Test(queue_ward, a_short_or_unknown_message_is_rejected)
{
	struct far_ask ask = { .op = FAR_COUNT };

	BEGIN(.lanes = 2);
	ask.lanes = 2;
	ask.token = token;
	send_raw(&ask, sizeof(ask) - 1);
	cr_expect_eq(answer.status, XR_E_PROTO);
	cr_expect_eq(answer.count, 0);
	cr_expect_str_eq(words, NOTHING);
	send_raw(&ask, sizeof(ask));
	cr_expect_eq(answer.status, XR_OK);
	cr_expect_eq(ASK(FAR_DETACH + 1), XR_E_PROTO);
	cr_expect_str_eq(words, NOTHING);
	cr_expect_eq(ASK(FAR_WATCH, .timeout = -1), XR_E_PROTO);
	cr_expect_str_eq(words, NOTHING);
	cr_expect_eq(ASK(FAR_WATCH), XR_E_TIMEOUT);
	cr_expect_eq(ASK(FAR_COUNT, .token = token + 1), XR_E_PEER_LOST);
	cr_expect_str_eq(words,
		"who served the queue took this process for gone");
	cr_expect_eq(ASK(FAR_DETACH), XR_OK);
	cr_expect_eq(ASK(FAR_COUNT), XR_E_PEER_LOST);
	end();
}

Test(queue_ward, a_text_that_is_none_attaches_nobody)
{
	char padded[XR_QUEUE_TEXT_MAX + 1];
	size_t len;

	BEGIN(0);
	token = 1;
	cr_expect_eq(send_ask((struct far_ask){ .op = FAR_ATTACH }, "x", 1),
		XR_E_INVAL);
	cr_expect_eq(answer.count, 0);
	cr_expect_str_eq(words, "that is no queue's text");
	len = strlen(text);
	memset(padded, ' ', sizeof(padded));
	memcpy(padded + XR_QUEUE_TEXT_MAX - len, text, len);
	cr_expect_eq(send_ask((struct far_ask){ .op = FAR_ATTACH }, padded,
			     XR_QUEUE_TEXT_MAX),
		XR_E_INVAL);
	cr_expect_eq(send_ask((struct far_ask){ .op = FAR_ATTACH }, padded + 1,
			     XR_QUEUE_TEXT_MAX - 1),
		XR_OK);
	end();
}

Test(queue_ward, lanes_that_the_queue_has_not_are_out_of_range)
{
	static const struct {
		uint32_t first, lanes;
		enum xr_status status;
	} rows[] = {
		{ 0, 2, XR_OK },
		{ 0, 1, XR_OK },
		{ 1, 1, XR_OK },
		{ 2, 1, XR_E_RANGE },
		{ 1, 2, XR_E_RANGE },
		{ 0, 3, XR_E_RANGE },
		{ 0, 0, XR_E_RANGE },
		{ 1, 0, XR_E_RANGE },
	};

	BEGIN(.lanes = 2);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct far_ask ask = { .op = FAR_COUNT,
			.first = rows[i].first,
			.lanes = rows[i].lanes };

		cr_expect_eq(send_ask(ask, NULL, 0), rows[i].status, "row %zu",
			i);
		cr_expect_str_eq(words,
			rows[i].status == XR_OK ? "" :
						  "the queue has no such lane");
	}
	end();
}

Test(queue_ward, items_that_do_not_fill_the_message_are_rejected)
{
	const struct {
		uint32_t count;
		struct far_item item;
		size_t body; /* bytes behind it */
		enum xr_status status;
		const char *words;
	} rows[] = {
		{ 1, { CELL_BYTES, 0, 3 }, 3, XR_OK, "" },
		{ 1, { CELL_VALUE, 0, 3 }, 3, XR_OK, "" },
		{ 1, { CELL_SHARED, 0, 3 }, 3, XR_E_PROTO, ITEMS },
		{ 1, { CELL_BYTES, 0, 4 }, 3, XR_E_PROTO, ITEMS },
		{ 1, { CELL_BYTES, 0, UINT64_MAX }, 3, XR_E_PROTO, ITEMS },
		{ 1, { CELL_BYTES, 0, 2 }, 3, XR_E_PROTO, ITEMS },
		{ 0, { CELL_BYTES, 0, 0 }, 0, XR_E_PROTO, ITEMS },
		{ 2, { CELL_BYTES, 0, 0 }, 15, XR_E_PROTO, NOTHING },
		{ UINT32_MAX, { CELL_BYTES, 0, 0 }, 15, XR_E_PROTO, NOTHING },
	};
	const struct far_item wrapped[] = { { CELL_BYTES, 0, 1 },
		{ CELL_BYTES, 0, UINT64_MAX } };
	struct {
		struct far_item item;
		char body[16];
	} rest = { .body = "abc" };

	BEGIN(0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct far_ask ask = { .lanes = 1, .count = rows[i].count };
		size_t len = sizeof(rest.item) + rows[i].body;

		rest.item = rows[i].item;
		for (ask.op = FAR_PUT; ask.op <= FAR_OFFER; ask.op++) {
			cr_expect_eq(send_ask(ask, &rest, len), rows[i].status,
				"row %zu", i);
			cr_expect_str_eq(words, rows[i].words, "row %zu", i);
		}
	}
	cr_expect_eq(xr_queue_count(queue), 4, "two puts and two offers");
	/* Lengths that only together are what there is. */
	cr_expect_eq(send_ask((struct far_ask){ .op = FAR_PUT,
				      .lanes = 1,
				      .count = 2 },
			     &wrapped, sizeof(wrapped)),
		XR_E_PROTO);
	cr_expect_str_eq(words, ITEMS);
	cr_expect_eq(ASK(FAR_GET, .count = 1), XR_E_PROTO);
	cr_expect_str_eq(words, NOTHING);
	end();
}

/* --- lengths ---------------------------------------------------------------------------- */

static char big[60000];

static void
expect_lengths(enum xr_queue_kind kind)
{
	static const struct {
		size_t len;
		uint64_t room, bytes;
		enum xr_status status;
	} rows[] = {
		{ 4, 3, 0, XR_E_RANGE },
		{ 4, 4, 0, XR_OK },
		{ 4, FAR_ANY_ROOM, 0, XR_OK },
		{ FAR_SHORT, FAR_ANY_ROOM, 0, XR_OK },
		{ FAR_SHORT + 1, FAR_ANY_ROOM, 0, XR_E_AGAIN },
		{ FAR_SHORT + 1, FAR_SHORT + 1, 0, XR_E_AGAIN },
		{ FAR_SHORT + 1, FAR_SHORT, 0, XR_E_RANGE },
		{ FAR_SHORT + 1, FAR_ANY_ROOM, FAR_SHORT + 1, XR_OK },
		{ 50000, 50000, 49999, XR_E_AGAIN },
		{ 50000, 49999, 49999, XR_E_RANGE },
		{ 50000, 50000, 50000, XR_OK },
	};

	BEGIN(.kind = kind);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put(big, rows[i].len);
		cr_expect_eq(get(1, rows[i].room, rows[i].bytes),
			rows[i].status, "row %zu: %d", i, answer.status);
		cr_expect_eq(xr_queue_count(queue), rows[i].status != XR_OK,
			"row %zu", i);
		if (rows[i].status != XR_OK) {
			cr_expect_eq(answer.number, rows[i].len, "row %zu", i);
			cr_expect_eq(get(1, FAR_ANY_ROOM, sizeof(big)), XR_OK);
		}
		cr_expect_eq(answer.count, 1);
		cr_expect_eq(item.len, rows[i].len, "row %zu", i);
		cr_expect_eq(ASK(FAR_ACK, .number = answer.number), XR_OK);
	}
	end();
}

Test(queue_ward, an_item_without_room_or_time_stays_and_its_length_is_told)
{
	expect_lengths(XR_QUEUE_ANY);
}

Test(queue_ward, an_item_of_one_to_one_stays_and_its_length_is_told)
{
	expect_lengths(XR_QUEUE_P2P);
}

/* The second one is too long for what the first one leaves. */
Test(queue_ward, several_items_come_as_far_as_there_is_time)
{
	BEGIN(0);
	put(big, 30000);
	put(big, FAR_SHORT - 30000 + 1);
	put(big, 30000);
	put(big, FAR_SHORT - 30000);
	put(big, 1);
	cr_expect_eq(get(4, FAR_ANY_ROOM, 0), XR_OK);
	cr_expect_eq(answer.count, 1);
	cr_expect_eq(get(1, FAR_ANY_ROOM, 0), XR_OK);
	cr_expect_eq(answer.count, 1);
	cr_expect_eq(get(4, FAR_ANY_ROOM, 0), XR_OK);
	cr_expect_eq(answer.count, 2);
	cr_expect_eq(xr_queue_count(queue), 1);
	end();
}

/* --- what is held ----------------------------------------------------------------------- */

/* The item that the next get gets has @len bytes. */
static uint64_t
expect_got(size_t len)
{
	cr_expect_eq(get(1, FAR_ANY_ROOM, 0), XR_OK, "%s", words);
	cr_expect_eq(item.len, len);
	return answer.number;
}

Test(queue_ward, only_the_item_of_the_number_is_given_back)
{
	uint64_t first, second;

	BEGIN(0);
	put(big, 1);
	put(big, 2);
	first = expect_got(1);
	second = expect_got(2);
	cr_expect_neq(first, second);
	cr_expect_eq(ASK(FAR_RETURN, .number = second + 1), XR_OK);
	cr_expect_eq(ASK(FAR_COUNT), XR_OK);
	cr_expect_eq(answer.count, 0);
	cr_expect_eq(ASK(FAR_RETURN, .number = first), XR_OK);
	cr_expect_eq(ASK(FAR_RETURN, .number = first), XR_OK);
	first = expect_got(1);
	cr_expect_eq(get(1, FAR_ANY_ROOM, 0), XR_E_TIMEOUT);
	/* What is acknowledged, also with another message, does not come back. */
	cr_expect_eq(ASK(FAR_COUNT, .acked = first), XR_OK);
	cr_expect_eq(ASK(FAR_RETURN, .number = first), XR_OK);
	cr_expect_eq(ASK(FAR_ACK, .number = second), XR_OK);
	cr_expect_eq(ASK(FAR_RETURN, .number = second), XR_OK);
	cr_expect_eq(get(1, FAR_ANY_ROOM, 0), XR_E_TIMEOUT);
	end();
}

Test(queue_ward, an_acknowledged_item_is_not_done_if_it_is_redelivered)
{
	struct lane *lane;

	BEGIN(.redeliver = true);
	lane = queue->hall->lane;
	put(big, 1);
	cr_expect_eq(ASK(FAR_ACK, .number = expect_got(1)), XR_OK);
	cr_expect(lane_has(queue->hall, lane, 0));
	cr_expect_eq(ASK(FAR_DONE), XR_OK);
	cr_expect_not(lane_has(queue->hall, lane, 0));
	end();
}

Test(queue_ward, an_acknowledged_item_is_done_if_it_is_not_redelivered)
{
	struct lane *lane;

	BEGIN(0);
	lane = queue->hall->lane;
	put(big, 1);
	answer.number = expect_got(1);
	cr_expect(lane_has(queue->hall, lane, 0));
	cr_expect_eq(ASK(FAR_ACK, .number = answer.number), XR_OK);
	cr_expect_not(lane_has(queue->hall, lane, 0));
	end();
}

/* --- without memory ----------------------------------------------------------------------- */

static bool was_sent; /* an answer with items */

enum xr_status __real_xr_reply_bytes(struct xr_call *call, const void *data,
	size_t len);
enum xr_status __wrap_xr_reply_bytes(struct xr_call *call, const void *data,
	size_t len);

enum xr_status
__wrap_xr_reply_bytes(struct xr_call *call, const void *data, size_t len)
{
	enum xr_status status = __real_xr_reply_bytes(call, data, len);
	struct far_answer a = { .status = XR_E_PROTO };

	if (len >= sizeof(a))
		memcpy(&a, data, sizeof(a));
	was_sent = status == XR_OK && a.status == XR_OK;
	return status;
}

/* What comes of at most two items: @sum gets their lengths. */
static enum xr_status
try_get_two(int64_t timeout, uint64_t *sum)
{
	const struct {
		struct far_ask ask;
		uint64_t rooms[2];
	} whole = { { .op = FAR_GET,
			    .token = token,
			    .lanes = 1,
			    .count = 2,
			    .timeout = timeout },
		{ FAR_ANY_ROOM, FAR_ANY_ROOM } };
	const struct xr_raw_call call = { .size = sizeof(call),
		.to = self,
		.method = method,
		.data = &whole,
		.len = sizeof(whole) };
	struct xr_raw_reply r = { 0 };
	enum xr_status status = xr_call_sync(&call, &r, NULL);

	if (status != XR_OK)
		return status;
	memcpy(&answer, r.data, sizeof(answer));
	for (size_t i = 0; answer.status == XR_OK && i < answer.count; i++) {
		memcpy(&item,
			(const char *)r.data + sizeof(answer) +
				i * sizeof(item),
			sizeof(item));
		*sum += item.len;
	}
	xr_raw_reply_free(&r);
	return (enum xr_status)answer.status;
}

static void
accept_items(void)
{
	cr_expect_eq(ASK(FAR_ACK, .number = answer.number), XR_OK);
	cr_expect_eq(ASK(FAR_DONE), XR_OK);
}

/* The allocation that fails is the first, the second, and so on, until none does. */
static void
expect_back_without_memory(int64_t timeout)
{
	unsigned failed = 0;
	enum xr_status status;
	uint64_t sum;

	BEGIN(.redeliver = timeout == INT64_MAX);
	do {
		sum = 0;
		put(big, 11);
		put(big, 12);
		until_short = failed + 1;
		was_short = was_sent = false;
		status = try_get_two(timeout, &sum);
		until_short = 0;
		if (status == XR_OK)
			accept_items();
		else
			cr_expect_eq(status, XR_E_NOMEM, "%u: %d", failed,
				status);
		/* Here, too, an answer may find no memory: its items are gone. */
		if (status == XR_E_NOMEM && was_sent)
			sum = 11 + 12;
		if (sum < 11 + 12) {
			cr_assert_eq(try_get_two(0, &sum), XR_OK, "%u", failed);
			accept_items();
		}
		cr_expect_eq(sum, 11 + 12, "%u: %llu", failed,
			(unsigned long long)sum);
		accept_items();
		cr_expect_eq(xr_queue_count(queue), 0);
		failed++;
	} while (was_short);
	cr_expect_gt(failed, 5);
	end();
}

Test(queue_ward, what_finds_no_memory_for_its_answer_goes_back)
{
	expect_back_without_memory(0);
}

Test(queue_ward, what_a_client_waits_for_goes_back_if_there_is_no_memory)
{
	expect_back_without_memory(INT64_MAX);
}

/* --- ends ------------------------------------------------------------------------------- */

Test(queue_ward, a_client_closes_the_queue_of_all)
{
	BEGIN(0);
	put("a", 1);
	cr_expect_eq(ASK(FAR_CLOSE), XR_OK);
	cr_expect_eq(xr_queue_put_bytes(queue, "b", 1, 0, &err), XR_E_CLOSED);
	cr_expect_eq(offer_two(), XR_E_CLOSED);
	cr_expect_eq(get(2, FAR_ANY_ROOM, 0), XR_OK);
	cr_expect_eq(answer.count, 1);
	cr_expect_eq(get(1, FAR_ANY_ROOM, 0), XR_E_CLOSED);
	end();
}

/* What it leaves is its own role, not that of the process that serves it. */
Test(queue_ward, a_client_leaves_its_role_only)
{
	BEGIN(0);
	put("a", 1);
	cr_expect_eq(ASK(FAR_LEAVE, .count = XR_QUEUE_WRITER), XR_OK);
	cr_expect_eq(offer_two(), XR_E_STATE);
	cr_expect_str_eq(words, "this process is no writer of the queue");
	put("b", 1);
	cr_expect_eq(get(2, FAR_ANY_ROOM, 0), XR_OK);
	cr_expect_eq(answer.count, 2);
	cr_expect_eq(ASK(FAR_LEAVE, .count = XR_QUEUE_READER), XR_OK);
	cr_expect_eq(get(1, FAR_ANY_ROOM, 0), XR_E_STATE);
	cr_expect_str_eq(words, "this process is no reader of the queue");
	end();
}

/* --- what is offered -------------------------------------------------------------------- */

Test(queue_ward, only_the_offer_of_the_number_is_decided)
{
	uint64_t first, second;

	BEGIN(0);
	cr_expect_eq(offer_two(), XR_OK);
	cr_expect_eq(answer.count, 2);
	first = answer.number;
	cr_expect_eq(offer_two(), XR_OK);
	second = answer.number;
	cr_expect_eq(get(1, FAR_ANY_ROOM, 0), XR_E_TIMEOUT);
	cr_expect_eq(ASK(FAR_COMMIT, .number = second + 1), XR_OK);
	cr_expect_eq(get(1, FAR_ANY_ROOM, 0), XR_E_TIMEOUT);
	cr_expect_eq(ASK(FAR_REVOKE, .number = first), XR_OK);
	cr_expect_eq(ASK(FAR_COMMIT, .number = first), XR_OK);
	cr_expect_eq(get(1, FAR_ANY_ROOM, 0), XR_E_TIMEOUT);
	cr_expect_eq(ASK(FAR_COMMIT, .number = second), XR_OK);
	cr_expect_eq(get(4, FAR_ANY_ROOM, 0), XR_OK);
	cr_expect_eq(answer.count, 2);
	end();
}

/* What had room before the queue was closed may be put. */
Test(queue_ward, an_offer_that_is_committed_after_the_close_is_put)
{
	BEGIN(0);
	cr_expect_eq(offer_two(), XR_OK);
	xr_queue_close(queue);
	cr_expect_eq(ASK(FAR_COMMIT, .number = answer.number), XR_OK);
	cr_expect_eq(get(4, FAR_ANY_ROOM, 0), XR_OK);
	cr_expect_eq(answer.count, 2);
	cr_expect_eq(get(4, FAR_ANY_ROOM, 0), XR_E_CLOSED);
	cr_expect_eq(offer_two(), XR_E_CLOSED);
	end();
}
