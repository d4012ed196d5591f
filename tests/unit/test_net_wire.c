/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_wire.c - messages as bytes: heads, what comes out of a stream that is
 * cut anywhere, and what goes into one. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "worker/net/intake.h"
#include "worker/net/outbox.h"

TestSuite(net_wire, .timeout = 60);

/* --- heads ----------------------------------------------------------------- */

static const struct net_head sample = {
	.record = { .kind = 1,
		.flags = 2,
		.aux = 0x0403,
		.method = 0x08070605,
		.corr = UINT64_C(0x100f0e0d0c0b0a09) },
	.len = 0x1312,
};

Test(net_wire, a_head_is_little_endian_and_its_bytes_never_change)
{
	static const char golden[NET_HEAD] =
		"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"
		"\x12\x13\0\0\0\0\0\0\xba\x42\x6f\xef";
	char bytes[NET_HEAD];
	struct net_head back;

	net_head_put(bytes, &sample);
	cr_expect_arr_eq(bytes, golden, NET_HEAD);
	cr_assert_eq(net_head_get(bytes, &back, NULL), XR_OK);
	cr_expect_eq(back.record.kind, 1);
	cr_expect_eq(back.record.flags, 2);
	cr_expect_eq(back.record.aux, 0x0403);
	cr_expect_eq(back.record.method, 0x08070605);
	cr_expect_eq(back.record.corr, sample.record.corr);
	cr_expect_eq(back.len, 0x1312);
}

Test(net_wire, a_head_with_any_bit_changed_is_none)
{
	char bytes[NET_HEAD];
	struct net_head back;
	struct xr_error err = { 0 };

	net_head_put(bytes, &sample);
	for (unsigned bit = 0; bit < NET_HEAD * 8; bit++) {
		bytes[bit / 8] ^= (char)(1 << bit % 8);
		cr_expect_eq(net_head_get(bytes, &back, &err), XR_E_PROTO,
			"bit %u", bit);
		bytes[bit / 8] ^= (char)(1 << bit % 8);
	}
	cr_expect_not_null(strstr(err.text, "checksum"));
}

Test(net_wire, a_length_beyond_the_limit_is_refused_though_it_was_meant)
{
	struct net_head head = { .len = XR_MESSAGE_MAX }, back;
	struct xr_error err = { 0 };
	char bytes[NET_HEAD];

	net_head_put(bytes, &head);
	cr_expect_eq(net_head_get(bytes, &back, NULL), XR_OK);
	head.len++;
	net_head_put(bytes, &head);
	cr_expect_eq(net_head_get(bytes, &back, &err), XR_E_PROTO);
	cr_expect_not_null(strstr(err.text, "1099511627777 bytes"), "%s",
		err.text);
}

/* --- a stream -------------------------------------------------------------- */

static struct bodies *bodies;
static unsigned got, wrong, places;
static char *place_at; /* NULL: no place */

/* Message @i of a stream: its length, its bytes. */
static const size_t lengths[] = { 3, 0, 488, 489, 1, 600, 0, 16384, 2, 16385,
	0 };
#define COUNT (sizeof(lengths) / sizeof(lengths[0]))

static char
byte_of(size_t message, size_t at)
{
	return (char)(message * 31 + at * 7);
}

static void *
place(void *ctx, const struct net_head *head)
{
	(void)ctx;
	wrong += head->len <= INTAKE_LONG;
	places++;
	return place_at;
}

static bool
deliver(void *ctx, const struct net_head *head, const struct xr_body *body)
{
	unsigned *stop = ctx;

	wrong += head->record.corr != got || body->len != lengths[got] ||
		head->len != body->len;
	wrong += body->len > INTAKE_SHORT && (uintptr_t)body->data % 64 != 0;
	for (size_t i = 0; i < body->len; i++)
		wrong += ((const char *)body->data)[i] != byte_of(got, i);
	got++;
	return got != *stop;
}

static const struct intake_ops ops = { place, deliver };

static char *
stream(size_t *len)
{
	char *all, *p;

	*len = 0;
	for (size_t i = 0; i < COUNT; i++)
		*len += NET_HEAD + lengths[i];
	p = all = malloc(*len);
	for (size_t i = 0; i < COUNT; i++) {
		struct net_head head = { .record.corr = i, .len = lengths[i] };

		net_head_put(p, &head);
		p += NET_HEAD;
		for (size_t at = 0; at < lengths[i]; at++)
			*p++ = byte_of(i, at);
	}
	return all;
}

/* Each piece is a block of its own, so that reading beyond it is seen. */
static enum xr_status
feed(struct intake *in, const char *bytes, size_t len)
{
	char *piece = malloc(len + 1);
	enum xr_status status;

	memcpy(piece, bytes, len);
	status = intake_feed(in, piece, len, NULL);
	free(piece);
	return status;
}

Test(net_wire, a_stream_is_the_same_byte_by_byte)
{
	unsigned never = 0;
	struct intake in;
	size_t len;
	char *all = stream(&len);

	bodies = bodies_new();
	intake_init(&in, bodies, &ops, &never);
	for (size_t i = 0; i < len; i++)
		cr_assert_eq(feed(&in, all + i, 1), XR_OK);
	cr_expect_eq(got, COUNT);
	cr_expect_eq(wrong, 0);
	cr_expect_eq(places, 1);
	cr_expect(!intake_is_midway(&in));
	intake_fini(&in);
	bodies_close(bodies);
	free(all);
}

Test(net_wire, a_stream_is_the_same_cut_anywhere_in_two_and_tells_of_a_cut_end)
{
	unsigned never = 0;
	struct intake in;
	size_t len, end = 0, next = 0;
	char *all = stream(&len);

	bodies = bodies_new();
	for (size_t cut = 0; cut <= len; cut++) {
		got = 0;
		intake_init(&in, bodies, &ops, &never);
		cr_assert_eq(feed(&in, all, cut), XR_OK);
		if (cut == end) {
			cr_assert_eq(got, next);
			cr_assert(!intake_is_midway(&in), "cut at %zu", cut);
			end += next < COUNT ? NET_HEAD + lengths[next] : 0;
			next++;
		} else {
			cr_assert(intake_is_midway(&in), "cut at %zu", cut);
		}
		if (cut % 97 == 0) {
			cr_assert_eq(feed(&in, all + cut, len - cut), XR_OK);
			cr_assert_eq(got, COUNT);
		}
		intake_fini(&in);
	}
	cr_expect_eq(next, COUNT + 1);
	cr_expect_eq(wrong, 0);
	bodies_close(bodies);
	free(all);
}

Test(net_wire, the_rest_of_a_long_body_is_read_to_where_it_belongs)
{
	struct net_head head = { .record.corr = 0, .len = 100000 };
	unsigned never = 0;
	struct intake in;
	char bytes[NET_HEAD + 10], *rest, *place_own = malloc(100000);
	size_t n = 0;

	bodies = bodies_new();
	intake_init(&in, bodies, &ops, &never);
	cr_expect_null(intake_rest(&in, &n));
	net_head_put(bytes, &head);
	memcpy(bytes + NET_HEAD, "0123456789", 10);
	place_at = place_own;
	cr_assert_eq(feed(&in, bytes, sizeof(bytes)), XR_OK);
	rest = intake_rest(&in, &n);
	cr_assert_eq(rest, place_own + 10);
	cr_expect_eq(n, 99990);
	cr_expect_eq(intake_filled(&in, 99990 - INTAKE_LONG), XR_OK);
	cr_expect_eq(intake_rest(&in, &n), place_own + 100000 - INTAKE_LONG);
	cr_expect_eq(intake_filled(&in, 1), XR_OK);
	cr_expect_null(intake_rest(&in, &n), "too little to be worth it");
	cr_expect_eq(got, 0);
	memset(rest, 'x', n);
	cr_expect_eq(feed(&in, rest, INTAKE_LONG - 1), XR_OK);
	cr_expect_eq(got, 1);
	cr_expect_arr_eq(place_own, "0123456789", 10);
	intake_fini(&in);
	bodies_close(bodies);
	free(place_own);
}

Test(net_wire, who_wants_no_more_has_no_more)
{
	unsigned third = 3;
	struct intake in;
	size_t len;
	char *all = stream(&len);

	bodies = bodies_new();
	intake_init(&in, bodies, &ops, &third);
	cr_expect_eq(feed(&in, all, len), XR_E_CLOSED);
	cr_expect_eq(got, 3);
	intake_fini(&in);
	bodies_close(bodies);
	free(all);
}

/* --- memory ---------------------------------------------------------------- */

Test(net_wire, memory_is_used_again_by_its_size_and_not_hoarded)
{
	struct xr_body_buffer *first, *same, *other, *many[5];

	bodies = bodies_new();
	first = bodies_get(bodies, 1000);
	cr_expect_eq((uintptr_t)bodies_data(first) % BODIES_ALIGN, 0);
	bodies_unref(bodies_ref(first));
	other = bodies_get(bodies, 1024);
	cr_expect_neq(other, first, "somebody has it still");
	bodies_unref(first);
	same = bodies_get(bodies, 513);
	cr_expect_eq(same, first);
	bodies_unref(same);
	bodies_unref(other);
	for (unsigned i = 0; i < 5; i++)
		many[i] = bodies_get(bodies, 16 << 20);
	for (unsigned i = 0; i < 5; i++)
		bodies_unref(many[i]);
	cr_expect_leq(bodies->kept, BODIES_KEPT);
	cr_expect_gt(bodies->kept, BODIES_KEPT / 4);
	first = bodies_get(bodies, (16 << 20) + 1);
	cr_expect_geq(first->cap, (16 << 20) + 1);
	bodies_unref(first);
	cr_expect_leq(bodies->kept, BODIES_KEPT);
	bodies_unref(NULL);
	bodies_close(bodies);
}

/* --- what goes out --------------------------------------------------------- */

static int ends[2];

/* A stream that takes little at a time. */
static void
open_narrow(void)
{
	int small = 1;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
		0);
	cr_assert_eq(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small,
			     sizeof(small)),
		0);
}

static size_t
hear(struct intake *in)
{
	char bytes[777];
	ssize_t n = recv(ends[1], bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0)
		cr_assert_eq(intake_feed(in, bytes, (size_t)n, NULL), XR_OK);
	return n > 0 ? (size_t)n : 0;
}

Test(net_wire, what_is_put_in_comes_out_in_order_through_a_narrow_pipe)
{
	unsigned never = 0, told = 0, referring = 0;
	struct outbox o;
	struct outbox_pieces out = TAILQ_HEAD_INITIALIZER(out);
	struct outbox_piece *p;
	struct intake in;
	char *body[COUNT];
	int sys = 0;

	open_narrow();
	bodies = bodies_new();
	intake_init(&in, bodies, &ops, &never);
	outbox_init(&o);
	for (size_t i = 0; i < COUNT; i++) {
		struct xr_part parts[4];
		struct xr_message m = { .parts = parts,
			.count = 4,
			.record.corr = i,
			.token = &body[i] };
		size_t third = lengths[i] / 3;

		body[i] = malloc(lengths[i] + 1);
		for (size_t at = 0; at < lengths[i]; at++)
			body[i][at] = byte_of(i, at);
		parts[0] = (struct xr_part){ body[i], third };
		parts[1] = (struct xr_part){ NULL, 0 };
		parts[2] = (struct xr_part){ body[i] + third, third };
		parts[3] = (struct xr_part){ body[i] + 2 * third,
			lengths[i] - 2 * third };
		cr_assert_eq(outbox_put(&o, &m, lengths[i], &p), XR_OK);
		cr_expect_eq(p != NULL, lengths[i] > OUTBOX_COPIED);
		referring += p != NULL;
		if (p == NULL)
			memset(body[i], '?', lengths[i]); /* was copied */
	}
	while (outbox_write(&o, ends[0], &out, &sys) == OUTBOX_BLOCKED)
		cr_assert_gt(hear(&in), 0);
	while (hear(&in) > 0)
		continue;
	cr_expect_eq(got, COUNT);
	cr_expect_eq(wrong, 0);
	cr_expect_eq(o.bytes, 0);
	while ((p = TAILQ_FIRST(&out)) != NULL) {
		cr_expect(p->refers && p->is_out);
		TAILQ_REMOVE(&out, p, list);
		outbox_forget(&o, p);
		told++;
	}
	cr_expect_eq(told, referring);
	for (size_t i = 0; i < COUNT; i++)
		free(body[i]);
	intake_fini(&in);
	outbox_fini(&o);
	bodies_close(bodies);
}

Test(net_wire, an_outbox_has_an_end_and_one_message_may_be_beyond_it)
{
	struct xr_part part = { calloc(1, OUTBOX_WINDOW), OUTBOX_WINDOW };
	struct xr_message m = { .parts = &part, .count = 1 };
	struct outbox_pieces out = TAILQ_HEAD_INITIALIZER(out);
	struct outbox o;
	struct outbox_piece *p = NULL;

	outbox_init(&o);
	part.len = 100;
	cr_assert_eq(outbox_put(&o, &m, 100, &p), XR_OK);
	part.len = OUTBOX_WINDOW;
	cr_assert_eq(outbox_put(&o, &m, OUTBOX_WINDOW, &p), XR_OK);
	cr_expect_not_null(p);
	part.len = 0;
	cr_expect_eq(outbox_put(&o, &m, 0, &p), XR_E_AGAIN);
	cr_expect_null(p);
	outbox_take_all(&o, &out);
	cr_expect_eq(o.bytes, 0);
	while ((p = TAILQ_FIRST(&out)) != NULL) {
		TAILQ_REMOVE(&out, p, list);
		outbox_forget(&o, p);
	}
	outbox_fini(&o);
	free((void *)part.data);
}

Test(net_wire, an_outbox_keeps_one_small_piece)
{
	struct outbox_piece *small = calloc(1, sizeof(*small) + OUTBOX_PIECE);
	struct outbox_piece *large =
		calloc(1, sizeof(*large) + 2 * OUTBOX_PIECE);
	struct outbox o;

	outbox_init(&o);
	large->cap = 2 * OUTBOX_PIECE;
	outbox_forget(&o, large);
	cr_expect_null(o.spare);
	small->cap = OUTBOX_PIECE;
	outbox_forget(&o, small);
	cr_expect_eq(o.spare, small);
	outbox_fini(&o);
}

Test(net_wire, a_message_of_more_parts_than_the_kernel_takes_at_once)
{
	enum { PARTS = 4096 };
	struct xr_part *parts = calloc(PARTS, sizeof(*parts));
	struct xr_message m = { .parts = parts, .count = PARTS };
	struct outbox_pieces out = TAILQ_HEAD_INITIALIZER(out);
	struct outbox o;
	struct outbox_piece *p;
	unsigned never = 0;
	struct intake in;
	char bytes[4 * PARTS];
	int sys = 0;

	open_narrow();
	bodies = bodies_new();
	intake_init(&in, bodies, &ops, &never);
	outbox_init(&o);
	got = 7; /* that has 16 KiB */
	m.record.corr = 7;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = byte_of(7, i);
	for (size_t i = 0; i < PARTS; i++)
		parts[i] = (struct xr_part){ bytes + 4 * i, 4 };
	cr_assert_eq(outbox_put(&o, &m, sizeof(bytes), &p), XR_OK);
	while (outbox_write(&o, ends[0], &out, &sys) == OUTBOX_BLOCKED)
		while (hear(&in) > 0)
			continue;
	while (hear(&in) > 0)
		continue;
	cr_expect_eq(got, 8);
	cr_expect_eq(wrong, 0);
	cr_expect_eq(TAILQ_FIRST(&out), p);
	free(p);
	free(parts);
	intake_fini(&in);
	outbox_fini(&o);
	bodies_close(bodies);
}

Test(net_wire, a_connection_that_is_gone_is_broken)
{
	struct xr_part part = { "x", 1 };
	struct xr_message m = { .parts = &part, .count = 1 };
	struct outbox_pieces out = TAILQ_HEAD_INITIALIZER(out);
	struct outbox o;
	struct outbox_piece *p;
	int sys = 0;

	open_narrow();
	outbox_init(&o);
	close(ends[1]);
	cr_assert_eq(outbox_put(&o, &m, 1, &p), XR_OK);
	cr_expect_eq(outbox_write(&o, ends[0], &out, &sys), OUTBOX_BROKEN);
	cr_expect_eq(sys, 32 /* EPIPE */);
	outbox_fini(&o);
}
