/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.c - fuzz target: where the rendezvous store is.
 *
 * Input: the address; then lines of an environment. ARG_RANK= and ARG_SIZE= are
 * given beside the address, DYNAMIC= needs no size.
 *
 * Claims: a refusal has words and touches nothing; what is accepted is within
 * its ranges, is served where it must be, and printed and read again the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "store/address.h"
#include "tests/fuzz/fuzz.h"

#define LINES_MAX 12

static const char *
look_up(const char *name, void *lines)
{
	return fuzz_get(lines, name);
}

static int64_t
given(const struct fuzz_lines *lines, const char *name)
{
	const char *text = fuzz_get(lines, name);

	return text == NULL ? STORE_UNSAID : strtoll(text, NULL, 10);
}

static void
put_encoded(struct buf *out, const char *text, const char *plain)
{
	for (; *text != '\0'; text++) {
		if (strchr(plain, *text) != NULL)
			buf_put_char(out, *text);
		else
			buf_fmt(out, "%%%02x", (unsigned char)*text);
	}
}

static void
print_address(const struct store_address *a, struct buf *out)
{
	bool literal = strchr(a->host, ':') != NULL;

	switch (a->place) {
	case STORE_AT_CONTROL:
		buf_put_text(out, "control:");
		break;
	case STORE_AT_FILE:
		buf_put_text(out, "file://");
		put_encoded(out, a->path, "/abc");
		break;
	case STORE_AT_TCP:
		buf_put_text(out, literal ? "tcp://[" : "tcp://");
		put_encoded(out, a->host, ":.-0123456789");
		buf_fmt(out, "%s:%u", literal ? "]" : "", a->port);
		break;
	}
	buf_fmt(out, "?rank=%lld", (long long)a->rank);
	if (a->size != STORE_UNSAID)
		buf_fmt(out, "&world_size=%lld", (long long)a->size);
}

static bool
same(const struct store_address *a, const struct store_address *b)
{
	return a->place == b->place && a->rank == b->rank &&
		a->size == b->size && a->port == b->port &&
		strcmp(a->host, b->host) == 0 && strcmp(a->path, b->path) == 0;
}

static void
check_again(const struct store_address *a)
{
	struct store_address again;
	struct buf text = { 0 };
	struct store_address_ask ask = {
		.rank = STORE_UNSAID,
		.size = STORE_UNSAID,
		.dynamic = a->size == STORE_UNSAID,
	};

	print_address(a, &text);
	ask.text = buf_text(&text);
	HOLDS(store_address_parse(&again, &ask, NULL) == XR_OK);
	HOLDS(same(a, &again));
	HOLDS(again.serve == (a->place == STORE_AT_TCP && a->rank == 0));
	buf_fini(&text);
}

static void
check_made(const struct store_address *a, const struct store_address_ask *ask)
{
	const struct fuzz_lines *lines = ask->ctx;
	const char *store = fuzz_get(lines, "XRUN_STORE");
	struct span scheme = store_address_scheme(ask->text);
	bool env = ask->text[0] == '\0' ||
		(scheme.len == 3 && strncasecmp(scheme.at, "env", 3) == 0);
	bool job = env && store != NULL && *store != '\0';

	HOLDS(a->rank >= 0 && a->rank <= INT32_MAX);
	HOLDS(a->size == STORE_UNSAID ? ask->dynamic : a->rank < a->size);
	HOLDS(ask->rank == STORE_UNSAID || ask->rank == a->rank);
	HOLDS(ask->size == STORE_UNSAID || ask->size == a->size);
	HOLDS((a->place == STORE_AT_TCP) == (a->host[0] != '\0'));
	HOLDS((a->place == STORE_AT_FILE) == (a->path[0] == '/'));
	HOLDS(a->serve == (a->place == STORE_AT_TCP && a->rank == 0 && !job));
	HOLDS(strpbrk(a->host, " /?@#[]\n") == NULL);
	if (env && !job)
		HOLDS(fuzz_get(lines, "MASTER_ADDR") != NULL &&
			fuzz_get(lines, "MASTER_PORT") != NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct store_address before, made;
	struct fuzz_lines lines = fuzz_lines(data, size, LINES_MAX);
	struct store_address_ask ask = {
		.text = lines.n == 0 ? "" : lines.at[0],
		.rank = given(&lines, "ARG_RANK"),
		.size = given(&lines, "ARG_SIZE"),
		.dynamic = fuzz_get(&lines, "DYNAMIC") != NULL,
		.variable = look_up,
		.ctx = &lines,
	};
	struct xr_error err = { 0 };
	enum xr_status status;

	memset(&before, 'x', sizeof(before));
	memset(&made, 'x', sizeof(made));
	status = store_address_parse(&made, &ask, &err);
	fuzz_error(status, &err);
	if (status == XR_OK) {
		check_made(&made, &ask);
		check_again(&made);
	} else {
		HOLDS(memcmp(&made, &before, sizeof(made)) == 0);
	}
	fuzz_lines_free(&lines);
	return 0;
}
