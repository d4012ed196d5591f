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

/* A program under the shim; its stdin is held open until finish(). */
struct child {
	pid_t pid;
	int in, out, err;
};

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
		"ASAN_OPTIONS=verify_asan_link_order=0", NULL };

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

Test(preload, it_needs_no_library_and_shows_no_name)
{
	char *argv[] = { "/bin/sh", "-c",
		"! readelf -d \"$LD_PRELOAD\" | grep NEEDED; "
		"nm -D --defined-only \"$LD_PRELOAD\"",
		NULL };
	struct child c = start(argv, NULL, STDIO_LINE);

	cr_expect_str_eq(finish(&c), "");
}
