/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - is this a request that may be answered, and by what? Pure.
 *
 * There is little to ask for: GET or HEAD of a few paths, without a body, one
 * request a connection. Whatever is not exactly that is refused with a status of
 * 4xx, so nothing of it has to be understood: no encodings, no folded headers,
 * no bare line ends, no second Host. RFC 9110 and 9112 say what is well formed.
 */
#ifndef LAUNCHER_HTTP_REQUEST_H
#define LAUNCHER_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_REQUEST_MAX (8 << 10) /* bytes, up to the empty line */
#define HTTP_HEADERS_MAX 64
#define HTTP_TOKEN_MIN   16

enum http_page {
	HTTP_INDEX,   /* / */
	HTTP_METRICS, /* /metrics */
	HTTP_JOB,     /* /api/v1/job */
};

/* Who may ask. */
struct http_rule {
	const char *token; /* has to be shown; NULL: none */
	/* On TCP: this port, and such names of this machine, addresses, and
	 * localhost. A page of somewhere else in a browser, whose name was made
	 * to lead here, says its own. NULL: any Host. */
	const char *port, *host;
};

struct http_request {
	int status; /* 200, or why not */
	bool head;  /* no body, please */
	enum http_page page;
};

/* http_ends() - how long the request is: up to its empty line, or to what no
 * request has. 0: more is to come. */
size_t http_ends(const char *text, size_t len);

/* http_read() - @text: @len bytes, of http_ends(). */
void http_read(const char *text, size_t len, const struct http_rule *rule,
	struct http_request *out);

/* http_reason() - "Not Found". */
const char *http_reason(int status);

#endif /* LAUNCHER_HTTP_REQUEST_H */
