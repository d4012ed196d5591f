/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - a fuzz target without a fuzzer: each argument is a file, or a
 * folder of them, and is one input. The last one is named before it is run, so
 * a crash tells which it was. 77, as of a skipped test, if there was none.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "base/mem.h"
#include "tests/fuzz/fuzz.h"

#define INPUT_MAX (1 << 20)

static void
run_file(const char *path)
{
	FILE *file = fopen(path, "r");
	uint8_t *all = xcalloc(1, INPUT_MAX), *exact;
	size_t n;

	HOLDS(file != NULL);
	n = fread(all, 1, INPUT_MAX, file);
	fclose(file);
	exact = xcalloc(1, n == 0 ? 1 : n);
	memcpy(exact, all, n);
	free(all);
	fprintf(stderr, "%s\n", path);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
}

static int
is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* How many inputs there were. */
static int
run_path(const char *path)
{
	struct dirent **entries = NULL;
	struct stat st;
	int n;

	HOLDS(stat(path, &st) == 0);
	if (!S_ISDIR(st.st_mode)) {
		run_file(path);
		return 1;
	}
	n = scandir(path, &entries, is_visible, alphasort);
	HOLDS(n >= 0);
	for (int i = 0; i < n; i++) {
		char *name = xasprintf("%s/%s", path, entries[i]->d_name);

		run_file(name);
		free(name);
		free(entries[i]);
	}
	free(entries);
	return n;
}

int
main(int argc, char **argv)
{
	int n = 0;

	for (int i = 1; i < argc; i++)
		n += run_path(argv[i]);
	fprintf(stderr, "%d inputs\n", n);
	return n == 0 ? 77 : 0;
}
