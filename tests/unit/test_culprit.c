/* SPDX-License-Identifier: Apache-2.0 */
/* test_culprit.c - who failed first, by evidence in any order. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/job/culprit.h"

#define MOST      6
#define CODE(n)   ((n) << 8) /* of waitpid(2): ended with exit status n */
#define FAILED    .failed = true
#define STOPPED   .failed = true, .after_stop = true, .status = SIGTERM
#define EXITING   .was_exiting = true
#define CLOSED(n) .closed = (n) /* order of lifelines */
#define NOBODY    CULPRIT_NOBODY
#define BLAMES(n) .blames = (n) + 1
#define NOT_BEGUN .failed = true, .death = 0

struct row {
	const char *claim;
	uint32_t want, n;
	struct evidence e[MOST];
};

static const struct row rows[] = {
	{ "all ended well", NOBODY, 3,
		{ { 0, .death = 2 }, { 1, .death = 1 }, { 2, .death = 3 } } },
	{ "all live", NOBODY, 2, { { 0, .death = 0 }, { 1, .death = 0 } } },
	{ "the only one that failed", 1, 3,
		{ { 0, .death = 1 },
			{ 1, .death = 3, FAILED, .status = CODE(3) },
			{ 2, .death = 2 } } },
	{ "the first death, not the lowest rank", 2, 3,
		{ { 0, .death = 3, FAILED, .status = CODE(1) },
			{ 1, .death = 2, FAILED, .status = CODE(1) },
			{ 2, .death = 1, FAILED, .status = CODE(1) } } },
	{ "a fatal signal has no bonus over an exit code", 0, 2,
		{ { 0, .death = 1, FAILED, .status = CODE(1) },
			{ 1, .death = 2, FAILED, .status = SIGSEGV } } },
	{ "nor has an exit code over a signal", 1, 2,
		{ { 0, .death = 2, FAILED, .status = CODE(1) },
			{ 1, .death = 1, FAILED, .status = SIGSEGV } } },
	{ "deaths after the stop are no cause", NOBODY, 3,
		{ { 0, .death = 1, STOPPED }, { 1, .death = 2, STOPPED },
			{ 2, .death = 3, STOPPED } } },
	{ "not even when they come first", 2, 3,
		{ { 0, .death = 1, STOPPED }, { 1, .death = 2, STOPPED },
			{ 2, .death = 3, FAILED, .status = CODE(1) } } },
	{ "nor when they were exiting while the first died of a pipe", 1, 2,
		{ { 0, .death = 2, STOPPED, EXITING },
			{ 1, .death = 1, FAILED, .status = SIGPIPE } } },
	{ "what could not be started comes before every death", 3, 4,
		{ { 0, .death = 1, FAILED, .status = SIGSEGV },
			{ 1, .death = 2, FAILED, .status = CODE(1) },
			{ 2, .death = 3 }, { 3, NOT_BEGUN } } },
	{ "also before a broken pipe and what made it", 2, 3,
		{ { 0, .death = 1, FAILED, .status = SIGPIPE },
			{ 1, .death = 2, FAILED, EXITING, .status = CODE(1) },
			{ 2, NOT_BEGUN } } },
	{ "a broken pipe alone is a cause", 1, 2,
		{ { 0, .death = 1 },
			{ 1, .death = 2, FAILED, .status = SIGPIPE } } },
	{ "a broken pipe yields to one that was dying already", 1, 2,
		{ { 0, .death = 1, FAILED, .status = SIGPIPE },
			{ 1, .death = 2, FAILED, EXITING,
				.status = SIGSEGV } } },
	{ "and to the first of them", 2, 4,
		{ { 0, .death = 1, FAILED, .status = SIGPIPE },
			{ 1, .death = 4, FAILED, EXITING, .status = CODE(1) },
			{ 2, .death = 3, FAILED, EXITING, .status = CODE(1) },
			{ 3, .death = 2, FAILED, EXITING,
				.status = SIGPIPE } } },
	{ "but not to one that failed later by itself", 0, 2,
		{ { 0, .death = 1, FAILED, .status = SIGPIPE },
			{ 1, .death = 2, FAILED, .status = SIGSEGV } } },
	{ "nor to one that was dying well", 0, 2,
		{ { 0, .death = 1, FAILED, .status = SIGPIPE },
			{ 1, .death = 2, EXITING } } },
	{ "the first of several broken pipes", 2, 3,
		{ { 0, .death = 3, FAILED, EXITING, .status = SIGPIPE },
			{ 1, .death = 2, FAILED, EXITING, .status = SIGPIPE },
			{ 2, .death = 1, FAILED, .status = SIGPIPE } } },
	{ "a broken pipe with a core is one as well", 1, 2,
		{ { 0, .death = 1, FAILED, .status = SIGPIPE | 0x80 },
			{ 1, .death = 2, FAILED, EXITING,
				.status = CODE(9) } } },
	{ "exit status 13 is no broken pipe", 0, 2,
		{ { 0, .death = 1, FAILED, .status = CODE(SIGPIPE) },
			{ 1, .death = 2, FAILED, EXITING,
				.status = CODE(1) } } },
	{ "nor is 141", 0, 2,
		{ { 0, .death = 1, FAILED, .status = CODE(128 + SIGPIPE) },
			{ 1, .death = 2, FAILED, EXITING,
				.status = CODE(1) } } },
	{ "of two that could not be started the lower", 1, 3,
		{ { 0, .death = 1 }, { 1, NOT_BEGUN }, { 2, NOT_BEGUN } } },
	{ "a lifeline that ended before goes before a death", 1, 3,
		{ { 0, .death = 1, FAILED, CLOSED(3), .status = CODE(1) },
			{ 1, .death = 3, FAILED, EXITING, CLOSED(1),
				.status = SIGSEGV },
			{ 2, .death = 2, FAILED, EXITING, CLOSED(2),
				.status = CODE(1) } } },
	{ "also where the first death is a broken pipe", 0, 2,
		{ { 0, .death = 1, FAILED, CLOSED(1), .status = SIGPIPE },
			{ 1, .death = 2, FAILED, EXITING, CLOSED(2),
				.status = SIGSEGV } } },
	{ "one that says nothing yields to none and gains nothing", 0, 3,
		{ { 0, .death = 1, FAILED, CLOSED(2), .status = CODE(1) },
			{ 1, .death = 2, FAILED, EXITING, .status = SIGSEGV },
			{ 2, .death = 3, FAILED, EXITING, CLOSED(3),
				.status = CODE(1) } } },
	{ "a first death without a lifeline is not compared by it", 0, 2,
		{ { 0, .death = 1, FAILED, .status = CODE(1) },
			{ 1, .death = 2, FAILED, EXITING, CLOSED(1),
				.status = CODE(2) } } },
	{ "lifelines of those that ended well say nothing", 1, 2,
		{ { 0, .death = 2, EXITING, CLOSED(1) },
			{ 1, .death = 1, FAILED, CLOSED(2),
				.status = CODE(1) } } },
	{ "nor do those of the stopped", 1, 2,
		{ { 0, .death = 2, STOPPED, CLOSED(1) },
			{ 1, .death = 1, FAILED, CLOSED(2),
				.status = CODE(1) } } },
	{ "not started goes before every lifeline", 1, 2,
		{ { 0, .death = 1, FAILED, CLOSED(1), .status = SIGSEGV },
			{ 1, NOT_BEGUN } } },
	{ "whoever was exiting yields to an earlier death of another kind", 0,
		2,
		{ { 0, .death = 1, FAILED, .status = CODE(1) },
			{ 1, .death = 2, FAILED, EXITING,
				.status = SIGSEGV } } },
	{ "whom all who died before it blame", 2, 3,
		{ { 0, .death = 1, FAILED, CLOSED(1), BLAMES(2),
			  .status = CODE(1) },
			{ 1, .death = 2, FAILED, EXITING, CLOSED(2), BLAMES(2),
				.status = CODE(1) },
			{ 2, .death = 3, FAILED, EXITING, CLOSED(3),
				.status = SIGKILL } } },
	{ "also at the end of a chain", 1, 3,
		{ { 0, .death = 1, FAILED, BLAMES(2), .status = CODE(1) },
			{ 1, .death = 3, FAILED, EXITING, .status = SIGKILL },
			{ 2, .death = 2, FAILED, EXITING, BLAMES(1),
				.status = CODE(1) } } },
	{ "who blames one that ended well is no victim", 0, 2,
		{ { 0, .death = 2, FAILED, BLAMES(1), .status = CODE(1) },
			{ 1, .death = 1 } } },
	{ "nor who blames one that lived until the stop", 0, 2,
		{ { 0, .death = 1, FAILED, BLAMES(1), .status = CODE(1) },
			{ 1, .death = 2, STOPPED } } },
	{ "nor who blames itself, or nobody that is there", 1, 3,
		{ { 0, .death = 3, FAILED, BLAMES(0), .status = CODE(1) },
			{ 1, .death = 1, FAILED, BLAMES(7), .status = CODE(1) },
			{ 2, .death = 2, FAILED, BLAMES(1),
				.status = CODE(1) } } },
	{ "of two who blame each other the first that died", 1, 2,
		{ { 0, .death = 2, FAILED, BLAMES(1), .status = CODE(1) },
			{ 1, .death = 1, FAILED, BLAMES(0),
				.status = CODE(1) } } },
};

static void
swap(struct evidence *a, struct evidence *b)
{
	struct evidence c = *a;

	*a = *b;
	*b = c;
}

/* Every order of e[at..n). */
static void
permute(const struct row *row, struct evidence *e, uint32_t at)
{
	if (at == row->n) {
		cr_expect_eq(culprit_of(e, row->n), row->want, "%s: rank %d",
			row->claim, (int)culprit_of(e, row->n));
		return;
	}
	for (uint32_t i = at; i < row->n; i++) {
		swap(&e[at], &e[i]);
		permute(row, e, at + 1);
		swap(&e[at], &e[i]);
	}
}

Test(culprit, the_table_holds_in_every_order_of_the_evidence)
{
	struct evidence e[MOST];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memcpy(e, rows[i].e, sizeof(e));
		permute(&rows[i], e, 0);
	}
}

Test(culprit, no_evidence_is_nobody)
{
	cr_expect_eq(culprit_of(NULL, 0), NOBODY);
}

static uint32_t
below(uint32_t n)
{
	return (uint32_t)random() % n;
}

/* Deaths in a random order; a few never happened. */
static void
invent(struct evidence *e, uint32_t n)
{
	static const int ends[] = { 0, CODE(1), CODE(77), SIGSEGV, SIGPIPE,
		SIGPIPE, SIGTERM };

	for (uint32_t i = 0; i < n; i++)
		e[i] = (struct evidence){
			.rank = i,
			.death = i + 1,
			.status = ends[below(7)],
			.was_exiting = below(2),
			.after_stop = below(3) == 0,
		};
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = below(i), death = e[i - 1].death;

		e[i - 1].death = e[k].death;
		e[k].death = death;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (below(4) != 0 && random() % 2 != 0)
			e[i].closed = 1 + (e[i].death * 7 + 3) % 41;
		e[i].failed = e[i].status != 0;
		if (below(8) == 0)
			e[i] = (struct evidence){ .rank = i }; /* it lives */
	}
}

static bool
counts(const struct evidence *e)
{
	return e->failed && !e->after_stop;
}

static const struct evidence *
first_of(const struct evidence *e, uint32_t n)
{
	const struct evidence *first = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (counts(&e[i]) && (!first || e[i].death < first->death))
			first = &e[i];
	return first;
}

/* May @e take the place of @first as the cause? */
static bool
goes_before(const struct evidence *e, const struct evidence *first)
{
	if (!counts(e) || e == first)
		return false;
	if (first->closed != 0)
		return e->closed != 0 && e->closed < first->closed;
	return (first->status & 0x7f) == SIGPIPE && e->was_exiting &&
		(e->status & 0x7f) != SIGPIPE;
}

/* The first death, or what goes before it; of several the first. */
static void
expect_fair(const struct evidence *e, uint32_t n)
{
	const struct evidence *first = first_of(e, n), *want = first;
	uint32_t rank = culprit_of(e, n);

	if (first == NULL) {
		cr_assert_eq(rank, NOBODY);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!goes_before(&e[i], first))
			continue;
		if (want == first ||
			(first->closed != 0 ? e[i].closed < want->closed :
					      e[i].death < want->death))
			want = &e[i];
	}
	cr_assert_eq(rank, want->rank);
}

Test(culprit, random_evidence_never_blames_a_victim)
{
	struct evidence e[40], turned[40];

	srandom(20261121);
	for (int round = 0; round < 20000; round++) {
		uint32_t n = 1 + below(40);

		invent(e, n);
		expect_fair(e, n);
		for (uint32_t i = 0; i < n; i++)
			turned[i] = e[n - 1 - i];
		cr_assert_eq(culprit_of(turned, n), culprit_of(e, n));
	}
}
