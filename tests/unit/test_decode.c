/* SPDX-License-Identifier: Apache-2.0 */
/* test_decode.c - messages that are cut, wrong, or meant to hurt. */
#include <sys/mman.h>

#include "tests/unit/codec_rig.h"
#include "tests/unit/value_golden.h"

TestSuite(decode, .init = begin, .fini = end);

/* A message with long bytes, text, an object, and tensors of two storages. */
static struct message
long_message(void)
{
	char data[1100];
	struct xr_value *of = numbers(20, 20), *items[6], *v;
	struct message m;

	memset(data, 'x', sizeof(data));
	items[0] = of_kind(XR_DICT);
	items[1] = xr_value_new_bytes(data, sizeof(data));
	items[2] = view(of, PAIR(5, 4), PAIR(20, 2), 40);
	items[3] = of;
	items[4] = xr_value_new_text(data, sizeof(data));
	items[5] = of_kind(XR_OPAQUE);
	v = xr_value_new_list_of(items, 6);
	m = message_of(v, NULL);
	xr_value_unref(v);
	return m;
}

/* --- cut ------------------------------------------------------------------- */

/* The first @len bytes, in memory of their own size. */
static enum xr_status
read_cut(struct message m, size_t len)
{
	uint8_t *cut = malloc(len + 1);
	struct xr_value *v = NULL;
	enum xr_status status;

	memcpy(cut, m.data, len);
	status = read_in_call((struct message){ cut, len }, &v);
	cr_expect_eq(v == NULL, status != XR_OK);
	xr_value_unref(v);
	free(cut);
	return status;
}

Test(decode, AC_K6_a_message_that_is_cut_anywhere_is_refused)
{
	struct message m = long_message();

	for (size_t len = 0; len < m.len; len++)
		cr_assert_eq(read_cut(m, len), XR_E_DECODE, "%zu", len);
	cr_expect_eq(read_cut(m, m.len), XR_OK);
	free(m.data);
	for (int k = 0; k < KINDS; k++) {
		m = (struct message){ (uint8_t *)golden[k].data,
			golden[k].len };
		for (size_t len = 0; len < m.len; len++)
			cr_assert_eq(read_cut(m, len), XR_E_DECODE, "%s %zu",
				xr_kind_name(k), len);
	}
}

/* The header has the length of what is left. */
static void
shorten(uint8_t *data, size_t len)
{
	format_put64(data + FORMAT_AT_TOTAL, len);
	if (len < format_get32(data + FORMAT_AT_HEAD))
		format_put32(data + FORMAT_AT_HEAD, (uint32_t)len);
}

/* Whoever cuts may say so in the header. */
static enum xr_status
read_cut_well(struct message m, size_t len)
{
	uint8_t data[8192];

	cr_assert(m.len <= sizeof(data));
	memcpy(data, m.data, m.len);
	shorten(data, len);
	return read_cut((struct message){ data, m.len }, len);
}

Test(decode, AC_K6_a_value_that_is_cut_anywhere_is_refused)
{
	struct message m = long_message();

	for (size_t len = 0; len < m.len; len++)
		cr_assert_eq(read_cut_well(m, len), XR_E_DECODE, "%zu", len);
	free(m.data);
	for (int k = 0; k < KINDS; k++) {
		m = (struct message){ (uint8_t *)golden[k].data,
			golden[k].len };
		for (size_t len = 0; len < m.len; len++)
			cr_assert_eq(read_cut_well(m, len), XR_E_DECODE,
				"%s %zu", xr_kind_name(k), len);
	}
}

/* Ends at a page that may not be read, so that a byte behind it is a crash; begins at
 * a multiple of 16 as memory of malloc() does, up to 15 bytes before the data. */
static uint8_t *
before_the_end(uint8_t *end, size_t len)
{
	return end - (len + 15) / 16 * 16;
}

/* Up to four bytes of @data are others. Returns false if it is as it was. */
static bool
damage(uint8_t *data, size_t len)
{
	long count = random() % 5;

	for (long i = 0; i < count; i++)
		data[(size_t)random() % len] ^= (uint8_t)(1 + random() % 255);
	return count > 0;
}

/* Half of the headers fit the length, so that more of the message is read. */
static void
read_damaged(struct message whole, uint8_t *end)
{
	bool well = random() % 2 == 0;
	size_t len =
		random() % 2 == 0 ? (size_t)random() % whole.len : whole.len;
	struct message m = { before_the_end(end, len), len };
	struct xr_value *v = NULL;
	uint8_t data[8192];
	enum xr_status status;
	bool damaged;

	memcpy(data, whole.data, whole.len);
	damaged = damage(data, whole.len);
	if (well)
		shorten(data, len);
	memcpy(m.data, data, len);
	status = read_in_call(m, &v);
	cr_assert_eq(v == NULL, status != XR_OK);
	cr_assert(status == XR_OK || err.text[0] != '\0');
	if (!damaged)
		cr_assert_eq(status, len < whole.len ? XR_E_DECODE : XR_OK);
	xr_value_unref(v);
}

Test(decode, AC_K6_a_million_damaged_messages_are_read_or_refused,
	.timeout = 120)
{
	struct message of[KINDS + 1] = { [KINDS] = long_message() };
	uint8_t *memory = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(memory, MAP_FAILED);
	cr_assert_eq(mprotect(memory + 2 * 4096, 4096, PROT_NONE), 0);
	for (int k = 0; k < KINDS; k++)
		of[k] = (struct message){ (uint8_t *)golden[k].data,
			golden[k].len };
	for (int k = 0; k <= KINDS; k++)
		cr_assert_leq(of[k].len, 8192);
	srandom(20261127);
	for (int n = 0; n < 1000000; n++)
		read_damaged(of[n % (KINDS + 1)], memory + 2 * 4096);
	munmap(memory, 3 * 4096);
	free(of[KINDS].data);
}

Test(decode, AC_K6_bytes_behind_a_message_are_refused)
{
	struct message m = long_message();
	uint8_t *more = malloc(m.len + 1);
	struct message longer = { more, m.len + 1 };

	memcpy(more, m.data, m.len);
	more[m.len] = 0;
	refused_as(longer, XR_E_DECODE, "bytes of a message of");
	format_put64(more + FORMAT_AT_TOTAL, longer.len);
	refused_as(longer, XR_E_DECODE, "1 bytes behind the last buffer");
	free(more);
	free(m.data);
	hand_begin();
	hand8(XR_NIL);
	hand8(XR_NIL);
	refused_as(hand_finish(0), XR_E_DECODE, "1 bytes behind the value");
}

Test(decode, parts_may_be_cut_anywhere)
{
	struct message m = long_message();
	struct xr_value *want = NULL, *got;
	struct xr_part *bytes = calloc(m.len, sizeof(*bytes));

	cr_assert_eq(read_message(m, &want), XR_OK, "%s", err.text);
	for (size_t cut = 0; cut <= m.len; cut++) {
		struct xr_part parts[] = { { m.data, cut }, { NULL, 0 },
			{ m.data + cut, m.len - cut } };

		got = NULL;
		cr_assert_eq(xr_decode(parts, 3, NULL, &got, &err), XR_OK,
			"%zu: %s", cut, err.text);
		cr_assert_eq(xr_value_equal(want, got), true, "%zu", cut);
		xr_value_unref(got);
	}
	for (size_t i = 0; i < m.len; i++)
		bytes[i] = (struct xr_part){ m.data + i, 1 };
	cr_assert_eq(xr_decode(bytes, m.len, NULL, &got, &err), XR_OK, "%s",
		err.text);
	cr_expect(xr_value_equal(want, got));
	xr_value_unref(got);
	xr_value_unref(want);
	cr_expect_eq(xr_decode(NULL, 0, NULL, &got, &err), XR_E_DECODE);
	bytes[1].len = SIZE_MAX;
	cr_expect_eq(xr_decode(bytes, 2, NULL, &got, &err), XR_E_DECODE,
		"their sum is no number");
	free(bytes);
	free(m.data);
}

/* --- lengths --------------------------------------------------------------- */

Test(decode, AC_K7_lengths_beyond_everything_are_refused_without_memory)
{
	static const uint64_t words[] = { UINT64_C(1) << 63,
		(UINT64_C(1) << 63) - 1, UINT64_MAX, UINT64_MAX - 63,
		UINT64_C(1) << 40, UINT64_C(1) << 31, 0xffffffff };
	struct message m = long_message();
	size_t head = format_get32(m.data + FORMAT_AT_HEAD);
	uint8_t *data = malloc(m.len);

	most_asked = 0;
	for (size_t at = 4; at + 8 <= head; at++)
		for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
			struct xr_value *v = NULL;

			memcpy(data, m.data, m.len);
			format_put64(data + at, words[w]);
			read_message((struct message){ data, m.len }, &v);
			xr_value_unref(v);
		}
	cr_expect_leq(most_asked, 2 * m.len, "%zu", most_asked);
	free(data);
	free(m.data);
}

static struct message
with64(uint64_t word, size_t at)
{
	static uint8_t data[256];

	memcpy(data, golden[XR_TENSOR].data, golden[XR_TENSOR].len);
	format_put64(data + at, word);
	return (struct message){ data, golden[XR_TENSOR].len };
}

Test(decode, AC_K7_each_length_of_a_tensor_is_checked)
{
	static const struct {
		size_t at;
		const char *said;
	} rows[] = {
		{ FORMAT_AT_TOTAL, "152 bytes of a message of" },
		{ 40, "a buffer of" },
		{ 48, "that are not there" },
		{ 64, "that are not there" },
		{ 79, "is outside of 24 bytes" },
		{ 87, "dimension 0 is -" },
		{ 95, "dimension 1 is -" },
		{ 103, "stride 0 is -" },
		{ 111, "stride 1 is -" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		most_asked = 0;
		refused_as(with64(UINT64_C(1) << 63, rows[i].at), XR_E_DECODE,
			rows[i].said);
		refused_as(with64(UINT64_MAX, rows[i].at), XR_E_DECODE,
			rows[i].said);
		cr_expect_lt(most_asked, 200, "%zu", i);
	}
	refused_as(with64(INT64_MAX, 87), XR_E_DECODE, "too many elements");
	refused_as(with64(INT64_MAX, 103), XR_E_DECODE, "elements outside");
}

Test(decode, AC_K7_each_count_is_checked)
{
	static const struct {
		const char *value;
		size_t len;
		const char *said;
	} rows[] = {
		{ "\x06\xff\xff\xff\xff", 5, "4294967295 bytes are to follow" },
		{ "\x07\0\0\0\x80", 5, "2147483648 bytes are to follow" },
		{ "\x08\0\0\0\x80", 5, "2147483648 items in 0 bytes" },
		{ "\x08\x02\0\0\0\0", 6, "2 items in 1 bytes" },
		{ "\x09\xff\xff\xff\xff", 5, "4294967295 items in 0 bytes" },
		{ "\x09\x01\0\0\0\xff\xff\xff\x7f\0", 10, "2147483647 bytes" },
		{ "\x0a\x0c\xff\0\0\0\0", 7, "255 dimensions" },
		{ "\x0a\x0c\x01\xff\xff\xff\xff", 7, "buffer 4294967295 of 0" },
		{ "\x0c\0\0\0\0\xff", 6, "255 bytes are to follow" },
		{ "\x0d\0\0\0\0\0\0\0\0\x01\xff\xff\xff\xff", 14,
			"4294967295 bytes are to follow" },
		{ "\x0e\xff", 2, "255 bytes are to follow" },
		{ "\x0f\0\xff", 3, "255 bytes are to follow" },
		{ "\x20\xff\xff\xff\xff", 5, "buffer 4294967295 of 0" },
		{ "\x21\0\0\0\0", 5, "buffer 0 of 0" },
		{ "\x22\0\0\0\0", 5, "tensor 0 again, of 0" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		hand_begin();
		hand_put(rows[i].value, rows[i].len);
		most_asked = 0;
		refused_as(hand_finish(0), XR_E_DECODE, rows[i].said);
		cr_expect_lt(most_asked, 200, "%zu", i);
	}
}

Test(decode, AC_K7_the_header_is_checked)
{
	struct message m;

	hand_begin();
	hand8(XR_NIL);
	m = hand_finish(0);
	format_put32(m.data + FORMAT_AT_HEAD, 34);
	refused_as(m, XR_E_DECODE, "a head of 34 bytes in 33");
	format_put32(m.data + FORMAT_AT_HEAD, 31);
	refused_as(m, XR_E_DECODE, "a head of 31 bytes in 33");
	format_put32(m.data + FORMAT_AT_HEAD, UINT32_MAX);
	refused_as(m, XR_E_DECODE, "a head of 4294967295 bytes in 33");
	m = hand_finish(0);
	format_put32(m.data + FORMAT_AT_BUFFERS, UINT32_MAX);
	refused_as(m, XR_E_DECODE, "4294967295 buffers");
	m = hand_finish(0);
	format_put32(m.data + FORMAT_AT_ZERO, 1);
	refused_as(m, XR_E_DECODE, "flags");
	format_put32(m.data + FORMAT_AT_ZERO, 0);
	format_put16(m.data + FORMAT_AT_FLAGS, 4);
	refused_as(m, XR_E_DECODE, "flags 0x4 that nobody knows");
	format_put16(m.data + FORMAT_AT_FLAGS, FORMAT_SHARED);
	refused_as(m, XR_E_DECODE, "buffers and flags do not fit");
	m = hand_finish(0);
	format_put16(m.data + FORMAT_AT_FLAGS, 0);
	format_put32(m.data + FORMAT_AT_SUM, 1);
	refused_as(m, XR_E_DECODE, "its sum is");
	m = hand_finish(0);
	format_put32(m.data + FORMAT_AT_SUM, 0);
	format_put16(m.data + FORMAT_AT_VERSION, 2);
	refused_as(m, XR_E_VERSION, "of version 2, and this libxrun reads 1");
}

Test(decode, a_head_beyond_the_limit_is_not_copied)
{
	static uint8_t header[FORMAT_HEADER];
	struct xr_part parts[64];
	struct xr_value *v = NULL;
	size_t total = sizeof(header);
	size_t one_part = 1 << 26;
	uint8_t *zeros = calloc(1, one_part);

	parts[0] = (struct xr_part){ header, sizeof(header) };
	for (int i = 1; i <= 17; i++) {
		parts[i] = (struct xr_part){ zeros, one_part };
		total += one_part;
	}
	memcpy(header, FORMAT_MAGIC, 4);
	format_put16(header + FORMAT_AT_VERSION, FORMAT_VERSION);
	format_put64(header + FORMAT_AT_TOTAL, total);
	format_put32(header + FORMAT_AT_HEAD, (uint32_t)total);
	most_asked = 0;
	cr_expect_eq(xr_decode(parts, 18, NULL, &v, &err), XR_E_RANGE);
	cr_expect(eq(sz, most_asked, 0));
	free(zeros);
}

/* --- what may be made ------------------------------------------------------ */

static enum xr_status
read_within(struct message m, uint64_t bytes_max)
{
	struct xr_dec_opts opts = { .size = sizeof(opts),
		.bytes_max = bytes_max };
	struct xr_part part = { m.data, m.len };
	struct xr_value *v = NULL;
	enum xr_status status = xr_decode(&part, 1, &opts, &v, &err);

	xr_value_unref(v);
	return status;
}

Test(decode, no_more_is_made_than_may_be)
{
	struct xr_value *v = xr_value_new_list();
	struct message m;
	uint64_t low = 0, high = 1 << 20;

	for (int i = 0; i < 1000; i++)
		xr_value_append(v, i64(i));
	m = message_of(v, NULL);
	while (low + 1 < high) {
		uint64_t middle = (low + high) / 2;
		enum xr_status status = read_within(m, middle);

		cr_assert(eq(int, status == XR_OK || status == XR_E_RANGE, 1));
		if (status == XR_OK)
			high = middle;
		else
			low = middle;
	}
	cr_expect_geq(high, 1000 * 32, "a number is 24 bytes and a pointer");
	cr_expect_leq(high, 50000);
	free(m.data);
	xr_value_unref(v);
	v = numbers(512, 512);
	m = message_of(v, NULL);
	most_asked = 0;
	cr_expect_eq(read_within(m, 1 << 20), XR_E_RANGE);
	cr_expect(lt(sz, most_asked, 4096));
	cr_expect_eq(read_within(m, (1 << 20) + 4096), XR_OK);
	free(m.data);
	xr_value_unref(v);
	v = i64(1);
	m = message_of(v, NULL);
	cr_expect_eq(read_within(m, 1), XR_E_RANGE);
	cr_expect_eq(read_within(m, 0), XR_OK, "as much as there can be");
	free(m.data);
	xr_value_unref(v);
}

Test(decode, a_list_beyond_the_limit_is_not_begun)
{
	size_t count = XR_VALUE_ITEMS_MAX + 1, len = FORMAT_HEADER + 5 + count;
	struct message m = { calloc(1, len), len };

	hand_begin();
	hand8(XR_LIST);
	hand32((uint32_t)count);
	memcpy(m.data, hand.data, hand.len);
	format_put64(m.data + FORMAT_AT_TOTAL, len);
	format_put32(m.data + FORMAT_AT_HEAD, (uint32_t)len);
	most_asked = 0;
	refused_as(m, XR_E_RANGE, "16777217 items, at most 16777216");
	cr_expect(eq(sz, most_asked, len), "but for its head");
	free(m.data);
}

Test(decode, options_have_a_size)
{
	struct xr_dec_opts opts = { .size = sizeof(opts) - 1 };
	struct xr_part part = { golden[XR_NIL].data, golden[XR_NIL].len };
	struct xr_value *v = NULL;

	cr_expect_eq(xr_decode(&part, 1, &opts, &v, &err), XR_E_INVAL);
	cr_expect_null(v);
}

/* --- values that are none -------------------------------------------------- */

Test(decode, AC_K8_a_tag_that_is_no_kind_is_named)
{
	for (unsigned tag = 16; tag < 256; tag++) {
		char said[64];

		if (tag >= FORMAT_BYTES_OUT && tag <= FORMAT_TENSOR_AGAIN)
			continue;
		hand_begin();
		hand8(XR_LIST);
		hand32(1);
		hand8((uint8_t)tag);
		snprintf(said, sizeof(said),
			"value: byte 37: tag %u is of no kind", tag);
		refused_as(hand_finish(0), XR_E_DECODE, said);
	}
}

Test(decode, there_is_one_way_to_write_a_value)
{
	static const struct {
		const char *value;
		size_t len;
		const char *said;
	} rows[] = {
		{ "\x01\x02", 2, "a truth of 2" },
		{ "\x06\0\x04\0\0", 5, "1024 bytes" },
		{ "\x07\x01\0\0\0\xff", 6, "no UTF-8" },
		{ "\x07\x01\0\0\0\0", 6, "a NUL" },
		{ "\x09\x02\0\0\0\x01\0\0\0k\0\x01\0\0\0k\0", 17,
			"for the second time" },
		{ "\x0c\0\0\0\0\0", 6, "a worker without a name" },
		{ "\x0c\0\0\0\0\x01\xff", 7, "a worker without a name" },
		{ "\x0d\0\0\0\0\0\0\0\0\x40", 10, "more than is known (0x40)" },
		{ "\x0d\0\0\0\0\0\0\0\0\x01\x01\0\0\0\xc3", 15, "no UTF-8" },
		{ "\x0d\0\0\0\0\0\0\0\0\x20\0", 11, "is none" },
		{ "\x0f\x02\x01x", 4, "a function without a name" },
		{ "\x0f\0\0", 3, "a function without a name" },
		{ "\x0e\x09geo.Point\x07\0\0\0\0", 16, "no bytes (tag 7)" },
		{ "\x0e\x09geo.Point\x06\0\x04\0\0", 16, "1024 bytes" },
		{ "\x0e\0\x06\0\0\0\0", 7, "a type without a name" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		hand_begin();
		hand_put(rows[i].value, rows[i].len);
		if (strstr(rows[i].said, "1024") != NULL)
			for (int k = 0; k < 1024; k++)
				hand8('x');
		refused_as(hand_finish(0), XR_E_DECODE, rows[i].said);
	}
}

/* --- buffers that are none ------------------------------------------------- */

/* Two buffers of 1024 bytes, and what the value says of them. */
static void
buffers_refused(enum format_use first, enum format_use second,
	const char *value, size_t len, const char *said)
{
	struct message m;

	hand_begin();
	hand_entry(FORMAT_HERE, first, 1024);
	hand_entry(FORMAT_HERE, second, 1024);
	hand_put(value, len);
	m = hand_finish(2048);
	memset(hand.data + hand.len, 'x', m.len - hand.len);
	if (said != NULL) {
		refused_as(m, XR_E_DECODE, said);
	} else {
		struct xr_value *v = NULL;

		cr_expect_eq(read_message(m, &v), XR_OK, "%s", err.text);
		xr_value_unref(v);
	}
}

#define TWO "\x08\x02\0\0\0"

Test(decode, buffers_are_used_in_their_order_and_for_what_they_are)
{
	enum format_use b = FORMAT_BYTES, t = FORMAT_TEXT, o = FORMAT_OBJECT;

	buffers_refused(b, t, TWO "\x20\0\0\0\0\x21\x01\0\0\0", 15, NULL);
	buffers_refused(b, t, TWO "\x21\x01\0\0\0\x20\0\0\0\0", 15,
		"buffer 1 of 2");
	buffers_refused(b, t, TWO "\x21\0\0\0\0\x21\x01\0\0\0", 15,
		"buffer 0 is something else");
	buffers_refused(b, b, TWO "\x20\0\0\0\0\x20\0\0\0\0", 15,
		"nobody uses buffer 1");
	buffers_refused(b, b, "\0", 1, "nobody uses buffer 0");
	buffers_refused(b, b, TWO "\x20\0\0\0\0\x20\x02\0\0\0", 15,
		"buffer 2 of 2");
	buffers_refused(b, o, TWO "\x20\0\0\0\0\x20\x01\0\0\0", 15,
		"buffer 1 is something else");
	buffers_refused(b, b, TWO "\x20\0\0\0\0\x0e\x09geo.Point\x20\x01\0\0\0",
		26, "buffer 1 is something else");
	buffers_refused(o, o,
		TWO "\x0e\x09geo.Point\x20\0\0\0\0\x0e\x09geo.Point\x20\0\0\0",
		36, "the decoder of type geo.Point failed");
}

Test(decode, the_table_is_checked)
{
	static const struct {
		size_t at;
		uint8_t byte;
		const char *said;
	} rows[] = {
		{ 0, 3, "loan 0: nothing was lent" },
		{ 0, 4, "a buffer in no place (4)" },
		{ 1, 0, "a buffer of no use (0)" },
		{ 1, 5, "a buffer of no use (5)" },
		{ 1, 1, "a buffer of 64 bytes" },
		{ 2, 6, "no device has number 6" },
		{ 3, 1, "a buffer of no use (3)" },
		{ 4, 1, "no device has index 1" },
		{ 7, 0x80, "no device has index -2147483648" },
		{ 0, 1, "descriptor 0 of 0 that came" },
		{ 16, 1, "that are not there" },
		{ 39, 1, "that are not there" },
		{ 8, 65, "that are not there" },
		{ 8, 63, "1 bytes behind the last buffer" },
		{ 13, 2, "a buffer of 2199023255616 bytes" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		hand_begin();
		hand_entry(FORMAT_HERE, FORMAT_TENSOR, 64);
		hand.data[FORMAT_HEADER + rows[i].at] = rows[i].byte;
		hand8(XR_NIL);
		refused_as(hand_finish(64), XR_E_DECODE, rows[i].said);
	}
	hand_begin();
	hand_entry(FORMAT_HERE, FORMAT_BYTES, 1024);
	hand.data[FORMAT_HEADER + 2] = XR_DEVICE_FAKE;
	hand8(XR_NIL);
	refused_as(hand_finish(1024), XR_E_DECODE, "cannot be on a device");
}

Test(decode, a_buffer_beyond_the_message_is_refused)
{
	struct message m;

	hand_begin();
	hand_entry(FORMAT_HERE, FORMAT_BYTES, 1024);
	hand_entry(FORMAT_HERE, FORMAT_BYTES, (uint64_t)INT64_MAX - 63);
	hand8(XR_NIL);
	m = hand_finish(1024);
	refused_as(m, XR_E_DECODE, "a buffer of");
	hand_begin();
	hand_entry(FORMAT_HERE, FORMAT_BYTES, 1024);
	hand_entry(FORMAT_HERE, FORMAT_BYTES, XR_VALUE_BYTES_MAX);
	hand8(XR_NIL);
	refused_as(hand_finish(1024), XR_E_DECODE,
		"1099511627776 bytes that are not there");
}

Test(decode, text_outside_of_the_head_is_looked_at_too)
{
	struct xr_value *v = NULL;
	struct message m;

	hand_begin();
	hand_entry(FORMAT_HERE, FORMAT_TEXT, 1024);
	hand8(FORMAT_TEXT_OUT);
	hand32(0);
	m = hand_finish(1024);
	memset(m.data + m.len - 1024, 'x', 1024);
	cr_expect_eq(read_message(m, &v), XR_OK, "%s", err.text);
	xr_value_unref(v);
	m.data[m.len - 1] = 0xc3;
	refused_as(m, XR_E_DECODE, "no UTF-8");
	m.data[m.len - 1] = 0;
	refused_as(m, XR_E_DECODE, "a NUL");
}
