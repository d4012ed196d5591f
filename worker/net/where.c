/* SPDX-License-Identifier: Apache-2.0 */
/* where.c - see where.h. */
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>

#include "base/span.h"
#include "base/status.h"
#include "worker/net/where.h"

#define SCHEME "tcp:"

bool
where_of_host(const char *host, struct where *where)
{
	*where = (struct where){ .len = 0 };
	if (inet_pton(AF_INET, host, &where->at.v4.sin_addr) == 1) {
		where->at.v4.sin_family = AF_INET;
		where->len = sizeof(where->at.v4);
	} else if (inet_pton(AF_INET6, host, &where->at.v6.sin6_addr) == 1) {
		where->at.v6.sin6_family = AF_INET6;
		where->len = sizeof(where->at.v6);
	}
	return where->len > 0;
}

/* Host and port of "HOST:PORT" or "[HOST]:PORT"; false: it is neither. */
static bool
split(struct span text, struct span *host, struct span *port)
{
	const char *colon = memrchr(text.at, ':', text.len);
	bool quoted = text.len > 0 && text.at[0] == '[';

	if (colon == NULL)
		return false;
	*host = (struct span){ text.at, (size_t)(colon - text.at) };
	*port = (struct span){ colon + 1,
		text.len - (size_t)(colon - text.at) - 1 };
	if (quoted && host->len > 2 && host->at[host->len - 1] == ']')
		*host = (struct span){ host->at + 1, host->len - 2 };
	else if (quoted || memchr(host->at, ':', host->len) != NULL)
		return false;
	return host->len > 0 && host->len < WHERE_TEXT;
}

static bool
parse(struct span text, struct where *where)
{
	struct span host, port;
	char room[WHERE_TEXT] = { 0 };
	uint32_t number = 0;

	if (!split(text, &host, &port))
		return false;
	memcpy(room, host.at, host.len);
	if (!where_of_host(room, where) ||
		!number_parse(port, UINT16_MAX, &number) || number == 0)
		return false;
	if (where->at.any.sa_family == AF_INET)
		where->at.v4.sin_port = htons((uint16_t)number);
	else
		where->at.v6.sin6_port = htons((uint16_t)number);
	return !where_is_any(where);
}

enum xr_status
where_parse(const char *text, struct where *where, struct xr_error *err)
{
	struct span all = span_of(text);
	const size_t skip = sizeof(SCHEME) - 1;

	if (text == NULL || strncmp(text, SCHEME, skip) != 0)
		return fail(err, XR_E_NODEV,
			"tcp: '%.*s' is no address of it, as tcp:10.0.0.3:4711 is",
			QUOTED(all));
	if (!parse((struct span){ text + skip, all.len - skip }, where))
		return fail(err, XR_E_INVAL,
			"tcp: '%.*s' has no host and port, as tcp:10.0.0.3:4711 has",
			QUOTED(all));
	return XR_OK;
}

bool
where_is_any(const struct where *where)
{
	if (where->at.any.sa_family == AF_INET)
		return where->at.v4.sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&where->at.v6.sin6_addr) ||
		(IN6_IS_ADDR_V4MAPPED(&where->at.v6.sin6_addr) &&
			where->at.v6.sin6_addr.s6_addr32[3] == 0);
}

bool
where_is_loopback(const struct where *where)
{
	if (where->at.any.sa_family == AF_INET)
		return ntohl(where->at.v4.sin_addr.s_addr) >> 24 ==
			IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&where->at.v6.sin6_addr);
}

const char *
where_host(const struct where *where, char out[WHERE_TEXT])
{
	const void *address = where->at.any.sa_family == AF_INET ?
		(const void *)&where->at.v4.sin_addr :
		(const void *)&where->at.v6.sin6_addr;

	if (inet_ntop(where->at.any.sa_family, address, out, WHERE_TEXT) ==
		NULL)
		snprintf(out, WHERE_TEXT, "?");
	return out;
}

const char *
where_text(const struct where *where, char out[WHERE_TEXT])
{
	char host[WHERE_TEXT];

	where_host(where, host);
	if (where->at.any.sa_family == AF_INET)
		snprintf(out, WHERE_TEXT, "%.46s:%u", host,
			ntohs(where->at.v4.sin_port));
	else
		snprintf(out, WHERE_TEXT, "[%.46s]:%u", host,
			ntohs(where->at.v6.sin6_port));
	return out;
}
