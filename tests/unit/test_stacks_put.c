/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_put.c - the text of stacks: chains, differences, tables and JSON. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/stacks/chain.h"
#include "launcher/stacks/differ.h"
#include "launcher/stacks/merge.h"
#include "launcher/stacks/parse.h"
#include "launcher/stacks/put.h"
#include "tests/unit/short_memory.h"

/* Adds a thread of rank @rank with the frames of @text, innermost first: "pause@libc.so.6
 * main@train". The first thread of a rank is the main thread if @main. */
static struct thread *
add(struct stacks *s, uint32_t rank, bool main, const char *text)
{
	pid_t pid = (pid_t)(1000 + rank * 10);
	struct process *p = s->count == 0 ? NULL : &s->process[s->count - 1];
	struct span rest = span_of(text), function, file;
	struct thread *t;

	if (p == NULL || p->rank != rank) {
		stacks_add_rank(s, rank, pid);
		p = stacks_add_process(s, rank, pid);
		memcpy(p->comm, "train", 6);
		p->by = STACKS_BY_EU;
	}
	t = stacks_thread(p, main ? pid : pid + 1 + (pid_t)p->threads);
	while (*text != '\0' && rest.at != NULL) {
		file = span_next(&rest, ' ');
		function = span_next(&file, '@');
		parse_add(&t->native, function,
			file.at == NULL ? span_of("") : file, 0);
	}
	return t;
}

static void
is_text(struct buf *out, const char *want)
{
	cr_expect_str_eq(buf_text(out), want, "got:  %s\nwant: %s",
		buf_text(out), want);
	buf_clear(out);
}

static void
has_text(struct buf *out, const char *want)
{
	cr_expect(strstr(buf_text(out), want) != NULL, "no '%s' in: %s", want,
		buf_text(out));
}

/* --- chains --------------------------------------------------------------- */

Test(stacks_put, a_frame_without_a_function_is_its_file)
{
	static const struct {
		const char *stack, *chain;
	} rows[] = {
		{ "??@m main@m", "main > [m]" },
		{ "??@[vdso] main@m", "main > [vdso]" },
		{ "?? main@m", "main > [?]" },
		{ "main@m", "main" },
		{ "??@m", "[m]" },
	};
	struct stacks s = { 0 };
	struct buf out = { 0 };

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		chain_put(&out, add(&s, i, true, rows[i].stack), 0);
		is_text(&out, rows[i].chain);
	}
	buf_fini(&out);
	stacks_fini(&s);
}

Test(stacks_put, a_chain_of_one_or_two_functions_is_never_cut)
{
	struct stacks s = { 0 };
	struct buf out = { 0 };

	chain_put(&out, add(&s, 0, true, "train_for_a_long_time@m"), 1);
	is_text(&out, "train_for_a_long_time");
	chain_put(&out, add(&s, 1, true, "wait@m main@m"), 1);
	is_text(&out, "main > wait");
	buf_fini(&out);
	stacks_fini(&s);
}

Test(stacks_put, the_longest_stacks_of_both_kinds_are_one_chain)
{
	struct stacks s = { 0 };
	struct buf out = { 0 };
	struct thread *t = add(&s, 0, true, "");
	char name[16];
	size_t words = 1;

	for (int i = 0; i < 2 * STACKS_FRAMES_MAX; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		parse_add(&t->python, span_of(name), span_of("m"), 0);
		parse_add(&t->native, span_of("f"), span_of("m"), 0);
	}
	chain_put(&out, t, 0);
	for (const char *p = buf_text(&out); (p = strstr(p, " > ")) != NULL;
		p++)
		words++;
	cr_expect_eq(words, 2 * STACKS_FRAMES_MAX, "%zu", words);
	has_text(&out, "p511 > p510 > ");
	has_text(&out, "p1 > p0 > f > f");
	buf_fini(&out);
	stacks_fini(&s);
}

Test(stacks_put, a_thread_without_frames_is_its_state_in_the_kernel)
{
	static const struct {
		char state;
		const char *call, *wchan, *chain;
	} rows[] = {
		{ 'S', "", "", "[sleeping]" },
		{ 'S', "futex", "", "[futex]" },
		{ 'S', "", "futex_wait", "[futex_wait]" },
		{ 'S', "futex", "futex_wait", "[futex, futex_wait]" },
		{ 'D', "", "", "[uninterruptible]" },
		{ 'D', "read", "", "[read, uninterruptible]" },
		{ 'D', "", "folio_wait", "[folio_wait, uninterruptible]" },
		{ 'D', "read", "io", "[read, io, uninterruptible]" },
		{ 'R', "", "", "[running]" },
		{ 'T', "", "", "[stopped]" },
		{ 't', "", "", "[traced]" },
		{ 'Z', "", "", "[ended]" },
		{ '?', "", "", "[]" },
		{ '?', "", "io", "[io]" },
	};
	struct stacks s = { 0 };
	struct buf out = { 0 };
	struct thread *t = add(&s, 0, true, "");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		t->state = rows[i].state;
		snprintf(t->call, sizeof(t->call), "%s", rows[i].call);
		snprintf(t->wchan, sizeof(t->wchan), "%s", rows[i].wchan);
		chain_put(&out, t, 0);
		is_text(&out, rows[i].chain);
	}
	buf_fini(&out);
	stacks_fini(&s);
}

/* --- groups --------------------------------------------------------------- */

/* "2: main > a; 0-1,3: ...": the groups in their order. */
static void
groups_are(struct stacks *s, const char *want)
{
	struct buf out = { 0 };

	merge_stacks(s);
	for (uint32_t i = 0; i < s->groups; i++) {
		merge_ranks(s, i, &out);
		buf_put_text(&out, ": ");
		chain_put(&out, s->group[i].thread, 0);
		buf_put_text(&out, "; ");
	}
	is_text(&out, want);
	buf_fini(&out);
	stacks_fini(s);
}

Test(stacks_put, a_stack_that_another_one_continues_is_a_group_of_its_own)
{
	struct stacks s = { 0 };

	add(&s, 0, true, "wait@m step@m main@m");
	add(&s, 1, true, "wait@m step@m");
	add(&s, 2, true, "wait@m step@m main@m");
	groups_are(&s, "1: step > wait; 0,2: main > step > wait; ");
	add(&s, 0, true, "wait@m step@m");
	add(&s, 1, true, "wait@m step@m main@m");
	add(&s, 2, true, "wait@m step@m");
	groups_are(&s, "1: main > step > wait; 0,2: step > wait; ");
	add(&s, 0, true, "wait@m");
	add(&s, 1, true, "wait@n");
	groups_are(&s, "0: wait; 1: wait; ");
}

Test(stacks_put, known_and_unknown_stacks_are_different_groups)
{
	struct stacks s = { 0 };
	struct thread *t;

	add(&s, 0, true, "")->state = 'R';
	add(&s, 1, true, "main@m");
	add(&s, 2, true, "")->state = 'R';
	add(&s, 3, true, "main@m");
	add(&s, 4, true, "main@m");
	groups_are(&s, "0,2: [running]; 1,3-4: main; ");
	add(&s, 0, true, "main@m");
	t = add(&s, 1, true, "");
	parse_add(&t->python, span_of("main"), span_of("a.py"), 1);
	add(&s, 2, true, "")->state = 'R';
	groups_are(&s, "0: main; 1: main; 2: [running]; ");
}

Test(stacks_put, main_threads_precede_other_threads_of_as_many_ranks)
{
	struct stacks s = { 0 };

	add(&s, 0, false, "a@m");
	add(&s, 0, true, "b@m");
	add(&s, 1, true, "d@m");
	add(&s, 1, false, "c@m");
	add(&s, 2, false, "e@m");
	groups_are(&s, "0: b; 1: d; 0: a; 1: c; 2: e; ");
}

Test(stacks_put, ranks_need_memory)
{
	struct stacks s = { 0 };
	struct buf out = { 0 };

	add(&s, 3, true, "a@m");
	add(&s, 1, true, "a@m");
	merge_stacks(&s);
	until_short = 1;
	merge_ranks(&s, 0, &out);
	until_short = 0;
	cr_expect_eq(out.bad, XR_E_NOMEM);
	buf_fini(&out);
	out = (struct buf){ 0 };
	merge_ranks(&s, 0, &out);
	is_text(&out, "1,3");
	stacks_fini(&s);
	merge_ranks(&s, 0, &out);
	cr_expect_eq(out.bad, XR_OK);
	is_text(&out, "none");
	buf_fini(&out);
}

/* --- differences ---------------------------------------------------------- */

/* What rank 0 to @most - 1 wait in: @stack; the next rank differs. */
static void
place_is(struct thread *(*change)(struct thread *t), const char *stack,
	const char *want)
{
	struct stacks s = { 0 };
	struct buf out = { 0 };
	struct thread *t;
	uint32_t majority;

	for (uint32_t r = 0; r < 3; r++) {
		t = add(&s, r, true, stack);
		if (change != NULL)
			change(t);
	}
	add(&s, 3, true, "pause@m main@m");
	merge_stacks(&s);
	cr_expect(differ_put(&out, &s, &majority));
	cr_expect_eq(s.group[majority].ranks, 3);
	is_text(&out, want);
	buf_fini(&out);
	stacks_fini(&s);
}

static struct thread *
runs(struct thread *t)
{
	t->state = 'R';
	return t;
}

static struct thread *
runs_python(struct thread *t)
{
	parse_add(&t->python, span_of("reduce"), span_of("a.py"), 1);
	parse_add(&t->python, span_of("<module>"), span_of("a.py"), 9);
	return t;
}

Test(stacks_put, the_place_of_a_majority_is_a_function_of_its_program)
{
#define DIFFERS "rank 3 differs: main > pause; ranks 0-2 "
	static const struct {
		const char *stack, *want;
		struct thread *(*change)(struct thread *t);
	} rows[] = {
		{ "sum@m main@m", DIFFERS "wait in sum\n", NULL },
		{ "sum@m main@m", DIFFERS "run in sum\n", runs },
		{ "poll@libc.so.6 sum@m", DIFFERS "wait in sum\n", NULL },
		{ "poll@libc-2.31.so sum@m", DIFFERS "wait in sum\n", NULL },
		{ "lock@libpthread-2.31.so sum@m", DIFFERS "wait in sum\n",
			NULL },
		{ "open@ld-2.31.so sum@m", DIFFERS "wait in sum\n", NULL },
		{ "time@[vdso] sum@m", DIFFERS "wait in sum\n", NULL },
		{ "ceil@libcm.so sum@m", DIFFERS "wait in ceil\n", NULL },
		{ "poll@libc.so.6", DIFFERS "wait in poll\n", NULL },
		{ "??@m sum@m _start@m", DIFFERS "wait in sum\n", NULL },
		{ "load@m _start@m", DIFFERS "wait in load\n", NULL },
		{ "_start@m", DIFFERS "wait in _start\n", NULL },
		{ "??@m", DIFFERS "wait in [m]\n", NULL },
		{ "", DIFFERS "run in [running]\n", runs },
		{ "sum@m main@m", DIFFERS "wait in reduce\n", runs_python },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		place_is(rows[i].change, rows[i].stack, rows[i].want);
}

Test(stacks_put, at_most_three_groups_differ_and_only_main_threads)
{
	struct stacks s = { 0 };
	struct buf out = { 0 };
	uint32_t majority = 0;
	static const char *const odd[] = { "a@m", "b@m", "c@m", "d@m", "e@m" };

	for (uint32_t r = 0; r < 5; r++)
		add(&s, r, true, odd[r]);
	for (uint32_t r = 5; r < 11; r++)
		add(&s, r, true, "sum@m");
	add(&s, 11, true, "sum@m");
	add(&s, 11, false, "log@m");
	merge_stacks(&s);
	cr_expect(differ_put(&out, &s, &majority));
	is_text(&out,
		"rank 0 differs: a; ranks 5-11 wait in sum\n"
		"rank 1 differs: b\n"
		"rank 2 differs: c\n");
	put_first(&out, &s);
	has_text(&out, "rank 2 differs: c\nranks 5-11: sum\n");
	buf_clear(&out);
	stacks_fini(&s);
	for (uint32_t r = 0; r < 6; r++) {
		add(&s, r, true, r == 1 || r == 2 ? "a@m" : "sum@m");
		if (r == 4)
			add(&s, r, false, "log@m");
	}
	merge_stacks(&s);
	cr_expect(differ_put(&out, &s, &majority));
	is_text(&out, "ranks 1-2 differ: a; ranks 0, 3-5 wait in sum\n");
	buf_fini(&out);
	stacks_fini(&s);
}

/* --- the first groups ----------------------------------------------------- */

Test(stacks_put, without_a_majority_two_groups_of_main_threads_are_put)
{
	struct stacks s = { 0 };
	struct buf out = { 0 };

	add(&s, 0, false, "log@m");
	add(&s, 0, true, "a@m");
	add(&s, 1, false, "send@m");
	add(&s, 1, true, "b@m");
	add(&s, 2, true, "c@m");
	add(&s, 3, true, "c@m");
	add(&s, 4, true, "d@m");
	add(&s, 5, true, "d@m");
	merge_stacks(&s);
	put_first(&out, &s);
	is_text(&out, "rank 0: a\nrank 1: b\n");
	stacks_fini(&s);
	add(&s, 0, true, "b@m");
	add(&s, 1, true, "b@m");
	add(&s, 0, false,
		"log@m"); /* a process of rank 0 that has no main thread */
	merge_stacks(&s);
	put_first(&out, &s);
	is_text(&out, "ranks 0-1: b\n");
	stacks_fini(&s);
	for (uint32_t r = 0; r < 3; r++)
		add(&s, r, false, r == 0 ? "a@m" : r == 1 ? "b@m" : "c@m");
	merge_stacks(&s);
	put_first(&out, &s);
	is_text(&out, "rank 0: a\nrank 1: b\n");
	buf_fini(&out);
	stacks_fini(&s);
}

/* --- tables --------------------------------------------------------------- */

Test(stacks_put, a_table_is_as_wide_as_the_terminal)
{
	static const struct {
		uint32_t cols;
		const char *stack;
	} rows[] = {
		{ 0, "main > one > two > three > four > wait" },
		{ 70, "main > one > two > three > four > wait" },
		{ 69, "main > ... > three > four > wait" },
		{ 63, "main > ... > four > wait" },
		/* a chain has 30 columns at least */
		{ 40, "main > ... > four > wait" },
		{ 1, "main > ... > four > wait" },
	};
	struct stacks s = { 0 };
	struct buf out = { 0 };
	char want[256];

	add(&s, 0, true, "wait@m four@m three@m two@m one@m main@m");
	merge_stacks(&s);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_table(&out, &s, rows[i].cols, 0);
		snprintf(want, sizeof(want),
			"1 rank in 0 ms, by eu-stack\n"
			"RANKS THREADS  COMMAND          STACK\n"
			"0           1  train            %s\n",
			rows[i].stack);
		is_text(&out, want);
	}
	buf_fini(&out);
	stacks_fini(&s);
}

Test(stacks_put, a_column_of_ranks_has_5_to_24_columns)
{
	static const struct {
		uint32_t ranks, last; /* 0, 2, 4, ... and the last one */
		int width;
	} rows[] = { { 3, 4, 5 }, { 4, 6, 7 }, { 10, 99, 24 }, { 10, 100, 5 } };
	struct stacks s = { 0 };
	struct buf out = { 0 };
	char want[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (uint32_t r = 0; r < rows[i].ranks; r++)
			add(&s, r == rows[i].ranks - 1 ? rows[i].last : 2 * r,
				true, "a@m");
		merge_stacks(&s);
		put_table(&out, &s, 0, 0);
		snprintf(want, sizeof(want), "\n%-*s THREADS  COMMAND",
			rows[i].width, "RANKS");
		has_text(&out, want);
		buf_clear(&out);
		stacks_fini(&s);
	}
	buf_fini(&out);
}

Test(stacks_put, a_table_of_some_groups_tells_how_many_are_left_out)
{
	static const struct {
		uint32_t most;
		const char *rest;
	} rows[] = { { 1, "a\nand 2 more; --full shows all of them\n" },
		{ 2, "b\nand 1 more; --full shows all of them\n" },
		{ 3, "c\n" }, { 4, "c\n" }, { 0, "c\n" } };
	struct stacks s = { 0 };
	struct buf out = { 0 };
	const char *end;

	add(&s, 0, true, "a@m");
	add(&s, 1, true, "b@m");
	add(&s, 2, true, "c@m");
	merge_stacks(&s);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_table(&out, &s, 0, rows[i].most);
		end = buf_text(&out) + out.len - strlen(rows[i].rest);
		cr_expect_str_eq(end, rows[i].rest, "%u: %s", rows[i].most,
			buf_text(&out));
		buf_clear(&out);
	}
	buf_fini(&out);
	stacks_fini(&s);
}

Test(stacks_put, the_head_names_each_tool_once)
{
	static const struct {
		enum stacks_by by[2];
		const char *python[2], *want;
	} rows[] = {
		{ { STACKS_BY_EU, STACKS_BY_EU }, { NULL, NULL }, "eu-stack" },
		{ { STACKS_BY_EU, STACKS_BY_PROC }, { NULL, NULL },
			"eu-stack, /proc" },
		{ { STACKS_BY_EU, STACKS_BY_GDB }, { NULL, NULL },
			"gdb, eu-stack" },
		{ { STACKS_BY_GDB, STACKS_BY_GDB }, { "gdb", NULL }, "gdb" },
		{ { STACKS_BY_EU, STACKS_BY_EU }, { "gdb", "gdb" },
			"eu-stack, gdb" },
		{ { STACKS_BY_EU, STACKS_BY_EU }, { "py-spy", "faulthandler" },
			"eu-stack, py-spy, faulthandler" },
		{ { STACKS_BY_PROC, STACKS_BY_PROC }, { NULL, "faulthandler" },
			"/proc, faulthandler" },
	};
	struct stacks s = { 0 };
	struct buf out = { 0 };
	char want[64];

	add(&s, 0, true, "a@m");
	add(&s, 1, true, "a@m");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int k = 0; k < 2; k++) {
			s.process[k].by = rows[i].by[k];
			s.process[k].python_by = rows[i].python[k];
		}
		put_table(&out, &s, 0, 0);
		snprintf(want, sizeof(want), "2 ranks in 0 ms, by %s\n",
			rows[i].want);
		is_text(&out, want);
	}
	buf_fini(&out);
	stacks_fini(&s);
}

/* Rank @rank, of which no thread is known. */
static struct process *
add_unseen(struct stacks *s, uint32_t rank, const char *why, bool python)
{
	struct process *p;

	stacks_add_rank(s, rank, 1);
	p = stacks_add_process(s, rank, 1);
	snprintf(p->why, sizeof(p->why), "%s", why);
	p->python = python;
	return p;
}

#define PY_ADVICE \
	": no functions of Python   try: pip install py-spy, or import xrun in the program\n"

Test(stacks_put, ranks_without_stacks_are_put_with_their_reasons)
{
	struct stacks s = { 0 };
	struct buf out = { 0 };

	add_unseen(&s, 0, "no", true);
	put_table(&out, &s, 0, 0);
	is_text(&out,
		"1 rank in 0 ms, by /proc\nrank 0: no stack: no\nrank 0" PY_ADVICE);
	add_unseen(&s, 1, "no", true);
	add_unseen(&s, 2, "gdb: no", false);
	add_unseen(&s, 3, "py-spy did it", true)->python_by = "py-spy";
	stacks_add_rank(&s, 5, 0);
	s.rank[4].ended = true;
	put_table(&out, &s, 0, 0);
	is_text(&out,
		"5 ranks in 0 ms, by /proc, py-spy\nranks 0-1: no stack: no\n"
		"rank 2: no stack: gdb: no\nrank 5: ended\nranks 0-1" PY_ADVICE);
	stacks_add_rank(&s, 4, 0);
	s.rank[5].ended = true;
	put_table(&out, &s, 0, 0);
	has_text(&out, "\nranks 4-5: ended\n");
	buf_fini(&out);
	stacks_fini(&s);
}

/* A table that lacks memory for a set of ranks lacks one line. */
Test(stacks_put, a_table_without_memory_is_shorter)
{
	static const char *const rows[] = { ("rank 0: ended\nrank 0" PY_ADVICE),
		"rank 0: no stack: no\n",
		"rank 0: no stack: no\nrank 0: ended\n" };
	static const char *const head = "1 rank in 0 ms, by /proc\n";
	struct stacks s = { 0 };
	struct buf out = { 0 };
	char want[512];

	add_unseen(&s, 0, "no", true);
	s.rank[0].ended = true;
	put_table(&out, &s, 0, 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&out);
		was_short = false;
		until_short = i + 1;
		put_table(&out, &s, 0, 0);
		until_short = 0;
		cr_expect(was_short);
		cr_expect_eq(out.bad, XR_OK);
		snprintf(want, sizeof(want), "%s%s", head, rows[i]);
		is_text(&out, want);
	}
	put_table(&out, &s, 0, 0);
	snprintf(want, sizeof(want), "%s%s%s", head, rows[2],
		"rank 0" PY_ADVICE);
	is_text(&out, want);
	buf_fini(&out);
	stacks_fini(&s);
}

/* --- JSON ----------------------------------------------------------------- */

Test(stacks_put, json_has_a_member_only_if_it_is_known)
{
	static const char *const of_all[] = { "\"left_out\":", "\"ended\":",
		"\"python_by\":", "\"stopped\":", "\"error\":", "\"call\":",
		"\"kernel\":", "\"line\":", "\"job\":" };
	struct stacks s = { 0 };
	struct buf out = { 0 };
	struct thread *t = add(&s, 0, true, "a@m");

	merge_stacks(&s);
	put_json(&out, &s, NULL);
	for (size_t i = 0; i < sizeof(of_all) / sizeof(of_all[0]); i++)
		cr_expect_null(strstr(buf_text(&out), of_all[i]), "%s",
			of_all[i]);
	buf_clear(&out);
	s.rank[0].left_out = 3;
	s.rank[0].ended = true;
	s.process[0].python_by = "gdb";
	s.process[0].stopped = true;
	memcpy(s.process[0].why, "no", 3);
	memcpy(t->call, "read", 5);
	parse_add(&t->kernel, span_of("io"), span_of(""), 7);
	put_json(&out, &s, "j");
	for (size_t i = 0; i < sizeof(of_all) / sizeof(of_all[0]); i++)
		has_text(&out, of_all[i]);
	has_text(&out, "\"main\":true,\"command\":\"train\",\"stack\":");
	has_text(&out, "\"left_out\":3");
	has_text(&out, "\"kernel\":[{\"function\":\"io\",\"line\":7}]");
	buf_fini(&out);
	stacks_fini(&s);
}
