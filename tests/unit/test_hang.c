/* SPDX-License-Identifier: Apache-2.0 */
/* test_hang.c - which ranks hang, by signs of life. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/job/hang.h"
#include "launcher/sup/hang_differ.h"

#define T     100 /* --hang-timeout */
#define NOW   1000
#define LIVES .lives = true
#define SIGN  .sign_ns
#define AT    .told_ns

struct row {
	const char *claim;
	enum hang want;
	unsigned hangs; /* a bit a rank */
	int64_t due;    /* of a verdict: hang_age() */
	struct hang_rank rank[3];
};

static const struct row rows[] = {
	{ "nobody lives", HANG_NO, 0, INT64_MAX, { { 0 }, { 0 }, { 0 } } },
	{ "all gave a sign", HANG_NO, 0, 1050,
		{ { LIVES, SIGN = 950 }, { LIVES, SIGN = 990 },
			{ LIVES, SIGN = 1000 } } },
	{ "one gave none for the whole time", HANG_SILENT, 2, 100,
		{ { LIVES, SIGN = 913 }, { LIVES, SIGN = 900 },
			{ LIVES, SIGN = 1000 } } },
	{ "a verdict waits for a rank that may hang, too", HANG_NO, 0, 1012,
		{ { LIVES, SIGN = 912 }, { LIVES, SIGN = 900 },
			{ LIVES, SIGN = 1000 } } },
	{ "and then names both", HANG_SILENT, 3, 112,
		{ { LIVES, SIGN = 900 }, { LIVES, SIGN = 888 },
			{ LIVES, SIGN = 1000 } } },
	{ "the dead are silent", HANG_NO, 0, 1090,
		{ { SIGN = 0 }, { LIVES, SIGN = 990 }, { SIGN = 1 } } },
	{ "somebody stopped it", HANG_NO, 0, 1090,
		{ { LIVES, .excused = true, SIGN = 0 }, { LIVES, SIGN = 990 },
			{ LIVES, SIGN = 990 } } },
	{ "busy, and behind", HANG_UNEVEN, 4, 120,
		{ { LIVES, SIGN = 1000, .told = 8, AT = 900 },
			{ LIVES, SIGN = 1000, .told = 8, AT = 900 },
			{ LIVES, SIGN = 1000, .told = 7, AT = 880 } } },
	{ "not yet", HANG_NO, 0, 1001,
		{ { LIVES, SIGN = 1000, .told = 8, AT = 901 },
			{ LIVES, SIGN = 1000, .told = 8, AT = 900 },
			{ LIVES, SIGN = 1000, .told = 7, AT = 880 } } },
	{ "busy, and all as far: twice the time", HANG_NO, 0, 1099,
		{ { LIVES, SIGN = 1000, .told = 8, AT = 899 },
			{ LIVES, SIGN = 1000, .told = 8, AT = 880 },
			{ LIVES, SIGN = 1000, .told = 8, AT = 890 } } },
	{ "and then all hang", HANG_EVEN, 7, 200,
		{ { LIVES, SIGN = 1000, .told = 8, AT = 800 },
			{ LIVES, SIGN = 1000, .told = 8, AT = 790 },
			{ LIVES, SIGN = 1000, .told = 8, AT = 700 } } },
	{ "one that never told may be busy", HANG_NO, 0, 1100,
		{ { LIVES, SIGN = 1000, .told = 8, AT = 10 },
			{ LIVES, SIGN = 1000, .told = 0, AT = 10 },
			{ LIVES, SIGN = 1000, .told = 7, AT = 10 } } },
	{ "who ended is not behind", HANG_NO, 0, 1050,
		{ { LIVES, SIGN = 1000, .told = 8, AT = 850 },
			{ .told = 2, AT = 10 },
			{ LIVES, SIGN = 1000, .told = 8, AT = 850 } } },
	{ "the silent wait for who is behind, whoever else goes on",
		HANG_UNEVEN, 2, 110,
		{ { LIVES, SIGN = 900, .told = 8, AT = 900 },
			{ LIVES, SIGN = 1000, .told = 7, AT = 890 },
			{ LIVES, SIGN = 1000, .told = 9, AT = 1000 } } },
	{ "two are behind: for as long as the first of them", HANG_UNEVEN, 3,
		130,
		{ { LIVES, SIGN = 1000, .told = 7, AT = 870 },
			{ LIVES, SIGN = 1000, .told = 7, AT = 900 },
			{ LIVES, SIGN = 890, .told = 8, AT = 890 } } },
	{ "one of those behind told of late: the silent hang", HANG_SILENT, 4,
		110,
		{ { LIVES, SIGN = 1000, .told = 7, AT = 870 },
			{ LIVES, SIGN = 1000, .told = 7, AT = 901 },
			{ LIVES, SIGN = 890, .told = 8, AT = 850 } } },
	{ "the silent is behind itself", HANG_UNEVEN, 1, 150,
		{ { LIVES, SIGN = 850, .told = 6, AT = 850 },
			{ LIVES, SIGN = 1000, .told = 8, AT = 1000 },
			{ LIVES, SIGN = 1000, .told = 8, AT = 1000 } } },
	{ "nobody is behind, and one is silent", HANG_SILENT, 1, 150,
		{ { LIVES, SIGN = 850, .told = 8, AT = 850 },
			{ LIVES, SIGN = 1000, .told = 8, AT = 1000 },
			{ LIVES, SIGN = 1000, .told = 8, AT = 1000 } } },
	{ "one that tells nothing is not behind: the silent hangs", HANG_SILENT,
		1, 150,
		{ { LIVES, SIGN = 850, .told = 8, AT = 850 },
			{ LIVES, SIGN = 1000, .told = 0, AT = 10 },
			{ LIVES, SIGN = 1000, .told = 9, AT = 1000 } } },
	{ "of one that is silent not all is known yet", HANG_NO, 0, 1025,
		{ { LIVES, SIGN = 850 }, { LIVES, SIGN = 850, .sure_ns = 1025 },
			{ LIVES, SIGN = 1000 } } },
	{ "of one that is not there is less to know", HANG_SILENT, 1, 150,
		{ { LIVES, SIGN = 850 }, { LIVES, SIGN = 950, .sure_ns = 1025 },
			{ LIVES, .excused = true, .sure_ns = 1025 } } },
	{ "nobody is behind one who is held up", HANG_NO, 0, 1100,
		{ { LIVES, SIGN = 1000, .told = 8, AT = 10 },
			{ LIVES, .excused = true, SIGN = 1000, .told = 7,
				AT = 10 },
			{ LIVES, SIGN = 1000, .told = 8, AT = 10 } } },
};

Test(hang, the_verdict_follows_from_the_signs)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct row row = rows[i];
		unsigned hangs = 0;
		int64_t due;

		cr_expect_eq(hang_judge(row.rank, 3, T, NOW, &due), row.want,
			"%s", row.claim);
		for (unsigned r = 0; r < 3; r++)
			hangs |= (unsigned)row.rank[r].hangs << r;
		cr_expect_eq(hangs, row.hangs, "%s: %x", row.claim, hangs);
		if (row.want != HANG_NO)
			due = hang_age(row.rank, 3, row.want, NOW);
		cr_expect_eq(due, row.due, "%s: %ld", row.claim, (long)due);
	}
}

/* A rank a place: "" has ended. */
static const struct {
	const char *place[5];
	bool any;
	unsigned differs;
} places[] = {
	{ { "pipe", "pipe", "pause", "pipe", "pipe" }, true, 4 },
	{ { "pause", "pipe", "", "", "pipe" }, true, 1 },
	{ { "pause", "poll", "pipe", "pipe", "pipe" }, true, 3 },
	{ { "pause", "poll", "read", "pipe", "pipe" }, false, 0 },
	{ { "pause", "pause", "pipe", "pipe", "" }, false, 0 },
	{ { "pipe", "pipe", "pipe", "pipe", "pause" }, true, 16 },
	{ { "pause", "poll", "pipe", "pipe", "" }, false, 0 },
	{ { "pipe", "pipe", "pipe", "pipe", "pipe" }, false, 0 },
	{ { "", "", "", "", "" }, false, 0 },
};

Test(hang, ranks_that_are_not_where_most_are_differ)
{
	char place[5][HANG_PLACE];
	bool differs[5];
	unsigned got;

	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		for (unsigned r = 0; r < 5; r++)
			snprintf(place[r], HANG_PLACE, "%s",
				places[i].place[r]);
		cr_expect_eq(hang_differ_by_place(place, 5, differs),
			places[i].any, "row %u", i);
		got = 0;
		for (unsigned r = 0; r < 5; r++)
			got |= (unsigned)differs[r] << r;
		cr_expect_eq(got, places[i].differs, "row %u: %x", i, got);
	}
}

/* Lines of a summary of stacks, and which of the ranks 2 to 6 of a job they name. */
static const struct {
	const char *summary;
	bool any;
	unsigned differs;
} summaries[] = {
	{ "", false, 0 },
	{ "rank 3 differs: main > pause; ranks 2, 4-6 wait in sum", true, 2 },
	{ "ranks 2-3, 5 differ: main; ranks 4, 6 wait in sum\n", true, 11 },
	{ "rank 2 differs: main\nranks 4, 6 differ: f\n", true, 21 },
	{ "rank 3: main > pause\nrank 6 differs: main", true, 16 },
	{ "rank 1 differs: main; of another machine", true, 0 },
	{ "rank 7 differs: main; there is none", false, 0 },
	{ "rank 3: main > pause", false, 0 },
	{ "rank", false, 0 },
	{ "rank differs: main", false, 0 },
	{ "ran  3 differs: a word that only begins as that", false, 0 },
	{ "main 3 differs: another word", false, 0 },
};

Test(hang, ranks_that_a_summary_of_stacks_names_differ)
{
	static struct job job;
	bool differs[5];
	unsigned got;

	job.plan.first = 2;
	job.plan.local_size = 5;
	for (unsigned i = 0; i < sizeof(summaries) / sizeof(summaries[0]);
		i++) {
		memset(differs, 1, sizeof(differs));
		cr_expect_eq(hang_differ_by_stacks(&job, summaries[i].summary,
				     differs),
			summaries[i].any, "%s", summaries[i].summary);
		got = 0;
		for (unsigned r = 0; r < 5; r++)
			got |= (unsigned)differs[r] << r;
		cr_expect_eq(got, summaries[i].differs, "%s: %x",
			summaries[i].summary, got);
	}
}
