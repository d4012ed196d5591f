/* SPDX-License-Identifier: Apache-2.0 */
/* address_inner.h - what address.c and address_form.c share. No other file
 * includes it. */
#ifndef STORE_ADDRESS_INNER_H
#define STORE_ADDRESS_INNER_H

#include "base/status.h"
#include "store/address.h"

enum number {
	RANK,
	SIZE,
	NUMBERS,
};

/* An address being read; what it says goes to @out. */
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

/* address_split() - @text into its parts. */
enum xr_status address_split(struct reader *r);

/* address_decode() - %XX becomes its byte, in @out, of @cap bytes. False: told in
 * @r->err. */
bool address_decode(const struct reader *r, struct span in, char *out,
	size_t cap);

/* address_is_host() - a name, or an address bare. */
bool address_is_host(const char *host);

/* address_is_loopback() - Returns true if @host is localhost or a loopback address. */
bool address_is_loopback(const char *host);

/* Each a part of it: a port, all of a tcp://, all of a control:. */
enum xr_status address_port(struct reader *r, struct span text);
enum xr_status address_tcp(struct reader *r);
enum xr_status address_control(struct reader *r);

/* address_bare() - nothing stands behind the scheme. */
enum xr_status address_bare(const struct reader *r);

#endif /* STORE_ADDRESS_INNER_H */
