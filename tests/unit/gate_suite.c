/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_suite.c - the gate against a folder of cases that bear the answer in
 * their names, as those of JSONTestSuite (github.com/nst/JSONTestSuite, folder
 * test_parsing) do: y_ is JSON, n_ is none, i_ may be.
 *
 *   gate_suite FOLDER
 *
 * Names each case that went another way than its name says, and why; the last
 * line counts. Two things that are JSON are refused on purpose: a key that
 * stands twice, and \u0000. Ends with 1 if anything else is amiss.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/gate.h"

static unsigned cases, wrong, on_purpose;

static int
is_on_purpose(const char *name)
{
	return strstr(name, "duplicated_key") != NULL ||
		strstr(name, "null_escape") != NULL ||
		strstr(name, "escaped_null") != NULL;
}

static void
judge(const char *folder, const char *name)
{
	struct xr_error err = { 0 };
	char path[PATH_MAX], *text = NULL;
	enum xr_status status;
	size_t len = 0;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	status = fd_read_file(path, GATE_MAX, &text, &len, &err);
	if (status == XR_OK)
		status = gate_check(name, text, len, GATE_MAX, &err);
	free(text);
	cases++;
	if (name[0] == 'y' && status != XR_OK && is_on_purpose(name)) {
		on_purpose++;
		printf("on purpose: %s\n", err.text);
	} else if ((name[0] == 'y' && status != XR_OK) ||
		(name[0] == 'n' && status == XR_OK)) {
		wrong++;
		printf("WRONG: %s\n", status == XR_OK ? name : err.text);
	}
}

int
main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	const struct dirent *d;

	if (dir == NULL) {
		fprintf(stderr, "usage: gate_suite FOLDER\n");
		return 2;
	}
	while ((d = readdir(dir)) != NULL)
		if (strchr("yni", d->d_name[0]) != NULL && d->d_name[1] == '_')
			judge(argv[1], d->d_name);
	closedir(dir);
	printf("%u cases, %u wrong, %u refused on purpose\n", cases, wrong,
		on_purpose);
	return wrong > 0 || cases == 0;
}
