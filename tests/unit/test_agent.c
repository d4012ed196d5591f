/* SPDX-License-Identifier: Apache-2.0 */
/* test_agent.c - an agent with carriers that the test makes up: its members, the ways to
 * them, its beginning and its end. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/error.h>
#include <xrun/future.h>
#include <xrun/rpc.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "base/timeout.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/devices.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/parcel.h"

TestSuite(agent, .timeout = 20);

static struct xr_error err;

/* --- carriers ------------------------------------------------------------------------ */

#define FAKES 8

/* What happened, a letter and the number of a carrier each: Open, Connect to the address,
 * Link closed, Freed. */
static char log_text[4096];

static void __attribute__((format(printf, 1, 2)))
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
static struct xr_link *
link_of(int number)
{
	return (struct xr_link *)(intptr_t)number;
}

static enum xr_status
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

static size_t
address(void *self, char *text, size_t cap)
{
	struct fake *f = self;

	return (size_t)snprintf(text, cap, "%s", f->address);
}

static enum xr_status
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

static enum xr_status
send_nothing(struct xr_link *link, const struct xr_message *m, bool *pending)
{
	(void)link;
	(void)m;
	*pending = false;
	return XR_OK;
}

static void
close_link(struct xr_link *link)
{
	note("L%d ", (int)(intptr_t)link);
}

static void
free_fake(void *self)
{
	struct fake *f = self;

	note("F%d ", f->no);
}

static enum xr_there
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

/* --- beginning ------------------------------------------------------------------------- */

static struct agent_wish
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

static void
begin(uint32_t count)
{
	struct agent_wish wish = wish_of(count);

	cr_assert_eq(agent_open(&wish, &err), XR_OK, "%s", err.text);
	agent_begin();
}

/* What was logged since the last call. */
static void
logged(const char *text)
{
	cr_expect_str_eq(log_text, text);
	log_text[0] = '\0';
}

static struct peer *
add(const char *name, uint32_t id, uint64_t incarnation, const char *addresses)
{
	struct peer *p = agent_add(&(struct agent_member){ name, id,
		incarnation, addresses, NULL, 3 });

	cr_assert_not_null(p);
	return p;
}

Test(agent, its_carriers_are_opened_in_order_with_what_it_is)
{
	static const uint8_t secret[AGENT_SECRET] =
		"a secret of 32 bytes, and one !";
	struct agent_wish wish = wish_of(2);
	const struct xr_carrier_opts *o = &fake[1].opts;

	wish.secret = secret;
	wish.interface = "lo";
	wish.store_host = "there";
	cr_assert_eq(agent_open(&wish, &err), XR_OK, "%s", err.text);
	logged("O0 O1 ");
	cr_expect_eq(o->size, sizeof(*o));
	cr_expect_eq(o->id, 5);
	cr_expect_eq(o->incarnation, 70);
	cr_expect_eq(memcmp(fake[1].secret, secret, sizeof(secret)), 0);
	cr_expect_str_eq(o->interface, "lo");
	cr_expect_str_eq(o->store_host, "there");
	cr_expect_eq(fake[1].host.size, sizeof(fake[1].host));
	cr_expect_null(fake[1].host.place(NULL, NULL, NULL, 7));
	cr_expect_eq(agent_state(), AGENT_JOINING);
	agent_begin();
	cr_expect_eq(agent_state(), AGENT_RUNS);
	cr_expect(agent_self()->self && agent_self()->id == 5 &&
		agent_self()->incarnation == 70);
	cr_expect_str_eq(agent_self()->name, "self");
	cr_expect_eq(agent_first(), agent_self());
	cr_expect_null(agent_next(agent_self()));
	agent_close(NULL, NULL);
	logged("F1 F0 ");
	cr_expect_eq(agent_state(), AGENT_NONE);
	cr_expect_null(agent_self());
	cr_expect_null(agent_first());
	cr_expect_null(agent_find("self"));
	cr_expect_null(agent_find_id(5));
}

Test(agent, a_carrier_that_is_not_here_is_left_out)
{
	char text[64];

	fake[1].opens = XR_E_NODEV;
	begin(3);
	logged("O0 O1 O2 ");
	cr_expect_eq(agent_addresses(text, sizeof(text)), 7);
	cr_expect_str_eq(text, "a:1 c:3");
	agent_close(NULL, NULL);
	logged("F2 F0 ");
}

Test(agent, a_carrier_that_fails_ends_the_beginning)
{
	struct agent_wish wish = wish_of(3);

	fake[1].opens = XR_E_SYS;
	cr_expect_eq(agent_open(&wish, &err), XR_E_SYS);
	cr_expect_str_eq(err.text, "open 1");
	logged("O0 O1 F0 ");
	cr_expect_eq(agent_state(), AGENT_NONE);
	/* And another one may begin. */
	fake[1].opens = XR_OK;
	begin(3);
	logged("O0 O1 O2 ");
	agent_close(NULL, NULL);
	logged("F2 F1 F0 ");
}

/* With the one to itself there are eight. */
Test(agent, there_are_seven_carriers_at_most)
{
	struct agent_wish wish = wish_of(8);

	cr_expect_eq(agent_open(&wish, &err), XR_E_RANGE);
	cr_expect_str_eq(err.text, "more than 7 carriers");
	logged("O0 O1 O2 O3 O4 O5 O6 F6 F5 F4 F3 F2 F1 F0 ");
	begin(7);
	agent_close(NULL, NULL);
}

Test(agent, there_is_one_at_a_time)
{
	struct agent_wish wish = wish_of(1);

	begin(1);
	log_text[0] = '\0';
	wish.devices = calloc(1, sizeof(*wish.devices));
	cr_expect_eq(agent_open(&wish, &err), XR_E_STATE);
	cr_expect_str_eq(err.text, "an agent runs in this process already");
	cr_expect_eq(agent_state(), AGENT_RUNS);
	logged("");
	agent_close(NULL, NULL);
}

/* Each allocation fails once: what memory is missing for is left out, or none begins. */
Test(agent, without_memory_none_begins)
{
	static const uint8_t secret[AGENT_SECRET] = "secret";
	struct agent_wish wish = wish_of(1);
	unsigned at, failed = 0;
	enum xr_status status;

	wish.secret = secret;
	was_short = true;
	for (at = 1; was_short && at < 60; at++) {
		wish.devices = calloc(1, sizeof(*wish.devices));
		was_short = false;
		until_short = at;
		status = agent_open(&wish, &err);
		until_short = 0;
		cr_expect_eq(agent_state(),
			status == XR_OK ? AGENT_JOINING : AGENT_NONE);
		failed += status != XR_OK;
		if (status == XR_OK)
			agent_close(NULL, NULL);
	}
	cr_expect(failed > 2 && at < 60, "%u, %u", failed, at);
}

static unsigned looks;

static void
look(void *ctx)
{
	cr_expect_eq(ctx, &looks);
	cr_expect_eq(agent_state(), AGENT_CLOSING);
	looks++;
}

Test(agent, its_links_are_closed_before_its_carriers)
{
	struct peer *one, *two;

	begin(2);
	one = add("one", 1, 71, "a:9");
	two = add("two", 2, 72, "ab:9");
	add("three", 3, 73, "ab:9");
	peer_reach(one);
	peer_reach(two);
	log_text[0] = '\0';
	agent_close(look, &looks);
	cr_expect_eq(looks, 1);
	logged("L11 L1 F1 F0 ");
}

/* --- members ---------------------------------------------------------------------------- */

Test(agent, the_newest_bears_a_name_or_a_number)
{
	struct peer *one, *again, *last, *found = NULL;

	begin(1);
	one = add("one", 1, 71, "a:9");
	cr_expect_eq(one->rank, 3);
	cr_expect_eq(one->incarnation, 71);
	cr_expect_str_eq(one->addresses, "a:9");
	cr_expect_eq(agent_find("one"), one);
	cr_expect_eq(agent_find_id(1), one);
	again = add("one", 1, 72, "a:9");
	cr_expect_eq(agent_find("one"), again);
	cr_expect_eq(agent_find_id(1), again);
	last = add("last", XR_WORKER_ID_MAX, 73, "");
	cr_expect_eq(agent_find_id(XR_WORKER_ID_MAX), last);
	cr_expect_null(agent_add(&(struct agent_member){ "beyond",
		XR_WORKER_ID_MAX + 1, 1, "", NULL, 0 }));
	cr_expect_null(agent_find_id(XR_WORKER_ID_MAX + 1));
	cr_expect_null(agent_find("beyond"));
	cr_expect_eq(agent_first(), last);
	cr_expect_eq(agent_next(last), again);
	cr_expect_eq(agent_next(again), one);
	cr_expect_eq(agent_next(one), agent_self());
	cr_expect_eq(agent_peer("one", 9, &found, &err), XR_OK);
	cr_expect_eq(found, again);
	cr_expect_eq(agent_peer(NULL, XR_WORKER_ID_MAX, &found, &err), XR_OK);
	cr_expect_eq(found, last);
	cr_expect_eq(agent_peer(NULL, 5, &found, &err), XR_OK);
	cr_expect_eq(found, agent_self());
	/* Who has left is not to be found, whoever it was before. */
	peer_gone(again, false);
	found = NULL;
	cr_expect_eq(agent_peer("one", 0, &found, &err), XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "one (1) has left the group");
	cr_expect_null(found);
	agent_close(NULL, NULL);
}

/* Names of one bucket: more of them than there are buckets. */
Test(agent, names_of_one_hash_are_told_apart)
{
	struct peer *p[2000];
	char name[16];

	begin(1);
	for (uint32_t i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		p[i] = add(name, i, 1, "");
	}
	for (uint32_t i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		cr_expect_eq(agent_find(name), p[i]);
	}
	cr_expect_null(agent_find("n2000"));
	agent_close(NULL, NULL);
}

Test(agent, a_member_without_memory_is_not_added)
{
	const struct agent_member m = { "one", 1, 71, "a:9", NULL, 0 };
	unsigned at;

	begin(1);
	for (at = 1; agent_find("one") == NULL && at < 10; at++) {
		until_short = at;
		cr_expect(agent_add(&m) == agent_find("one"));
		until_short = 0;
	}
	cr_expect_eq(at, 4);
	agent_close(NULL, NULL);
}

/* --- ways --------------------------------------------------------------------------------- */

/* The first carrier that has an address there, and a link. */
Test(agent, the_first_way_that_works_is_taken)
{
	struct peer *p;

	begin(3);
	logged("O0 O1 O2 ");
	p = add("one", 1, 71, "c:9 ab:8 a:7 a:6");
	peer_reach(p);
	logged("C0 a:7 ");
	cr_expect_eq(fake[0].id, 1);
	cr_expect_eq(fake[0].incarnation, 71);
	cr_expect_eq(fake[0].peer, p);
	cr_expect_eq(p->link, link_of(1));
	cr_expect_eq(p->carrier, &carrier[0]);
	cr_expect_eq(p->carrier_self, &fake[0]);
	cr_expect_eq(atomic_load(&p->state), PEER_UP);
	peer_reach(p);
	logged("");
	fake[0].connects = XR_E_NODEV;
	p = add("two", 2, 72, "c:9 a:7 ab:8");
	peer_reach(p);
	logged("C0 a:7 C1 ab:8 ");
	cr_expect_eq(p->link, link_of(11));
	cr_expect_eq(p->carrier, &carrier[1]);
	fake[1].connects = XR_E_FENCED;
	p = add("three", 3, 73, "ab:8 a:7");
	peer_reach(p);
	logged("C0 a:7 C1 ab:8 ");
	cr_expect_eq(atomic_load(&p->state), PEER_LOST);
	cr_expect_str_eq(p->why, "connect 1");
	cr_expect_null(p->link);
	cr_expect_neq(atomic_load(&p->loss), 0);
	/* Only by the loop to oneself. */
	peer_reach(agent_self());
	logged("");
	cr_expect_eq(atomic_load(&agent_self()->state), PEER_UP);
	agent_close(NULL, NULL);
	logged("L11 L1 F2 F1 F0 ");
}

Test(agent, what_is_no_address_leads_nowhere)
{
	static const char *const row[] = { "", "a", "a ", "b:1", "xa:1", "ab",
		"a;1 ab;1", "abc:1" };
	char longest[XR_ADDRESS_MAX + 2], text[XR_ADDRESS_MAX + 12];
	struct peer *p;
	char name[8];

	begin(2);
	logged("O0 O1 ");
	for (uint32_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		snprintf(name, sizeof(name), "n%u", i);
		p = add(name, i, 1, row[i]);
		peer_reach(p);
		logged("");
		cr_expect_eq(atomic_load(&p->state), PEER_LOST, "%s", row[i]);
		cr_expect_str_eq(p->why, "no way to reach it");
	}
	/* As long as an address may be, and a byte longer. */
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "ab:", 3);
	longest[XR_ADDRESS_MAX + 1] = '\0';
	p = add("longer", 20, 1, longest);
	peer_reach(p);
	logged("");
	longest[XR_ADDRESS_MAX] = '\0';
	p = add("longest", 21, 1, longest);
	peer_reach(p);
	snprintf(text, sizeof(text), "C1 %s ", longest);
	logged(text);
	agent_close(NULL, NULL);
}

Test(agent, a_link_that_was_accepted_is_the_peers_first)
{
	struct xr_carrier_host *h = &fake[1].host;
	struct peer *p;

	begin(2);
	p = add("one", 1, 71, "a:1");
	cr_expect_null(h->accepted(h->ctx, 1, 70, link_of(15)));
	cr_expect_null(h->accepted(h->ctx, 2, 71, link_of(15)));
	cr_expect_null(h->accepted(h->ctx, XR_WORKER_ID_MAX, 71, link_of(15)));
	cr_expect_null(h->accepted(h->ctx, XR_WORKER_ID_MAX + 1, 71,
		link_of(15)));
	cr_expect_eq(atomic_load(&p->state), PEER_NEW);
	cr_expect_eq(h->accepted(h->ctx, 1, 71, link_of(15)), p);
	cr_expect_eq(atomic_load(&p->state), PEER_UP);
	cr_expect_eq(p->link, link_of(15));
	cr_expect_eq(p->carrier, &carrier[1]);
	cr_expect_eq(p->carrier_self, &fake[1]);
	cr_expect_eq(h->accepted(h->ctx, 1, 71, link_of(16)), p);
	cr_expect_eq(p->link, link_of(15));
	p = add("last", XR_WORKER_ID_MAX, 72, "a:1");
	cr_expect_eq(h->accepted(h->ctx, XR_WORKER_ID_MAX, 72, link_of(17)), p);
	logged("O0 O1 ");
	agent_close(NULL, NULL);
	logged("L17 L15 F1 F0 ");
}

static struct peer *lost[4];
static unsigned losses;

static void
note_loss(struct peer *p)
{
	cr_expect(lead_delivers());
	lost[losses++] = p;
}

Test(agent, a_link_that_is_lost_is_closed_and_its_peer_told_of)
{
	struct agent_wish wish = wish_of(1);
	struct xr_carrier_host *h = &fake[0].host;
	struct peer *one, *two;

	wish.lost = note_loss;
	cr_assert_eq(agent_open(&wish, &err), XR_OK);
	one = add("one", 1, 71, "a:1");
	two = add("two", 2, 72, "a:2");
	peer_reach(one);
	peer_reach(two);
	log_text[0] = '\0';
	/* Not its own link. */
	h->lost(h->ctx, one, link_of(7), "cut off");
	logged("");
	cr_expect_eq(one->link, link_of(1));
	cr_expect_eq(atomic_load(&one->state), PEER_LOST);
	cr_expect_str_eq(one->why, "cut off");
	h->lost(h->ctx, one, link_of(1), "again");
	logged("L1 ");
	cr_expect_null(one->link);
	cr_expect_str_eq(one->why, "cut off");
	cr_expect_eq(losses, 2);
	cr_expect_eq(lost[0], one);
	/* That was expected. */
	peer_gone(two, false);
	h->lost(h->ctx, two, link_of(1), "it left");
	cr_expect_eq(losses, 2);
	cr_expect_eq(atomic_load(&two->state), PEER_LEFT);
	agent_close(NULL, NULL);
}

static unsigned sent;

static void
count_sent(struct token *t)
{
	(void)t;
	sent++;
}

Test(agent, what_a_carrier_has_sent_is_told_of_by_its_token)
{
	struct token token = { count_sent };
	struct xr_carrier_host *h = &fake[0].host;

	begin(1);
	h->sent(h->ctx, NULL);
	cr_expect_eq(sent, 0);
	h->sent(h->ctx, &token);
	cr_expect_eq(sent, 1);
	agent_close(NULL, NULL);
}

/* NO is the last word; YES says more than that nothing answers. */
Test(agent, whether_one_is_there_is_asked_of_all_ways)
{
	static const struct {
		enum xr_there is[3], all;
		const char *log;
	} row[] = {
		{ { XR_THERE_UNKNOWN, XR_THERE_UNKNOWN, XR_THERE_UNKNOWN },
			XR_THERE_UNKNOWN, "T0 a:1 T1 ab:2 T2 c:3 " },
		{ { XR_THERE_YES, XR_THERE_UNKNOWN, XR_THERE_SILENT },
			XR_THERE_YES, "T0 a:1 T1 ab:2 T2 c:3 " },
		{ { XR_THERE_SILENT, XR_THERE_YES, XR_THERE_UNKNOWN },
			XR_THERE_YES, "T0 a:1 T1 ab:2 T2 c:3 " },
		{ { XR_THERE_SILENT, XR_THERE_UNKNOWN, XR_THERE_SILENT },
			XR_THERE_SILENT, "T0 a:1 T1 ab:2 T2 c:3 " },
		{ { XR_THERE_UNKNOWN, XR_THERE_SILENT, XR_THERE_UNKNOWN },
			XR_THERE_SILENT, "T0 a:1 T1 ab:2 T2 c:3 " },
		{ { XR_THERE_YES, XR_THERE_NO, XR_THERE_YES }, XR_THERE_NO,
			"T0 a:1 T1 ab:2 " },
		{ { XR_THERE_NO, XR_THERE_YES, XR_THERE_YES }, XR_THERE_NO,
			"T0 a:1 " },
	};

	begin(4);
	log_text[0] = '\0';
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		for (int k = 0; k < 3; k++)
			fake[k].there = row[i].is[k];
		cr_expect_eq(agent_there("d:4 c:3 ab:2 a:1", 9, 99), row[i].all,
			"row %zu", i);
		logged(row[i].log);
		cr_expect_eq(fake[0].id, 9);
		cr_expect_eq(fake[0].incarnation, 99);
	}
	fake[1].there = XR_THERE_YES;
	cr_expect_eq(agent_there("ab:2", 9, 99), XR_THERE_YES);
	logged("T1 ab:2 ");
	cr_expect_eq(agent_there("", 9, 99), XR_THERE_UNKNOWN);
	logged("");
	agent_close(NULL, NULL);
}

Test(agent, its_addresses_are_those_of_its_carriers)
{
	char text[16];

	begin(3);
	cr_expect_eq(agent_addresses(text, sizeof(text)), 12);
	cr_expect_str_eq(text, "a:1 ab:2 c:3");
	/* What has no room is cut off. */
	for (size_t cap = 1; cap <= 13; cap++) {
		memset(text, '-', sizeof(text));
		agent_addresses(text, cap);
		cr_expect_eq(strlen(text), cap - 1);
		cr_expect_eq(strncmp(text, "a:1 ab:2 c:3", cap - 1), 0);
		cr_expect_eq(text[cap], '-');
	}
	agent_close(NULL, NULL);
	fake[1].address = "";
	cr_assert_eq(agent_open(&(struct agent_wish){ .name = "self",
					.carriers = carriers,
					.carrier_count = 3,
					.threads = 1,
					.timeout = 1 },
			     &err),
		XR_OK);
	cr_expect_eq(agent_addresses(text, sizeof(text)), 7);
	cr_expect_str_eq(text, "a:1 c:3");
	agent_close(NULL, NULL);
}

/* --- who may call ---------------------------------------------------------------------------- */

#define NONE "no agent runs in this process: xr_rpc_init() comes first"

static bool
may_enter(void)
{
	enum xr_status status;

	err.text[0] = '\0';
	status = agent_enter(&err);
	if (status == XR_OK) {
		agent_leave();
		return true;
	}
	cr_expect_eq(status, XR_E_STATE);
	cr_expect_str_eq(err.text, NONE);
	return false;
}

static bool
may_come(void)
{
	if (!agent_come())
		return false;
	agent_leave();
	return true;
}

Test(agent, a_program_calls_when_it_has_begun)
{
	struct agent_wish wish = wish_of(1);

	for (int i = 0; i < 2; i++) {
		wish.is_new = i == 1;
		cr_expect_not(may_enter());
		cr_expect_not(may_come());
		cr_assert_eq(agent_open(&wish, &err), XR_OK);
		cr_expect_not(may_enter());
		cr_expect(may_come());
		/* A function that serves a call of one who knows this process. */
		lead_deliver_begin();
		cr_expect_eq(may_enter(), !wish.is_new);
		cr_expect(may_come());
		lead_deliver_end();
		agent_begin();
		cr_expect(may_enter());
		cr_expect(may_come());
		agent_close(NULL, NULL);
	}
	cr_expect_not(may_enter());
	cr_expect_not(may_come());
}

static sem_t began, over;
static _Atomic bool entered;

/* By one of the crew. */
static void
enter(struct work *work)
{
	(void)work;
	cr_expect(crew_is_member());
	sem_post(&began);
	atomic_store(&entered, may_enter());
	sem_post(&over);
}

Test(agent, a_function_calls_at_once_if_all_know_this_process)
{
	struct agent_wish wish = wish_of(1);
	struct work work = { .run = enter };

	sem_init(&began, 0, 0);
	sem_init(&over, 0, 0);
	cr_assert_eq(agent_open(&wish, &err), XR_OK);
	cr_expect(crew_post(&work));
	sem_wait(&over);
	cr_expect(atomic_load(&entered));
	agent_close(NULL, NULL);
}

Test(agent, a_function_of_a_new_member_calls_when_it_has_begun)
{
	struct agent_wish wish = wish_of(1);
	struct work work = { .run = enter };

	wish.is_new = true;
	sem_init(&began, 0, 0);
	sem_init(&over, 0, 0);
	cr_assert_eq(agent_open(&wish, &err), XR_OK);
	cr_expect(crew_post(&work));
	sem_wait(&began);
	cr_expect_not(atomic_load(&entered));
	agent_begin();
	sem_wait(&over);
	cr_expect(atomic_load(&entered));
	agent_close(NULL, NULL);
}

/* Nobody is in the agent when they have returned. */
static void *
set_and_get(void *unused)
{
	int64_t ns;

	cr_expect_eq(xr_rpc_set_timeout(1, &err), XR_OK);
	cr_expect_eq(xr_rpc_get_timeout(&ns, &err), XR_OK);
	cr_expect_eq(xr_rpc_set_timeout(-2, &err), XR_E_INVAL);
	sem_post(&began);
	sem_wait(&over);
	return unused;
}

Test(agent, an_end_does_not_wait_for_a_thread_that_has_left)
{
	pthread_t thread;

	sem_init(&began, 0, 0);
	sem_init(&over, 0, 0);
	begin(1);
	cr_assert_eq(pthread_create(&thread, NULL, set_and_get, NULL), 0);
	sem_wait(&began);
	agent_close(NULL, NULL);
	sem_post(&over);
	pthread_join(thread, NULL);
}

Test(agent, a_forked_process_has_none)
{
	struct work work = { .run = enter };
	int status = -1;
	pid_t pid;

	begin(1);
	pid = fork();
	cr_assert_neq(pid, -1);
	if (pid == 0) {
		alarm(20);
		_exit((agent_state() == AGENT_FORKED ? 1 : 0) |
			(agent_enter(&err) == XR_E_STATE ? 2 : 0) |
			(!agent_come() ? 4 : 0) | (!crew_post(&work) ? 8 : 0));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status));
	cr_expect_eq(WEXITSTATUS(status), 15);
	cr_expect_eq(agent_state(), AGENT_RUNS);
	agent_close(NULL, NULL);
	/* Without one there is nothing to give up. */
	pid = fork();
	if (pid == 0)
		_exit(agent_state() == AGENT_NONE ? 7 : 1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(WEXITSTATUS(status), 7);
}

Test(agent, a_timeout_is_its_own_or_the_agents)
{
	int64_t ns = 0;

	begin(1);
	cr_expect_eq(agent_timeout(XR_TIMEOUT_DEFAULT, &ns, &err), XR_OK);
	cr_expect_eq(ns, XR_SECONDS(7));
	cr_expect_eq(agent_timeout_field(0, &ns, &err), XR_OK);
	cr_expect_eq(ns, XR_SECONDS(7));
	cr_expect_eq(agent_timeout(0, &ns, &err), XR_OK);
	cr_expect_eq(ns, 0);
	cr_expect_eq(agent_timeout_field(1, &ns, &err), XR_OK);
	cr_expect_eq(ns, 1);
	cr_expect_eq(agent_timeout(-2, &ns, &err), XR_E_INVAL);
	cr_expect_eq(agent_timeout_field(-2, &ns, &err), XR_E_INVAL);
	cr_expect_eq(xr_rpc_set_timeout(XR_SECONDS(9), &err), XR_OK);
	cr_expect_eq(xr_rpc_get_timeout(&ns, &err), XR_OK);
	cr_expect_eq(ns, XR_SECONDS(9));
	cr_expect_eq(agent_timeout(XR_TIMEOUT_DEFAULT, &ns, &err), XR_OK);
	cr_expect_eq(ns, XR_SECONDS(9));
	cr_expect_eq(xr_rpc_set_timeout(XR_TIMEOUT_NEVER, &err), XR_OK);
	cr_expect_eq(xr_rpc_get_timeout(&ns, &err), XR_OK);
	cr_expect_eq(ns, INT64_MAX);
	/* As it was when it joined. */
	cr_expect_eq(xr_rpc_set_timeout(XR_TIMEOUT_DEFAULT, &err), XR_OK);
	cr_expect_eq(xr_rpc_get_timeout(&ns, &err), XR_OK);
	cr_expect_eq(ns, XR_SECONDS(7));
	agent_close(NULL, NULL);
	ns = 3;
	cr_expect_eq(xr_rpc_set_timeout(1, &err), XR_E_STATE);
	cr_expect_eq(xr_rpc_get_timeout(&ns, &err), XR_E_STATE);
	cr_expect_eq(ns, 3);
}
