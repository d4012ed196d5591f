/* SPDX-License-Identifier: Apache-2.0 */
/* test_bind.c - which rank gets which processors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "place/bind.h"
#include "tests/unit/leaks.h"

static struct topology t;
static struct bind b;
static struct xr_error err;

/* @cores cores of @threads hardware threads; the second ones are numbered
 * behind all the first ones, as Linux does. */
static void
machine(uint32_t cores, uint32_t threads)
{
	t = (struct topology){
		.cpus = calloc((size_t)cores * threads, sizeof(*t.cpus)),
		.cores = cores,
	};
	for (uint32_t core = 0; core < cores; core++)
		for (uint32_t i = 0; i < threads; i++)
			t.cpus[t.count++] = (struct topology_cpu){
				.cpu = core + i * cores,
				.core = core,
			};
}

static void
finish(void)
{
	bind_fini(&b);
	topology_fini(&t);
	leaks_none();
}

TestSuite(bind, .fini = finish);

/* "0,4|1,5": what each of so many ranks gets. */
static const char *
dealt(uint32_t ranks)
{
	static char text[1024];
	size_t n = 0;

	text[0] = '\0';
	for (uint32_t r = 0; r < ranks && bind_of(&b, r) != NULL; r++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
			r > 0 ? "|" : "", bind_of(&b, r)->text);
	return text;
}

static const char *
cores(uint32_t ranks, bind_take_fn *take, void *arg)
{
	bind_fini(&b);
	bind_cores(&b, &t, ranks, take, arg);
	return dealt(ranks);
}

Test(bind, as_many_ranks_as_cores_go_in_order)
{
	machine(4, 2);
	cr_expect_str_eq(cores(4, NULL, NULL), "0,4|1,5|2,6|3,7");
	cr_expect_eq(bind_of(&b, 0)->cores, 1);
}

Test(bind, fewer_ranks_spread_and_stay_in_order)
{
	machine(8, 1);
	cr_expect_str_eq(cores(2, NULL, NULL), "0|4");
	cr_expect_str_eq(cores(3, NULL, NULL), "0|2|5");
	cr_expect_str_eq(cores(1, NULL, NULL), "0");
}

Test(bind, more_ranks_than_cores_begin_anew)
{
	machine(3, 1);
	cr_expect_str_eq(cores(7, NULL, NULL), "0|1|2|0|1|2|0");
}

/* Who has a bit set is taken already. */
static bool
take_free(void *arg, uint32_t cpu)
{
	uint64_t *held = arg;
	bool free_now = (*held >> cpu & 1) == 0;

	*held |= UINT64_C(1) << cpu;
	return free_now;
}

Test(bind, cores_of_others_are_passed_over)
{
	uint64_t held = 0;

	machine(8, 1);
	cr_expect_str_eq(cores(2, take_free, &held), "0|4");
	cr_expect_str_eq(cores(2, take_free, &held), "1|5");
	cr_expect_str_eq(cores(3, take_free, &held), "2|3|6");
	cr_expect_str_eq(cores(3, take_free, &held), "7|7|7");
	cr_expect_str_eq(cores(3, take_free, &held), "");
	cr_expect_null(bind_of(&b, 0));
}

Test(bind, a_core_with_one_thread_taken_is_taken)
{
	uint64_t held = 1 << 2; /* of core 0 */

	machine(2, 2);
	cr_expect_str_eq(cores(2, take_free, &held), "1,3|1,3");
}

Test(bind, nothing_to_bind_to_binds_nothing)
{
	machine(0, 1);
	cr_expect_str_eq(cores(2, NULL, NULL), "");
}

static const char *
list(const char *text, uint32_t ranks)
{
	enum xr_status status;

	bind_fini(&b);
	err = (struct xr_error){ 0 };
	status = bind_list(&b, &t, text, ranks, &err);
	cr_expect_eq(status == XR_OK, err.text[0] == '\0');
	return status == XR_OK ? dealt(ranks) : err.text;
}

Test(bind, a_list_is_cut_into_equal_shares_in_its_order)
{
	machine(16, 1);
	cr_expect_str_eq(list("0-7", 2), "0-3|4-7");
	cr_expect_eq(bind_of(&b, 1)->cores, 4);
	cr_expect_str_eq(list("0-7", 3), "0-1|2-4|5-7");
	cr_expect_str_eq(list("8,0-3", 5), "8|0|1|2|3");
	cr_expect_str_eq(list("8,0-3", 2), "0,8|1-3");
	cr_expect_str_eq(list("3,1", 5), "3|1|3|1|3");
	cr_expect_str_eq(list("0-3,8", 1), "0-3,8");
}

Test(bind, hardware_threads_of_a_core_are_one_core)
{
	machine(2, 2);
	cr_expect_str_eq(list("0-3", 1), "0-3");
	cr_expect_eq(bind_of(&b, 0)->cores, 2);
	cr_expect_str_eq(list("0,2,1,3", 2), "0,2|1,3");
	cr_expect_eq(bind_of(&b, 0)->cores, 1);
}

Test(bind, what_is_wrong_with_a_list_is_named)
{
	machine(4, 1);
	cr_expect_str_eq(list("2-4", 2),
		"--bind: CPU 4 is not among those that may be used here: 0-3");
	cr_expect_str_eq(list("0,1,0", 2), "--bind: CPU 0 is named twice");
	cr_expect_str_eq(list("cores", 2),
		"--bind: 'cores' is not auto, none, core or a list of CPUs such as 0-3,8");
	cr_expect_str_eq(list("", 2),
		"--bind: '' is not auto, none, core or a list of CPUs such as 0-3,8");
	cr_expect_str_eq(list("0,", 2),
		"--bind: '0,' is not auto, none, core or a list of CPUs such as 0-3,8");
	cr_expect_eq(b.count, 0);
}

Test(bind, a_set_is_a_mask_of_whole_words)
{
	machine(70, 1);
	list("65", 1);
	cr_expect_eq(bind_of(&b, 0)->cpus.size, 128);
	cr_expect_eq(bind_of(&b, 0)->cpus.word[1], 2);
	cr_expect_eq(bind_of(&b, 0)->cpus.word[0], 0);
}
