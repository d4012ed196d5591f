/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_speech.c - a store that xrun serves (worker/store/control.c): its greeting,
 * the lines of requests, and replies of any kind. The test is the supervisor. */
#include <sys/ioctl.h>

#include "base/clock.h"
#include "tests/unit/short_memory.h"
#include "tests/unit/speech_rig.h"

TestSuite(store_speech, .init = speech_begin, .fini = speech_end,
	.timeout = 60);

/* --- the greeting ---------------------------------------------------------- */

Test(store_speech, a_greeting_is_one_line_that_says_welcome_of_version_1)
{
	static char long_line[600];
	const struct {
		const char *bytes;
		enum xr_status status;
		const char *words;
	} rows[] = {
		{ WELCOME, XR_OK, "" },
		{ WELCOME "{\"type\":\"done\",\"id\":9}\n", XR_OK, "" },
		{ "{\"type\":\"done\",\"id\":1}\n", XR_E_PROTO,
			"it does not greet" },
		{ "{\"type\":\"welcome\",\"v\":2,\"job\":\"k\",\"pid\":1}\n",
			XR_E_VERSION, "xrun speaks version 2 of the control" },
		{ "HTTP/1.1 400 Bad Request\r\n", XR_E_DECODE, "" },
		{ "", XR_E_PEER_LOST, "xrun has closed the connection" },
		{ "{\"type\":", XR_E_PEER_LOST,
			"xrun has closed the connection" },
		{ long_line, XR_E_PEER_LOST, "xrun has closed the connection" },
	};
	struct xr_store *s;

	memset(long_line, ' ', sizeof(long_line) - 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		start(rows[i].bytes,
			rows[i].status == XR_OK ?
				NULL :
				(const char *const[]){ NULL });
		cr_expect_eq(open_it(address, 20, &s), rows[i].status,
			"%zu: %s", i, err.text);
		expect_words(rows[i].words);
		finish(s);
	}
}

Test(store_speech, a_supervisor_that_does_not_greet_is_given_up)
{
	struct xr_store *s;

	start("{\"type\":", NULL);
	cr_expect_eq(open_it(address, 0.03, &s), XR_E_TIMEOUT);
	expect_words("xrun did not answer in time");
	finish(s);
}

/* The rest of the line comes when the client has read its beginning. */
static void *
greet_in_parts(void *ctx)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), left = 1;
	char byte;

	(void)ctx;
	say(fd, "{\"type\":\"welcome\",");
	while (left > 0) {
		struct timespec bit = { .tv_nsec = NS_PER_MS };

		/* Bytes that the other end has not read. */
		cr_assert_eq(ioctl(fd, TIOCOUTQ, &left), 0);
		nanosleep(&bit, NULL);
	}
	say(fd, "\"v\":1,\"job\":\"k7m2\",\"pid\":1}\n");
	while (recv(fd, &byte, 1, 0) > 0)
		;
	close(fd);
	return NULL;
}

Test(store_speech, a_greeting_may_come_in_parts)
{
	struct xr_store *s;

	cr_assert_eq(pthread_create(&thread, NULL, greet_in_parts, NULL), 0);
	cr_expect_eq(open_it(address, 20, &s), XR_OK, "%s", err.text);
	finish(s);
}

/* --- requests -------------------------------------------------------------- */

Test(store_speech, each_request_is_a_line_with_what_was_asked)
{
	struct xr_store *s = opened(LINES_OF("{\"type\":\"done\",\"id\":1}\n",
		"{\"type\":\"store_value\",\"id\":2,\"value\":\"dg==\"}\n",
		"{\"type\":\"store_value\",\"id\":3,\"value\":\"dg==\"}\n",
		"{\"type\":\"store_sum\",\"id\":4,\"sum\":9007199254740992}\n",
		"{\"type\":\"store_sum\",\"id\":5,\"sum\":\"-9007199254740993\"}\n",
		"{\"type\":\"store_value\",\"id\":6,\"value\":\"bmV3\"}\n",
		"{\"type\":\"done\",\"id\":7}\n",
		"{\"type\":\"done\",\"id\":8,\"count\":2}\n",
		"{\"type\":\"done\",\"id\":9,\"count\":1}\n",
		"{\"type\":\"done\",\"id\":10}\n"));
	static const char *const want[] = {
		"{\"type\":\"store_set\",\"id\":1,\"key\":\"/a\",\"value\":\"dmFsdWU=\"}",
		"{\"type\":\"store_get\",\"id\":2,\"key\":\"/a\",\"seconds\":0.5}",
		"{\"type\":\"store_get\",\"id\":3,\"key\":\"/a\"}",
		"{\"type\":\"store_add\",\"id\":4,\"key\":\"/n\",\"by\":9007199254740992}",
		"{\"type\":\"store_add\",\"id\":5,\"key\":\"/n\",\"by\":\"-9007199254740993\"}",
		"{\"type\":\"store_compare_set\",\"id\":6,\"key\":\"/a\",\"expected\":\"b2xk\",\"value\":\"bmV3\"}",
		"{\"type\":\"store_wait\",\"id\":7,\"keys\":[\"/a\",\"/b\"],\"seconds\":20}",
		"{\"type\":\"store_check\",\"id\":8,\"keys\":[\"/a\",\"/b\"]}",
		"{\"type\":\"store_delete\",\"id\":9,\"key\":\"/a\"}",
		"{\"type\":\"store_delete\",\"id\":10,\"key\":\"/a\"}",
	};
	const struct xr_store_swap swap = { sizeof(swap), "a", "old", 3, "new",
		3 };
	const char *keys[] = { "a", "b" };
	struct xr_store_value v;
	bool there = false, was = false;
	int64_t sum;

	cr_expect_eq(xr_store_set(s, "a", "value", 5, &err), XR_OK);
	cr_expect_eq(xr_store_get(s, "a", XR_SECONDS(0.5), &v, &err), XR_OK);
	cr_expect_str_eq(v.data, "v");
	xr_store_value_free(&v);
	cr_expect_eq(xr_store_get(s, "a", XR_TIMEOUT_NEVER, &v, &err), XR_OK);
	xr_store_value_free(&v);
	cr_expect_eq(xr_store_add(s, "n", INT64_C(1) << 53, &sum, &err), XR_OK);
	cr_expect_eq(sum, INT64_C(1) << 53);
	cr_expect_eq(xr_store_add(s, "n", -(INT64_C(1) << 53) - 1, &sum, &err),
		XR_OK);
	cr_expect_eq(sum, -(INT64_C(1) << 53) - 1);
	cr_expect_eq(xr_store_compare_set(s, &swap, &v, &there, &err), XR_OK);
	cr_expect(there);
	cr_expect_str_eq(v.data, "new");
	xr_store_value_free(&v);
	cr_expect_eq(xr_store_wait(s, keys, 2, XR_SECONDS(20), &err), XR_OK);
	cr_expect_eq(xr_store_check(s, keys, 2, &there, &err), XR_OK);
	cr_expect(there);
	cr_expect_eq(xr_store_delete(s, "a", &was, &err), XR_OK);
	cr_expect(was);
	cr_expect_eq(xr_store_delete(s, "a", &was, &err), XR_OK);
	cr_expect_not(was);
	finish(s);
	cr_assert_eq(talk.lines, 10);
	for (int i = 0; i < 10; i++) {
		cr_expect_str_eq(talk.heard[i], want[i]);
		cr_expect_eq(talk.memory[i], -1);
	}
}

/* An empty value is expected where none is named. */
Test(store_speech, what_is_expected_is_said_if_it_has_a_byte)
{
	struct xr_store *s = opened(LINES_OF(
		"{\"type\":\"store_value\",\"id\":1,\"value\":\"bmV3\"}\n",
		"{\"type\":\"store_value\",\"id\":2,\"value\":\"bmV3\"}\n"));
	struct xr_store_swap swap = { sizeof(swap), "a", "o", 1, "new", 3 };

	cr_expect_eq(xr_store_compare_set(s, &swap, NULL, NULL, &err), XR_OK,
		"%s", err.text);
	swap.expected_len = 0;
	cr_expect_eq(xr_store_compare_set(s, &swap, NULL, NULL, &err), XR_OK,
		"%s", err.text);
	finish(s);
	cr_assert_eq(talk.lines, 2);
	cr_expect_str_eq(talk.heard[0],
		"{\"type\":\"store_compare_set\",\"id\":1,\"key\":\"/a\",\"expected\":\"bw==\",\"value\":\"bmV3\"}");
	cr_expect_str_eq(talk.heard[1],
		"{\"type\":\"store_compare_set\",\"id\":2,\"key\":\"/a\",\"value\":\"bmV3\"}");
}

/* The largest value in a line has 32 KiB. */
Test(store_speech, a_large_value_goes_in_memory)
{
	static char value[(32 << 10) + 1];
	struct xr_store *s = opened(LINES_OF("{\"type\":\"done\",\"id\":1}\n",
		"{\"type\":\"done\",\"id\":2}\n"));

	cr_expect_eq(xr_store_set(s, "a", value, sizeof(value) - 1, &err),
		XR_OK);
	cr_expect_eq(xr_store_set(s, "a", value, sizeof(value), &err), XR_OK);
	finish(s);
	cr_assert_eq(talk.lines, 2);
	cr_expect_eq(talk.memory[0], -1);
	cr_expect_eq(talk.memory[1], sizeof(value));
	cr_expect_str_eq(talk.heard[1],
		"{\"type\":\"store_set\",\"id\":2,\"key\":\"/a\"}");
}

Test(store_speech, keys_that_are_too_long_for_a_line_are_refused)
{
	static char key[4000];
	const char *keys[300];
	struct xr_store *s = opened(LINES_OF("{\"type\":\"done\",\"id\":2}\n"));

	memset(key, 'k', sizeof(key) - 1);
	for (int i = 0; i < 300; i++)
		keys[i] = key;
	cr_expect_eq(xr_store_wait(s, keys, 300, 0, &err), XR_E_RANGE);
	expect_words("the keys together are too long");
	cr_expect_eq(xr_store_wait(s, keys, 260, 0, &err), XR_OK, "%s",
		err.text);
	finish(s);
	cr_expect_eq(talk.lines, 1);
}

/* --- replies --------------------------------------------------------------- */

Test(store_speech, each_reply_to_an_add_is_checked)
{
	static const struct {
		const char *reply;
		enum xr_status status;
		const char *words;
	} rows[] = {
		{ "{\"type\":\"store_sum\",\"id\":1,\"sum\":-7}\n", XR_OK, "" },
		{ "{\"type\":\"store_sum\",\"id\":1,\"sum\":\"12\"}\n", XR_OK,
			"" },
		{ "{\"type\":\"store_sum\",\"id\":1,\"sum\":\"\"}\n",
			XR_E_PROTO, "a sum is no number" },
		{ "{\"type\":\"store_sum\",\"id\":1,\"sum\":\"1x\"}\n",
			XR_E_PROTO, "a sum is no number" },
		{ "{\"type\":\"store_sum\",\"id\":1,\"sum\":1.5}\n", XR_E_PROTO,
			"a sum is no number" },
		{ "{\"type\":\"store_sum\",\"id\":1,\"sum\":\"000000000000000000000000000001\"}\n",
			XR_E_PROTO, "a sum is no number" },
		{ "{\"type\":\"store_sum\",\"id\":1}\n", XR_E_PROTO, "" },
		{ "{\"type\":\"error\",\"id\":1,\"code\":\"XR_E_RANGE\",\"text\":\"the sum\"}\n",
			XR_E_RANGE, "the sum" },
		{ "no json\n", XR_E_DECODE, "" },
		/* Of a newer xrun, and of none: both are passed over. */
		{ "{\"type\":\"news\",\"id\":1}\n{\"type\":\"store_sum\",\"id\":1,\"sum\":-7}\n",
			XR_OK, "" },
		{ WELCOME
			"{\"type\":\"store_sum\",\"id\":2,\"sum\":8}\n{\"type\":\"store_sum\",\"id\":1,\"sum\":-7}\n",
			XR_OK, "" },
	};
	struct xr_store *s;
	enum xr_status status;
	int64_t sum;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *const replies[] = { rows[i].reply, NULL };

		s = opened(replies);
		sum = 0;
		status = xr_store_add(s, "n", 1, &sum, &err);
		cr_expect_eq(status, rows[i].status, "%s: %s: %s",
			rows[i].reply, xr_status_name(status), err.text);
		expect_words(rows[i].words);
		if (status == XR_OK)
			cr_expect_eq(sum, i == 1 ? 12 : -7);
		finish(s);
	}
}

/* The least size that is none of a value. */
Test(store_speech, each_reply_to_a_get_is_checked)
{
	static const struct {
		const char *reply, *words;
	} rows[] = {
		{ "{\"type\":\"store_value\",\"id\":1}\n",
			"a get without a value" },
		{ "{\"type\":\"done\",\"id\":1}\n", "a get without a value" },
		{ "{\"type\":\"store_value\",\"id\":1,\"size\":67108865}\n",
			"a large value came without its memory" },
		{ "{\"type\":\"store_value\",\"id\":1,\"value\":\"====\"}\n",
			"a value is no base64" },
	};
	struct xr_store_value v;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *const replies[] = { rows[i].reply, NULL };
		struct xr_store *s = opened(replies);

		cr_expect_eq(xr_store_get(s, "k", 0, &v, &err), XR_E_PROTO,
			"%zu", i);
		expect_words(rows[i].words);
		finish(s);
	}
}

Test(store_speech, a_line_without_end_is_refused)
{
	char *line = malloc((1 << 20) + 2);
	const char *const replies[] = { line, NULL };
	struct xr_store *s;

	memset(line, ' ', 1 << 20);
	line[1 << 20] = '\0';
	s = opened(replies);
	cr_expect_eq(xr_store_add(s, "n", 1, NULL, &err), XR_E_PROTO);
	expect_words("a line is too long");
	finish(s);
	/* The longest one has its end. */
	snprintf(line + (1 << 20) - 40, 40, "\n{\"type\":\"done\",\"id\":1}\n");
	line[0] = '{';
	memcpy(line + 1, "\"type\":\"news\"", 13);
	line[(1 << 20) - 41] = '}';
	s = opened(replies);
	cr_expect_eq(xr_store_set(s, "n", "", 0, &err), XR_OK, "%s", err.text);
	finish(s);
	free(line);
}

Test(store_speech, a_supervisor_that_goes_ends_all_that_is_asked)
{
	struct xr_store *s = opened((const char *const[]){ NULL });

	for (int i = 0; i < 2; i++) {
		cr_expect_eq(xr_store_add(s, "n", 1, NULL, &err),
			XR_E_PEER_LOST);
		expect_words("has closed the connection");
	}
	finish(s);
}

/* --- little memory --------------------------------------------------------- */

enum { OPEN, SET, GET, ADD, SWAP, CHECK, ASKED };

/* One of each; the same replies answer any of them. */
static enum xr_status
ask_one(struct xr_store *s, int what, struct xr_store_value *v)
{
	const struct xr_store_swap swap = { sizeof(swap), "a", "old", 3, "new",
		3 };
	const char *keys[] = { "a", "b" };
	bool there;

	switch (what) {
	case SET:
		return xr_store_set(s, "a", "value", 5, &err);
	case GET:
		return xr_store_get(s, "a", 0, v, &err);
	case ADD:
		return xr_store_add(s, "a", 1, NULL, &err);
	case SWAP:
		return xr_store_compare_set(s, &swap, v, NULL, &err);
	default:
		return xr_store_check(s, keys, 2, &there, &err);
	}
}

static const char *const answers[] = { [SET] = "{\"type\":\"done\",\"id\":1}\n",
	[GET] = "{\"type\":\"store_value\",\"id\":1,\"value\":\"dg==\"}\n",
	[ADD] = "{\"type\":\"store_sum\",\"id\":1,\"sum\":5}\n",
	[SWAP] = "{\"type\":\"store_value\",\"id\":1,\"value\":\"dg==\"}\n",
	[CHECK] = "{\"type\":\"done\",\"id\":1,\"count\":2}\n" };

/* The @n-th allocation of one request fails. A buffer to receive that has no memory ends
 * the connection. */
static bool
ask_short(int what, unsigned n)
{
	const char *const replies[] = { answers[what], NULL };
	struct xr_store *s = opened(replies);
	struct xr_store_value v = { 0 };
	enum xr_status status;

	was_short = false;
	until_short = n;
	status = ask_one(s, what, &v);
	until_short = 0;
	if (was_short)
		cr_expect(status == XR_E_NOMEM || status == XR_E_PEER_LOST,
			"%d, allocation %u: %s: %s", what, n,
			xr_status_name(status), err.text);
	else
		cr_expect_eq(status, XR_OK, "%d: %s", what, err.text);
	if (status == XR_E_PEER_LOST)
		expect_words("Cannot allocate memory");
	else if (status == XR_E_NOMEM)
		expect_words("out of memory");
	xr_store_value_free(&v);
	finish(s);
	return was_short;
}

Test(store_speech, a_request_without_memory_is_reported)
{
	unsigned n;

	for (int what = SET; what < ASKED; what++) {
		n = 1;
		while (ask_short(what, n))
			n++;
		cr_expect_gt(n, 2, "%d", what);
	}
}

/* Ends a supervisor that no client has asked. */
static void
knock(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	connect(fd, (struct sockaddr *)&place, sizeof(place));
	close(fd);
}

Test(store_speech, a_handle_without_memory_is_not_made)
{
	enum xr_status status;
	struct xr_store *s;
	unsigned n = 0;

	do {
		start(WELCOME, NULL);
		was_short = false;
		until_short = ++n;
		status = open_it(address, 20, &s);
		until_short = 0;
		cr_expect_eq(status, was_short ? XR_E_NOMEM : XR_OK, "%u: %s",
			n, err.text);
		cr_expect_eq(s == NULL, was_short);
		knock();
		finish(s);
		close(listener);
		listen_here();
	} while (was_short);
	cr_expect_gt(n, 3);
}
