/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - a folder of its own for a test: folder_make() at its beginning,
 * folder_remove() as its .fini. The test's working directory is the folder.
 */
#ifndef TESTS_UNIT_FOLDER_H
#define TESTS_UNIT_FOLDER_H

#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

static char folder[PATH_MAX];

static inline void
folder_make(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/xrun-test-XXXXXX",
		tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
	cr_assert_not_null(mkdtemp(folder));
	cr_assert_eq(chdir(folder), 0);
}

static inline int
folder_forget(const char *path, const struct stat *st, int type,
	struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void
folder_remove(void)
{
	if (chdir("/") == 0 && folder[0] != '\0')
		nftw(folder, folder_forget, 16, FTW_DEPTH | FTW_PHYS);
	folder[0] = '\0';
}

/* folder_write() - a file of @mode that holds @text. */
static inline void
folder_write(const char *name, const char *text, mode_t mode)
{
	FILE *f = fopen(name, "w");

	cr_assert_not_null(f, "%s", name);
	fputs(text, f);
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(chmod(name, mode), 0);
}

/* folder_expect() - the file holds just @text. */
static inline void
folder_expect(const char *name, const char *text)
{
	char got[4096] = "";
	FILE *f = fopen(name, "r");

	cr_assert_not_null(f, "%s", name);
	got[fread(got, 1, sizeof(got) - 1, f)] = '\0';
	fclose(f);
	cr_expect_str_eq(got, text, "%s", name);
}

/* folder_entries() - how many names @dir holds; -1 if it is no folder. */
static inline int
folder_entries(const char *dir)
{
	struct dirent **list;
	int n = scandir(dir, &list, NULL, NULL);

	for (int i = 0; i < n; i++)
		free(list[i]);
	if (n >= 0)
		free(list);
	return n < 0 ? -1 : n - 2;
}

/* Skips the test. Criterion runs no .fini then, so that the folder is removed here. */
#define folder_skip(reason) \
	do { \
		folder_remove(); \
		cr_skip_test(reason); \
	} while (0)

#endif /* TESTS_UNIT_FOLDER_H */
