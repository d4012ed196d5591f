/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_chain.c - a stack in one line: which frames are words of it, and which fit. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/stacks/chain.h"
#include "launcher/stacks/parse.h"

static struct stacks s;
static struct thread *t;
static struct buf out;

static void
begin(void)
{
	stacks_fini(&s);
	s = (struct stacks){ 0 };
	t = stacks_thread(stacks_add_process(&s, 0, 1), 1);
	t->state = 'S';
}

static void
end(void)
{
	stacks_fini(&s);
	buf_fini(&out);
}

TestSuite(stacks_chain, .init = begin, .fini = end);

/* Frames from the inside out; "-" has no name, and "-m" is in the file m. */
static void
frames(struct frames *of, const char *text)
{
	struct span rest = span_of(text), word;

	while (*text != '\0' && rest.at != NULL) {
		word = span_next(&rest, ' ');
		if (word.at[0] == '-')
			parse_add(of, span_of("??"),
				(struct span){ word.at + 1, word.len - 1 }, 0);
		else
			parse_add(of, word, span_of("m"), 0);
	}
}

static void
expect_chain(const char *native, const char *python, const char *want)
{
	begin();
	frames(&t->native, native);
	frames(&t->python, python);
	buf_clear(&out);
	chain_put(&out, t, 0);
	cr_expect_str_eq(buf_text(&out), want, "'%s' / '%s': '%s'", native,
		python, buf_text(&out));
}

/* --- which frames ----------------------------------------------------------- */

Test(stacks_chain, from_the_outside_without_how_threads_start)
{
	expect_chain("c b a main libc_start_main _start", "",
		"main > a > b > c");
	expect_chain("work start_thread clone3", "", "work");
	expect_chain("clone", "", "clone");
	expect_chain("start_thread clone3", "", "start_thread");
	expect_chain("c - main libc_start_main -", "", "main > [?] > c");
	expect_chain("c main libc_start_main - -", "",
		"[?] > libc_start_main > main > c");
	expect_chain("libc_start_main _start", "", "libc_start_main");
}

Test(stacks_chain, who_waits_is_meant_and_not_by_what)
{
	expect_chain("futex_wait do_futex_wait sem_wait main", "",
		"main > sem_wait");
	expect_chain("futex_wait", "", "futex_wait");
	expect_chain("futex_wait lll_lock", "", "lll_lock");
	expect_chain("sem_wait futex_wait main", "",
		"main > futex_wait > sem_wait");
	expect_chain("futex_wait start_thread clone3", "", "start_thread");
}

Test(stacks_chain, frames_without_names)
{
	expect_chain("-libx.so main", "", "main > [libx.so]");
	expect_chain("-[vdso] main", "", "main > [vdso]");
	expect_chain("- main", "", "main > [?]");
	expect_chain("- - main", "", "main > [?]");
	expect_chain("-a -a -b -a main", "", "main > [a] > [b] > [a]");
	expect_chain("f f main", "", "main > f > f");
}

Test(stacks_chain, the_interpreter_is_one_word)
{
	expect_chain("poll PyA _PyEval_EvalFrameDefault PyB main", "",
		"main > [python] > poll");
	expect_chain("poll PyA PyB main", "", "main > PyB > PyA > poll");
	expect_chain("poll - _PyEval_EvalFrameDefault main", "",
		"main > [python] > poll");
	expect_chain("poll PyThread_lock _PyEval_EvalFrameDefault main", "",
		"main > [python] > PyThread_lock > poll");
}

Test(stacks_chain, functions_of_python_and_what_is_native_inside)
{
	expect_chain("poll PyA _PyEval_EvalFrameDefault PyB main",
		"inner outer", "outer > inner > poll");
	expect_chain(
		"poll x _PyEval_EvalFrameDefault PyB _PyEval_EvalFrameDefault main",
		"inner outer", "outer > inner > x > poll");
	expect_chain("poll - _PyEval_EvalFrameDefault main", "inner",
		"inner > poll");
	expect_chain("_PyEval_EvalFrameDefault main", "inner", "inner");
	/* Of an interpreter that nothing tells of all is there. */
	expect_chain("poll PyA main", "inner", "inner > main > PyA > poll");
	expect_chain("- main", "inner", "inner > main > [?]");
	expect_chain("", "inner outer", "outer > inner");
}

/* --- no frames ---------------------------------------------------------------- */

static void
expect_kernel(char state, const char *call, const char *wchan, const char *want)
{
	begin();
	t->state = state;
	snprintf(t->call, sizeof(t->call), "%s", call);
	snprintf(t->wchan, sizeof(t->wchan), "%s", wchan);
	buf_clear(&out);
	chain_put(&out, t, 0);
	cr_expect_str_eq(buf_text(&out), want, "'%s'", buf_text(&out));
}

Test(stacks_chain, without_frames_it_is_what_the_kernel_says)
{
	expect_kernel('S', "read", "pipe_read", "[read, pipe_read]");
	expect_kernel('S', "read", "", "[read]");
	expect_kernel('S', "", "pipe_read", "[pipe_read]");
	expect_kernel('S', "", "", "[sleeping]");
	expect_kernel('R', "", "", "[running]");
	expect_kernel('R', "read", "", "[read, running]");
	expect_kernel('D', "", "io", "[io, uninterruptible]");
	expect_kernel('D', "read", "io", "[read, io, uninterruptible]");
	expect_kernel('T', "", "", "[stopped]");
	expect_kernel('t', "", "", "[traced]");
	expect_kernel('Z', "", "", "[ended]");
	expect_kernel('?', "", "", "[]");
	expect_kernel('?', "read", "", "[read]");
}

/* --- what fits ------------------------------------------------------------------ */

Test(stacks_chain, the_first_word_stays_and_the_last_that_fit)
{
	static const struct {
		uint32_t cols;
		const char *want;
	} widths[] = {
		{ 0, "main > aaaa > bb > cccc" },
		{ 24, "main > aaaa > bb > cccc" },
		{ 23, "main > aaaa > bb > cccc" },
		{ 22, "main > ... > bb > cccc" },
		{ 21, "main > ... > cccc" },
		{ 17, "main > ... > cccc" },
		{ 1, "main > ... > cccc" },
	};

	frames(&t->native, "cccc bb aaaa main");
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		buf_clear(&out);
		chain_put(&out, t, widths[i].cols);
		cr_expect_str_eq(buf_text(&out), widths[i].want, "%u: %s",
			widths[i].cols, buf_text(&out));
	}
}

Test(stacks_chain, words_that_always_stay)
{
	frames(&t->native, "main");
	chain_put(&out, t, 1);
	cr_expect_str_eq(buf_text(&out), "main");
	begin();
	buf_clear(&out);
	frames(&t->native, "a main");
	chain_put(&out, t, 8);
	cr_expect_str_eq(buf_text(&out), "main > a");
	buf_clear(&out);
	chain_put(&out, t, 7);
	cr_expect_str_eq(buf_text(&out), "main > a");
}

Test(stacks_chain, its_words_are_freed)
{
	size_t before = 0;

	frames(&t->native, "poll -m -m a main");
	buf_room(&out, 1000);
	for (int i = 0; i < 20; i++) {
		buf_clear(&out);
		chain_put(&out, t, 9);
		if (i == 10)
			before = mallinfo2().uordblks;
	}
	cr_expect_eq(mallinfo2().uordblks, before);
}
