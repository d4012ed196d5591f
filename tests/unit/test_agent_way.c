/* SPDX-License-Identifier: Apache-2.0 */
/* test_agent_way.c - the ways to members, by carriers that the test makes up. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <xrun/error.h>

#include "tests/unit/carriers_rig.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/parcel.h"

TestSuite(agent_way, .timeout = 20);

/* --- ways --------------------------------------------------------------------------------- */

/* The first carrier that has an address there, and a link. */
Test(agent_way, the_first_way_that_works_is_taken)
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

Test(agent_way, what_is_no_address_leads_nowhere)
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

Test(agent_way, a_link_that_was_accepted_is_the_peers_first)
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

Test(agent_way, a_link_that_is_lost_is_closed_and_its_peer_told_of)
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

Test(agent_way, what_a_carrier_has_sent_is_told_of_by_its_token)
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
Test(agent_way, whether_one_is_there_is_asked_of_all_ways)
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

Test(agent_way, its_addresses_are_those_of_its_carriers)
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
	/* Not of those that were there before. */
	begin(1);
	cr_expect_eq(agent_addresses(text, sizeof(text)), 3);
	cr_expect_str_eq(text, "a:1");
	agent_close(NULL, NULL);
}
