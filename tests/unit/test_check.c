/* SPDX-License-Identifier: Apache-2.0 */
/* test_check.c - so many ranks, and what this shell allows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/host/check.h"

#define GIB ((uint64_t)1 << 30)

static const struct limits plenty = {
	.files_max = UINT64_MAX / 4,
	.processes = UINT64_MAX,
	.memory = UINT64_MAX,
};

/* "" if so many ranks are fine. */
static const char *
check(const struct limits *l, uint32_t ranks)
{
	static struct xr_error err;
	enum xr_status status;

	err = (struct xr_error){ 0 };
	status = check_limits(l, ranks, &err);
	cr_expect_eq(status, err.text[0] == '\0' ? XR_OK : XR_E_RANGE);
	cr_expect_eq(check_limits(l, ranks, NULL), status);
	return err.text;
}

Test(check, too_many_ranks_are_told_what_would_do)
{
	struct limits l = {
		.files_max = 1048576,
		.processes = 31999,
		.processes_by = "ulimit -u",
		.memory = 64 * GIB,
	};

	cr_expect_str_eq(check(&l, 100000),
		"100000 ranks need 300048 descriptors; this shell allows 1048576, and 31999 processes (ulimit -u)\t-n 10000 or less");
	l.processes_by = "cgroup pids.max";
	cr_expect_str_eq(check(&l, 31992),
		"31992 ranks need 96024 descriptors; this shell allows 1048576, and 31999 processes (cgroup pids.max)\t-n 10000 or less");
	cr_expect_str_eq(check(&l, 31991), "");
}

Test(check, the_suggestion_is_half_of_the_maximum_in_one_digit)
{
	static const struct {
		uint64_t fit;
		const char *less;
	} row[] = { { 1, "-n 1" }, { 3, "-n 1" }, { 4, "-n 2 or less" },
		{ 19, "-n 9 or less" }, { 20, "-n 10 or less" },
		{ 39, "-n 10 or less" }, { 199, "-n 90 or less" },
		{ 200, "-n 100 or less" } };
	struct limits l = plenty;

	l.processes_by = "ulimit -u";
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		l.processes = row[i].fit + 8;
		cr_expect_str_eq(strchr(check(&l, 1000), '\t') + 1,
			row[i].less);
	}
}

Test(check, no_limit_on_processes_is_not_told)
{
	struct limits l = plenty;

	l.files_max = 1024;
	cr_expect_str_eq(check(&l, 1000),
		"1000 ranks need 3048 descriptors; this shell allows 1024\t-n 100 or less");
	cr_expect_str_eq(check(&l, 325), "");
	cr_expect_neq(check(&l, 326)[0], '\0');
}

Test(check, memory_is_told_by_itself)
{
	struct limits l = plenty;

	l.memory = GIB;
	cr_expect_str_eq(check(&l, 16384), "");
	cr_expect_str_eq(check(&l, 20000),
		"20000 ranks need 1250 MiB for xrun alone; 1024 MiB are available\t-n 8000 or less");
}

Test(check, no_limits_allow_everything)
{
	cr_expect_str_eq(check(&plenty, 1), "");
	cr_expect_str_eq(check(&plenty, UINT32_MAX), "");
}

Test(check, limits_below_what_xrun_itself_needs_wrap_nothing)
{
	struct limits l = plenty;

	for (l.files_max = 0; l.files_max < CHECK_FDS_OWN + CHECK_FDS_A_RANK;
		l.files_max++)
		cr_expect_neq(check(&l, 1)[0], '\0', "%llu",
			(unsigned long long)l.files_max);
	cr_expect_str_eq(check(&l, 1), "");
	l.processes_by = "ulimit -u";
	for (l.processes = 0; l.processes <= 8; l.processes++)
		cr_expect_neq(check(&l, 1)[0], '\0');
	cr_expect_str_eq(check(&l, 1), "");
}

Test(check, where_not_even_one_fits_the_limit_has_to_go_up)
{
	struct limits l = plenty;

	l.files_max = 50;
	cr_expect_str_eq(check(&l, 1),
		"1 rank needs 51 descriptors; this shell allows 50\tulimit -Hn 51, by root or in limits.conf(5)");
}

Test(check, what_is_advised_fits_the_memory_too)
{
	struct limits l = plenty;

	l.files_max = 100000;
	l.memory = GIB;
	cr_expect_str_eq(check(&l, 50000),
		"50000 ranks need 150048 descriptors; this shell allows 100000\t-n 8000 or less");
}

Test(check, a_spare_descriptor_a_rank_is_there_or_not)
{
	struct limits l = { .files_max = CHECK_FDS_OWN + 4 * 100 };

	cr_expect(check_spare(&l, 100));
	cr_expect_not(check_spare(&l, 101));
	cr_expect_not(check_spare(&l, UINT32_MAX));
}

/* The number behind the tab, 0 if there is none. */
static unsigned long
advice(const char *text)
{
	const char *tab = strchr(text, '\t');
	unsigned long n = 0;
	char less[16];

	if (tab != NULL && sscanf(tab, "\t-n %lu or %15s", &n, less) == 2)
		cr_expect_str_eq(less, "less");
	return n;
}

static bool
one_digit(unsigned long n)
{
	while (n >= 10 && n % 10 == 0)
		n /= 10;
	return n > 0 && n < 10;
}

/* Between two and 2^34. */
static uint64_t
some(void)
{
	return (uint64_t)2 << random() % 33 | (uint64_t)random() % 1024;
}

Test(check, what_is_advised_is_round_and_would_do)
{
	struct limits l;
	unsigned long n;
	int told = 0;

	srandom(20261121);
	for (int i = 0; i < 100000; i++) {
		l = plenty;
		l.files_max = CHECK_FDS_OWN + CHECK_FDS_A_RANK + some();
		if (random() % 2 != 0)
			l.processes = 8 + some();
		if (random() % 2 != 0)
			l.memory = some() << 16;
		l.processes_by = "ulimit -u";
		n = advice(check(&l, (uint32_t)some()));
		if (n == 0)
			continue;
		told++;
		cr_assert(one_digit(n), "%lu", n);
		cr_assert_str_eq(check(&l, (uint32_t)n), "");
	}
	cr_expect_gt(told, 10000);
}

Test(check, files_have_what_the_ranks_leave)
{
	struct limits l = { .files_max = 1024 };

	cr_expect_eq(check_files_max(&l, 8, false), 1024 - 3 * 8 - 48 + 2);
	cr_expect_eq(check_files_max(&l, 325, false), 1024 - 3 * 325 - 48 + 2);
	cr_expect_eq(check_files_max(&l, 326, false), 2);
	cr_expect_eq(check_files_max(&l, UINT32_MAX, false), 2);
	cr_expect_eq(check_files_max(&l, 8, true), 1024 - 4 * 8 - 48 + 2);
	cr_expect_eq(check_files_max(&l, 243, true), 1024 - 4 * 243 - 48 + 2);
	cr_expect_eq(check_files_max(&l, 244, true), 2);
	l.files_max = UINT64_MAX / 4;
	cr_expect_eq(check_files_max(&l, 1, false), UINT32_MAX / 2);
}

Test(check, the_table_holds_all_there_will_be_within_the_limit)
{
	struct limits l = { .files_max = 1024 };

	cr_expect_eq(check_table(&l, 8), 8 * (3 + 1 + 2) + CHECK_FDS_OWN);
	cr_expect_eq(check_table(&l, 164), 1024);
	cr_expect_eq(check_table(&l, UINT32_MAX), 1024);
	l.files_max = UINT64_MAX;
	cr_expect_eq(check_table(&l, UINT32_MAX), INT32_MAX);
}

Test(check, descriptors_that_were_inherited_count)
{
	struct limits l = { .files_max = 256,
		.processes = UINT64_MAX,
		.memory = UINT64_MAX };

	cr_expect_str_eq(check(&l, 60), "");
	l.held = 29;
	cr_expect_str_eq(check(&l, 60),
		"60 ranks need 257 descriptors; this shell allows 256\t-n 20 or less");
	cr_expect_str_eq(check(&l, 59), "");
	cr_expect_not(check_spare(&l, 59));
	cr_expect_eq(check_files_max(&l, 50, false), 256 - 150 - 48 - 29 + 2);
	l.held = 300;
	cr_expect_neq(check(&l, 1)[0], '\0');
}
