/* SPDX-License-Identifier: Apache-2.0 */
/* address.c - see address.h. Forms and messages follow PyTorch's rendezvous. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <arpa/inet.h>

#include "base/status.h"
#include "store/address.h"

enum number {
	RANK,
	SIZE,
	NUMBERS,
};

static const char *const parameters[NUMBERS] = { "rank", "world_size" };

/* Variables of one launcher. */
static const char *const by_xrun[NUMBERS] = { "XRUN_RANK", "XRUN_SIZE" };
static const char *const by_torch[NUMBERS] = { "RANK", "WORLD_SIZE" };

/* An address being read. */
struct reader {
	const struct store_address_ask *ask;
	struct store_address *out;
	struct xr_error *err;
	const char *what; /* "store address", "XRUN_STORE" */
	struct span text;
	struct span scheme, place, path, query; /* .at NULL: it has none */
	int64_t numbers[NUMBERS];
};

#define BAD(r, status, fmt, ...) \
	fail((r)->err, status, "%s '%.*s': " fmt, (r)->what, \
		QUOTED((r)->text), ##__VA_ARGS__)

/* --- pieces ---------------------------------------------------------------- */

static const char letters[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
static const char word[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* How many bytes from the beginning on are of @set or @more. */
static size_t
run_of(struct span s, const char *set, const char *more)
{
	size_t n = 0;

	while (n < s.len && s.at[n] != '\0' &&
		(strchr(set, s.at[n]) != NULL || strchr(more, s.at[n]) != NULL))
		n++;
	return n;
}

struct span
store_address_scheme(const char *text)
{
	struct span all = span_of(text);
	size_t len = run_of(all, word, "+-.");

	if (len == 0 || len == all.len || text[len] != ':' ||
		strchr(letters, text[0]) == NULL)
		return (struct span){ .at = text, .len = 0 };
	return (struct span){ .at = text, .len = len };
}

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* %XX becomes its byte, in @out, of @cap bytes. False: told in @r->err. */
static bool
decode(const struct reader *r, struct span in, char *out, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < in.len; i++) {
		char c = in.at[i];

		if (c == '%') {
			int high = i + 2 < in.len ? hex(in.at[i + 1]) : -1;
			int low = i + 2 < in.len ? hex(in.at[i + 2]) : -1;

			if (high < 0 || low < 0 || high + low == 0) {
				BAD(r, XR_E_INVAL,
					"byte %zu, a %%, is not followed by two hex digits, 01 to FF",
					(size_t)(in.at + i - r->text.at));
				return false;
			}
			c = (char)(high * 16 + low);
			i += 2;
		}
		if (n + 1 >= cap) {
			BAD(r, XR_E_INVAL, "'%.*s' is longer than %zu bytes",
				QUOTED(in), cap - 1);
			return false;
		}
		out[n++] = c;
	}
	out[n] = '\0';
	return true;
}

/* Up to the first byte of @ends; it is left in @rest. */
static struct span
cut(struct span *rest, const char *ends)
{
	struct span piece = { .at = rest->at };

	while (piece.len < rest->len &&
		strchr(ends, rest->at[piece.len]) == NULL)
		piece.len++;
	rest->at += piece.len;
	rest->len -= piece.len;
	return piece;
}

static enum xr_status
take_apart(struct reader *r)
{
	struct span rest = r->text;

	r->scheme = store_address_scheme(rest.at);
	if (r->scheme.len == 0)
		return BAD(r, XR_E_INVAL,
			"there is no scheme\ttry: tcp://HOST:PORT, file:///PATH or env://");
	if (memchr(rest.at, '#', rest.len) != NULL)
		return BAD(r, XR_E_INVAL, "a # is written as %%23");
	rest.at += r->scheme.len + 1;
	rest.len -= r->scheme.len + 1;
	if (rest.len >= 2 && memcmp(rest.at, "//", 2) == 0) {
		rest.at += 2;
		rest.len -= 2;
		r->place = cut(&rest, "/?");
	}
	r->path = cut(&rest, "?");
	if (rest.len > 0)
		r->query = (struct span){ rest.at + 1, rest.len - 1 };
	return XR_OK;
}

/* --- rank and size --------------------------------------------------------- */

static enum xr_status
read_parameter(struct reader *r, struct span piece)
{
	struct span value = piece, name = span_next(&value, '=');
	uint32_t number = 0;
	char text[16];
	int which = 0;

	while (which < NUMBERS && !span_is(name, parameters[which]))
		which++;
	if (which == NUMBERS)
		return BAD(r, XR_E_INVAL,
			"unknown parameter '%.*s'\ttry: rank or world_size",
			QUOTED(name));
	if (r->numbers[which] != STORE_UNSAID)
		return BAD(r, XR_E_INVAL, "%s stands there twice",
			parameters[which]);
	if (!decode(r, value, text, sizeof(text)))
		return XR_E_INVAL;
	if (!number_parse(span_of(text), INT32_MAX, &number))
		return BAD(r, XR_E_INVAL, "%s '%.*s' is not a number",
			parameters[which], QUOTED(value));
	r->numbers[which] = number;
	return XR_OK;
}

static enum xr_status
read_query(struct reader *r)
{
	struct span rest = r->query;
	enum xr_status status = XR_OK;

	while (rest.at != NULL && status == XR_OK) {
		struct span piece = span_next(&rest, '&');

		if (piece.len > 0)
			status = read_parameter(r, piece);
	}
	return status;
}

/* What was given beside the address, which must not say it again. */
static enum xr_status
take_given(struct reader *r)
{
	const int64_t given[NUMBERS] = { r->ask->rank, r->ask->size };

	for (int i = 0; i < NUMBERS; i++) {
		if (given[i] == STORE_UNSAID)
			continue;
		if (given[i] < 0 || given[i] > INT32_MAX)
			return fail(r->err, XR_E_RANGE,
				"%s %lld is not 0 to %d", parameters[i],
				(long long)given[i], INT32_MAX);
		if (r->numbers[i] != STORE_UNSAID)
			return BAD(r, XR_E_INVAL,
				"%s is given twice: here, and as an argument, %lld\tleave one of them out",
				parameters[i], (long long)given[i]);
		r->numbers[i] = given[i];
	}
	return XR_OK;
}

static enum xr_status
check_numbers(struct reader *r)
{
	int64_t rank = r->numbers[RANK], size = r->numbers[SIZE];

	if (size == 0)
		return BAD(r, XR_E_RANGE, "world_size 0: nobody is in it");
	if (size != STORE_UNSAID && rank >= size)
		return BAD(r, XR_E_RANGE,
			"rank %lld is not 0 to %lld, of world_size %lld",
			(long long)rank, (long long)size - 1, (long long)size);
	r->out->rank = rank;
	r->out->size = size;
	return XR_OK;
}

/* Of an address that nobody else can complete. */
static enum xr_status
need_numbers(struct reader *r)
{
	for (int i = 0; i < NUMBERS; i++) {
		if (r->numbers[i] != STORE_UNSAID ||
			(i == SIZE && r->ask->dynamic))
			continue;
		return BAD(r, XR_E_INVAL, "%s parameter missing\tadd ?%s=N",
			parameters[i], parameters[i]);
	}
	return XR_OK;
}

/* --- variables ------------------------------------------------------------- */

/* NULL if it is empty, too. */
static const char *
variable(const struct reader *r, const char *name)
{
	const char *value = r->ask->variable == NULL ?
		NULL :
		r->ask->variable(name, r->ask->ctx);

	return value == NULL || *value == '\0' ? NULL : value;
}

/* All of @names that are missing in one sentence. NULL is no name. */
static enum xr_status
need_variables(struct reader *r, const char *const *names, size_t n)
{
	char missing[64] = "";
	size_t count = 0, len = 0;

	for (size_t i = 0; i < n; i++) {
		if (names[i] == NULL || variable(r, names[i]) != NULL)
			continue;
		len += (size_t)snprintf(missing + len, sizeof(missing) - len,
			"%s%s", count++ == 0 ? "" : ", ", names[i]);
	}
	if (count == 0)
		return XR_OK;
	return BAD(r, XR_E_INVAL,
		"not set or empty: %s\tset %s, or start the program with xrun",
		missing, count == 1 ? "it" : "them");
}

/* Rank and size as far as nobody said them. */
static enum xr_status
read_numbers(struct reader *r, const char *const *names)
{
	for (int i = 0; i < NUMBERS; i++) {
		const char *text = variable(r, names[i]);
		uint32_t number = 0;

		if (r->numbers[i] != STORE_UNSAID || text == NULL)
			continue;
		if (!number_parse(span_of(text), INT32_MAX, &number))
			return fail(r->err, XR_E_INVAL,
				"%s: '%.*s' is not a number", names[i],
				QUOTED(span_of(text)));
		r->numbers[i] = number;
	}
	return XR_OK;
}

/* The names of which a value is needed; others are NULL. */
static void
needed(const struct reader *r, const char *const *names, const char **out)
{
	out[RANK] = r->numbers[RANK] == STORE_UNSAID ? names[RANK] : NULL;
	out[SIZE] = r->numbers[SIZE] == STORE_UNSAID && !r->ask->dynamic ?
		names[SIZE] :
		NULL;
}

/* --- places ---------------------------------------------------------------- */

/* An IPv6 address, maybe with a zone: fe80::1%eth0. */
static bool
is_literal(const char *host)
{
	struct span zone = span_of(host), address = span_next(&zone, '%');
	char text[INET6_ADDRSTRLEN];
	struct in6_addr in6;

	if (zone.at != NULL &&
		(zone.len == 0 || run_of(zone, word, "._-~") < zone.len))
		return false;
	if (address.len >= sizeof(text))
		return false;
	memcpy(text, address.at, address.len);
	text[address.len] = '\0';
	return inet_pton(AF_INET6, text, &in6) == 1;
}

static bool
is_host(const char *host)
{
	struct span all = span_of(host);

	if (strchr(host, ':') != NULL)
		return is_literal(host);
	return all.len > 0 && run_of(all, word, "._-") == all.len;
}

static enum xr_status
read_port(struct reader *r, struct span text)
{
	uint32_t port = 0;

	if (!number_parse(text, UINT16_MAX, &port))
		return BAD(r, XR_E_RANGE, "port %.*s is not 0 to 65535",
			QUOTED(text));
	r->out->port = (uint16_t)port;
	return XR_OK;
}

/* HOST:PORT or [ADDRESS]:PORT. */
static enum xr_status
read_place(struct reader *r)
{
	struct span port = r->place, host;
	bool bare = port.len > 0 && port.at[0] != '[';

	if (port.len == 0)
		return BAD(r, XR_E_INVAL, "the host is missing");
	if (bare) {
		host = cut(&port, ":");
	} else {
		port.at++;
		port.len--;
		host = cut(&port, "]");
		if (port.len > 0) {
			port.at++;
			port.len--;
		}
	}
	if (host.len == 0)
		return BAD(r, XR_E_INVAL, "the host is missing");
	if (bare && port.len > 1 && memchr(port.at + 1, ':', port.len - 1))
		return BAD(r, XR_E_INVAL,
			"an IPv6 address stands in brackets, as in tcp://[::1]:29500");
	if (!decode(r, host, r->out->host, sizeof(r->out->host)))
		return XR_E_INVAL;
	if (!is_host(r->out->host) || bare != !strchr(r->out->host, ':'))
		return BAD(r, XR_E_INVAL, "'%.*s' is no host", QUOTED(host));
	if (port.len > 0 && port.at[0] != ':')
		return BAD(r, XR_E_INVAL, "'%.*s' is no port", QUOTED(port));
	if (port.len < 2)
		return BAD(r, XR_E_INVAL, "the port is missing");
	return read_port(r, (struct span){ port.at + 1, port.len - 1 });
}

static enum xr_status
read_tcp(struct reader *r)
{
	r->out->place = STORE_AT_TCP;
	if (r->path.len > 1 || (r->path.len == 1 && r->path.at[0] != '/'))
		return BAD(r, XR_E_INVAL,
			"'%.*s' behind the port is no ?rank=", QUOTED(r->path));
	return read_place(r);
}

static enum xr_status
read_nothing(struct reader *r)
{
	if (r->place.len > 0 || r->path.len > 0)
		return BAD(r, XR_E_INVAL,
			"nothing stands behind %.*s:", QUOTED(r->scheme));
	return XR_OK;
}

/* --- schemes --------------------------------------------------------------- */

static enum xr_status
tcp_scheme(struct reader *r)
{
	enum xr_status status = read_tcp(r);

	if (status == XR_OK)
		status = need_numbers(r);
	r->out->serve = r->numbers[RANK] == 0;
	return status;
}

static enum xr_status
file_scheme(struct reader *r)
{
	r->out->place = STORE_AT_FILE;
	if (r->place.len > 0 && !span_is(r->place, "localhost"))
		return BAD(r, XR_E_INVAL,
			"'%.*s' would be a host\ttry: file:///%.*s%.*s",
			QUOTED(r->place), QUOTED(r->place), QUOTED(r->path));
	if (r->path.len == 0 || r->path.at[0] != '/')
		return BAD(r, XR_E_INVAL,
			"there is no path that begins with /\ttry: file:///PATH");
	if (!decode(r, r->path, r->out->path, sizeof(r->out->path)))
		return XR_E_INVAL;
	return need_numbers(r);
}

/* The rest of an address of which xrun has told the ranks the rest. */
static enum xr_status
take_by_xrun(struct reader *r)
{
	const char *names[NUMBERS];
	enum xr_status status;

	needed(r, by_xrun, names);
	status = need_variables(r, names, NUMBERS);
	return status == XR_OK ? read_numbers(r, by_xrun) : status;
}

static enum xr_status
control_scheme(struct reader *r)
{
	enum xr_status status = read_nothing(r);

	r->out->place = STORE_AT_CONTROL;
	return status == XR_OK ? take_by_xrun(r) : status;
}

/* XRUN_STORE: control: or tcp://host:port. */
static enum xr_status
env_of_xrun(struct reader *r, const char *text)
{
	struct reader store = {
		.ask = r->ask,
		.out = r->out,
		.err = r->err,
		.what = "XRUN_STORE",
		.text = span_of(text),
	};
	enum xr_status status = take_apart(&store);

	if (status != XR_OK)
		return status;
	if (store.query.at != NULL)
		return BAD(&store, XR_E_INVAL,
			"rank and size are in XRUN_RANK and XRUN_SIZE");
	if (span_is(store.scheme, "tcp"))
		status = read_tcp(&store);
	else if (span_is(store.scheme, "control"))
		status = read_nothing(&store);
	else
		return BAD(&store, XR_E_NOTFOUND,
			"it is neither control: nor tcp://HOST:PORT");
	return status == XR_OK ? take_by_xrun(r) : status;
}

static enum xr_status
master_address(struct reader *r)
{
	const char *text = variable(r, "MASTER_ADDR");
	struct span host = span_of(text);
	struct reader port = *r;

	if (host.len > 2 && host.at[0] == '[' && host.at[host.len - 1] == ']')
		host = (struct span){ host.at + 1, host.len - 2 };
	if (host.len < sizeof(r->out->host)) {
		memcpy(r->out->host, host.at, host.len);
		r->out->host[host.len] = '\0';
	}
	if (host.len >= sizeof(r->out->host) || !is_host(r->out->host))
		return fail(r->err, XR_E_INVAL,
			"MASTER_ADDR: '%.*s' is no host",
			QUOTED(span_of(text)));
	port.what = "MASTER_PORT";
	port.text = span_of(variable(r, "MASTER_PORT"));
	return read_port(&port, port.text);
}

static enum xr_status
env_scheme(struct reader *r)
{
	const char *names[NUMBERS + 2] = { NULL, NULL, "MASTER_ADDR",
		"MASTER_PORT" };
	const char *store = variable(r, "XRUN_STORE");
	enum xr_status status = read_nothing(r);

	if (status != XR_OK)
		return status;
	if (store != NULL)
		return env_of_xrun(r, store);
	needed(r, by_torch, names);
	status = need_variables(r, names, NUMBERS + 2);
	if (status == XR_OK)
		status = read_numbers(r, by_torch);
	if (status != XR_OK)
		return status;
	r->out->place = STORE_AT_TCP;
	r->out->serve = r->numbers[RANK] == 0;
	return master_address(r);
}

static const struct {
	const char *name;
	enum xr_status (*read)(struct reader *r);
} schemes[] = {
	{ "env", env_scheme },
	{ "tcp", tcp_scheme },
	{ "file", file_scheme },
	{ "control", control_scheme },
};

static enum xr_status
read_scheme(struct reader *r)
{
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strlen(schemes[i].name) == r->scheme.len &&
			strncasecmp(schemes[i].name, r->scheme.at,
				r->scheme.len) == 0)
			return schemes[i].read(r);
	return BAD(r, XR_E_NOTFOUND,
		"unknown scheme '%.*s'\ttry: tcp://, file:// or env://",
		QUOTED(r->scheme));
}

enum xr_status
store_address_parse(struct store_address *out,
	const struct store_address_ask *ask, struct xr_error *err)
{
	bool none = ask->text == NULL || *ask->text == '\0';
	struct store_address made = { 0 };
	struct reader r = {
		.ask = ask,
		.out = &made,
		.err = err,
		.what = "store address",
		.text = span_of(none ? "env://" : ask->text),
		.numbers = { STORE_UNSAID, STORE_UNSAID },
	};
	enum xr_status status = take_apart(&r);

	if (status == XR_OK)
		status = read_query(&r);
	if (status == XR_OK)
		status = take_given(&r);
	if (status == XR_OK)
		status = read_scheme(&r);
	if (status == XR_OK)
		status = check_numbers(&r);
	if (status == XR_OK)
		*out = made;
	return status;
}
