/* SPDX-License-Identifier: Apache-2.0 */
/* test_logs_put.c - what xrun logs prints, line by line, with a view and without. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "launcher/cmd/logs_put.h"
#include "launcher/job/options.h"
#include "launcher/log/line.h"
#include "launcher/log/view.h"

#define NOW INT64_C(7000000000)

struct view *__wrap_view_new(const struct view_config *config);
void __wrap_view_free(struct view *view);
void __wrap_view_begin(struct view *view, int64_t now);
void __wrap_view_came(struct view *view, int64_t ns);
void __wrap_view_lost(struct view *view);
bool __wrap_view_moves(const struct view *view);
bool __wrap_view_alone(int fd);
int64_t __wrap_view_due(const struct view *view);
void __wrap_view_paint(struct view *view);
void __wrap_view_break(struct view *view);
void __wrap_view_end(struct view *view);
size_t __wrap_line_cut(struct line_sink *sink, struct line_stream *stream,
	const struct line_prefix *prefix, struct span data, enum line_end end);
struct span __wrap_reader_rest(struct reader *r, int64_t *when);
void __wrap_reader_skip(struct reader *r, size_t len);
int __wrap_fd_write_all(int fd, const void *data, size_t len);
int __wrap_isatty(int fd);
bool __wrap_utf8_narrow(int fd);
int64_t __wrap_clock_now(void);

static bool tty, alone, moves, narrow, no_memory;
static struct view_config config; /* of the view that was made */
static struct span rest;
static size_t used; /* of the rest, by the next line_cut() */
static bool row_waits, quiet;
static int unwritable;

/* What was done, in order. */
static char done[4096];

static void __attribute__((format(printf, 1, 2)))
note(const char *fmt, ...)
{
	size_t len = strlen(done);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(done + len, sizeof(done) - len, fmt, ap);
	va_end(ap);
}

#define EXPECT_DONE(text) \
	do { \
		cr_expect_str_eq(done, (text)); \
		done[0] = '\0'; \
	} while (0)

static char a_view;

struct view *
__wrap_view_new(const struct view_config *c)
{
	config = *c;
	return no_memory ? NULL : (struct view *)&a_view;
}

void
__wrap_view_free(struct view *view)
{
	if (view != NULL)
		note("free ");
}

void
__wrap_view_begin(struct view *view, int64_t now)
{
	(void)view;
	note("begin %lld ", (long long)now);
}

void
__wrap_view_came(struct view *view, int64_t ns)
{
	(void)view;
	note("came %lld ", (long long)(ns > 1000 * NOW ? 1 : ns));
}

void
__wrap_view_lost(struct view *view)
{
	(void)view;
	note("lost ");
}

bool
__wrap_view_moves(const struct view *view)
{
	(void)view;
	return moves;
}

bool
__wrap_view_alone(int fd)
{
	return fd == STDOUT_FILENO && alone;
}

int64_t
__wrap_view_due(const struct view *view)
{
	(void)view;
	return 4711;
}

void
__wrap_view_paint(struct view *view)
{
	(void)view;
	note("paint ");
}

void
__wrap_view_break(struct view *view)
{
	(void)view;
	note("break ");
}

void
__wrap_view_end(struct view *view)
{
	(void)view;
	note("end ");
}

size_t
__wrap_line_cut(struct line_sink *sink, struct line_stream *stream,
	const struct line_prefix *prefix, struct span data, enum line_end end)
{
	static const char *const ends[] = { [LINE_MORE] = "more",
		[LINE_IDLE] = "idle",
		[LINE_LAST] = "last" };

	(void)prefix;
	note("cut %u %s %zu %lld ", stream->number, ends[end], data.len,
		(long long)sink->wall);
	buf_put(sink->out, data.at, data.len);
	stream->row_waits = row_waits;
	stream->row_ns = 99;
	stream->quiet = quiet;
	return used;
}

struct span
__wrap_reader_rest(struct reader *r, int64_t *when)
{
	*when = r->when;
	return rest;
}

void
__wrap_reader_skip(struct reader *r, size_t len)
{
	(void)r;
	note("skip %zu ", len);
}

int
__wrap_fd_write_all(int fd, const void *data, size_t len)
{
	if (unwritable != 0) {
		errno = unwritable;
		return -1;
	}
	note("write %d [%.*s] ", fd, (int)len, (const char *)data);
	return 0;
}

int
__wrap_isatty(int fd)
{
	return fd == STDOUT_FILENO && tty;
}

bool
__wrap_utf8_narrow(int fd)
{
	return fd == STDOUT_FILENO && narrow;
}

int64_t
__wrap_clock_now(void)
{
	return NOW;
}

static struct logs_put p;
static struct reader r;

static void
begin(void)
{
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	setenv("LC_ALL", "C", 1);
	p = (struct logs_put){ .ranks = 2,
		.job = "k7m2",
		.show = "all",
		.prefix = true };
	r = (struct reader){ .stream = 3, .when = 50 };
}

static void
end(void)
{
	logs_put_close(&p);
}

TestSuite(logs_put, .init = begin, .fini = end);

static void
open_put(void)
{
	struct xr_error err = { 0 };

	cr_assert_eq(logs_put_open(&p, &err), XR_OK, "%s", err.text);
}

/* A terminal, on which lines move. */
static void
open_view(void)
{
	tty = alone = moves = p.follow = true;
	open_put();
	cr_assert_not_null(p.view);
	EXPECT_DONE("begin 7000000000 ");
}

static void
run(const char *text)
{
	r.run = (struct span){ text, strlen(text) };
	logs_put_run(&p, &r);
}

Test(logs_put, a_pipe_has_no_view)
{
	open_put();
	cr_expect_null(p.view);
	cr_expect_null(p.sink.view);
	cr_expect_not(p.tty);
	cr_expect(p.route.lines);
	cr_expect(p.sink.rows);
	cr_expect_not(p.sink.filter);
	cr_expect_not(p.sink.narrow);
	cr_expect_not(p.sink.clocked);
	cr_expect_eq(p.sink.out, &p.out);
	for (uint32_t i = 0; i < 4; i++)
		cr_expect_eq(p.line[i].number, i);
	cr_expect_not(p.route.config.color[0]);
	cr_expect_not(p.route.config.color[1]);
	cr_expect_eq(p.route.config.size, 2);
	cr_expect_str_eq(p.route.config.prefix, "auto");
	cr_expect_eq(logs_put_due(&p), 0);
	logs_put_turn(&p);
	logs_put_idle(&p);
	logs_put_break(&p);
	logs_put_end(&p);
	EXPECT_DONE("write 1 [] write 1 [] ");
}

Test(logs_put, what_changes_on_a_terminal_is_a_screens)
{
	narrow = true;
	p.timestamps = true;
	open_view();
	cr_expect_eq(p.sink.view, p.view);
	cr_expect(config.screen);
	cr_expect(config.tty);
	cr_expect(config.narrow);
	cr_expect(config.collapse);
	cr_expect(config.stored);
	cr_expect_eq(config.fd, STDOUT_FILENO);
	cr_expect_eq(config.out, &p.out);
	cr_expect_eq(config.route, &p.route);
	cr_expect(p.sink.filter);
	cr_expect(p.sink.narrow);
	cr_expect(p.sink.clocked);
	cr_expect_not(p.sink.rows);
	cr_expect(p.route.config.color[0]);
	cr_expect(p.route.config.color[1]);
	cr_expect(p.route.config.tty[0]);
	cr_expect(p.route.config.tty[1]);
	logs_put_close(&p);
	cr_expect_null(p.view);
	cr_expect_null(p.line);
	cr_expect_arr_eq(&p.route, (&(struct route){ 0 }), sizeof(p.route));
	EXPECT_DONE("free ");
	alone = false;
	open_put();
	cr_expect_not(config.screen);
	logs_put_close(&p);
	alone = true;
	setenv("TERM", "dumb", 1);
	open_put();
	cr_expect_not(config.screen);
	cr_expect_not(p.route.config.color[0]);
	logs_put_close(&p);
	setenv("TERM", "xterm", 1);
	p.follow = false;
	p.collapse = COLLAPSE_OFF;
	p.prefix = false;
	open_put();
	cr_expect_not(config.screen);
	cr_expect_not(config.collapse);
	cr_expect_str_eq(p.route.config.prefix, "none");
	cr_expect_eq(done[0], 'b');
	done[0] = '\0';
}

Test(logs_put, in_a_pipe_lines_are_joined_if_it_is_asked_for)
{
	narrow = true;
	p.collapse = COLLAPSE_ON;
	p.follow = alone = true;
	open_put();
	cr_expect_not_null(p.view);
	cr_expect_not(config.screen);
	cr_expect_not(config.tty);
	cr_expect_not(config.narrow);
	cr_expect(p.sink.rows);
	logs_put_close(&p);
	p.json = true;
	open_put();
	cr_expect_null(p.view);
	logs_put_close(&p);
	p.json = false;
	p.prefix = false;
	p.ranks = 1;
	open_put();
	cr_expect_null(p.view);
	cr_expect_not(p.sink.rows);
}

Test(logs_put, without_memory_there_is_no_view)
{
	struct xr_error err = { 0 };

	no_memory = tty = true;
	cr_expect_eq(logs_put_open(&p, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "no memory for lines");
}

Test(logs_put, lines_are_cut_and_the_last_may_lack_its_end)
{
	open_put();
	run("one\ntwo\n");
	EXPECT_DONE("cut 3 more 8 50 ");
	run("three");
	EXPECT_DONE("cut 3 last 5 50 ");
	cr_expect_not(p.torn);
	cr_expect(logs_put_flush(&p));
	EXPECT_DONE("write 1 [one\ntwo\nthree] ");
	cr_expect(logs_put_flush(&p));
	EXPECT_DONE("write 1 [] ");
}

Test(logs_put, bytes_as_they_are_have_an_end_before_the_next)
{
	p.prefix = false;
	p.ranks = 1;
	r.stream = 1;
	open_put();
	run("one");
	cr_expect(p.torn);
	EXPECT_DONE("");
	run("two\n");
	cr_expect_not(p.torn);
	EXPECT_DONE("cut 1 more 4 50 ");
	logs_put_end(&p);
	EXPECT_DONE("write 1 [one\ntwo\n] ");
	/* A terminal gets an end at once. */
	logs_put_close(&p);
	tty = true;
	open_put();
	done[0] = '\0';
	run("one");
	cr_expect_not(p.torn);
	EXPECT_DONE("came 50 cut 1 last 3 50 ");
}

Test(logs_put, much_goes_out_at_once)
{
	static char text[256 * 1024];

	open_put();
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 2] = '\n';
	text[sizeof(text) - 1] = '\0';
	run(text);
	cr_expect_eq(p.out.len, sizeof(text) - 1);
	run("\n");
	cr_expect_eq(p.out.len, 0);
}

Test(logs_put, a_line_that_is_not_finished_is_shown_where_it_moves)
{
	rest = (struct span){ "rest", 4 };
	used = 2;
	open_view();
	cr_expect_eq(logs_put_rest(&p, &r, false), NOW + LINE_IDLE_TTY_NS);
	cr_expect_eq(p.sink.now, NOW);
	EXPECT_DONE("came 50 cut 3 more 4 50 skip 2 ");
	cr_expect_eq(logs_put_rest(&p, &r, true), 0);
	EXPECT_DONE("came 50 cut 3 idle 4 50 skip 2 ");
	used = 3;
	cr_expect_eq(logs_put_rest(&p, &r, false), NOW + LINE_IDLE_TTY_NS);
	used = 4;
	cr_expect_eq(logs_put_rest(&p, &r, false), 0);
	used = 2;
	quiet = true;
	cr_expect_eq(logs_put_rest(&p, &r, false), 0);
	quiet = false;
	row_waits = true;
	cr_expect_eq(logs_put_rest(&p, &r, true), 99);
	row_waits = moves = false;
	done[0] = '\0';
	cr_expect_eq(logs_put_rest(&p, &r, true), 0);
	EXPECT_DONE("came 50 cut 3 more 4 50 skip 2 ");
	cr_expect_eq(logs_put_rest(&p, &r, false), 0);
	/* It came before what was asked for. */
	done[0] = '\0';
	moves = true;
	r.since = 51;
	cr_expect_eq(logs_put_rest(&p, &r, false), 0);
	EXPECT_DONE("");
	r.since = 50;
	cr_expect_neq(logs_put_rest(&p, &r, false), 0);
	done[0] = '\0';
	rest.len = 0;
	cr_expect_eq(logs_put_rest(&p, &r, false), 0);
	EXPECT_DONE("");
}

Test(logs_put, in_a_pipe_what_is_not_finished_is_a_row_now_and_then)
{
	rest = (struct span){ "rest", 4 };
	used = 2;
	open_put();
	cr_expect_eq(logs_put_rest(&p, &r, true), 0);
	EXPECT_DONE("cut 3 more 4 50 skip 2 ");
	row_waits = true;
	cr_expect_eq(logs_put_rest(&p, &r, false), 99);
	EXPECT_DONE("cut 3 more 4 50 skip 2 ");
	p.sink.rows = false;
	cr_expect_eq(logs_put_rest(&p, &r, false), 0);
	p.sink.rows = true;
	p.json = true;
	cr_expect_eq(logs_put_rest(&p, &r, false), 0);
	p.json = false;
	p.grep.text = "x";
	cr_expect_eq(logs_put_rest(&p, &r, false), 0);
	p.grep.text = NULL;
	EXPECT_DONE("");
}

Test(logs_put, what_is_long_is_not_shown_before_its_end)
{
	static char text[LINE_HOLD];

	memset(text, 'a', sizeof(text));
	open_put();
	rest = (struct span){ text, LINE_HOLD };
	cr_expect_eq(logs_put_rest(&p, &r, false), 0);
	EXPECT_DONE("");
	rest.len--;
	cr_expect_eq(logs_put_rest(&p, &r, false), 0);
	EXPECT_DONE("cut 3 more 32767 50 skip 0 ");
}

Test(logs_put, turns_of_a_view)
{
	open_view();
	logs_put_turn(&p);
	EXPECT_DONE("begin 7000000000 ");
	p.lost = true;
	logs_put_turn(&p);
	cr_expect_not(p.lost);
	EXPECT_DONE("lost begin 7000000000 ");
	logs_put_idle(&p);
	EXPECT_DONE("came 1 ");
	cr_expect_eq(logs_put_due(&p), 4711);
	cr_expect(logs_put_flush(&p));
	EXPECT_DONE("paint write 1 [] ");
	logs_put_break(&p);
	EXPECT_DONE("break write 1 [] ");
	logs_put_end(&p);
	cr_expect_null(p.view);
	cr_expect_null(p.sink.view);
	EXPECT_DONE("end free write 1 [] ");
}

Test(logs_put, the_first_error_stays)
{
	open_put();
	unwritable = ENOSPC;
	run("one\n");
	done[0] = '\0';
	cr_expect_not(logs_put_flush(&p));
	cr_expect_eq(p.sys, ENOSPC);
	cr_expect_eq(p.out.len, 0);
	unwritable = 0;
	run("two\n");
	done[0] = '\0';
	cr_expect_not(logs_put_flush(&p));
	EXPECT_DONE("");
	p.out.bad = XR_E_NOMEM;
	cr_expect_not(logs_put_flush(&p));
	cr_expect_eq(p.sys, ENOSPC);
	p.sys = 0;
	p.out.bad = XR_E_NOMEM;
	cr_expect_not(logs_put_flush(&p));
	cr_expect_eq(p.sys, ENOMEM);
}

/* --- patterns --------------------------------------------------------------- */

static struct logs_grep grep;

static bool
fits(const char *line, size_t len)
{
	return logs_grep_fits(&grep, (struct span){ line, len });
}

static bool
may(const char *lines)
{
	return logs_grep_may(&grep, (struct span){ lines, strlen(lines) });
}

static void
look_for(const char *pattern, bool ignore_case)
{
	logs_grep_close(&grep);
	cr_assert_eq(logs_grep_open(&grep, pattern, ignore_case, NULL), XR_OK);
}

Test(logs_put, patterns)
{
	struct xr_error err = { 0 };

	look_for(NULL, false);
	cr_expect(fits("a", 1) && may("a"));
	look_for("b", false);
	cr_expect(grep.plain);
	cr_expect(fits("abc", 3) && may("abc"));
	cr_expect_not(fits("ABC", 3) || may("ABC"));
	look_for("b", true);
	cr_expect_not(grep.plain);
	cr_expect(fits("ABC", 3) && fits("abc", 3) && may("x"));
	cr_expect_not(fits("ac", 2));
	look_for("^(b|c)$", false);
	cr_expect(fits("b\n", 2) && fits("c", 1) && may("x"));
	cr_expect_not(fits("B", 1) || fits("bc", 2) || fits("\n", 1));
	look_for("c$", false);
	cr_expect(fits("a\0c\n", 4));
	cr_expect_not(fits("c\0b", 3));
	look_for("^$", false);
	cr_expect(fits("\n", 1) && fits(NULL, 0));
	look_for(NULL, false);
	for (const char *special = "\\.[]()*+?{}|^$"; *special != '\0';
		special++) {
		const char pattern[] = { 'a', '\\', *special, '\0' };
		const char line[] = { 'a', *special, '\0' };

		look_for(pattern, false);
		cr_expect_not(grep.plain, "%s", pattern);
		cr_expect(fits(line, 2), "%s", pattern);
	}
	look_for(NULL, false);
	cr_expect_eq(logs_grep_open(&grep, "(", false, &err), XR_E_INVAL);
	cr_expect_eq(strncmp(err.text, "logs: --grep: '(': ", 19), 0, "%s",
		err.text);
	cr_expect_null(grep.text);
}
