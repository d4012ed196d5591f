/* SPDX-License-Identifier: Apache-2.0 */
/* test_ctl_place.c - the folder of a job with its control socket. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/ctl/place.h"
#include "tests/unit/folder.h"

static void
begin(void)
{
	folder_make();
	cr_assert_eq(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
}

TestSuite(ctl_place, .init = begin, .fini = folder_remove);

Test(ctl_place, remove_tells_whether_the_folder_is_gone)
{
	struct ctl_place p = CTL_PLACE_NONE;
	int fd;

	cr_expect(ctl_place_remove(&p), "there is none");
	cr_assert_eq(ctl_place_open(&p, "k7m2", NULL), XR_OK);
	fd = ctl_place_listen(&p);
	cr_assert_neq(fd, -1);
	/* A folder in the place of a file cannot be unlinked. */
	cr_assert_eq(mkdirat(p.dir, CTL_PLACE_TOKEN, 0700), 0);
	cr_expect_not(ctl_place_remove(&p));
	cr_expect_eq(access("xrun/k7m2", F_OK), 0);
	cr_assert_eq(unlinkat(p.dir, CTL_PLACE_TOKEN, AT_REMOVEDIR), 0);
	cr_expect(ctl_place_remove(&p));
	cr_expect_eq(access("xrun/k7m2", F_OK), -1);
	cr_expect(ctl_place_remove(&p), "another removed it");
	fd_close(fd);
	fd_close(p.dir);
}
