/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.h - where the store is, and who asks: what an address says.
 *
 *	env://                                 see below
 *	tcp://HOST:PORT?rank=R&world_size=W    an IPv6 address in brackets;
 *	                                       &auth=none: without a secret
 *	file:///PATH?rank=R&world_size=W
 *	control:                               the job's, by the control descriptor
 *	control:/PATH                          a job's, by its control socket, for
 *	                                       others, who need no rank
 *
 * Rank and world size may stand in the address or be given beside it, not both;
 * any %XX is the byte of that number.
 *
 * env:// is where XRUN_STORE says, if that is set: the store of the job, which
 * xrun serves. Rank and size are XRUN_RANK and XRUN_SIZE then, never a half of
 * what another launcher inside of the rank has set. Without it, it is tcp://
 * at MASTER_ADDR and MASTER_PORT, with RANK and WORLD_SIZE, and rank 0 serves; if
 * MASTER_ADDR names this machine by its loopback, `local` is set: all ranks are on
 * one machine, and a file takes the place of the listener.
 * An empty variable is one that is not set.
 *
 * Pure: variables are asked for, names are not looked up, nothing is allocated.
 */
#ifndef STORE_ADDRESS_H
#define STORE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "xrun/error.h"

#define STORE_HOST_MAX 256  /* with its NUL; DNS has 253 characters at most */
#define STORE_PATH_MAX 4096 /* with its NUL */
#define STORE_UNSAID   (-1) /* a rank or size that nobody gave */

enum store_place {
	STORE_AT_CONTROL,
	STORE_AT_TCP,
	STORE_AT_FILE,
};

struct store_address {
	enum store_place place;
	bool serve; /* this process is rank 0 of a tcp:// and serves it */
	bool open;  /* auth=none: the store asks for no secret */
	bool local; /* env:// on the loopback: a file named for the port */
	int64_t rank;
	int64_t size;              /* STORE_UNSAID: a dynamic group */
	uint16_t port;             /* of tcp */
	char host[STORE_HOST_MAX]; /* of tcp; an IPv6 address bare */
	char path[STORE_PATH_MAX]; /* of file; of control, or empty */
};

/* store_variable_fn - the value of a variable, or NULL; borrowed. */
typedef const char *store_variable_fn(const char *name, void *ctx);

struct store_address_ask {
	const char *text;   /* NULL or empty: env:// */
	int64_t rank, size; /* given beside it, or STORE_UNSAID */
	bool dynamic;       /* the size need not be known */
	store_variable_fn *variable;
	void *ctx;
};

/*
 * store_address_parse() - all of it.
 *
 * Returns  XR_OK; XR_E_NOTFOUND: a scheme that is none of these; XR_E_RANGE: port
 *          or rank is too large; XR_E_INVAL. @err names the address or the
 *          variable, and of missing variables all.
 */
enum xr_status store_address_parse(struct store_address *out,
	const struct store_address_ask *ask, struct xr_error *err);

/* store_address_scheme() - what stands before the ':'; empty if none does. For
 * who knows other schemes, too. */
struct span store_address_scheme(const char *text);

#endif /* STORE_ADDRESS_H */
