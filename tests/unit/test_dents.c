/* SPDX-License-Identifier: Apache-2.0 */
/* test_dents.c - names in a folder, without the heap. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/dents.h"
#include "tests/unit/folder.h"

TestSuite(dents, .init = folder_make, .fini = folder_remove);

Test(dents, every_name_of_a_large_folder_is_met_once)
{
	static bool met[2000];
	struct dents names;
	const struct dent *d;
	char name[64];
	unsigned turns = 0, n = 0;
	int fd;

	for (unsigned i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "%040u", i);
		folder_write(name, "", 0600);
	}
	cr_assert_eq(mkdir("sub", 0700), 0);
	fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (; dents_read(&names, fd); turns++)
		while ((d = dents_next(&names)) != NULL) {
			n++;
			if (strcmp(d->name, "sub") == 0) {
				cr_expect_eq(d->type, DT_DIR);
				continue;
			}
			cr_assert_eq(d->type, DT_REG, "%s", d->name);
			cr_assert(!met[strtoul(d->name, NULL, 10)]);
			met[strtoul(d->name, NULL, 10)] = true;
		}
	cr_expect_eq(n, 2001, "no . and ..: %u", n);
	cr_expect_gt(turns, 1);
	close(fd);
}

Test(dents, what_is_no_folder_has_no_names)
{
	struct dents names;
	int fd;

	cr_expect(!dents_read(&names, -1));
	cr_expect_null(dents_next(&names));
	folder_write("file", "x", 0600);
	fd = open("file", O_RDONLY | O_CLOEXEC);
	cr_expect(!dents_read(&names, fd));
	cr_expect_null(dents_next(&names));
	close(fd);
	cr_assert_eq(mkdir("empty", 0700), 0);
	fd = open("empty", O_RDONLY | O_CLOEXEC);
	dents_read(&names, fd);
	cr_expect_null(dents_next(&names));
	close(fd);
}
