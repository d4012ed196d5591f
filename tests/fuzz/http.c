/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.c - fuzz target: what comes to the socket of --http.
 *
 * Input: the first byte chooses who may ask: bit 0, a token is asked for; bit 1,
 * on a port. Then what a client says.
 *
 * Claims: where a request ends does not depend on how much of it came at once,
 * nor on what follows. Each has a status with a reason. One that is answered is a
 * GET or HEAD of a known path, ends with an empty line, has one Host, shows the
 * token, and announces no body, also to a reader that is slow and plain.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "launcher/http/request.h"
#include "tests/fuzz/fuzz.h"

#define TOKEN "0123456789abcdef"

static bool
begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* How many header lines are called @name; the value of the last in @value. */
static unsigned
count(const char *text, const char *name, const char **value)
{
	const char *p = text;
	unsigned n = 0;

	while ((p = strstr(p, "\r\n")) != NULL) {
		p += 2;
		if (strncasecmp(p, name, strlen(name)) != 0 ||
			p[strlen(name)] != ':')
			continue;
		n++;
		*value = p + strlen(name) + 1;
		*value += strspn(*value, " \t");
	}
	return n;
}

static void
check_answered(const char *text, size_t len, const struct http_rule *rule,
	const struct http_request *r)
{
	static const char *const paths[] = { "/", "/metrics", "/api/v1/job" };
	const char *path = text + (r->head ? 5 : 4), *value = "";
	const char *want = paths[r->page];
	unsigned bodies;

	HOLDS(strlen(text) == len && len >= 4);
	HOLDS(strcmp(text + len - 4, "\r\n\r\n") == 0);
	HOLDS(begins(text, r->head ? "HEAD " : "GET "));
	HOLDS(begins(path, want));
	HOLDS(path[strlen(want)] == ' ' || path[strlen(want)] == '?');
	HOLDS(count(text, "Host", &value) == 1);
	if (rule->port != NULL) {
		const char *end = strstr(value, "\r\n");

		HOLDS(end != NULL);
		while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
			end--;
		HOLDS(end - value >= 4 && begins(end - 4, "9400"));
	}
	HOLDS(count(text, "Transfer-Encoding", &value) == 0);
	bodies = count(text, "Content-Length", &value);
	HOLDS(bodies == 0 || (value[0] == '0' && strchr("\r \t", value[1])));
	if (rule->token == NULL)
		return;
	HOLDS(count(text, "Authorization", &value) == 1);
	HOLDS(strncasecmp(value, "Bearer " TOKEN, 7 + strlen(TOKEN)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_rule rule = { 0 };
	struct http_request r;
	size_t end, part;
	char *text;

	if (size < 1)
		return 0;
	if (data[0] & 1)
		rule.token = TOKEN;
	if (data[0] & 2) {
		rule.port = "9400";
		rule.host = "node7";
	}
	end = http_ends((const char *)data + 1, size - 1);
	HOLDS(end < size);
	for (part = 0; part < end; part++)
		HOLDS(http_ends((const char *)data + 1, part) == 0);
	part = end != 0 ? end : size - 1;
	text = xcalloc(1, part + 1); /* whoever reads beyond it is caught */
	memcpy(text, data + 1, part);
	HOLDS(http_ends(text, part) == end);
	http_read(text, part, &rule, &r);
	HOLDS(strcmp(http_reason(r.status), "Error") != 0);
	if (r.status == 200)
		check_answered(text, part, &rule, &r);
	else
		HOLDS(r.status >= 400 && r.status < 500);
	free(text);
	return 0;
}
