/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_merge.c - equal stacks are one, and how they are put. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/stacks/chain.h"
#include "launcher/stacks/differ.h"
#include "launcher/stacks/merge.h"
#include "launcher/stacks/parse.h"
#include "launcher/stacks/put.h"

/* A thread of rank @rank whose stack is @text, inner first: "wait a main". */
static struct thread *
add(struct stacks *s, uint32_t rank, pid_t tid, const char *text)
{
	pid_t pid = (pid_t)(1000 + rank * 10);
	struct process *p = s->count == 0 ? NULL : &s->process[s->count - 1];
	struct span rest = span_of(text), word;
	struct thread *t;

	if (p == NULL || p->rank != rank) {
		stacks_add_rank(s, rank, pid);
		p = stacks_add_process(s, rank, pid);
		memcpy(p->comm, "train", 6);
		p->by = STACKS_BY_EU;
	}
	t = stacks_thread(p, tid == 0 ? pid : tid);
	while (*text != '\0' && rest.at != NULL) {
		word = span_next(&rest, ' ');
		parse_add(&t->native, word, span_of("m"), 0);
	}
	return t;
}

/* "2: main > a; 0-1,3: ...": the groups in their order. */
static void
groups_are(struct stacks *s, const char *want)
{
	struct buf out = { 0 };

	merge_stacks(s);
	for (uint32_t i = 0; i < s->groups; i++) {
		merge_ranks(s, i, &out);
		buf_fmt(&out, "/%u: ", s->group[i].threads);
		chain_put(&out, s->group[i].thread, 0);
		buf_put_text(&out, "; ");
	}
	cr_expect_str_eq(buf_text(&out), want, "%s", buf_text(&out));
	buf_fini(&out);
}

Test(stacks_merge, the_odd_one_out_is_first)
{
	struct stacks s = { 0 };

	for (uint32_t r = 0; r < 4; r++) {
		add(&s, r, 0,
			r == 2 ? "pthread_mutex_lock train main" :
				 "pause train main");
		add(&s, r, (pid_t)(1 + r), "pause beside start_thread clone3");
	}
	groups_are(&s,
		"2/1: main > train > pthread_mutex_lock; "
		"0-1,3/3: main > train > pause; 0-3/4: beside > pause; ");
	for (uint32_t i = 0; i < s.count; i++) {
		cr_expect_eq(s.process[i].thread[0].group, i == 2 ? 0 : 1);
		cr_expect_eq(s.process[i].thread[1].group, 2);
	}
	stacks_fini(&s);
}

Test(stacks_merge, threads_of_any_order_are_counted_by_ranks)
{
	struct stacks s = { 0 };

	add(&s, 3, 5, "a");
	add(&s, 3, 7, "a");
	add(&s, 1, 6, "a");
	groups_are(&s, "1,3/3: a; ");
	cr_expect_eq(s.group[0].ranks, 2);
	cr_expect_eq(s.group[0].process->rank, 1);
	cr_expect_eq(s.group[0].thread->tid, 6);
	stacks_fini(&s);
}

Test(stacks_merge, a_stack_that_is_the_beginning_of_another_is_another)
{
	static const char *const text[] = { "a", "a b", "a b c" };
	struct stacks s = { 0 };

	for (uint32_t r = 0; r < 3; r++)
		add(&s, r, 0, text[r]);
	groups_are(&s, "0/1: a; 1/1: b > a; 2/1: c > b > a; ");
	stacks_fini(&s);
	s = (struct stacks){ 0 };
	for (uint32_t r = 0; r < 3; r++)
		add(&s, r, 0, text[2 - r]);
	groups_are(&s, "0/1: c > b > a; 1/1: b > a; 2/1: a; ");
	stacks_fini(&s);
}

/* A thread without frames, which is in system call @call and waits in @wchan. */
static void
add_unknown(struct stacks *s, uint32_t rank, const char *call,
	const char *wchan)
{
	struct thread *t = add(s, rank, 0, "");

	snprintf(t->call, sizeof(t->call), "%s", call);
	snprintf(t->wchan, sizeof(t->wchan), "%s", wchan);
}

Test(stacks_merge, threads_without_frames_are_told_apart_by_their_calls)
{
	struct stacks s = { 0 };

	add_unknown(&s, 0, "read", "pipe_read");
	add_unknown(&s, 1, "read", "pipe_read");
	add_unknown(&s, 2, "poll", "pipe_read");
	add_unknown(&s, 3, "read", "unix_read");
	add(&s, 4, 0, "main");
	add_unknown(&s, 5, "read", "pipe_read");
	merge_stacks(&s);
	cr_assert_eq(s.groups, 4);
	for (uint32_t i = 0; i < s.count; i++)
		cr_expect_eq(s.process[i].thread[0].group,
			i == 2         ? 0 :
				i == 3 ? 1 :
				i == 4 ? 2 :
					 3,
			"%u", i);
	stacks_fini(&s);
	/* Those with frames are told apart by nothing else. */
	s = (struct stacks){ 0 };
	snprintf(add(&s, 0, 0, "main")->call, 5, "read");
	snprintf(add(&s, 1, 0, "main")->call, 5, "poll");
	groups_are(&s, "0-1/2: main; ");
	stacks_fini(&s);
}

Test(stacks_merge, of_threads_of_a_rank_the_lowest_number_stands_for_all)
{
	struct stacks s = { 0 };

	add(&s, 0, 7, "a")->group = 9;
	add(&s, 0, 5, "a")->group = 9;
	add(&s, 0, 6, "a")->group = 9;
	groups_are(&s, "0/3: a; ");
	cr_expect_eq(s.group[0].thread->tid, 5);
	for (uint32_t k = 0; k < 3; k++)
		cr_expect_eq(s.process[0].thread[k].group, 0);
	stacks_fini(&s);
}

Test(stacks_merge, groups_as_odd_as_others_are_in_the_order_of_ranks)
{
	struct stacks s = { 0 };

	add(&s, 0, 9, "d");
	add(&s, 1, 8, "c");
	add(&s, 2, 7, "b");
	add(&s, 2, 6, "a");
	add(&s, 2, 5, "e");
	groups_are(&s, "0/1: d; 1/1: c; 2/1: e; 2/1: a; 2/1: b; ");
	stacks_fini(&s);
}

Test(stacks_merge, programs_and_frames_of_python_are_told_apart)
{
	struct stacks s = { 0 };

	add(&s, 0, 0, "");
	add(&s, 1, 0, "");
	memcpy(s.process[1].comm, "other", 6);
	merge_stacks(&s);
	cr_expect_eq(s.groups, 2);
	stacks_fini(&s);
	s = (struct stacks){ 0 };
	for (uint32_t r = 0; r < 3; r++)
		parse_add(&add(&s, r, 0, "main")->python,
			span_of(r == 1 ? "load" : "step"), span_of("a.py"), 0);
	merge_stacks(&s);
	cr_assert_eq(s.groups, 2);
	cr_expect_eq(s.group[0].process->rank, 1);
	cr_expect_eq(s.group[0].threads, 1);
	cr_expect_eq(s.group[1].threads, 2);
	stacks_fini(&s);
}

/* The lines that name those that differ, as `put_first()` begins with them. */
static void
differ_is(struct stacks *s, const char *want)
{
	struct buf out = { 0 };
	uint32_t majority;

	merge_stacks(s);
	cr_expect_eq(differ_put(&out, s, &majority), want[0] != '\0');
	cr_expect_str_eq(buf_text(&out), want, "%s", buf_text(&out));
	buf_fini(&out);
	stacks_fini(s);
}

Test(stacks_merge, a_few_ranks_differ_from_a_majority)
{
	struct stacks s = { 0 };

	for (uint32_t r = 0; r < 4; r++)
		add(&s, r, 0, r == 2 ? "pause main" : "mesh_sum main");
	differ_is(&s,
		"rank 2 differs: main > pause; ranks 0-1, 3 wait in mesh_sum\n");
	s = (struct stacks){ 0 };
	for (uint32_t r = 0; r < 7; r++)
		add(&s, r, 0,
			r == 2         ? "pause main" :
				r == 5 ? "load main" :
					 "lead_wait xr_coll_barrier main");
	differ_is(&s,
		"rank 2 differs: main > pause; ranks 0-1, 3-4, 6 wait in xr_coll_barrier\n"
		"rank 5 differs: main > load\n");
	s = (struct stacks){ 0 };
	for (uint32_t r = 0; r < 4; r++)
		add(&s, r, 0, r < 2 ? "pause main" : "mesh_sum main");
	differ_is(&s, "");
	s = (struct stacks){ 0 };
	for (uint32_t r = 0; r < 4; r++)
		add(&s, r, 0, "mesh_sum main");
	differ_is(&s, "");
}

Test(stacks_merge, a_group_with_a_main_thread_is_one_whatever_joins_it)
{
	struct stacks s = { 0 };

	add(&s, 0, 1, "a");
	add(&s, 0, 0, "z");
	add(&s, 0, 1001, "z");
	groups_are(&s, "0/2: z; 0/1: a; ");
	cr_expect(s.group[0].main);
	cr_expect_not(s.group[1].main);
	stacks_fini(&s);
}

/* A majority waits in function @inner of @file, which @outer called, and this main(). */
static void
waits_in(const char *inner, const char *file, const char *outer,
	const char *place)
{
	struct stacks s = { 0 };
	char want[128];

	for (uint32_t r = 0; r < 3; r++) {
		struct thread *t = add(&s, r, 0, r == 1 ? "odd main" : "");

		if (r == 1)
			continue;
		parse_add(&t->native, span_of(inner), span_of(file), 0);
		parse_add(&t->native, span_of(outer), span_of("app"), 0);
	}
	snprintf(want, sizeof(want),
		"rank 1 differs: main > odd; ranks 0, 2 wait in %s\n", place);
	differ_is(&s, want);
}

Test(stacks_merge, a_majority_waits_in_a_function_of_its_program)
{
	waits_in("inner", "libc.so.6", "main", "main");
	waits_in("inner", "libc-2.31.so", "main", "main");
	waits_in("inner", "libpthread.so.0", "main", "main");
	waits_in("inner", "ld-linux.so.2", "main", "main");
	waits_in("inner", "[vdso]", "main", "main");
	waits_in("inner", "libcuda.so.1", "main", "inner");
	waits_in("inner", "libptx.so", "main", "inner");
	waits_in("inner", "ldx", "main", "inner");
	waits_in("inner", "app", "xr_barrier", "xr_barrier");
	waits_in("inner", "app", "xrun", "inner");
	waits_in("xr_barrier", "libxrun.so", "main", "xr_barrier");
	waits_in("read", "libc.so.6", "_start", "read");
	waits_in("read", "libc.so.6", "", "read");
}

Test(stacks_merge, a_majority_without_functions_waits_where_its_chain_says)
{
	struct stacks s = { 0 };

	add_unknown(&s, 0, "read", "pipe_read");
	add(&s, 1, 0, "odd main");
	add_unknown(&s, 2, "read", "pipe_read");
	differ_is(&s,
		"rank 1 differs: main > odd; ranks 0, 2 wait in [read, pipe_read]\n");
}

Test(stacks_merge, of_as_many_ranks_main_threads_are_first)
{
	struct stacks s = { 0 };

	add(&s, 0, 1, "a");
	add(&s, 0, 0, "z");
	add(&s, 1, 2, "a");
	add(&s, 1, 3, "a");
	add(&s, 1, 0, "y");
	groups_are(&s, "0/1: z; 1/1: y; 0-1/3: a; ");
	stacks_fini(&s);
}

Test(stacks_merge, nothing_is_merged_of_nothing)
{
	struct stacks s = { 0 };
	struct buf out = { 0 };

	groups_are(&s, "");
	stacks_add_rank(&s, 7, 0);
	s.rank[0].ended = true;
	groups_are(&s, "");
	put_table(&out, &s, 0, 0);
	put_first(&out, &s);
	put_full(&out, &s);
	cr_expect_str_eq(buf_text(&out), "1 rank in 0 ms\nrank 7: ended\n",
		"%s", buf_text(&out));
	buf_fini(&out);
	stacks_fini(&s);
}

Test(stacks_merge, a_full_stack_has_a_line_for_each_function)
{
	struct stacks s = { 0 };
	struct buf out = { 0 };

	for (uint32_t r = 0; r < 3; r++)
		add(&s, r, 0, r == 2 ? "lock main" : "pause main");
	snprintf(s.process[2].thread[0].call,
		sizeof(s.process[2].thread[0].call), "futex");
	parse_add(&s.process[2].thread[0].python, span_of("<module>"),
		span_of("/x/a.py"), 9);
	merge_stacks(&s);
	put_full(&out, &s);
	cr_expect_str_eq(buf_text(&out),
		"\nrank 2, 1 thread of train\n"
		"  python <module>  a.py:9\n"
		"  lock  m\n  main  m\n"
		"  in the kernel: futex\n"
		"\nranks 0-1, 2 threads of train\n"
		"  pause  m\n  main  m\n",
		"%s", buf_text(&out));
	buf_fini(&out);
	stacks_fini(&s);
}

Test(stacks_merge, where_no_stack_is_known_the_kernel_tells_them_apart)
{
	struct stacks s = { 0 };
	struct thread *t;

	for (uint32_t r = 0; r < 3; r++) {
		t = add(&s, r, 0, "");
		t->state = 'S';
		snprintf(t->call, sizeof(t->call), "%s",
			r == 1 ? "read /data/x" : "futex");
		snprintf(t->wchan, sizeof(t->wchan), "%s",
			r == 1 ? "folio_wait" : "futex_wait");
	}
	s.process[1].thread[0].state = 'D';
	add(&s, 3, 0, "")->state = 'R';
	add(&s, 4, 0, "")->state = 'T';
	groups_are(&s,
		"1/1: [read /data/x, folio_wait, uninterruptible]; "
		"0,2/2: [futex, futex_wait]; 3-4/2: [running]; ");
	stacks_fini(&s);
}

/* Either is enough. */
Test(stacks_merge, threads_differ_by_their_call_and_by_where_they_wait)
{
	static const char *const call[] = { "read", "futex", "read", "futex",
		"read", "write" };
	static const char *const wchan[] = { "pipe", "pipe", "sock", "pipe",
		"pipe", "pipe" };
	struct stacks s = { 0 };
	struct thread *t;

	for (uint32_t r = 0; r < 6; r++) {
		t = add(&s, r, 0, "");
		t->state = 'S';
		snprintf(t->call, sizeof(t->call), "%s", call[r]);
		snprintf(t->wchan, sizeof(t->wchan), "%s", wchan[r]);
	}
	groups_are(&s,
		"2/1: [read, sock]; 5/1: [write, pipe]; "
		"0,4/2: [read, pipe]; 1,3/2: [futex, pipe]; ");
	stacks_fini(&s);
}

Test(stacks_merge, threads_of_unknown_stacks_differ_by_their_program)
{
	struct stacks s = { 0 };
	struct thread *t;

	for (uint32_t r = 0; r < 4; r++) {
		t = add(&s, r, 0, r == 3 ? "read" : "");
		t->state = 'S';
		snprintf(t->call, sizeof(t->call), "read");
		if (r == 1)
			memcpy(s.process[r].comm, "serve", 6);
	}
	groups_are(&s, "1/1: [read]; 3/1: read; 0,2/2: [read]; ");
	stacks_fini(&s);
}

Test(stacks_merge, a_chain_leaves_out_how_all_begin_and_wait)
{
	struct stacks s = { 0 };
	static const struct {
		const char *stack, *chain;
	} rows[] = {
		{ "futex_wait lll_lock_wait pthread_mutex_lock f main libc_start_call_main libc_start_main _start",
			"main > f > pthread_mutex_lock" },
		{ "nanosleep ?? libc_start_call_main libc_start_main ??",
			"[m] > nanosleep" },
		{ "futex_wait", "futex_wait" },
		{ "_start", "_start" },
		{ "?? ?? main", "main > [m]" },
		{ "PyThread_acquire_lock ?? _PyEval_EvalFrameDefault PyEval_EvalCode ?? Py_RunMain main",
			"main > [python] > PyThread_acquire_lock" },
	};
	struct buf out = { 0 };

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&out);
		chain_put(&out, add(&s, i, 0, rows[i].stack), 0);
		cr_expect_str_eq(buf_text(&out), rows[i].chain, "%s",
			buf_text(&out));
	}
	buf_fini(&out);
	stacks_fini(&s);
}

Test(stacks_merge, functions_of_python_stand_before_what_they_call)
{
	struct stacks s = { 0 };
	struct thread *t = add(&s, 0, 0,
		"futex_wait sem_wait ?? Py_call _PyEval_EvalFrameDefault ?? "
		"_PyEval_EvalFrameDefault Py_RunMain main _start");
	struct buf out = { 0 };

	parse_add(&t->python, span_of("wait"), span_of("/x/a.py"), 3);
	parse_add(&t->python, span_of("<module>"), span_of("/x/a.py"), 9);
	chain_put(&out, t, 0);
	cr_expect_str_eq(buf_text(&out), "<module> > wait > sem_wait", "%s",
		buf_text(&out));
	buf_fini(&out);
	stacks_fini(&s);
}

Test(stacks_merge, a_chain_that_is_too_long_keeps_both_ends)
{
	struct stacks s = { 0 };
	struct thread *t = add(&s, 0, 0, "wait four three two one main");
	struct buf out = { 0 };
	static const struct {
		uint32_t cols;
		const char *chain;
	} rows[] = { { 0, "main > one > two > three > four > wait" },
		{ 38, "main > one > two > three > four > wait" },
		{ 37, "main > ... > three > four > wait" },
		{ 31, "main > ... > four > wait" }, { 18, "main > ... > wait" },
		{ 1, "main > ... > wait" } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&out);
		chain_put(&out, t, rows[i].cols);
		cr_expect_str_eq(buf_text(&out), rows[i].chain, "%u: %s",
			rows[i].cols, buf_text(&out));
		cr_expect(rows[i].cols < 18 || out.len <= rows[i].cols);
	}
	buf_fini(&out);
	stacks_fini(&s);
}

Test(stacks_merge, reasons_are_told_once_with_their_ranks)
{
	struct stacks s = { 0 };
	struct buf out = { 0 };

	for (uint32_t r = 0; r < 3; r++) {
		add(&s, r, 0, "")->state = 'S';
		s.process[r].by = STACKS_BY_PROC;
		snprintf(s.process[r].why, sizeof(s.process[r].why), "%s",
			r == 1 ? "gdb traces it" : "no");
	}
	s.rank[2].left_out = 3;
	merge_stacks(&s);
	put_table(&out, &s, 0, 0);
	cr_expect(strstr(buf_text(&out),
			  "ranks 0,2: no stack: no\n"
			  "rank 1: no stack: gdb traces it\n"
			  "rank 2: 3 more processes\n") != NULL,
		"%s", buf_text(&out));
	buf_fini(&out);
	stacks_fini(&s);
}
