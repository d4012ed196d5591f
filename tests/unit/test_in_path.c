/* SPDX-License-Identifier: Apache-2.0 */
/* test_in_path.c - programs by their names, as a shell finds them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/suggest.h"
#include "launcher/host/in_path.h"
#include "tests/unit/folder.h"

static void
prepare(void)
{
	folder_make();
	cr_assert_eq(mkdir("a", 0755), 0);
	cr_assert_eq(mkdir("b", 0755), 0);
	cr_assert_eq(mkdir("b/folder", 0755), 0);
	folder_write("a/tool", "", 0755);
	folder_write("b/tool", "", 0755);
	folder_write("b/text", "", 0644);
	folder_write("here", "", 0755);
	folder_write("a/.hidden", "", 0755);
}

TestSuite(in_path, .init = prepare, .fini = folder_remove);

static void
expect_path(const char *name, unsigned nth, const char *want)
{
	char *got = in_path(name, nth);

	if (want == NULL)
		cr_expect_null(got, "%s", got);
	else
		cr_expect(got != NULL && strcmp(got, want) == 0, "%s, not %s",
			got != NULL ? got : "none", want);
	free(got);
}

Test(in_path, files_are_found_in_the_order_of_the_folders)
{
	setenv("PATH", "a:gone:b", 1);
	expect_path("tool", 0, "a/tool");
	expect_path("tool", 1, "b/tool");
	expect_path("tool", 2, NULL);
	expect_path("text", 0, NULL); /* it cannot be run */
	expect_path("folder", 0, NULL);
	expect_path("here", 0, NULL);
	setenv("PATH", "a::b", 1); /* in the middle */
	expect_path("here", 0, "here");
	setenv("PATH", "a:", 1);
	expect_path("here", 0, "here");
	setenv("PATH", ":a", 1);
	expect_path("here", 0, "here");
	expect_path("tool", 0, "a/tool");
	setenv("PATH", "", 1);
	expect_path("here", 0, "here");
	expect_path("tool", 0, NULL);
	cr_expect(in_path_runs("a/tool"));
	cr_expect(!in_path_runs("b/text"));
	cr_expect(!in_path_runs("b/folder"));
	cr_expect(!in_path_runs("a/gone"));
}

Test(in_path, without_the_variable_there_are_those_of_the_system)
{
	char *path;

	unsetenv("PATH");
	path = in_path("sh", 0);
	cr_expect(path != NULL && path[0] == '/', "%s", path);
	free(path);
	expect_path("tool", 0, NULL);
}

/* Longer than any path: the next one is looked at. */
Test(in_path, a_path_that_is_too_long_is_none)
{
	static char path[PATH_MAX + 200];
	size_t at = PATH_MAX - strlen("/tool");
	char *found;

	memset(path, '/', at);
	path[0] = 'a'; /* a//////tool */
	memcpy(path + at, ":b", 3);
	setenv("PATH", path, 1);
	expect_path("tool", 0, "b/tool");
	path[at - 1] = ':';
	memcpy(path + at, "b", 2);
	setenv("PATH", path, 1);
	found = in_path("tool", 0);
	cr_assert_not_null(found);
	cr_expect_eq(strlen(found), PATH_MAX - 1);
	free(found);
	expect_path("tool", 1, "b/tool");
}

static const char *
near(const char *word)
{
	static struct suggest s;

	suggest_init(&s, word, strlen(word));
	in_path_offer(&s);
	return suggest_best(&s);
}

static void
expect_near(const char *word, const char *want)
{
	const char *got = near(word);

	if (want == NULL)
		cr_expect_null(got, "%s", got);
	else
		cr_expect(got != NULL && strcmp(got, want) == 0, "%s",
			got != NULL ? got : "none");
}

Test(in_path, names_that_are_near_are_offered)
{
	static char path[PATH_MAX + 200];

	setenv("PATH", "gone:a:b", 1);
	expect_near("tool2", "tool");
	expect_near("quite_other", NULL);
	expect_near("folde", "folder");
	expect_near("hidden", NULL);
	expect_near("hidde", NULL);
	expect_near("her", NULL);
	setenv("PATH", "a:", 1);
	expect_near("heree", "here");
	unsetenv("PATH");
	expect_near("heree", NULL);
	/* A name that is too long for a folder. */
	memset(path, '/', PATH_MAX);
	path[0] = 'a';
	memcpy(path + PATH_MAX, ":b", 3);
	setenv("PATH", path, 1);
	expect_near("textt", "text");
	path[PATH_MAX - 1] = ':';
	path[PATH_MAX] = 'a';
	path[PATH_MAX + 1] = '\0';
	setenv("PATH", path, 1);
	expect_near("tooll", "tool");
}
