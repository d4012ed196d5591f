/* SPDX-License-Identifier: Apache-2.0 */
/* test_dial.c - connections to the control socket of a job (launcher/cmd/dial.h). */
#include <errno.h>

#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "launcher/cmd/dial.h"
#include "launcher/ctl/client.h"
#include "tests/unit/folder.h"

TestSuite(dial, .init = folder_make, .fini = folder_remove, .timeout = 60);

Test(dial, a_job_that_has_ended_has_no_connection)
{
	struct which job = { .id = "k7m2" };
	struct ctl_call call = { .fd = 7 };
	struct xr_error err = { 0 };

	cr_expect_eq(dial_open(&call, &job, &err), XR_E_STATE);
	cr_expect(strstr(err.text, "k7m2") != NULL, "%s", err.text);
	cr_expect_eq(call.fd, -1);
}

/* Its socket has no room for another connection. */
static void
make_busy_job(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX,
		.sun_path = "xrun/k7m2/control" };
	int fd, type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

	setenv("XDG_RUNTIME_DIR", folder, 1);
	cr_assert_eq(mkdir("xrun", 0700), 0);
	cr_assert_eq(mkdir("xrun/k7m2", 0700), 0);
	fd = socket(AF_UNIX, type, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	cr_assert_eq(listen(fd, 0), 0);
	do
		fd = socket(AF_UNIX, type, 0);
	while (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	cr_assert_eq(errno, EAGAIN);
}

Test(dial, a_job_without_room_for_connections_is_waited_for_until_the_deadline)
{
	struct ctl_call call = { .fd = -1 };
	struct xr_error err = { 0 };
	int64_t begun;

	make_busy_job();
	begun = clock_now();
	cr_expect_eq(ctl_dial_within(&call, "k7m2", 30 * NS_PER_MS, &err),
		XR_E_TIMEOUT, "%s", err.text);
	cr_expect_geq(clock_now() - begun, 30 * NS_PER_MS);
	cr_expect_eq(call.fd, -1);
}
