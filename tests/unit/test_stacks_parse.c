/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_parse.c - what tools print of a process. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "launcher/stacks/name.h"
#include "launcher/stacks/parse.h"
#include "launcher/stacks/threads.h"
#include "tests/unit/stacks_text.h"

typedef bool parse_fn(struct span text, struct process *p);

static void
put_frames(struct buf *out, const struct frames *f)
{
	for (uint32_t i = 0; i < f->count; i++) {
		buf_fmt(out, " %s/%s", f->at[i].function, f->at[i].file);
		if (f->at[i].line > 0)
			buf_fmt(out, ":%lld", (long long)f->at[i].line);
	}
}

/* "8931 wait/libc.so.6; 8933 ...": what was read, the caller's to free. */
static char *
read_by(parse_fn *parse, const char *text, size_t len)
{
	struct stacks s = { 0 };
	struct process *p = stacks_add_process(&s, 0, 1); /* of pid 1 */
	struct buf out = { 0 };
	/* A block of its own size, so that a look beyond it is seen. */
	char *copy = malloc(len + 1);

	memcpy(copy, text, len);
	parse((struct span){ copy, len }, p);
	free(copy);
	for (uint32_t i = 0; i < p->threads; i++) {
		buf_fmt(&out, "%d", (int)p->thread[i].tid);
		put_frames(&out, &p->thread[i].native);
		if (p->thread[i].python.count > 0)
			buf_put_text(&out, " py");
		put_frames(&out, &p->thread[i].python);
		buf_put_text(&out, "; ");
	}
	stacks_fini(&s);
	buf_put_text(&out, "");
	return out.data == NULL ? strdup("") : out.data;
}

static void
reads(parse_fn *parse, const char *text, const char *want)
{
	char *got = read_by(parse, text, strlen(text));

	cr_expect_str_eq(got, want, "got:  %s\nwant: %s", got, want);
	free(got);
}

/* What ends anywhere is read as far as its last whole line. */
static void
bears_every_end(parse_fn *parse, const char *text)
{
	char *some, *whole;
	size_t line = 0;

	for (size_t len = 0; len <= strlen(text); len++) {
		if (len > 0 && text[len - 1] == '\n')
			line = len;
		some = read_by(parse, text, len);
		whole = read_by(parse, text, line);
		cr_expect_str_eq(some, whole, "at %zu: %s", len, some);
		free(some);
		free(whole);
	}
}

Test(stacks_parse, eu_stack_is_read)
{
	reads(parse_eu, EU_TEXT,
		"8931 lll_lock_wait/libc.so.6 pthread_mutex_lock/libc.so.6"
		" std::vector<int, a b>::wait(int)/block /block /; "
		"8933 pause/[vdso] clone3/; ");
}

Test(stacks_parse, gdb_is_read_with_its_python)
{
	reads(parse_gdb, GDB_TEXT,
		"18075 pause/pause.c:29 beside/block.c:8; "
		"18067 futex_wait/futex.h:146 /libfoo.so a::b<int>(int)/block.c:9"
		" py wait_in_python/slow.py:4 <module>/slow.py:7; ");
}

Test(stacks_parse, py_spy_is_read)
{
	reads(parse_py_spy, PY_SPY_TEXT,
		"18463 py wait_in_python/slow.py:4 <module>/slow.py:7; "
		"18464 py run/threading.py:975; ");
}

Test(stacks_parse, faulthandler_tells_of_the_main_thread)
{
	reads(parse_faulthandler, FAULTHANDLER_TEXT,
		"1 py wait_in_python/slow.py:4 b.py\", line 7 in <module>/a:1; ");
}

Test(stacks_parse, a_text_may_end_anywhere)
{
	bears_every_end(parse_faulthandler, FAULTHANDLER_TEXT);
	bears_every_end(parse_eu, EU_TEXT);
	bears_every_end(parse_gdb, GDB_TEXT);
	bears_every_end(parse_py_spy, PY_SPY_TEXT);
}

Test(stacks_parse, what_is_no_frame_is_passed_over)
{
	reads(parse_eu, "#0  0x1 a - /b\nTID :\n#0  0x1 a - /b\n", "");
	reads(parse_eu, "TID 1:\n#\n#0\n#0  \n#0  zz a\n#0  0x1 \n", "1 /; ");
	reads(parse_eu, "TID 99999999999999999999:\n#0  0x1 a\n", "");
	reads(parse_gdb, "Thread 1:\n#0  a () at b.c:1\n", "");
	reads(parse_gdb, "Thread 1 (LWP 7):\n#0  a\n#0  0x1 a ()\n#0 0x1\n",
		"7; ");
	reads(parse_gdb,
		"Thread 1 (LWP 7):\n#0  a () at b.c\n#0  a () at c:x\n",
		"7 a/b.c a/c:x; ");
	reads(parse_gdb,
		"Thread 1 (LWP 7):\n  File \"a\", line , in b\n"
		"  File \"a, line 1, in b\n  File \"a\", line 1, in \n",
		"7; ");
	reads(parse_py_spy,
		"Thread 1 (idle)\n    a\n    a (b)\n    a (b:1\n    a (b:)\n"
		"    a (:1)\n",
		"1 py a/:1; ");
	reads(parse_py_spy, "    a (b:1)\nThread x\n    a (b:1)\n", "");
}

/* The only frame of @text, of gdb; by its fields. */
static void
frame_is(const char *text, const char *function, const char *file, int64_t line)
{
	struct stacks s = { 0 };
	struct process *p = stacks_add_process(&s, 0, 7);
	char all[200];

	snprintf(all, sizeof(all), "Thread 1 (LWP 7):\n#0  %s\n", text);
	cr_expect(parse_gdb(span_of(all), p), "%s", text);
	cr_assert_eq(p->threads, 1);
	cr_assert_eq(p->thread[0].native.count, 1, "%s", text);
	cr_expect_str_eq(p->thread[0].native.at[0].function, function);
	cr_expect_str_eq(p->thread[0].native.at[0].file, file, "%s", text);
	cr_expect_eq(p->thread[0].native.at[0].line, line, "%s", text);
	stacks_fini(&s);
}

Test(stacks_parse, where_a_frame_of_gdb_is)
{
	frame_is("a () at c:1", "a", "c", 1);
	frame_is("a () at /x/c.c:12", "a", "c.c", 12);
	frame_is("a () at c:d:3", "a", "c:d", 3);
	frame_is("a () at c:x", "a", "c:x", 0);
	frame_is("a () at c:1x", "a", "c:1x", 0);
	frame_is("a () at c:", "a", "c:", 0);
	frame_is("a () at :5", "a", "", 5);
	frame_is("a () at 12", "a", "12", 0);
	frame_is("a () at c", "a", "c", 0);
	frame_is("a () from /lib/m.so:1", "a", "m.so:1", 0);
	frame_is("a (x=\") at b:1\") at c:2", "a", "c", 2);
	frame_is("0x12 in a ()", "a", "", 0);
}

Test(stacks_parse, one_frame_is_some_and_none_is_not)
{
	struct stacks s = { 0 };
	struct process *p = stacks_add_process(&s, 0, 7), none = { 0 };

	cr_expect_not(parse_gdb(span_of("Thread 1 (LWP 7):\n#0  a\n"), p));
	cr_expect_not(parse_eu(span_of("TID 7:\n#0  zz\n"), p));
	cr_expect(parse_eu(span_of("TID 7:\n#0  0x1 a - /m\nTID 8:\n"), p));
	cr_expect_eq(p->threads, 2);
	cr_expect_not(parse_py_spy(span_of("Thread 7\n    a\n"), p));
	cr_expect(parse_py_spy(span_of("Thread 7\n    a (b:1)\nThread 8\n"),
		p));
	cr_expect_not(parse_faulthandler(span_of(""), &none));
	free(none.thread);
	stacks_fini(&s);
}

Test(stacks_parse, a_frame_of_py_spy_ends_with_its_line)
{
	reads(parse_py_spy,
		"Thread 1\n    a (b:1x)\n    a (b:1))\n    a (b:c:2)\n    a )\n"
		"    a (b:3\n    a (:)\n    a b (c d:4)\n",
		"1 py a/b:c:2 a b/c d:4; ");
}

Test(stacks_parse, numbers_end_with_their_text)
{
	struct span text = { "123x", 2 };
	int64_t number;

	cr_expect(parse_number(&text, &number));
	cr_expect_eq(number, 12);
	cr_expect_eq(text.len, 0);
	cr_expect_not(parse_number(&text, &number));
	text = span_of("99999999999999x");
	cr_expect(parse_number(&text, &number));
	cr_expect_eq(number, 99999999999999);
	cr_expect_eq(text.len, 1);
	text = span_of("999999999999999");
	cr_expect_not(parse_number(&text, &number), "15 digits");
}

Test(stacks_parse, names_are_words_and_are_given_back)
{
	struct frames f = { 0 };
	size_t before = 0;

	for (int i = 0; i < 40; i++) {
		f.count = 0;
		parse_add(&f, span_of("a\nb"), span_of("c\td"), 3);
		cr_assert_eq(f.count, 1);
		cr_expect_str_eq(f.at[0].function, "a?b");
		cr_expect_str_eq(f.at[0].file, "c?d");
		cr_expect_eq(f.at[0].line, 3);
		free(f.at[0].function);
		free(f.at[0].file);
		free(f.at);
		f = (struct frames){ 0 };
		if (i == 20)
			before = mallinfo2().uordblks;
	}
	cr_expect_eq(mallinfo2().uordblks, before);
}

/* In each row one part of a line is missing, or is something else. */
Test(stacks_parse, a_line_with_one_wrong_part_is_no_frame)
{
	static const struct {
		parse_fn *parse;
		const char *text, *want;
	} rows[] = {
		{ parse_eu, "TID 1:\n#0  0x1   a - /m\n", "1 a/m; " },
		{ parse_eu, "TID 1:\n#0  0x1 - 1   a - /m\n", "1 a/m; " },
		{ parse_eu, "TID 1:\n#0  0x1 - 1\n", "1 /; " },
		{ parse_gdb, "Thread 1 (LWP 7):\n#0  a () at c:1x\n",
			"7 a/c:1x; " },
		{ parse_gdb,
			"Thread 1 (LWP 7):\n#0  a () at c:123456789012345\n",
			"7 a/c:123456789012345; " },
		{ parse_gdb, "Thread 1 (LWP 7):\n#0  <signal handler called>\n",
			"7; " },
		{ parse_gdb, "Thread 1 (LWP 7):\n#  a () at c:1\n", "7; " },
		{ parse_gdb, "Thread 1 (process 7):\n#0  a () at c:1\n",
			"7 a/c:1; " },
		{ parse_gdb, "Thread 1 (LWP x):\n#0  a () at c:1\n", "" },
		{ parse_gdb, "Thread 1 (LWP 7):\n  File \"a\", line 1, in b\n",
			"7 py b/a:1; " },
		{ parse_gdb, "Thread 1 (LWP 7):\n  File a\", line 1, in b\n",
			"7; " },
		{ parse_gdb, "Thread 1 (LWP 7):\n  File \"a\", line 1 in b\n",
			"7; " },
		{ parse_py_spy, "Thread 1\n    a (b:1)\n", "1 py a/b:1; " },
		{ parse_py_spy, "Thread 1\n    a ()\n    a (\n", "1; " },
		{ parse_py_spy, "Thread 1\n  a (b:1)\n", "1; " },
		{ parse_faulthandler, "  File \"a\", line 1 in b\n",
			"1 py b/a:1; " },
		{ parse_faulthandler, "  File \"a, line 1 in b\n", "1; " },
		{ parse_faulthandler, "  File \"a\", line x in b\n", "1; " },
		{ parse_faulthandler, "  File \"a\", line 1, in b\n", "1; " },
		{ parse_faulthandler, "  File \"a\", line 1 in \n", "1; " },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		reads(rows[i].parse, rows[i].text, rows[i].want);
}

/* The parsers return true if they read a frame. */
Test(stacks_parse, a_process_with_too_many_threads_has_no_more)
{
	struct stacks s = { 0 };
	struct process *p = stacks_add_process(&s, 0, 1);
	struct span text = span_of(FAULTHANDLER_TEXT);

	for (int i = 0; i < STACKS_THREADS_MAX; i++)
		cr_assert_not_null(stacks_thread(p, 2 + i));
	cr_expect_null(stacks_thread(p, 1));
	cr_expect_not_null(stacks_thread(p, 2));
	cr_expect_not(parse_faulthandler(text, p));
	p->thread[0].tid = 1;
	cr_expect(parse_faulthandler(text, p));
	cr_expect_eq(p->thread[0].python.count, 2);
	stacks_fini(&s);
}

Test(stacks_parse, a_stack_without_end_is_cut)
{
	struct stacks s = { 0 };
	struct process *p = stacks_add_process(&s, 0, 1);
	struct buf text = { 0 };

	buf_put_text(&text, "TID 1:\n");
	for (int i = 0; i < 2 * STACKS_FRAMES_MAX; i++)
		buf_fmt(&text, "#%d  0x1 f - /m\n", i);
	for (int i = 0; i < STACKS_THREADS_MAX + 9; i++)
		buf_fmt(&text, "TID %d:\n#0  0x1 f - /m\n", i + 2);
	cr_expect(parse_eu((struct span){ text.data, text.len }, p));
	cr_expect_eq(p->thread[0].native.count, STACKS_FRAMES_MAX);
	cr_expect_eq(p->threads, STACKS_THREADS_MAX);
	stacks_fini(&s);
	buf_fini(&text);
}

Test(stacks_parse, names_are_as_a_person_knows_them)
{
	static const struct {
		const char *text, *name;
	} rows[] = { { "main", "main" }, { "_start", "_start" }, { "??", "" },
		{ "", "" }, { "_", "_" }, { "__", "__" }, { "@", "@" },
		{ "__GI___poll", "poll" }, { "__GI_raise", "raise" },
		{ "___pthread_mutex_lock", "pthread_mutex_lock" },
		{ "__libc_pause", "pause" }, { "__clone3", "clone3" },
		{ "__libc_start_main@@GLIBC_2.34", "libc_start_main" },
		{ "pthread_cond_wait@GLIBC_2.3.2", "pthread_cond_wait" },
		{ "__new_sem_wait_slow64.constprop.0", "new_sem_wait_slow64" },
		{ "work.isra.0.cold", "work" }, { "f.part.3 [clone .x]", "f" },
		{ "_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault" },
		{ "__gnu_cxx::f(int)", "__gnu_cxx::f(int)" },
		{ "a\033[31m\nb", "a?[31m?b" }, { "a\177b", "a?b" } };
	char *name;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		name = name_function(span_of(rows[i].text));
		stacks_tame(name);
		cr_expect_str_eq(name, rows[i].name, "%s: %s", rows[i].text,
			name);
		free(name);
	}
	name = name_file(span_of("[vdso: 4711]"));
	cr_expect_str_eq(name, "[vdso]");
	free(name);
	name = name_file(span_of("[vdso"));
	cr_expect_str_eq(name, "[vdso]");
	free(name);
	name = name_file(span_of("./a/b.c"));
	cr_expect_str_eq(name, "b.c");
	free(name);
}

Test(stacks_parse, a_system_call_is_read_from_proc)
{
	static const struct {
		const char *text;
		long number;
		int64_t first;
	} rows[] = { { "202 0x7f01 0x80 0x2", 202, 0x7f01 },
		{ "0 0x3 0x1", 0, 3 }, { "running", -1, -1 }, { "", -1, -1 },
		{ "-1 0x7ffe 0x7f", -1, -1 }, { "7", 7, -1 }, { "7 ", 7, -1 },
		{ "7 0x5", 7, -1 }, { "7 zz 0x1", 7, -1 },
		{ "99999999999 0x1 0x1", -1, -1 }, { "7  0x1", 7, -1 },
		/* 31 digits, and 32 */
		{ "7 0000000000000000000000000000005 0x1", 7, 5 },
		{ "7 00000000000000000000000000000005 0x1", 7, -1 },
		{ "2147483647 0x1 0x1", INT32_MAX, 1 },
		{ "2147483648 0x1 0x1", -1, -1 } };
	int64_t first;
	bool file;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(call_parse(span_of(rows[i].text), &first),
			rows[i].number, "%s", rows[i].text);
		cr_expect_eq(first, rows[i].first, "%s", rows[i].text);
	}
	cr_expect_null(call_name(100000, &file));
}
