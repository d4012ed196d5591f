/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_preload.c - the shim: where it acts, and where it does not. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#include "base/stdio_tag.h"
#include "segment/layout.h"
#include "segment/owner.h"

/* A program under the shim; its stdin is held open until finish(). */
struct child {
	pid_t pid;
	int in, out, err;
};

static char env_segment[64] = "NO_SEGMENT=", env_rank[64] = "NO_RANK=";

static char *
need(const char *name)
{
	char *value = getenv(name);

	if (value == NULL)
		cr_skip_test("%s is not set", name);
	return value;
}

static void
exec_child(char *const argv[], const char *tag)
{
	char preload[4096], stdio[256];
	char *env[] = { preload, stdio, "PATH=/usr/bin:/bin",
		"ASAN_OPTIONS=verify_asan_link_order=0", env_segment, env_rank,
		NULL };

	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s",
		getenv("XRUN_TEST_PRELOAD"));
	snprintf(stdio, sizeof(stdio), "XRUN_STDIO=%s", tag);
	execve(argv[0], argv, env);
	_exit(127);
}

/* @tag: NULL: the right one for @mode. */
static struct child
start(char *const argv[], const char *tag, enum stdio_mode mode)
{
	int in[2], out[2], err[2];
	char right[STDIO_TAG_MAX];
	struct stdio_tag t = { .mode = mode };
	struct stat st;
	pid_t pid;

	need("XRUN_TEST_PRELOAD");
	cr_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 &&
		pipe2(err, O_CLOEXEC) == 0);
	cr_assert_eq(fstat(out[1], &st), 0);
	t.out.dev = t.err.dev = st.st_dev;
	t.out.ino = t.err.ino = st.st_ino;
	stdio_tag_format(&t, right);
	pid = fork();
	if (pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		exec_child(argv, tag == NULL ? right : tag);
	}
	close(in[0]);
	close(out[1]);
	close(err[1]);
	return (struct child){ pid, in[1], out[0], err[0] };
}

/* What the child has written to stdout once it has said so on stderr. */
static const char *
said(const struct child *c)
{
	static char text[256];
	struct pollfd p = { .fd = c->out, .events = POLLIN };
	size_t len = 0;
	ssize_t n = 1;

	for (len = 0; n > 0 && memchr(text, '\n', len) == NULL; len += n)
		n = read(c->err, text + len, sizeof(text) - 1 - len);
	text[len] = '\0';
	cr_assert_str_eq(text, "said\n");
	if (poll(&p, 1, 0) == 0)
		return "";
	n = read(c->out, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* End its stdin; what it still wrote to stdout. */
static const char *
finish(const struct child *c)
{
	static char text[256];
	size_t len = 0;
	ssize_t n = 1;
	int status;

	close(c->in);
	for (len = 0; n > 0; len += (size_t)n)
		n = read(c->out, text + len, sizeof(text) - 1 - len);
	text[len] = '\0';
	cr_assert_eq(waitpid(c->pid, &status, 0), c->pid);
	cr_assert_eq(status, 0);
	close(c->out);
	close(c->err);
	return text;
}

Test(preload, a_line_arrives_before_the_program_ends)
{
	char *argv[] = { need("XRUN_TEST_CHILD"), "line", NULL };
	struct child c = start(argv, NULL, STDIO_LINE);

	cr_expect_str_eq(said(&c), "first\n");
	cr_expect_str_eq(finish(&c), "second\n");
}

Test(preload, part_of_a_line_waits_for_its_end)
{
	char *argv[] = { need("XRUN_TEST_CHILD"), "part", NULL };
	struct child c = start(argv, NULL, STDIO_LINE);

	cr_expect_str_eq(said(&c), "");
	cr_expect_str_eq(finish(&c), "firstsecond\n");
}

Test(preload, mode_none_shows_part_of_a_line)
{
	char *argv[] = { need("XRUN_TEST_CHILD"), "part", NULL };
	struct child c = start(argv, NULL, STDIO_NONE);

	cr_expect_str_eq(said(&c), "first");
	cr_expect_str_eq(finish(&c), "second\n");
}

Test(preload, mode_full_leaves_the_program_alone)
{
	char *argv[] = { need("XRUN_TEST_CHILD"), "line", NULL };
	struct child c = start(argv, NULL, STDIO_FULL);

	cr_expect_str_eq(said(&c), "");
	cr_expect_str_eq(finish(&c), "first\nsecond\n");
}

Test(preload, depth_does_not_matter)
{
	char script[4096];
	char *argv[] = { "/bin/sh", "-c", script, NULL };
	struct child c;

	snprintf(script, sizeof(script), "/usr/bin/env '%s' line; true",
		need("XRUN_TEST_CHILD"));
	c = start(argv, NULL, STDIO_LINE);
	cr_expect_str_eq(said(&c), "first\n");
	cr_expect_str_eq(finish(&c), "second\n");
}

Test(preload, a_pipe_that_is_not_xruns_is_left_alone)
{
	char script[4096];
	char *argv[] = { "/bin/sh", "-c", script, NULL };
	struct child c;

	/* The tag names the pipe behind cat; the program writes to another. */
	snprintf(script, sizeof(script), "'%s' line | /bin/cat",
		need("XRUN_TEST_CHILD"));
	c = start(argv, NULL, STDIO_LINE);
	cr_expect_str_eq(said(&c), "");
	cr_expect_str_eq(finish(&c), "first\nsecond\n");
}

Test(preload, a_value_that_is_no_tag_is_left_alone)
{
	static const char *const tags[] = { "", "x", "1:2", "1:2;", "1:2;lin",
		"0:0;line", "18446744073709551616:1;line" };
	char *argv[] = { need("XRUN_TEST_CHILD"), "line", NULL };
	size_t i;

	for (i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		struct child c = start(argv, tags[i], STDIO_LINE);

		cr_expect_str_eq(said(&c), "", "%s", tags[i]);
		cr_expect_str_eq(finish(&c), "first\nsecond\n");
	}
}

Test(preload, a_closed_stdout_leaves_errno_as_it_was)
{
	char script[4096];
	char *argv[] = { "/bin/sh", "-c", script, NULL };
	struct child c;

	snprintf(script, sizeof(script), "exec '%s' errno >&-",
		need("XRUN_TEST_CHILD"));
	c = start(argv, NULL, STDIO_LINE);
	cr_expect_str_eq(finish(&c), "");
}

/* The functions of stdio_hook.def alone, and no data. */
Test(preload, it_needs_no_library_and_shows_functions_only)
{
	char *argv[] = { "/bin/sh", "-c",
		"! readelf -d \"$LD_PRELOAD\" | grep NEEDED; "
		"nm -D --defined-only \"$LD_PRELOAD\" | grep -v ' T '; true",
		NULL };
	struct child c = start(argv, NULL, STDIO_LINE);

	cr_expect_str_eq(finish(&c), "");
}

/* --- the slot ------------------------------------------------------------- */

#define SLOTS_FD 98

/* A segment that the child inherits; it is told @number and the right inode. */
static int
give_segment(int number, const char *rank)
{
	const struct segment_wish wish = { .job = "k7m2", .ranks = 2 };
	int fd = segment_create(&wish);
	struct stat st;

	cr_assert_neq(fd, -1);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_assert_eq(dup2(fd, SLOTS_FD), SLOTS_FD);
	snprintf(env_segment, sizeof(env_segment), "XRUN_SEGMENT_FD=%d:%llu",
		number, (unsigned long long)st.st_ino);
	snprintf(env_rank, sizeof(env_rank), "XRUN_LOCAL_RANK=%s", rank);
	return fd;
}

/* Who was met in slot 1 of @fd, and how often; none of it in slot 0. */
static struct segment_view
met(int fd)
{
	struct segment_view view;

	cr_assert(segment_look(fd, 0, 0, &view));
	cr_expect_eq(view.gen, 0);
	cr_assert(segment_look(fd, 1, 0, &view));
	return view;
}

static struct segment_view
met_after(char *const argv[], int number, const char *rank)
{
	int fd = give_segment(number, rank);
	struct child c = start(argv, NULL, STDIO_LINE);

	finish(&c);
	return met(fd);
}

Test(preload, the_slot_is_marked_by_whoever_acts_first)
{
	char *argv[] = { "/bin/sh", "-c", "echo $$; /bin/true; /bin/true",
		NULL };
	int fd = give_segment(SLOTS_FD, "1");
	struct child c = start(argv, NULL, STDIO_LINE);
	const char *out = finish(&c);
	struct segment_view view = met(fd);

	cr_expect_eq(view.gen, 1);
	cr_expect_eq((int)view.holder, (int)strtol(out, NULL, 10));
	cr_expect_not(view.held);
}

Test(preload, a_program_that_took_the_place_of_another_is_the_next)
{
	char *argv[] = { "/bin/sh", "-c", "exec /usr/bin/env /bin/true", NULL };

	cr_expect_eq(met_after(argv, SLOTS_FD, "1").gen, 3);
}

Test(preload, where_it_does_not_act_no_slot_is_marked)
{
	char *argv[] = { "/bin/true", NULL };
	int fd = give_segment(SLOTS_FD, "1");
	struct child c = start(argv, "0:0;line", STDIO_LINE);

	finish(&c);
	cr_expect_eq(met(fd).gen, 0);
}

Test(preload, what_is_no_segment_is_left_alone)
{
	char *argv[] = { "/bin/true", NULL };
	static const char *const ranks[] = { "2", "4294967295", "4294967296",
		"x", "", "1x", "-1" };

	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
		cr_expect_eq(met_after(argv, SLOTS_FD, ranks[i]).gen, 0, "%s",
			ranks[i]);
	cr_expect_eq(met_after(argv, 1, "1").gen, 0);
	cr_expect_eq(met_after(argv, 9999, "1").gen, 0);
	cr_expect_eq(met_after(argv, SLOTS_FD, "1").gen, 1);
}
