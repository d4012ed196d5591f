/* SPDX-License-Identifier: Apache-2.0 */
/* carriers_rig.h - an agent with carriers that the test makes up; all that they are asked
 * for is logged. */
#ifndef TESTS_UNIT_CARRIERS_RIG_H
#define TESTS_UNIT_CARRIERS_RIG_H

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <xrun/error.h>
#include <xrun/rpc.h>

#include "worker/rpc/agent.h"

static struct xr_error err;

/* --- carriers ------------------------------------------------------------------------ */

#define FAKES 8

/* What happened, a letter and the number of a carrier each: Open, Connect to the address,
 * Link closed, Freed. */
static char log_text[4096];

static inline void __attribute__((format(printf, 1, 2)))
note(const char *format, ...)
{
	size_t n = strlen(log_text);
	va_list ap;

	va_start(ap, format);
	vsnprintf(log_text + n, sizeof(log_text) - n, format, ap);
	va_end(ap);
}

static struct fake {
	int no;
	const char *address;
	enum xr_status opens, connects;
	enum xr_there there;
	struct xr_carrier_host host;
	struct xr_carrier_opts opts;
	uint8_t secret[AGENT_SECRET];
	uint32_t id; /* of the last connect() or there() */
	uint64_t incarnation;
	void *peer;
} fake[FAKES];

/* A link is a number: 10 times its carrier's, and how many that has made. */
static inline struct xr_link *
link_of(int number)
{
	return (struct xr_link *)(intptr_t)number;
}

static inline enum xr_status
open_fake(int no, const struct xr_carrier_host *host,
	const struct xr_carrier_opts *opts, void **self, struct xr_error *e)
{
	struct fake *f = &fake[no];

	note("O%d ", no);
	f->no = no;
	f->host = *host;
	f->opts = *opts;
	if (opts->secret != NULL)
		memcpy(f->secret, opts->secret, sizeof(f->secret));
	*self = f;
	if (f->opens != XR_OK)
		snprintf(e->text, sizeof(e->text), "open %d", no);
	return f->opens;
}

#define OPEN(no) \
	static enum xr_status open_##no(const struct xr_carrier_host *host, \
		const struct xr_carrier_opts *opts, void **self, \
		struct xr_error *e) \
	{ \
		return open_fake(no, host, opts, self, e); \
	}

OPEN(0)
OPEN(1)
OPEN(2)
OPEN(3)
OPEN(4)
OPEN(5)
OPEN(6)
OPEN(7)

static inline size_t
address(void *self, char *text, size_t cap)
{
	struct fake *f = self;

	return (size_t)snprintf(text, cap, "%s", f->address);
}

static inline enum xr_status
connect_to(void *self, const char *to, uint32_t id, uint64_t incarnation,
	void *peer, struct xr_link **link, struct xr_error *e)
{
	struct fake *f = self;

	note("C%d %s ", f->no, to);
	f->id = id;
	f->incarnation = incarnation;
	f->peer = peer;
	*link = link_of(10 * f->no + 1);
	if (f->connects != XR_OK)
		snprintf(e->text, sizeof(e->text), "connect %d", f->no);
	return f->connects;
}

static inline enum xr_status
send_nothing(struct xr_link *link, const struct xr_message *m, bool *pending)
{
	(void)link;
	(void)m;
	*pending = false;
	return XR_OK;
}

static inline void
close_link(struct xr_link *link)
{
	note("L%d ", (int)(intptr_t)link);
}

static inline void
free_fake(void *self)
{
	struct fake *f = self;

	note("F%d ", f->no);
}

static inline enum xr_there
there(void *self, const char *at, uint32_t id, uint64_t incarnation)
{
	struct fake *f = self;

	note("T%d %s ", f->no, at);
	f->id = id;
	f->incarnation = incarnation;
	return f->there;
}

#define CARRIER(n, no, ...) \
	{ .size = sizeof(struct xr_carrier), \
		.api = XR_CARRIER_API, \
		.name = n, \
		.open = open_##no, \
		.address = address, \
		.connect = connect_to, \
		.send = send_nothing, \
		.link_close = close_link, \
		.free = free_fake, \
		__VA_ARGS__ }

static const struct xr_carrier carrier[FAKES] = {
	CARRIER("a", 0, .there = there),
	CARRIER("ab", 1, .there = there),
	CARRIER("c", 2, .there = there),
	CARRIER("d", 3, .there = NULL),
	CARRIER("e", 4, .there = NULL),
	CARRIER("f", 5, .there = NULL),
	CARRIER("g", 6, .there = NULL),
	CARRIER("h", 7, .there = NULL),
};

static const struct xr_carrier *const carriers[FAKES] = { &carrier[0],
	&carrier[1], &carrier[2], &carrier[3], &carrier[4], &carrier[5],
	&carrier[6], &carrier[7] };

/* --- the agent ------------------------------------------------------------------------- */

static inline struct agent_wish
wish_of(uint32_t count)
{
	static const char *const addresses[FAKES] = { "a:1", "ab:2", "c:3",
		"d:4", "e:5", "f:6", "g:7", "h:8" };

	for (int i = 0; i < FAKES; i++) {
		fake[i].no = i;
		fake[i].address = addresses[i];
	}
	return (struct agent_wish){
		.name = "self",
		.id = 5,
		.incarnation = 70,
		.threads = 1,
		.timeout = XR_SECONDS(7),
		.carriers = carriers,
		.carrier_count = count,
	};
}

static inline void
begin(uint32_t count)
{
	struct agent_wish wish = wish_of(count);

	cr_assert_eq(agent_open(&wish, &err), XR_OK, "%s", err.text);
	agent_begin();
}

/* What was logged since the last call. */
static inline void
logged(const char *text)
{
	cr_expect_str_eq(log_text, text);
	log_text[0] = '\0';
}

static inline struct peer *
add(const char *name, uint32_t id, uint64_t incarnation, const char *addresses)
{
	struct peer *p = agent_add(&(struct agent_member){ name, id,
		incarnation, addresses, NULL, 3 });

	cr_assert_not_null(p);
	return p;
}

#endif /* TESTS_UNIT_CARRIERS_RIG_H */
