/* SPDX-License-Identifier: Apache-2.0 */
/* test_words.c - who says something on stderr does not wait for its reader. */
#include <fcntl.h>
#include <unistd.h>

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
