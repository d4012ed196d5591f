/* SPDX-License-Identifier: Apache-2.0 */
/* test_route.c - who is shown, and with what before his lines. */
#include <stdio.h>
#include <string.h>

#include <malloc.h>

#include <criterion/criterion.h>

#include "launcher/log/route.h"
#include "tests/unit/short_memory.h"

#define OUT(rank) ((rank) * RAW_STREAMS + RAW_OUT)
#define ERR(rank) ((rank) * RAW_STREAMS + RAW_ERR)

static struct route route;
static struct route_config config;
static struct xr_error err;

static void
begin(void)
{
	config = (struct route_config){ .ranks = 4,
		.size = 4,
		.show = "auto",
		.prefix = "auto" };
	err = (struct xr_error){ 0 };
}

static void
end(void)
{
	route_fini(&route);
}

TestSuite(route, .init = begin, .fini = end);

static void
compile(void)
{
	route_fini(&route);
	cr_assert_eq(route_compile(&route, &config, &err), XR_OK, "%s",
		err.text);
}

static void
ranks(uint32_t n)
{
	config.ranks = config.size = n;
}

static void
terminal(void)
{
	config.tty[RAW_OUT] = config.tty[RAW_ERR] = true;
}

static void
expect_prefix(uint32_t stream, const char *text)
{
	const struct line_prefix *p = &route.prefix[stream];

	cr_expect_eq(p->len, strlen(text));
	cr_expect_eq(memcmp(p->text, text, p->len), 0, "'%.*s', not '%s'",
		(int)p->len, p->text, text);
}

/* "0,2" for the ranks whose stream of this kind is shown. */
static const char *
shown(uint32_t kind)
{
	static char text[4096];
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < config.ranks; i++)
		if (route.shown[i * RAW_STREAMS + kind])
			at += (size_t)snprintf(text + at, sizeof(text) - at,
				"%s%u", at > 0 ? "," : "", i);
	return text;
}

static void
expect_shown(const char *show, const char *want)
{
	config.show = show;
	compile();
	cr_expect_str_eq(shown(RAW_OUT), want, "--show %s", show);
	cr_expect_str_eq(shown(RAW_ERR), want, "--show %s", show);
	cr_expect_not(route.reduced);
}

/* --- prefixes --- */

Test(route, brackets_where_there_is_no_terminal)
{
	config.utf8 = true;
	compile();
	expect_prefix(OUT(0), "[0] ");
	expect_prefix(ERR(3), "[3]!");
}

Test(route, bars_on_a_terminal_that_speaks_utf8)
{
	config.utf8 = true;
	terminal();
	compile();
	expect_prefix(OUT(0), "0│ ");
	expect_prefix(ERR(3), "3┃ ");
}

Test(route, brackets_on_a_terminal_that_does_not)
{
	terminal();
	compile();
	expect_prefix(OUT(0), "[0] ");
}

Test(route, each_stream_goes_by_its_own_descriptor)
{
	config.utf8 = true;
	config.tty[RAW_ERR] = true;
	compile();
	expect_prefix(OUT(1), "[1] ");
	expect_prefix(ERR(1), "1┃ ");
}

Test(route, numbers_are_padded_to_the_widest)
{
	ranks(10);
	compile();
	expect_prefix(OUT(9), "[9] ");
	ranks(11);
	compile();
	expect_prefix(OUT(9), "[ 9] ");
	expect_prefix(ERR(10), "[10]!");
	ranks(1001);
	compile();
	expect_prefix(OUT(7), "[   7] ");
	expect_prefix(OUT(1000), "[1000] ");
}

Test(route, colour_is_in_the_prefix_only_and_never_red)
{
	ranks(12);
	config.color[RAW_OUT] = config.color[RAW_ERR] = true;
	compile();
	expect_prefix(OUT(0), "\033[36m[ 0] \033[0m");
	expect_prefix(ERR(0), "\033[1;36m[ 0]!\033[0m");
	for (uint32_t i = 0; i < 12; i++) {
		const struct line_prefix *p = &route.prefix[OUT(i)];

		cr_expect_neq(p->text[3], '1', "rank %u is red", i);
		cr_expect_eq(memcmp(p->text + p->len - 4, "\033[0m", 4), 0);
		cr_expect(i < 6 ||
			memcmp(p->text, route.prefix[OUT(i - 6)].text, 5) == 0);
	}
}

Test(route, the_longest_prefix_has_room)
{
	config = (struct route_config){
		.ranks = 1,
		.first = 999999,
		.size = 1000000,
		.show = "none",
		.prefix = "auto",
		.tty = { true, true },
		.color = { true, true },
		.utf8 = true,
	};
	compile();
	cr_expect_lt(route.prefix[ERR(0)].len, PREFIX_MAX);
	expect_prefix(ERR(0), "\033[1;35m999999┃ \033[0m");
}

Test(route, ranks_of_this_machine_bear_their_number_in_the_job)
{
	config.first = 8;
	config.size = 16;
	config.show = "9";
	compile();
	expect_prefix(OUT(0), "[ 8] ");
	expect_prefix(OUT(2), "[10] ");
	cr_expect_str_eq(shown(RAW_OUT), "1");
}

/* --- cutting --- */

Test(route, one_rank_alone_passes_untouched)
{
	ranks(1);
	compile();
	cr_expect_not(route.lines);
	config.size = 2;
	compile();
	cr_expect(route.lines);
}

Test(route, without_prefixes_the_lines_of_several_are_whole_all_the_same)
{
	config.prefix = "none";
	compile();
	cr_expect(route.lines);
	expect_prefix(OUT(0), "");
	expect_prefix(ERR(3), "");
}

Test(route, one_rank_that_is_given_a_prefix_or_times_is_cut)
{
	ranks(1);
	config.prefix = "none";
	compile();
	cr_expect_not(route.lines);
	config.timestamps = true;
	compile();
	cr_expect(route.lines);
	cr_expect(route.times);
	expect_prefix(OUT(0), "00:00:00.000 ");
	config.prefix = "auto";
	compile();
	expect_prefix(OUT(0), "00:00:00.000 ");
	config.timestamps = false;
	config.prefix = "{rank}:";
	compile();
	cr_expect(route.lines);
	cr_expect_not(route.times);
	expect_prefix(ERR(0), "0:");
}

Test(route, the_time_comes_first_unless_the_format_has_it)
{
	config.timestamps = true;
	compile();
	expect_prefix(OUT(1), "00:00:00.000 [1] ");
	config.prefix = "{rank} {time} ";
	compile();
	expect_prefix(OUT(1), "1 00:00:00.000 ");
	cr_expect_eq(route.prefix[OUT(1)].time, 2 + PREFIX_TIME);
	config.timestamps = false;
	compile();
	cr_expect(route.times);
}

Test(route, a_format_is_filled_in)
{
	struct line_prefix some;

	ranks(12);
	config.first = 12;
	config.size = 24;
	config.host = "tpu3";
	config.job = "k7m2";
	config.color[RAW_ERR] = true;
	config.prefix = "{host}/{job} {rank}.{local_rank}/{size} {stream}: ";
	compile();
	expect_prefix(OUT(1), "tpu3/k7m2 13. 1/24 stdout: ");
	expect_prefix(ERR(1), "\033[1;32mtpu3/k7m2 13. 1/24 stderr: \033[0m");
	cr_expect_eq(route_prefix(&route, OUT(1), "12-15", &some, &err), XR_OK);
	cr_expect_eq(memcmp(some.text, "tpu3/k7m2 12-15.12-15/24", 24), 0);
}

Test(route, a_format_that_is_wrong_is_refused)
{
	config.prefix = "{rnak}";
	cr_expect_eq(route_compile(&route, &config, &err), XR_E_INVAL);
	cr_expect_eq(strncmp(err.text, "--prefix: byte 0: ", 18), 0, "%s",
		err.text);
	route_fini(&route);
	config.prefix = "{host}";
	config.host =
		"a-name-of-a-machine-that-is-longer-than-anybody-would-ever-want-to-read";
	cr_expect_eq(route_compile(&route, &config, &err), XR_E_RANGE);
}

/* --- who is shown --- */

Test(route, the_words_of_show)
{
	expect_shown("auto", "0,1,2,3");
	expect_shown("all", "0,1,2,3");
	expect_shown("none", "");
	expect_shown("first", "0");
	expect_shown("0,2-3", "0,2,3");
	expect_shown("-1", "3");
	expect_shown("1", "1");
}

Test(route, a_rank_that_is_not_there_is_refused)
{
	config.show = "4";
	cr_expect_eq(route_compile(&route, &config, &err), XR_E_RANGE);
	cr_expect_not_null(strstr(err.text, "4"));
}

Test(route, what_is_no_list_is_refused_at_every_truncation)
{
	static const char text[] = "0,2-3,x";
	char cut[sizeof(text)];

	for (size_t len = 0; len < sizeof(text); len++) {
		bool good = len == 1 || len == 3 || len == 5;

		memcpy(cut, text, len);
		cut[len] = '\0';
		config.show = cut;
		cr_expect_eq(route_compile(&route, &config, &err) == XR_OK,
			good, "'%s'", cut);
		route_fini(&route);
		route = (struct route){ 0 };
	}
}

Test(route, many_ranks_on_a_terminal_are_reduced)
{
	ranks(17);
	terminal();
	compile();
	cr_expect(route.reduced);
	cr_expect_str_eq(shown(RAW_OUT), "0");
	cr_expect_str_eq(shown(RAW_ERR),
		"0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16");
}

Test(route, sixteen_are_not_many_and_a_pipe_gets_all)
{
	ranks(16);
	terminal();
	compile();
	cr_expect_not(route.reduced);
	cr_expect(route.shown[OUT(15)]);
	ranks(17);
	config.tty[RAW_OUT] = false;
	compile();
	cr_expect_not(route.reduced);
	cr_expect(route.shown[OUT(16)]);
}

Test(route, who_asks_for_all_gets_all)
{
	ranks(17);
	terminal();
	config.show = "all";
	compile();
	cr_expect_not(route.reduced);
	cr_expect(route.shown[OUT(16)]);
}

/* --- memory --- */

Test(route, what_was_compiled_is_freed)
{
	size_t before = 0;

	for (int i = 0; i < 20; i++) {
		compile();
		route_fini(&route);
		if (i == 10)
			before = mallinfo2().uordblks;
		route = (struct route){ 0 };
	}
	cr_expect_eq(mallinfo2().uordblks, before);
}

Test(route, without_memory_for_the_set_of_shown_ranks_it_is_refused)
{
	until_short = 3;
	cr_expect_eq(route_compile(&route, &config, &err), XR_E_NOMEM);
	cr_expect(was_short);
	cr_expect_str_eq(err.text, "--show: ");
}

Test(route, numbers_without_width_and_ranks_as_wide_as_the_largest)
{
	struct line_prefix some;

	ranks(1);
	config.size = 100001;
	config.first = 7;
	config.show = "none";
	config.prefix = "{rank}/{local_rank}/{part}/{size}/";
	compile();
	expect_prefix(OUT(0), "     7/0/0/100001/");
	config.size = 100000;
	compile();
	expect_prefix(OUT(0), "    7/0/0/100000/");
	cr_expect_eq(route_prefix(&route, OUT(0), "7-8", &some, &err), XR_OK);
	cr_expect_eq(some.len, 19);
	cr_expect_eq(memcmp(some.text, "  7-8/7-8/0/100000/", 19), 0, "%.*s",
		some.len, some.text);
}
