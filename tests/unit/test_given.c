/* SPDX-License-Identifier: Apache-2.0 */
/* test_given.c - descriptors that a process has of the one that started it
 * (worker/proc/given.c). */
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "worker/proc/given.h"

TestSuite(given, .timeout = 120);

static unsigned long long
inode_of(int fd)
{
	struct stat st;

	NEED(fstat(fd, &st) == 0);
	return st.st_ino;
}

/* A file of its own, which what is executed would have. */
static int
some_file(void)
{
	int fd = memfd_create("given", 0);

	NEED(fd != -1 && fcntl(fd, F_GETFD) == 0);
	return fd;
}

static uint32_t
count_given(void)
{
	uint32_t count;

	given_fds(&count);
	return count;
}

FORKED_TEST(given, a_descriptor_is_inherited_if_it_is_the_file_that_was_named)
{
	int a = some_file(), other = some_file(), closed = some_file(),
	    b = some_file();
	unsigned long long gone = inode_of(closed);
	const int *fds;
	char text[256];
	uint32_t count;

	close(closed);
	snprintf(text, sizeof(text), "%d:%llu,%d:%llu,%d:%llu,%d:%llu", a,
		inode_of(a), other, inode_of(a), closed, gone, b, inode_of(b));
	setenv(GIVEN_VARIABLE, text, 1);
	given_inherit();
	fds = given_fds(&count);
	EXPECT_EQ(count, 2);
	EXPECT_EQ(fds[0], a);
	EXPECT_EQ(fds[1], b);
	EXPECT_EQ(fcntl(a, F_GETFD), FD_CLOEXEC);
	EXPECT_EQ(fcntl(b, F_GETFD), FD_CLOEXEC);
	EXPECT_EQ(fcntl(other, F_GETFD), 0);
	EXPECT(getenv(GIVEN_VARIABLE) == NULL);
}

/* What was looked at last is no other one's, either. */
FORKED_TEST(given, a_descriptor_that_is_not_open_is_not_inherited)
{
	int a = some_file();
	char text[64];

	snprintf(text, sizeof(text), "%d:%llu,%d:%llu", a, inode_of(a),
		FORKED_FD_MIN - 1, inode_of(a));
	setenv(GIVEN_VARIABLE, text, 1);
	given_inherit();
	EXPECT_EQ(count_given(), 1);
}

FORKED_TEST(given, a_text_is_read_as_far_as_it_names_descriptors)
{
	int a = some_file();
	char text[64];

	unsetenv(GIVEN_VARIABLE);
	given_inherit();
	EXPECT_EQ(count_given(), 0);
	setenv(GIVEN_VARIABLE, "", 1);
	given_inherit();
	EXPECT_EQ(count_given(), 0);
	EXPECT(getenv(GIVEN_VARIABLE) == NULL);
	snprintf(text, sizeof(text), "%d:%llu,x%d:%llu", a, inode_of(a), a,
		inode_of(a));
	setenv(GIVEN_VARIABLE, text, 1);
	given_inherit();
	EXPECT_EQ(count_given(), 1);
	snprintf(text, sizeof(text), "%d", a);
	setenv(GIVEN_VARIABLE, text, 1);
	given_inherit();
	EXPECT_EQ(count_given(), 1);
	EXPECT(getenv(GIVEN_VARIABLE) == NULL);
}

FORKED_TEST(given, there_are_so_many_and_no_more)
{
	const int *fds;
	uint32_t count;

	for (int i = 0; i < GIVEN_MAX + 2; i++)
		given_add(10 + i);
	fds = given_fds(&count);
	EXPECT_EQ(count, GIVEN_MAX);
	for (int i = 0; i < GIVEN_MAX; i++)
		EXPECT_EQ(fds[i], 10 + i);
}

FORKED_TEST(given, what_is_bequeathed_can_be_inherited)
{
	int a = fcntl(some_file(), F_DUPFD_CLOEXEC, 100),
	    b = fcntl(some_file(), F_DUPFD_CLOEXEC, 100), fd[2];
	char *entry = (char *)"?", rest;
	unsigned long long inode[2];

	EXPECT(given_bequeath(&entry));
	EXPECT(entry == NULL);
	NEED(close_range(0, 4, 0) == 0); /* 0 to 2 are not used for one */
	given_add(a);
	given_add(b);
	EXPECT(given_bequeath(&entry));
	NEED(entry != NULL);
	EXPECT_EQ(sscanf(entry, GIVEN_VARIABLE "=%d:%llu,%d:%llu%c", &fd[0],
			  &inode[0], &fd[1], &inode[1], &rest),
		4);
	EXPECT_EQ(fd[0], 3);
	EXPECT_EQ(fd[1], 4);
	for (int i = 0; i < 2; i++) {
		EXPECT(fd[i] != a && fd[i] != b);
		EXPECT_EQ(fcntl(fd[i], F_GETFD), 0);
		EXPECT(inode[i] == inode_of(fd[i]));
		EXPECT(inode[i] == inode_of(i == 0 ? a : b));
	}
	free(entry);
}

FORKED_TEST(given, all_that_there_can_be_are_bequeathed)
{
	unsigned long long inode, all = 0;
	char *entry = NULL;
	const char *at;
	int fd, n;

	for (int i = 0; i < GIVEN_MAX; i++)
		given_add(some_file());
	EXPECT(given_bequeath(&entry));
	NEED(entry != NULL);
	at = entry + sizeof(GIVEN_VARIABLE);
	while (sscanf(at, "%d:%llu%n", &fd, &inode, &n) == 2) {
		EXPECT(inode == inode_of(fd));
		at += n;
		at += *at == ',';
		all++;
	}
	EXPECT_EQ(all, GIVEN_MAX);
	EXPECT_EQ(*at, '\0');
	free(entry);
}

FORKED_TEST(given, without_memory_or_a_descriptor_nothing_is_bequeathed)
{
	char *entry = NULL;
	int a = some_file();

	given_add(a);
	until_short = 1;
	EXPECT(!given_bequeath(&entry));
	until_short = 0;
	EXPECT(was_short);
	EXPECT(entry == NULL);
	close(a);
	EXPECT(!given_bequeath(&entry));
	free(entry);
}
