/* SPDX-License-Identifier: Apache-2.0 */
/* test_template.c - {rank} and the like in arguments. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "place/args.h"

static struct xr_error err;
static struct args *args;

static const struct plan plan = {
	.size = 20,
	.local_size = 10,
	.first = 10,
	.node = 1,
	.nodes = 2,
	.host = "node7",
};

static enum xr_status
make(char *const *argv)
{
	static char *kept[8];
	struct args_facts facts = {
		.argv = kept,
		.plan = &plan,
		.job = "k7m2",
		.part = { .index = 2, .first = 4, .size = 3 },
	};

	for (int i = 0; i == 0 || argv[i - 1] != NULL; i++)
		kept[i] = argv[i];
	args_free(args);
	args = NULL;
	err = (struct xr_error){ 0 };
	return args_new(&args, &facts, &err);
}

/* What was allocated last. */
static char *block;
static size_t block_size;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *
__wrap_calloc(size_t n, size_t size)
{
	block_size = n * size;
	block = __real_calloc(1, block_size + 64);
	return block;
}

#define MAKE(...) make((char *const[]){ "./{rank}", __VA_ARGS__, NULL })

static void
finish(void)
{
	args_free(args);
}

TestSuite(template, .fini = finish);

Test(template, every_field_is_what_the_variable_of_its_name_is)
{
	char *const *v;

	cr_assert_eq(MAKE("{rank} {local_rank} {size}", "{node}@{host}",
			     "{job}.{attempt}",
			     "{part}/{part_rank}/{part_size}", "plain"),
		XR_OK, "%s", err.text);
	v = args_of_rank(args, 5, 3);
	cr_expect(eq(str, v[0], "./{rank}"));
	cr_expect(eq(str, v[1], "15 5 20"));
	cr_expect(eq(str, v[2], "1@node7"));
	cr_expect(eq(str, v[3], "k7m2.3"));
	cr_expect(eq(str, v[4], "2/4/6"));
	cr_expect(eq(str, v[5], "plain"));
	cr_expect_null(v[6]);
	v = args_of_rank(args, 6, UINT32_MAX);
	cr_expect(eq(str, v[1], "16 6 20"));
	cr_expect(eq(str, v[3], "k7m2.4294967295"));
}

Test(template, two_braces_are_one)
{
	cr_assert_eq(MAKE("{{\"rank\": {rank}}}", "}}{{}}", "{{{rank}", "{{{{",
			     "}}"),
		XR_OK, "%s", err.text);
	char *const *v = args_of_rank(args, 0, 0);

	cr_expect(eq(str, v[1], "{\"rank\": 10}"));
	cr_expect(eq(str, v[2], "}{}"));
	cr_expect(eq(str, v[3], "{10"));
	cr_expect(eq(str, v[4], "{{"));
	cr_expect(eq(str, v[5], "}"));
}

Test(template, arguments_without_a_brace_are_not_copied)
{
	static char plain[] = "plain";
	char *const argv[] = { "x", plain, "{rank}", NULL };

	cr_assert_eq(make(argv), XR_OK);
	cr_expect_eq(args_of_rank(args, 0, 0)[1], plain);
	cr_expect_eq(args_of_rank(args, 0, 0)[0], argv[0]);
}

Test(template, an_unknown_name_is_answered_with_all_there_are)
{
	cr_expect_eq(MAKE("a", "x{ranks}"), XR_E_INVAL);
	cr_expect(eq(str, err.text,
		"--template: argument 2: byte 1: '{ranks}' is not one of {rank} "
		"{local_rank} {size} {node} {host} {job} {attempt} {part} "
		"{part_rank} {part_size} (did you mean {rank}?)"));
	cr_expect_eq(MAKE("{}"), XR_E_INVAL);
	cr_expect_eq(MAKE("{ rank}"), XR_E_INVAL);
	cr_expect_eq(MAKE("{ra{{nk}"), XR_E_INVAL);
	cr_expect_eq(MAKE("}"), XR_E_INVAL);
	cr_expect(eq(str, err.text,
		"--template: argument 1: byte 0: a '}' alone; one of the text "
		"is }}"));
}

Test(template, whatever_is_cut_off_is_whole_or_refused)
{
	static const char whole[] = "a{{b{rank}c}}{part_size}";
	char text[sizeof(whole)];

	for (size_t n = 0; n < sizeof(whole); n++) {
		enum xr_status status;

		snprintf(text, sizeof(text), "%.*s", (int)n, whole);
		status = MAKE(text);
		if (status == XR_OK)
			cr_expect(le(sz, strlen(args_of_rank(args, 9, 0)[1]),
				n));
		else
			cr_expect_eq(status, XR_E_INVAL);
		cr_expect_eq(status == XR_OK,
			n != 2 && !(n >= 5 && n < 10) && n != 12 &&
				!(n >= 14 && n < 24),
			"%s", text);
	}
}

Test(template, there_is_just_room_for_the_longest_texts)
{
	char *const *argv;

	cr_assert_eq(MAKE("a{job}b", "plain", "{{{host}"), XR_OK);
	argv = args_of_rank(args, 9, 0);
	cr_assert(eq(str, argv[1], "ak7m2b"));
	cr_assert(eq(str, argv[3], "{node7"));
	cr_expect_null(argv[4]);
	cr_expect_eq(args, (struct args *)block);
	cr_expect_eq(argv[3] + strlen(argv[3]) + 1, block + block_size);
}
