/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_tcp.c - messages between two carriers of TCP, in one process. */
#include "tests/unit/net_pair.h"

TestSuite(net_tcp, .timeout = 120);

/* --- messages -------------------------------------------------------------- */

static struct xr_record seen_record;
static char seen[64];

static void
see(struct mate *m, const struct xr_record *r, const struct xr_body *body)
{
	(void)m;
	seen_record = *r;
	snprintf(seen, sizeof(seen), "%.*s", (int)body->len,
		(const char *)body->data);
}

Test(net_tcp, a_message_comes_whole_with_its_record)
{
	pair_up();
	two->on_message = see;
	mate_say(to_two, UINT64_MAX - 1, "hello there");
	UNTIL(two, two->mates[1].delivered == 1);
	cr_expect_str_eq(seen, "hello there");
	cr_expect_eq(seen_record.kind, 7);
	cr_expect_eq(seen_record.flags, 1);
	cr_expect_eq(seen_record.aux, 515);
	cr_expect_eq(seen_record.method, 9);
	cr_expect_eq(seen_record.corr, UINT64_MAX - 1);
	pair_down();
}

static _Atomic bool is_held, is_holding;

static void
hold(struct mate *m, const struct xr_record *r, const struct xr_body *body)
{
	(void)m;
	(void)r;
	(void)body;
	is_holding = is_held;
	while (is_held)
		sched_yield();
}

Test(net_tcp, catching_up_waits_until_all_that_arrived_is_delivered)
{
	pair_up();
	two->on_message = hold;
	mate_say(to_two, 1, "the link is up");
	UNTIL(two, two->mates[1].delivered == 1);
	is_held = true;
	mate_say(to_two, 2, "hold");
	while (!is_holding)
		sched_yield();
	for (uint64_t i = 3; i <= 100; i++)
		mate_say(to_two, i, "hello");
	is_held = false;
	net_catch_up(two->self);
	cr_expect_eq(two->mates[1].delivered, 100);
	pair_down();
}

Test(net_tcp, who_was_accepted_answers_over_the_same_link)
{
	struct mate *back;

	pair_up();
	one->on_message = see;
	mate_say(to_two, 1, "ask");
	UNTIL(two, two->mates[1].delivered == 1);
	back = &two->mates[1];
	cr_expect_eq(back->accepted, 1);
	cr_expect_eq(back->incarnation, 1);
	mate_say(back, 2, "answer");
	UNTIL(one, one->mates[2].delivered == 1);
	cr_expect_str_eq(seen, "answer");
	cr_expect_eq(one->mates[2].accepted, 0);
	pair_down();
}

Test(net_tcp, an_address_has_the_carriers_name_and_numbers_only)
{
	char text[8];
	unsigned port = 0;
	int end = 0;

	one = side_open(1);
	cr_expect_eq(sscanf(one->address, "tcp:127.0.0.1:%u%n", &port, &end),
		1);
	cr_expect_eq((size_t)end, strlen(one->address));
	cr_expect_gt(port, 0);
	cr_expect_eq(tcp_carrier.address(one->self, text, sizeof(text)),
		strlen(one->address));
	side_close(one);
}

/* Bytes that tell where they are. */
static char *
pattern(size_t len, unsigned from)
{
	char *data = malloc(len + 1);

	for (size_t i = 0; i < len; i++)
		data[i] = (char)((i + from) * 2654435761u >> 24);
	return data;
}

static void
is_pattern(struct mate *m, const struct xr_record *r,
	const struct xr_body *body)
{
	char *own = pattern(body->len, (unsigned)r->corr);

	m->wrong += body->len > 0 && memcmp(own, body->data, body->len) != 0;
	m->wrong += body->len > 488 && (uintptr_t)body->data % 64 != 0;
	free(own);
}

static const size_t sizes[] = { 0, 1, 27, 487, 488, 489, 2047, 2048, 2049, 8191,
	16383, 16384, 16385, 65536, 262143, 262144, 262145, 1 << 20, 5 << 20 };

Test(net_tcp, bodies_of_every_size_come_as_they_were_sent)
{
	const unsigned n = sizeof(sizes) / sizeof(sizes[0]);
	char *data[sizeof(sizes) / sizeof(sizes[0])];
	unsigned pending = 0;
	bool is_pending;

	pair_up();
	two->on_message = is_pattern;
	two->mates[1].next = 1;
	for (unsigned i = 0; i < n; i++) {
		data[i] = pattern(sizes[i], i + 1);
		while (mate_send(to_two, i + 1, data[i], sizes[i],
			       &is_pending) == XR_E_AGAIN)
			UNTIL(one, one->awake > 0);
		pending += is_pending;
	}
	UNTIL(two, two->mates[1].delivered == n);
	cr_expect_eq(two->mates[1].wrong, 0);
	UNTIL(one, one->sent == pending);
	for (unsigned i = 0; i < n; i++)
		free(data[i]);
	pair_down();
}

Test(net_tcp, a_body_of_64_MiB_in_many_parts)
{
	const size_t len = 64 << 20, piece = len / 1000;
	struct xr_part parts[1001];
	struct xr_message message = { .parts = parts, .record.corr = 5 };
	unsigned token = 0;
	bool pending = false;
	char *data = pattern(len, 5);

	pair_up();
	two->on_message = is_pattern;
	message.token = &token;
	for (size_t at = 0; at < len; at += parts[message.count++].len)
		parts[message.count] = (struct xr_part){ data + at,
			len - at < piece ? len - at : piece };
	cr_assert_eq(tcp_carrier.send(to_two->link, &message, &pending), XR_OK);
	cr_expect(pending, "no kernel buffers that much");
	UNTIL(two, two->mates[1].delivered == 1);
	UNTIL(one, token == 1);
	cr_expect_eq(two->mates[1].wrong, 0);
	free(data);
	pair_down();
}

static char *placed;

static void *
give_place(struct mate *m, uint64_t len)
{
	(void)m;
	placed = malloc(len);
	return placed;
}

static void
was_placed(struct mate *m, const struct xr_record *r,
	const struct xr_body *body)
{
	is_pattern(m, r, body);
	m->wrong += body->data != placed;
}

Test(net_tcp, a_long_body_goes_where_the_host_has_a_place_for_it)
{
	const size_t len = 3 << 20;
	char *data = pattern(len, 1);
	bool pending;

	pair_up();
	two->on_place = give_place;
	two->on_message = was_placed;
	cr_assert_eq(mate_send(to_two, 1, data, len, &pending), XR_OK);
	UNTIL(two, two->mates[1].delivered == 1);
	cr_expect_eq(two->mates[1].wrong & ~1u, 0);
	cr_expect_not_null(placed);
	two->on_message = is_pattern;
	cr_assert_eq(mate_send(to_two, 1, data, 16384, &pending), XR_OK);
	free(placed);
	placed = NULL;
	UNTIL(two, two->mates[1].delivered == 2);
	cr_expect_null(placed, "that is no long one");
	free(data);
	pair_down();
}

static struct xr_body_buffer *kept[3];
static const void *kept_data[3];

static void
keep(struct mate *m, const struct xr_record *r, const struct xr_body *body)
{
	kept[r->corr] =
		tcp_carrier.body_take(m->side->self, body, &kept_data[r->corr]);
	m->wrong += kept[r->corr] == NULL ||
		(uintptr_t)kept_data[r->corr] % 64 != 0;
}

Test(net_tcp, a_body_that_was_taken_outlives_its_delivery)
{
	static const size_t len[3] = { 100, 5000, 300000 };
	char *data[3];
	bool pending;

	pair_up();
	two->on_message = keep;
	for (unsigned i = 0; i < 3; i++) {
		data[i] = pattern(len[i], i);
		cr_assert_eq(mate_send(to_two, i, data[i], len[i], &pending),
			XR_OK);
	}
	UNTIL(two, two->mates[1].delivered == 3);
	two->on_message = NULL;
	/* Others come where those would be, were they not kept. */
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(mate_send(to_two, i, data[2], len[i], &pending),
			XR_OK);
	UNTIL(two, two->mates[1].delivered == 6);
	cr_expect_eq(two->mates[1].wrong, 0);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_arr_eq(kept_data[i], data[i], len[i]);
		tcp_carrier.buffer_unref(kept[i]);
	}
	pair_down();
	for (unsigned i = 0; i < 3; i++)
		free(data[i]);
}

/* Sends @n numbered messages of 40 bytes. */
struct flood {
	struct mate *mate;
	unsigned n;
};

static void *
flood(void *ctx)
{
	struct flood *f = ctx;
	struct side *s = f->mate->side;
	char data[40] = "forty bytes, which is a common size";
	unsigned awake;
	enum xr_status status;
	bool pending;

	for (unsigned i = 1; i <= f->n; i++) {
		do {
			pthread_mutex_lock(&s->lock);
			awake = s->awake;
			pthread_mutex_unlock(&s->lock);
			status = mate_send(f->mate, i, data, sizeof(data),
				&pending);
			if (status == XR_E_AGAIN)
				UNTIL(s, s->awake > awake);
		} while (status == XR_E_AGAIN);
		cr_assert_eq(status, XR_OK);
		cr_assert(!pending, "short ones are copied");
	}
	return NULL;
}

Test(net_tcp, a_hundred_thousand_messages_each_way_come_in_order)
{
	const unsigned n = 100000;
	struct flood there = { NULL, n }, back = { NULL, n };
	pthread_t thread;

	pair_up();
	UNTIL(two, two->mates[1].accepted == 1);
	one->mates[2].next = two->mates[1].next = 1;
	there.mate = to_two;
	back.mate = &two->mates[1];
	cr_assert_eq(pthread_create(&thread, NULL, flood, &back), 0);
	flood(&there);
	pthread_join(thread, NULL);
	UNTIL(one, one->mates[2].delivered == n);
	UNTIL(two, two->mates[1].delivered == n);
	cr_expect_eq(one->mates[2].wrong + two->mates[1].wrong, 0);
	pair_down();
}

Test(net_tcp, messages_with_more_to_follow_go_with_the_last)
{
	struct xr_part part = { "x", 1 };
	struct xr_message message = { .parts = &part, .count = 1 };
	bool pending;

	pair_up();
	two->mates[1].next = 1;
	for (message.record.corr = 1; message.record.corr <= 5000;
		message.record.corr++) {
		message.more = message.record.corr % 100 != 0;
		cr_assert_eq(tcp_carrier.send(to_two->link, &message, &pending),
			XR_OK);
		cr_assert(!pending);
	}
	UNTIL(two, two->mates[1].delivered == 5000);
	cr_expect_eq(two->mates[1].wrong, 0);
	pair_down();
}

Test(net_tcp, what_is_beyond_the_limit_is_refused_and_nothing_is_sent)
{
	struct xr_part parts[2] = { { "", SIZE_MAX - 1 }, { "", 3 } };
	struct xr_message message = { .parts = parts, .count = 2 };
	bool pending;

	pair_up();
	cr_expect_eq(tcp_carrier.send(to_two->link, &message, &pending),
		XR_E_RANGE);
	parts[0].len = XR_MESSAGE_MAX;
	parts[1].len = 1;
	cr_expect_eq(tcp_carrier.send(to_two->link, &message, &pending),
		XR_E_RANGE);
	mate_say(to_two, 1, "after it");
	UNTIL(two, two->mates[1].delivered == 1);
	pair_down();
}

Test(net_tcp, memory_that_is_lent_is_of_no_use_elsewhere)
{
	struct xr_part part = { "lent", 4 };
	struct xr_message message = { .loans = &part, .loan_count = 1 };
	bool pending = true;

	pair_up();
	cr_expect_eq(tcp_carrier.send(to_two->link, &message, &pending),
		XR_E_INVAL);
	cr_expect(!pending);
	pair_down();
}

/* --- too fast -------------------------------------------------------------- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void
wait_at_gate(struct mate *m, const struct xr_record *r,
	const struct xr_body *body)
{
	is_pattern(m, r, body);
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
}

/* The second reads nothing more until the gate is opened. */
static void
pair_up_gated(void)
{
	pair_up();
	mate_say(to_two, 0, "hello");
	UNTIL(two, two->mates[1].delivered == 1);
	two->on_message = wait_at_gate;
	pthread_mutex_lock(&gate);
}

Test(net_tcp, a_sender_that_is_too_fast_is_told_and_told_of_room)
{
	const size_t len = 100000;
	char *data = pattern(len, 0);
	unsigned token[2000] = { 0 }, n = 0, waits = 0, told = 0;
	struct xr_part part = { data, len };
	struct xr_message message = { .parts = &part, .count = 1 };
	enum xr_status status;
	bool pending;

	pair_up_gated();
	do {
		message.token = &token[n];
		status = tcp_carrier.send(to_two->link, &message, &pending);
		n += status == XR_OK;
		waits += status == XR_OK && pending;
	} while (status == XR_OK && n < 2000);
	cr_assert_eq(status, XR_E_AGAIN, "there is no end to what it takes");
	pthread_mutex_lock(&one->lock);
	cr_expect_leq((waits - one->sent) * len, (4 << 20) + 2 * len);
	pthread_mutex_unlock(&one->lock);
	pthread_mutex_unlock(&gate);
	UNTIL(one, one->awake > 0);
	message.token = NULL;
	cr_expect_eq(tcp_carrier.send(to_two->link, &message, &pending), XR_OK);
	waits += pending;
	UNTIL(two, two->mates[1].delivered == n + 2);
	UNTIL(one, one->sent >= waits);
	for (unsigned i = 0; i < n; i++) {
		cr_expect_leq(token[i], 1);
		told += token[i];
	}
	cr_expect_eq(one->sent, waits);
	cr_expect_geq(told + 1, waits);
	cr_expect_eq(two->mates[1].wrong, 0);
	free(data);
	pair_down();
}

Test(net_tcp, what_is_pending_is_given_back_when_the_link_is_closed)
{
	const size_t len = 32 << 20;
	char *data = pattern(len, 0);
	unsigned token = 0;
	struct xr_part part = { data, len };
	struct xr_message message = { .parts = &part, .count = 1 };
	bool pending = false;

	pair_up_gated();
	message.token = &token;
	mate_say(to_two, 0, "");
	cr_assert_eq(tcp_carrier.send(to_two->link, &message, &pending), XR_OK);
	cr_expect(pending, "nobody reads, and no kernel buffers that much");
	cr_expect_eq(token, 0);
	mate_close(to_two);
	cr_expect_eq(token, 1);
	pthread_mutex_unlock(&gate);
	UNTIL(two, two->mates[1].lost == 1);
	cr_expect_not_null(strstr(two->mates[1].why,
				   "in the middle of a message"),
		"%s", two->mates[1].why);
	cr_expect_eq(two->mates[1].delivered, 2);
	cr_expect_eq(one->mates[2].lost, 0);
	free(data);
	pair_down();
}

Test(net_tcp, what_is_pending_is_given_back_when_the_link_is_lost)
{
	const size_t len = 32 << 20;
	char *data = pattern(len, 0);
	unsigned token = 0;
	struct xr_part part = { data, len };
	struct xr_message message = { .parts = &part, .count = 1 };
	bool pending = false;

	pair_up_gated();
	message.token = &token;
	cr_assert_eq(tcp_carrier.send(to_two->link, &message, &pending), XR_OK);
	cr_expect(pending, "nobody reads, and no kernel buffers that much");
	cr_expect_eq(token, 0);
	pthread_mutex_unlock(&gate);
	mate_close(&two->mates[1]);
	UNTIL(one, one->mates[2].lost == 1);
	cr_expect_eq(token, 1);
	cr_expect_eq(tcp_carrier.send(to_two->link, &message, &pending),
		XR_E_PEER_LOST);
	cr_expect(!pending);
	free(data);
	pair_down();
}

Test(net_tcp, what_was_sent_before_the_link_was_closed_arrives)
{
	char *data = pattern(1 << 20, 0);
	unsigned n = 1;
	bool pending = false;

	pair_up_gated();
	/* As much as the kernel takes: nobody reads. Something unread lies
	 * here, too, for which a plain close(2) would cut the connection. */
	while (!pending) {
		cr_assert_eq(mate_send(to_two, 0, data, 200000, &pending),
			XR_OK);
		n += !pending;
	}
	mate_say(&two->mates[1], 9, "unread");
	mate_close(to_two);
	pthread_mutex_unlock(&gate);
	UNTIL(two, two->mates[1].lost == 1);
	cr_expect_gt(n, 2);
	cr_expect_eq(two->mates[1].delivered, n);
	cr_expect_eq(two->mates[1].wrong, 0);
	free(data);
	pair_down();
}
