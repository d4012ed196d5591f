/* SPDX-License-Identifier: Apache-2.0 */
/* test_tcpstore.c - the protocol of PyTorch's TCPStore. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/tcpstore/tcpstore.h"
#include "tests/unit/short_memory.h"

/* The numbers of requests since version 2.2, and of some before. */
enum {
	VALIDATE,
	SET,
	COMPARE_SET,
	GET,
	ADD,
	CHECK,
	WAIT,
	GETNUMKEYS,
	DELETE_KEY,
	APPEND,
	MULTI_GET,
	MULTI_SET,
	CANCEL_WAIT,
	PING,
	QUEUE_PUSH,
	QUEUE_POP,
	QUEUE_LEN,
	OLD_SET = 0,
	OLD_GET = 2,
	OLD_ADD = 3,
	OLD_WAIT = 5,
	OLD_WATCH_KEY = 7,
	OLD_DELETE_KEY = 8,
};

static struct tcpstore *store;
static int ready;
static struct buf in;

static void
on_ready(struct tcpstore_client *client, void *of)
{
	cr_expect_eq(*(struct tcpstore_client **)of, client);
	ready++;
}

static void
begin(void)
{
	store = tcpstore_new(on_ready);
	cr_assert_not_null(store);
	ready = 0;
}

static void
end(void)
{
	tcpstore_free(store);
	buf_fini(&in);
}

TestSuite(tcpstore, .init = begin, .fini = end);

static void
put_byte(uint8_t byte)
{
	buf_put(&in, &byte, 1);
}

static void
put_number(uint64_t number)
{
	buf_put(&in, &number, sizeof(number));
}

static void
put_text(const char *text)
{
	put_number(strlen(text));
	buf_put_text(&in, text);
}

static void
put_magic(uint32_t magic)
{
	put_byte(VALIDATE);
	buf_put(&in, &magic, sizeof(magic));
}

/* A request without arguments, or with texts. */
static void
put_request(uint8_t number, const char *const *texts)
{
	put_byte(number);
	for (; *texts != NULL; texts++)
		put_text(*texts);
}

#define REQUEST(...) put_request(__VA_ARGS__, NULL \
	})
#define TEXTS \
	(const char *const[]) \
	{
static enum tcpstore_verdict
take(struct tcpstore_client *c)
{
	enum tcpstore_verdict verdict = TCPSTORE_DONE;
	struct xr_error err = { 0 };
	size_t used, at = 0;

	while (verdict == TCPSTORE_DONE && at < in.len) {
		verdict = tcpstore_take(c,
			(struct span){ in.data + at, in.len - at }, &used,
			&err);
		at += verdict == TCPSTORE_DONE ? used : 0;
	}
	cr_expect_eq(verdict == TCPSTORE_BAD, err.text[0] != '\0');
	buf_clear(&in);
	return verdict;
}

static struct tcpstore_client *
enter_old(struct tcpstore_client **of)
{
	*of = tcpstore_enter(store, of);
	cr_assert_not_null(*of);
	return *of;
}

static struct tcpstore_client *
enter(struct tcpstore_client **of)
{
	put_magic(0x3c85f7ce);
	cr_assert_eq(take(enter_old(of)), TCPSTORE_DONE);
	return *of;
}

/* All that the client receives. */
static void
expect_bytes(struct tcpstore_client *c, const void *bytes, size_t len)
{
	struct buf *out = tcpstore_out(c);

	cr_expect_eq(out->len, len, "%zu bytes, not %zu", out->len, len);
	if (out->len == len && len > 0)
		cr_expect_eq(memcmp(out->data, bytes, len), 0);
	buf_clear(out);
}

static void
expect_byte(struct tcpstore_client *c, uint8_t byte)
{
	expect_bytes(c, &byte, 1);
}

static void
expect_number(struct tcpstore_client *c, int64_t number)
{
	expect_bytes(c, &number, sizeof(number));
}

static void
expect_text(struct tcpstore_client *c, const char *text)
{
	struct buf all = { 0 };
	uint64_t len = strlen(text);

	buf_put(&all, &len, sizeof(len));
	buf_put_text(&all, text);
	expect_bytes(c, all.data, all.len);
	buf_fini(&all);
}

Test(tcpstore, a_value_is_stored_and_returned)
{
	struct tcpstore_client *c, *other;

	enter(&c);
	enter(&other);
	REQUEST(SET, TEXTS "key", "value");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_bytes(c, NULL, 0);
	REQUEST(GET, TEXTS "key");
	cr_assert_eq(take(other), TCPSTORE_DONE);
	expect_text(other, "value");
	REQUEST(GET, TEXTS "none");
	cr_assert_eq(take(other), TCPSTORE_DONE);
	expect_text(other, "");
	REQUEST(GETNUMKEYS, TEXTS NULL);
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_number(c, 1);
	REQUEST(DELETE_KEY, TEXTS "key");
	REQUEST(DELETE_KEY, TEXTS "key");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_bytes(c, (int64_t[]){ 1, 0 }, 16);
	tcpstore_leave(c);
	tcpstore_leave(other);
}

Test(tcpstore, numbers_are_added_in_decimal_text)
{
	struct tcpstore_client *c;

	enter(&c);
	REQUEST(ADD, TEXTS "n");
	put_number(5);
	REQUEST(ADD, TEXTS "n");
	put_number((uint64_t)-7);
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_bytes(c, (int64_t[]){ 5, -2 }, 16);
	REQUEST(GET, TEXTS "n");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_text(c, "-2");
	REQUEST(SET, TEXTS "n", "text");
	REQUEST(ADD, TEXTS "n");
	put_number(1);
	cr_expect_eq(take(c), TCPSTORE_BAD);
	tcpstore_leave(c);
}

Test(tcpstore, compare_set_replies_as_pytorch_does)
{
	struct tcpstore_client *c;

	enter(&c);
	REQUEST(COMPARE_SET, TEXTS "k", "expected", "new");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_text(c, "expected");
	REQUEST(COMPARE_SET, TEXTS "k", "", "first");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_text(c, "first");
	REQUEST(COMPARE_SET, TEXTS "k", "other", "second");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_text(c, "first");
	REQUEST(COMPARE_SET, TEXTS "k", "first", "second");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_text(c, "second");
	tcpstore_leave(c);
}

Test(tcpstore, lists_and_appended_values_are_stored)
{
	struct tcpstore_client *c;
	struct buf all = { 0 };

	enter(&c);
	put_byte(MULTI_SET);
	put_number(2);
	put_text("a");
	put_text("1");
	put_text("b");
	put_text("");
	REQUEST(APPEND, TEXTS "a", "2");
	REQUEST(APPEND, TEXTS "new", "3");
	put_byte(MULTI_GET);
	put_number(3);
	put_text("a");
	put_text("b");
	put_text("new");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	buf_put(&all, "\2\0\0\0\0\0\0\00012\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0003",
		27);
	expect_bytes(c, all.data, all.len);
	put_byte(CHECK);
	put_number(2);
	put_text("a");
	put_text("b");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_byte(c, 0);
	put_byte(CHECK);
	put_number(2);
	put_text("a");
	put_text("none");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_byte(c, 1);
	buf_fini(&all);
	tcpstore_leave(c);
}

static void
put_wait(uint8_t number, const char *first, const char *second)
{
	put_byte(number);
	put_number(second == NULL ? 1 : 2);
	put_text(first);
	if (second != NULL)
		put_text(second);
}

Test(tcpstore, a_wait_ends_when_all_keys_exist)
{
	struct tcpstore_client *c, *other;

	enter(&c);
	enter(&other);
	put_wait(WAIT, "a", "b");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_bytes(c, NULL, 0);
	REQUEST(SET, TEXTS "a", "");
	cr_assert_eq(take(other), TCPSTORE_DONE);
	cr_expect_eq(ready, 0);
	REQUEST(ADD, TEXTS "b");
	put_number(1);
	cr_assert_eq(take(other), TCPSTORE_DONE);
	cr_expect_eq(ready, 1);
	expect_byte(c, 0);
	put_wait(WAIT, "a", "b");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_byte(c, 0);
	cr_expect_eq(ready, 1);
	tcpstore_leave(c);
	tcpstore_leave(other);
}

Test(tcpstore, a_cancelled_or_repeated_wait_is_answered_once)
{
	struct tcpstore_client *c, *other;

	enter(&c);
	enter(&other);
	put_wait(WAIT, "a", NULL);
	REQUEST(CANCEL_WAIT, TEXTS NULL);
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_byte(c, 1);
	put_wait(WAIT, "a", NULL);
	put_wait(WAIT, "b", NULL);
	cr_assert_eq(take(c), TCPSTORE_DONE);
	REQUEST(SET, TEXTS "a", "");
	cr_assert_eq(take(other), TCPSTORE_DONE);
	expect_bytes(c, NULL, 0);
	REQUEST(SET, TEXTS "b", "");
	cr_assert_eq(take(other), TCPSTORE_DONE);
	expect_byte(c, 0);
	/* A client that leaves while it waits is forgotten. */
	put_wait(WAIT, "d", NULL);
	cr_assert_eq(take(c), TCPSTORE_DONE);
	tcpstore_leave(c);
	REQUEST(SET, TEXTS "d", "");
	cr_assert_eq(take(other), TCPSTORE_DONE);
	tcpstore_leave(other);
}

Test(tcpstore, a_queue_wakes_one_client_for_each_item)
{
	struct tcpstore_client *c, *second, *other;

	enter(&c);
	enter(&second);
	enter(&other);
	put_wait(WAIT, "q", NULL);
	cr_assert_eq(take(c), TCPSTORE_DONE);
	put_wait(WAIT, "q", NULL);
	cr_assert_eq(take(second), TCPSTORE_DONE);
	REQUEST(QUEUE_PUSH, TEXTS "q", "one");
	cr_assert_eq(take(other), TCPSTORE_DONE);
	expect_byte(c, 0);
	expect_bytes(second, NULL, 0);
	REQUEST(QUEUE_PUSH, TEXTS "q", "two");
	REQUEST(QUEUE_LEN, TEXTS "q");
	cr_assert_eq(take(other), TCPSTORE_DONE);
	expect_number(other, 2);
	expect_byte(second, 0);
	REQUEST(QUEUE_POP, TEXTS "q");
	cr_assert_eq(take(second), TCPSTORE_DONE);
	expect_bytes(second, "\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0one", 19);
	/* A queue with items counts as a key that exists. */
	put_wait(WAIT, "q", NULL);
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_byte(c, 0);
	REQUEST(QUEUE_POP, TEXTS "q");
	REQUEST(QUEUE_POP, TEXTS "q");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_bytes(c, "\1\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0two\0\0\0\0\0\0\0\0",
		27);
	REQUEST(QUEUE_PUSH, TEXTS "q", "left");
	cr_assert_eq(take(other), TCPSTORE_DONE);
	tcpstore_leave(c);
	tcpstore_leave(second);
	tcpstore_leave(other);
}

Test(tcpstore, an_empty_key_is_one_as_any_other)
{
	struct tcpstore_client *c, *other;

	enter(&c);
	enter(&other);
	zero_is_null = true;
	put_wait(WAIT, "", NULL);
	cr_expect_eq(take(c), TCPSTORE_DONE);
	REQUEST(QUEUE_PUSH, TEXTS "", "item");
	cr_expect_eq(take(other), TCPSTORE_DONE);
	expect_byte(c, 0);
	REQUEST(QUEUE_POP, TEXTS "");
	cr_expect_eq(take(c), TCPSTORE_DONE);
	expect_bytes(c, "\1\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0item", 20);
	put_wait(WAIT, "", NULL);
	cr_expect_eq(take(c), TCPSTORE_DONE);
	REQUEST(SET, TEXTS "", "value");
	REQUEST(GET, TEXTS "");
	cr_expect_eq(take(other), TCPSTORE_DONE);
	zero_is_null = false;
	expect_text(other, "value");
	expect_byte(c, 0);
	tcpstore_leave(c);
	tcpstore_leave(other);
}

/* Neither who waits for more keys, nor who waits for a longer or another one. */
Test(tcpstore, a_queue_wakes_only_who_waits_for_it_alone)
{
	static const char *const keys[][2] = { { "q", "none" }, { "qq", NULL },
		{ "", NULL }, { "r", NULL }, { "q", NULL } };
	struct tcpstore_client *c[5], *other;

	enter(&other);
	for (int i = 0; i < 5; i++) {
		enter(&c[i]);
		put_wait(WAIT, keys[i][0], keys[i][1]);
		cr_assert_eq(take(c[i]), TCPSTORE_DONE);
	}
	REQUEST(QUEUE_PUSH, TEXTS "q", "item");
	cr_assert_eq(take(other), TCPSTORE_DONE);
	cr_expect_eq(ready, 1);
	for (int i = 0; i < 4; i++)
		expect_bytes(c[i], NULL, 0);
	expect_byte(c[4], 0);
	for (int i = 0; i < 5; i++)
		tcpstore_leave(c[i]);
	tcpstore_leave(other);
}

Test(tcpstore, a_ping_returns_its_number)
{
	struct tcpstore_client *c;
	uint32_t nonce = 0xfeedbeef;

	enter(&c);
	put_byte(PING);
	buf_put(&in, &nonce, sizeof(nonce));
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_bytes(c, &nonce, sizeof(nonce));
	tcpstore_leave(c);
}

Test(tcpstore, the_dialect_of_older_versions_is_understood)
{
	struct tcpstore_client *c, *other;

	enter_old(&c);
	REQUEST(OLD_SET, TEXTS "key", "value");
	REQUEST(OLD_GET, TEXTS "key");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_text(c, "value");
	enter_old(&other);
	put_wait(OLD_WAIT, "late", NULL);
	cr_assert_eq(take(other), TCPSTORE_DONE);
	REQUEST(OLD_ADD, TEXTS "late");
	put_number(1);
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_number(c, 1);
	expect_byte(other, 0);
	REQUEST(OLD_DELETE_KEY, TEXTS "key");
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_number(c, 1);
	REQUEST(OLD_WATCH_KEY, TEXTS "key");
	cr_expect_eq(take(c), TCPSTORE_BAD);
	tcpstore_leave(c);
	tcpstore_leave(other);
}

/* Each request, cut at each byte, is incomplete, and changes nothing. */
Test(tcpstore, a_request_is_complete_or_has_no_effect)
{
	static const uint8_t texts[] = { [SET] = 2,
		[COMPARE_SET] = 3,
		[GET] = 1,
		[DELETE_KEY] = 1,
		[APPEND] = 2,
		[QUEUE_PUSH] = 2,
		[QUEUE_POP] = 1,
		[QUEUE_LEN] = 1 };
	struct tcpstore_client *c;
	struct buf whole = { 0 };
	size_t used;

	enter(&c);
	for (uint8_t number = SET; number <= QUEUE_LEN; number++) {
		put_byte(number);
		if (number == MULTI_SET || number == MULTI_GET ||
			number == WAIT || number == CHECK)
			put_number(2);
		for (int i = 0;
			i < (number == MULTI_SET              ? 4 :
					    texts[number] > 0 ? texts[number] :
								2);
			i++)
			put_text("ab");
		buf_clear(&whole);
		buf_put(&whole, in.data, in.len);
		buf_clear(&in);
		if (number == GETNUMKEYS || number == CANCEL_WAIT ||
			number == PING || number == ADD)
			continue;
		for (size_t len = 0; len < whole.len; len++) {
			/* A copy of its own: a read beyond its end is found. */
			char *cut = malloc(len + 1);

			memcpy(cut, whole.data, len);
			cr_expect_eq(tcpstore_take(c, (struct span){ cut, len },
					     &used, NULL),
				TCPSTORE_MORE, "request %u of %zu bytes",
				number, len);
			free(cut);
		}
	}
	REQUEST(GETNUMKEYS, TEXTS NULL);
	cr_assert_eq(take(c), TCPSTORE_DONE);
	expect_number(c, 0);
	buf_fini(&whole);
	tcpstore_leave(c);
}

Test(tcpstore, what_exceeds_a_limit_ends_the_connection)
{
	struct tcpstore_client *c;

	enter_old(&c);
	put_magic(0x3c85f7cf); /* a SET with a key of some GiB, then */
	put_number(0);
	cr_expect_eq(take(c), TCPSTORE_BAD);
	tcpstore_leave(c);
	enter(&c);
	put_byte(SET);
	put_number(UINT64_MAX);
	cr_expect_eq(take(c), TCPSTORE_BAD);
	put_byte(WAIT);
	put_number(UINT64_MAX);
	cr_expect_eq(take(c), TCPSTORE_BAD);
	put_byte(QUEUE_LEN + 1);
	cr_expect_eq(take(c), TCPSTORE_BAD);
	tcpstore_leave(c);
}

/* Some of each kind that allocates; the last one waits. */
static void
put_many(void)
{
	static const uint8_t lists[] = { MULTI_SET, MULTI_GET, CHECK };

	REQUEST(SET, TEXTS "a", "1");
	REQUEST(APPEND, TEXTS "a", "2");
	REQUEST(COMPARE_SET, TEXTS "a", "12", "3");
	REQUEST(GET, TEXTS "a");
	put_byte(ADD);
	put_text("n");
	put_number(1);
	for (size_t i = 0; i < sizeof(lists); i++) {
		put_byte(lists[i]);
		put_number(1);
		put_text("a");
		if (lists[i] == MULTI_SET)
			put_text("4");
	}
	REQUEST(QUEUE_PUSH, TEXTS "q", "5");
	REQUEST(QUEUE_POP, TEXTS "q");
	put_wait(WAIT, "none", NULL);
}

Test(tcpstore, a_request_without_memory_ends_the_connection)
{
	enum tcpstore_verdict verdict;
	struct tcpstore_client *c;
	unsigned n = 1;

	do {
		enter(&c);
		put_many();
		was_short = false;
		until_short = n++;
		verdict = take(c);
		until_short = 0;
		cr_expect_eq(verdict, was_short ? TCPSTORE_BAD : TCPSTORE_DONE,
			"allocation %u", n - 1);
		tcpstore_leave(c);
		end();
		begin();
	} while (was_short);
	cr_expect_gt(n, 15);
}
