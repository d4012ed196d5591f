/* SPDX-License-Identifier: Apache-2.0 */
/* test_amend.c - members that are added to a JSON file without the heap. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "launcher/state/state.h"
#include "tests/unit/folder.h"

static struct state st;

static void
begin(void)
{
	folder_make();
	st.dir_fd = open(".", O_DIRECTORY | O_CLOEXEC);
	cr_assert_neq(st.dir_fd, -1);
}

TestSuite(amend, .init = begin, .fini = folder_remove);

Test(amend, members_are_added_to_an_object_in_a_file_once)
{
	static const char *const bad[] = { "", "{", "}", "\n", "{\"a\":1" };
	char text[64] = "";
	int fd;

	cr_expect_eq(state_amend(&st, "job.json", ",\"b\":", ",\"b\":2"), -1);
	cr_expect_eq(errno, ENOENT);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		state_write(&st, "job.json", bad[i], strlen(bad[i]));
		cr_expect_eq(state_amend(&st, "job.json",
				     ",\"b\":", ",\"b\":2"),
			-1, "%s", bad[i]);
	}
	state_write(&st, "job.json", "{\"a\":1}\n", 8);
	cr_expect_eq(state_amend(&st, "job.json", ",\"b\":", ",\"b\":2"), 0);
	cr_expect_eq(state_amend(&st, "job.json", ",\"b\":", ",\"b\":3"), -1);
	fd = openat(st.dir_fd, "job.json", O_RDONLY);
	cr_assert_gt(read(fd, text, sizeof(text) - 1), 0);
	cr_expect_str_eq(text, "{\"a\":1,\"b\":2}\n");
	close(fd);
}
