/* SPDX-License-Identifier: Apache-2.0 */
/* test_words.c - who says something on stderr does not wait for its reader. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include <criterion/criterion.h>

#include "launcher/job/words.h"

/* stderr is a pipe; gives what is to be read of it. */
static int
pipe_for_words(void)
{
	int fd[2];

	cr_assert_eq(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
	cr_assert_eq(dup2(fd[1], STDERR_FILENO), STDERR_FILENO);
	close(fd[1]);
	return fd[0];
}

static void
fill(void)
{
	char page[4096] = "";

	while (write(STDERR_FILENO, page, sizeof(page)) > 0)
		continue;
}

Test(words, a_pipe_that_nobody_empties_has_no_room_when_it_is_full)
{
	int rd = pipe_for_words();
	char page[4096];

	cr_expect(words_have_room());
	fill();
	cr_expect(!words_have_room());
	cr_assert_eq(read(rd, page, sizeof(page)), (ssize_t)sizeof(page));
	cr_expect(words_have_room());
	fill();
	close(rd);
	cr_expect(!words_have_room(), "nobody will ever read it");
}

Test(words, a_file_has_room)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	cr_assert_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	cr_expect(words_have_room());
}

static void
expect_said(int rd, const char *text)
{
	char got[4096] = "";
	ssize_t n = read(rd, got, sizeof(got) - 1);

	got[n > 0 ? n : 0] = '\0';
	cr_expect_str_eq(got, text);
}

Test(words, a_line_bears_our_name_and_steers_no_terminal)
{
	int rd = pipe_for_words();
	static char many[3000], want[2100];

	words_line("rank %d has ended", 3);
	expect_said(rd, "xrun: rank 3 has ended\n");
	words_line("a\033b\tc");
	expect_said(rd, "xrun: a?b\tc\n");
	words_line("%s", "");
	expect_said(rd, "xrun: \n");
	/* What cannot be printed is not said. */
	words_line("%ls", L"\x100");
	expect_said(rd, "");
	memset(many, 'm', sizeof(many) - 1);
	words_line("%s", many);
	snprintf(want, sizeof(want), "xrun: %.2047s\n", many);
	expect_said(rd, want);
	close(rd);
}

Test(words, each_line_of_several_bears_it)
{
	struct buf lines = { 0 };
	int rd = pipe_for_words();

	words_lines(&lines);
	expect_said(rd, "");
	buf_put_text(&lines, "one\n\nthree\nno end");
	words_lines(&lines);
	expect_said(rd, "xrun: one\nxrun: \nxrun: three\n");
	buf_fini(&lines);
	close(rd);
}

Test(words, an_error_says_what_to_try)
{
	struct xr_error err = { .text = "no such job\txrun ps" };
	int rd = pipe_for_words();

	words_error(&err);
	expect_said(rd, "xrun: no such job   try: xrun ps\n");
	snprintf(err.text, sizeof(err.text), "%s", "no such job");
	words_error(&err);
	expect_said(rd, "xrun: no such job\n");
	snprintf(err.text, sizeof(err.text), "%s", "\tx");
	words_error(&err);
	expect_said(rd, "xrun:    try: x\n");
	close(rd);
}
