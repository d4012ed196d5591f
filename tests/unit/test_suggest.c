/* SPDX-License-Identifier: Apache-2.0 */
/* test_suggest.c - the nearest name, and no far one. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/suggest.h"

static const char *
nearest(const char *word, const char *const *names)
{
	static struct suggest s;

	suggest_init(&s, word, strlen(word));
	for (; *names != NULL; names++)
		suggest_offer(&s, *names);
	return suggest_best(&s);
}

static const char *const names[] = { "ranks", "report", "restarts",
	"restart-window", "env-profile", "quiet", "help", "ps", "top", NULL };

Test(suggest, distances_are_those_of_damerau)
{
	static const struct {
		const char *a, *b;
		size_t n;
	} rows[] = { { "", "", 0 }, { "abc", "", 3 }, { "", "abc", 3 },
		{ "rank", "ranks", 1 }, { "rnaks", "ranks", 1 },
		{ "hlep", "help", 1 }, { "kitten", "sitting", 3 },
		{ "ca", "abc", 3 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(suggest_distance(rows[i].a, rows[i].b), rows[i].n,
			"%s %s", rows[i].a, rows[i].b);
		cr_expect_eq(suggest_distance(rows[i].b, rows[i].a), rows[i].n);
	}
}

Test(suggest, a_slip_of_the_finger_is_understood)
{
	cr_expect_str_eq(nearest("rank", names), "ranks");
	cr_expect_str_eq(nearest("rnaks", names), "ranks");
	cr_expect_str_eq(nearest("hlep", names), "help");
	cr_expect_str_eq(nearest("tpo", names), "top");
	cr_expect_str_eq(nearest("restart-windwo", names), "restart-window");
}

Test(suggest, a_beginning_is_understood_but_an_edit_is_nearer)
{
	cr_expect_str_eq(nearest("env", names), "env-profile");
	cr_expect_str_eq(nearest("restart", names), "restarts");
	cr_expect_str_eq(nearest("restart-w", names), "restart-window");
	cr_expect_str_eq(nearest("rep", names), "report");
}

Test(suggest, what_is_far_is_not_proposed)
{
	cr_expect_null(nearest("train", names));
	cr_expect_null(nearest("xyz", names));
	cr_expect_null(nearest("z", names));
	cr_expect_null(nearest("", names));
	cr_expect_null(nearest("abcd", names));
	cr_expect_null(nearest("tip", names));
	cr_expect_null(nearest("quill", names));
	cr_expect_null(nearest("seport",
		(const char *const[]){ "resort", NULL }));
	cr_expect_null(nearest("nosuch",
		(const char *const[]){ "touch", NULL }));
}

Test(suggest, the_first_of_equals_wins)
{
	static const char *const two[] = { "boat", "goat", NULL };

	cr_expect_str_eq(nearest("coat", two), "boat");
}

Test(suggest, words_without_measure_have_no_neighbours)
{
	char word[200];

	memset(word, 'a', sizeof(word));
	for (size_t len = 60; len < sizeof(word); len++) {
		struct suggest s;

		suggest_init(&s, word, len);
		suggest_offer(&s, "ranks");
		cr_expect_null(suggest_best(&s));
	}
}
