/* SPDX-License-Identifier: Apache-2.0 */
/* test_http.c - which requests are answered, and what becomes of all others. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "launcher/http/request.h"

static const struct http_rule open_rule = { 0 };
static const struct http_rule tcp_rule = {
	.token = "0123456789abcdef",
	.port = "9400",
	.host = "node7",
};

#define HOST  "Host: localhost:9400\r\n"
#define TOKEN "Authorization: Bearer 0123456789abcdef\r\n"

static struct http_request
read_by(const char *text, const struct http_rule *rule)
{
	struct http_request r;
	size_t len = http_ends(text, strlen(text));

	cr_assert_gt(len, 0, "no end: %s", text);
	http_read(text, len, rule, &r);
	return r;
}

static int
status_of(const char *text)
{
	return read_by(text, &open_rule).status;
}

static int
tcp_status(const char *headers)
{
	char text[1000];

	snprintf(text, sizeof(text), "GET /metrics HTTP/1.1\r\n%s\r\n",
		headers);
	return read_by(text, &tcp_rule).status;
}

Test(http, a_page_is_named_exactly)
{
	struct http_request r =
		read_by("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", &open_rule);

	cr_assert_eq(r.status, 200);
	cr_assert_eq(r.page, HTTP_METRICS);
	cr_assert_not(r.head);
	r = read_by("HEAD /api/v1/job?x=1 HTTP/1.0\r\nhost:a\r\n\r\n",
		&open_rule);
	cr_assert_eq(r.status, 200);
	cr_assert_eq(r.page, HTTP_JOB);
	cr_assert(r.head);
}

Test(http, what_is_no_page_is_not_found)
{
	static const char *const paths[] = { "/metrics/", "//metrics",
		"/../metrics", "/%6detrics", "/metrics%00", "/api/v1/job/..",
		"/etc/passwd", "/Metrics" };
	char text[200];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		snprintf(text, sizeof(text),
			"GET %s HTTP/1.1\r\nHost: a\r\n\r\n", paths[i]);
		cr_assert_eq(status_of(text), 404, "%s", paths[i]);
	}
}

Test(http, other_methods_are_not_allowed)
{
	static const char *const methods[] = { "POST", "PUT", "OPTIONS",
		"CONNECT", "get", "GETT", "TRACE" };
	char text[200];

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		snprintf(text, sizeof(text),
			"%s /metrics HTTP/1.1\r\nHost: a\r\n\r\n", methods[i]);
		cr_assert_eq(status_of(text), 405, "%s", methods[i]);
	}
}

Test(http, what_is_no_request_is_a_bad_one)
{
	static const char *const texts[] = {
		"\r\n\r\n",
		"GET\r\n\r\n",
		"GET /metrics\r\nHost: a\r\n\r\n",
		"GET  /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /metrics HTTP/1.1 \r\nHost: a\r\n\r\n",
		"GET /metrics HTTP/2.0\r\nHost: a\r\n\r\n",
		"GET /metrics http/1.1\r\nHost: a\r\n\r\n",
		"GET http://a/metrics HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /met\trics HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /met\x80rics HTTP/1.1\r\nHost: a\r\n\r\n",
		" GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /metrics HTTP/1.1\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost : a\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n",
		"GET /metrics HTTP/1.1\nHost: a\n\n",
		"{\"type\":\"status\"}\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_assert_eq(status_of(texts[i]), 400, "%s", texts[i]);
}

Test(http, there_are_no_bodies)
{
	cr_assert_eq(status_of("GET / HTTP/1.1\r\nHost: a\r\n"
			       "Content-Length: 0\r\n\r\n"),
		200);
	cr_assert_eq(status_of("GET / HTTP/1.1\r\nHost: a\r\n"
			       "Content-Length: 1\r\n\r\n"),
		413);
	cr_assert_eq(
		status_of("GET / HTTP/1.1\r\nHost: a\r\n"
			  "Content-Length: 0\r\ncontent-length: 5\r\n\r\n"),
		413);
	cr_assert_eq(status_of("GET / HTTP/1.1\r\nHost: a\r\n"
			       "Transfer-Encoding: chunked\r\n"
			       "Content-Length: 5\r\n\r\n"),
		400);
	cr_assert_eq(status_of("GET / HTTP/1.1\r\nHost: a\r\n"
			       "Expect: 100-continue\r\n\r\n"),
		417);
}

static int
status_with(int headers)
{
	struct buf text = { 0 };
	int status;

	buf_put_text(&text, "GET / HTTP/1.1\r\nHost: a\r\n");
	for (int i = 1; i < headers; i++)
		buf_put_text(&text, "X: y\r\n");
	buf_put_text(&text, "\r\n");
	status = status_of(buf_text(&text));
	buf_fini(&text);
	return status;
}

Test(http, too_many_headers_are_refused)
{
	cr_assert_eq(status_with(HTTP_HEADERS_MAX), 200);
	cr_assert_eq(status_with(HTTP_HEADERS_MAX + 1), 431);
}

Test(http, on_a_port_the_host_is_this_machine)
{
	cr_assert_eq(tcp_status(TOKEN "Host: localhost:9400\r\n"), 200);
	cr_assert_eq(tcp_status(TOKEN "Host: 127.0.0.1:9400\r\n"), 200);
	cr_assert_eq(tcp_status(TOKEN "Host: [::1]:9400\r\n"), 200);
	cr_assert_eq(tcp_status(TOKEN "Host: NODE7:9400\r\n"), 200);
	cr_assert_eq(tcp_status(TOKEN "Host: evil.example:9400\r\n"), 421);
	cr_assert_eq(tcp_status(TOKEN "Host: localhost\r\n"), 421);
	cr_assert_eq(tcp_status(TOKEN "Host: localhost:9401\r\n"), 421);
	cr_assert_eq(tcp_status(TOKEN "Host: localhost:94000\r\n"), 421);
	cr_assert_eq(tcp_status(TOKEN "Host: 127.0.0.1.evil:9400\r\n"), 421);
	cr_assert_eq(tcp_status(TOKEN "Host: [evil]:9400\r\n"), 421);
	cr_assert_eq(tcp_status(TOKEN "Host: :9400\r\n"), 421);
	cr_assert_eq(tcp_status(TOKEN "Host: \r\n"), 421);
	cr_assert_eq(tcp_status(TOKEN "Host: ]\r\n"), 421);
}

Test(http, on_a_port_the_token_is_shown)
{
	cr_assert_eq(tcp_status(HOST TOKEN), 200);
	cr_assert_eq(tcp_status(HOST
			     "authorization: bearer 0123456789abcdef\r\n"),
		200);
	cr_assert_eq(tcp_status(HOST), 401);
	cr_assert_eq(tcp_status(HOST
			     "Authorization: Bearer 0123456789abcdeF\r\n"),
		401);
	cr_assert_eq(tcp_status(HOST
			     "Authorization: Bearer 0123456789abcde\r\n"),
		401);
	cr_assert_eq(tcp_status(HOST
			     "Authorization: Bearer 0123456789abcdef0\r\n"),
		401);
	cr_assert_eq(tcp_status(HOST
			     "Authorization: Basic 0123456789abcdef\r\n"),
		401);
	cr_assert_eq(tcp_status(HOST "Authorization:\r\n"), 401);
	cr_assert_eq(tcp_status(HOST TOKEN TOKEN), 400);
}

Test(http, without_a_token_nobody_learns_what_there_is)
{
	cr_assert_eq(read_by("GET /nothing HTTP/1.1\r\n" HOST "\r\n", &tcp_rule)
			     .status,
		401);
	cr_assert_eq(read_by("POST /metrics HTTP/1.1\r\n" HOST "\r\n",
			     &tcp_rule)
			     .status,
		401);
}

Test(http, a_request_ends_at_its_empty_line_or_at_what_none_has)
{
	cr_assert_eq(http_ends("", 0), 0);
	cr_assert_eq(http_ends("GET / HTTP/1.1\r\n", 16), 0);
	cr_assert_eq(http_ends("GET / HTTP/1.1\r\n\r\nGET /", 23), 18);
	cr_assert_eq(http_ends("\r\n\r\n", 4), 4);
	cr_assert_eq(http_ends("abc\ndef", 7), 4);
	cr_assert_eq(http_ends("ab\0\r\n\r\n", 7), 3);
	cr_assert_eq(http_ends("a\r", 2), 0);
}

/* Cut anywhere it waits for more; with any byte changed it is answered by some
 * status, and read within its bounds. */
Test(http, every_truncation_and_every_byte)
{
	static const char all[] = "HEAD /api/v1/job?a HTTP/1.1\r\n" HOST TOKEN
				  "Accept: */*\r\nContent-Length: 0\r\n\r\n";
	const size_t len = sizeof(all) - 1;
	struct http_request r;
	char text[sizeof(all)];
	size_t end;

	for (size_t n = 0; n < len; n++)
		cr_assert_eq(http_ends(all, n), 0, "at %zu", n);
	cr_assert_eq(http_ends(all, len), len);
	for (size_t i = 0; i < len; i++)
		for (int c = 0; c < 256; c++) {
			memcpy(text, all, sizeof(all));
			text[i] = (char)c;
			end = http_ends(text, len);
			http_read(text, end != 0 ? end : len, &tcp_rule, &r);
			cr_assert_str_neq(http_reason(r.status), "Error");
		}
	for (size_t n = 0; n < len; n++) {
		http_read(all, n, &tcp_rule, &r);
		cr_assert_neq(r.status, 200);
	}
}
