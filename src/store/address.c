/* SPDX-License-Identifier: Apache-2.0 */
/* address.c - see address.h; address_form.c takes the text apart. Forms follow
 * PyTorch's rendezvous. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "store/address_inner.h"

static const char *const parameters[NUMBERS] = { "rank", "world_size" };

/* Variables of one launcher. */
static const char *const by_xrun[NUMBERS] = { "XRUN_RANK", "XRUN_SIZE" };
static const char *const by_torch[NUMBERS] = { "RANK", "WORLD_SIZE" };

/* --- rank and size --------------------------------------------------------- */

/* auth=none, of tcp:// and env:// only. */
static enum xr_status
read_auth(struct reader *r, struct span value)
{
	bool served = span_is(r->scheme, "tcp") || span_is(r->scheme, "env");

	if (!served || !span_is(value, "none"))
		return BAD(r, XR_E_INVAL,
			"auth is none, and of tcp:// only\tleave it out: then a secret is asked for");
	r->out->open = true;
	return XR_OK;
}

static enum xr_status
read_parameter(struct reader *r, struct span piece)
{
	struct span value = piece, name = span_next(&value, '=');
	uint32_t number = 0;
	char text[16];
	int which = 0;

	if (span_is(name, "auth"))
		return read_auth(r, value);
	while (which < NUMBERS && !span_is(name, parameters[which]))
		which++;
	if (which == NUMBERS)
		return BAD(r, XR_E_INVAL,
			"unknown parameter '%.*s'\ttry: rank, world_size or auth",
			QUOTED(name));
	if (r->numbers[which] != STORE_UNSAID)
		return BAD(r, XR_E_INVAL, "%s stands there twice",
			parameters[which]);
	if (!address_decode(r, value, text, sizeof(text)))
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

/* --- schemes --------------------------------------------------------------- */

static enum xr_status
tcp_scheme(struct reader *r)
{
	enum xr_status status = address_tcp(r);

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
	if (!address_decode(r, r->path, r->out->path, sizeof(r->out->path)))
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
	enum xr_status status = address_control(r);

	if (status != XR_OK)
		return status;
	return r->out->path[0] == '\0' ? take_by_xrun(r) : XR_OK;
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
	enum xr_status status = address_split(&store);

	if (status != XR_OK)
		return status;
	if (store.query.at != NULL)
		return BAD(&store, XR_E_INVAL,
			"rank and size are in XRUN_RANK and XRUN_SIZE");
	if (span_is(store.scheme, "tcp"))
		status = address_tcp(&store);
	else if (span_is(store.scheme, "control"))
		status = address_control(&store);
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
	if (host.len >= sizeof(r->out->host) || !address_is_host(r->out->host))
		return fail(r->err, XR_E_INVAL,
			"MASTER_ADDR: '%.*s' is no host",
			QUOTED(span_of(text)));
	port.what = "MASTER_PORT";
	port.text = span_of(variable(r, "MASTER_PORT"));
	return address_port(&port, port.text);
}

static enum xr_status
env_scheme(struct reader *r)
{
	const char *names[NUMBERS + 2] = { NULL, NULL, "MASTER_ADDR",
		"MASTER_PORT" };
	const char *store = variable(r, "XRUN_STORE");
	enum xr_status status = address_bare(r);

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
	status = master_address(r);
	r->out->local = !r->out->open && address_is_loopback(r->out->host);
	return status;
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
	enum xr_status status = address_split(&r);

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
