/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - see request.h. */
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include <arpa/inet.h>

#include "base/span.h"
#include "launcher/http/request.h"

#define SCHEME "Bearer "

/* What counts of the headers. */
struct seen {
	unsigned hosts, tokens;
	struct span host, token;
	bool body, encoded, expects;
};

size_t
http_ends(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\0' ||
			(text[i] == '\n' && (i == 0 || text[i - 1] != '\r')))
			return i + 1;
		if (i >= 3 && memcmp(text + i - 3, "\r\n\r\n", 4) == 0)
			return i + 1;
	}
	return 0;
}

/* A character of names and methods, RFC 9110 5.6.2. */
static bool
is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		(c >= '0' && c <= '9') ||
		(c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static struct span
take_token(struct span *rest)
{
	struct span all = *rest;

	while (rest->len > 0 && is_token(*rest->at)) {
		rest->at++;
		rest->len--;
	}
	all.len -= rest->len;
	return all;
}

static bool
take_char(struct span *rest, char c)
{
	if (rest->len == 0 || *rest->at != c)
		return false;
	rest->at++;
	rest->len--;
	return true;
}

static bool
is(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static bool
is_named(struct span s, const char *name)
{
	return s.len == strlen(name) && strncasecmp(s.at, name, s.len) == 0;
}

/* The next line, without its end; false: there is none, or it is no line. */
static bool
take_line(struct span *rest, struct span *line)
{
	const char *end = memchr(rest->at, '\n', rest->len);

	if (end == NULL || end == rest->at || end[-1] != '\r')
		return false;
	line->at = rest->at;
	line->len = (size_t)(end - rest->at) - 1;
	rest->len -= line->len + 2;
	rest->at = end + 1;
	return true;
}

/* --- the first line ------------------------------------------------------- */

static const struct {
	const char *path;
	enum http_page page;
} pages[] = {
	{ "/", HTTP_INDEX },
	{ "/metrics", HTTP_METRICS },
	{ "/api/v1/job", HTTP_JOB },
};

/* Names are compared, and never looked up anywhere: "..", "%00" and the like
 * are names that there are not. */
static int
find_page(struct span target, struct http_request *out)
{
	const char *query = memchr(target.at, '?', target.len);

	if (query != NULL)
		target.len = (size_t)(query - target.at);
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		if (is(target, pages[i].path)) {
			out->page = pages[i].page;
			return 200;
		}
	return 404;
}

static struct span
take_target(struct span *rest)
{
	struct span all = *rest;

	while (rest->len > 0 && *rest->at > ' ' && *rest->at < 0x7f) {
		rest->at++;
		rest->len--;
	}
	all.len -= rest->len;
	return all;
}

static int
read_first(struct span line, struct http_request *out, struct span *target)
{
	struct span method = take_token(&line);

	if (method.len == 0 || !take_char(&line, ' '))
		return 400;
	*target = take_target(&line);
	if (target->len == 0 || *target->at != '/' || !take_char(&line, ' ') ||
		(!is(line, "HTTP/1.1") && !is(line, "HTTP/1.0")))
		return 400;
	out->head = is(method, "HEAD");
	return out->head || is(method, "GET") ? 200 : 405;
}

/* --- headers -------------------------------------------------------------- */

static struct span
trim(struct span s)
{
	while (s.len > 0 && (*s.at == ' ' || *s.at == '\t')) {
		s.at++;
		s.len--;
	}
	while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
		s.len--;
	return s;
}

static bool
is_clean(struct span value)
{
	for (size_t i = 0; i < value.len; i++)
		if (((unsigned char)value.at[i] < ' ' && value.at[i] != '\t') ||
			value.at[i] == 0x7f)
			return false;
	return true;
}

static bool
read_header(struct span line, struct seen *seen)
{
	struct span name = take_token(&line), value;

	if (name.len == 0 || !take_char(&line, ':') || !is_clean(line))
		return false;
	value = trim(line);
	if (is_named(name, "host")) {
		seen->hosts++;
		seen->host = value;
	} else if (is_named(name, "authorization")) {
		seen->tokens++;
		seen->token = value;
	} else if (is_named(name, "content-length")) {
		seen->body = seen->body || !is(value, "0");
	} else if (is_named(name, "transfer-encoding")) {
		seen->encoded = true;
	} else if (is_named(name, "expect")) {
		seen->expects = true;
	}
	return true;
}

static int
read_headers(struct span rest, struct seen *seen)
{
	struct span line;
	unsigned count = 0;

	while (take_line(&rest, &line)) {
		if (line.len == 0)
			return rest.len == 0 ? 200 : 400;
		if (++count > HTTP_HEADERS_MAX)
			return 431;
		if (!read_header(line, seen))
			return 400;
	}
	return 400;
}

/* --- who asks ------------------------------------------------------------- */

/* "127.0.0.1", "[::1]". */
static bool
is_address(struct span host)
{
	unsigned char out[16];
	char text[INET6_ADDRSTRLEN];
	bool six =
		host.len > 2 && *host.at == '[' && host.at[host.len - 1] == ']';

	if (six) {
		host.at++;
		host.len -= 2;
	}
	if (host.len >= sizeof(text))
		return false;
	memcpy(text, host.at, host.len);
	text[host.len] = '\0';
	return inet_pton(six ? AF_INET6 : AF_INET, text, out) == 1;
}

/* Without a port it is 80. */
static bool
is_allowed(struct span host, const struct http_rule *rule)
{
	struct span port = { "80", 2 };
	const char *colon =
		host.len > 0 ? memrchr(host.at, ':', host.len) : NULL;

	if (colon != NULL &&
		memchr(colon, ']', host.len - (size_t)(colon - host.at)) ==
			NULL) {
		port.at = colon + 1;
		port.len = host.len - (size_t)(port.at - host.at);
		host.len = (size_t)(colon - host.at);
	}
	return is(port, rule->port) &&
		(is_named(host, "localhost") || is_named(host, rule->host) ||
			is_address(host));
}

/* As long for a token that is nearly right as for one that is not at all. */
static bool
is_token_of(struct span value, const char *token)
{
	const size_t skip = strlen(SCHEME), len = strlen(token);
	unsigned char other = 0;

	if (value.len != skip + len || strncasecmp(value.at, SCHEME, skip) != 0)
		return false;
	for (size_t i = 0; i < len; i++)
		other |= (unsigned char)(value.at[skip + i] ^ token[i]);
	return other == 0;
}

static int
judge(const struct seen *seen, const struct http_rule *rule)
{
	if (seen->hosts != 1 || seen->tokens > 1 || seen->encoded)
		return 400;
	if (seen->body)
		return 413;
	if (seen->expects)
		return 417;
	if (rule->port != NULL && !is_allowed(seen->host, rule))
		return 421;
	if (rule->token != NULL &&
		(seen->tokens == 0 || !is_token_of(seen->token, rule->token)))
		return 401;
	return 200;
}

void
http_read(const char *text, size_t len, const struct http_rule *rule,
	struct http_request *out)
{
	struct span rest = { text, len }, line, target = { "", 0 };
	struct seen seen = { 0 };
	int method = 400, headers = 400, who;

	*out = (struct http_request){ .status = 400 };
	if (!take_line(&rest, &line))
		return;
	method = read_first(line, out, &target);
	if (method != 400)
		headers = read_headers(rest, &seen);
	if (method == 400 || headers != 200) {
		out->status = method == 400 ? 400 : headers;
		return;
	}
	who = judge(&seen, rule);
	if (who != 200)
		out->status = who;
	else
		out->status = method == 200 ? find_page(target, out) : method;
}

const char *
http_reason(int status)
{
	static const struct {
		int status;
		const char *text;
	} reasons[] = {
		{ 200, "OK" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 408, "Request Timeout" },
		{ 413, "Content Too Large" },
		{ 417, "Expectation Failed" },
		{ 421, "Misdirected Request" },
		{ 431, "Request Header Fields Too Large" },
		{ 503, "Service Unavailable" },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return "Error";
}
