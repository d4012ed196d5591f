/* SPDX-License-Identifier: Apache-2.0 */
/* address_form.c - how an address is written: its parts, hosts and ports. */
#include <string.h>
#include <strings.h>

#include <arpa/inet.h>

#include "store/address_inner.h"

static const char letters[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
static const char word[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* How many bytes from the beginning on are of @set or @more; none is a NUL. */
static size_t
run_of(struct span s, const char *set, const char *more)
{
	size_t n = 0;

	while (n < s.len &&
		(strchr(set, s.at[n]) != NULL || strchr(more, s.at[n]) != NULL))
		n++;
	return n;
}

struct span
store_address_scheme(const char *text)
{
	struct span all = span_of(text);
	size_t len = run_of(all, word, "+-.");

	if (len == 0 || text[len] != ':' || strchr(letters, text[0]) == NULL)
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

bool
address_decode(const struct reader *r, struct span in, char *out, size_t cap)
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

enum xr_status
address_split(struct reader *r)
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

bool
address_is_host(const char *host)
{
	struct span all = span_of(host);

	if (strchr(host, ':') != NULL)
		return is_literal(host);
	return all.len > 0 && run_of(all, word, "._-") == all.len;
}

bool
address_is_loopback(const char *host)
{
	struct in6_addr in6;
	struct in_addr in;

	if (strcasecmp(host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, host, &in) == 1)
		return ntohl(in.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, host, &in6) == 1 &&
		IN6_IS_ADDR_LOOPBACK(&in6);
}

enum xr_status
address_port(struct reader *r, struct span text)
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
	if (!address_decode(r, host, r->out->host, sizeof(r->out->host)))
		return XR_E_INVAL;
	if (!address_is_host(r->out->host) ||
		bare != !strchr(r->out->host, ':'))
		return BAD(r, XR_E_INVAL, "'%.*s' is no host", QUOTED(host));
	if (port.len > 0 && port.at[0] != ':')
		return BAD(r, XR_E_INVAL, "'%.*s' is no port", QUOTED(port));
	if (port.len < 2)
		return BAD(r, XR_E_INVAL, "the port is missing");
	return address_port(r, (struct span){ port.at + 1, port.len - 1 });
}

enum xr_status
address_tcp(struct reader *r)
{
	r->out->place = STORE_AT_TCP;
	if (r->path.len > 1 || (r->path.len == 1 && r->path.at[0] != '/'))
		return BAD(r, XR_E_INVAL,
			"'%.*s' behind the port is no ?rank=", QUOTED(r->path));
	return read_place(r);
}

enum xr_status
address_bare(const struct reader *r)
{
	if (r->place.len > 0 || r->path.len > 0)
		return BAD(r, XR_E_INVAL,
			"nothing stands behind %.*s:", QUOTED(r->scheme));
	return XR_OK;
}

enum xr_status
address_control(struct reader *r)
{
	r->out->place = STORE_AT_CONTROL;
	if (r->place.at != NULL || r->path.len == 0)
		return address_bare(r);
	if (r->path.at[0] != '/')
		return BAD(r, XR_E_INVAL,
			"'%.*s' is no path that begins with /",
			QUOTED(r->path));
	return address_decode(r, r->path, r->out->path, sizeof(r->out->path)) ?
		XR_OK :
		XR_E_INVAL;
}
