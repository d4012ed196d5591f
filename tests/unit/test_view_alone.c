/* SPDX-License-Identifier: Apache-2.0 */
/* test_view_alone.c - what of a terminal is ours: its size, and that nobody else writes. */
#include <fcntl.h>
#include <pty.h>
#include <stdbool.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/mman.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/log/view.h"

/* What view_alone() says of standard output and of standard error, if they are
 * @out_fd and @err_fd. */
static void
expect_alone(int out_fd, int err_fd, bool of_out, bool of_err)
{
	int old_out = dup(STDOUT_FILENO), old_err = dup(STDERR_FILENO);
	bool got_out, got_err;

	cr_assert(old_out != -1 && old_err != -1);
	dup2(out_fd, STDOUT_FILENO);
	dup2(err_fd, STDERR_FILENO);
	got_out = view_alone(STDOUT_FILENO);
	got_err = view_alone(STDERR_FILENO);
	dup2(old_out, STDOUT_FILENO);
	dup2(old_err, STDERR_FILENO);
	fd_close(old_out);
	fd_close(old_err);
	cr_expect_eq(got_out, of_out);
	cr_expect_eq(got_err, of_err);
}

Test(view_alone, a_stream_is_alone_if_the_other_reaches_no_terminal)
{
	int master, slave, other_master, other, pipe_fd[2],
		null = open("/dev/null", O_RDWR);
	int file = memfd_create("other", MFD_CLOEXEC);

	cr_assert_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
	cr_assert_eq(openpty(&other_master, &other, NULL, NULL, NULL), 0);
	cr_assert_eq(pipe(pipe_fd), 0);
	cr_assert(null != -1 && file != -1);
	expect_alone(slave, slave, true, true);
	expect_alone(pipe_fd[1], pipe_fd[1], true, true);
	expect_alone(slave, other, false, false);
	expect_alone(slave, file, true, false);
	expect_alone(file, slave, false, true);
	expect_alone(slave, null, true, false);
	expect_alone(null, slave, false, true);
	expect_alone(slave, pipe_fd[1], false, false);
	expect_alone(pipe_fd[1], slave, false, false);
	expect_alone(null, file, true, true);
	fd_close(master);
	fd_close(slave);
	fd_close(other_master);
	fd_close(other);
	fd_close(pipe_fd[0]);
	fd_close(pipe_fd[1]);
	fd_close(null);
	fd_close(file);
}

/* Whether a view moves the cursor in @cols and @rows. */
static bool
moves(struct view *v, int slave, unsigned short cols, unsigned short rows)
{
	struct winsize size = { .ws_col = cols, .ws_row = rows };

	cr_assert_eq(ioctl(slave, TIOCSWINSZ, &size), 0);
	view_begin(v, 1);
	return view_moves(v);
}

Test(view_alone, a_screen_has_8_columns_and_4_rows)
{
	struct route_config names = { .ranks = 1,
		.size = 1,
		.show = "all",
		.prefix = "{rank}:" };
	struct view_config config = { .tty = true, .screen = true };
	struct buf out = { 0 };
	struct route route;
	struct xr_error err;
	struct view *v;
	int master, slave;

	cr_assert_eq(route_compile(&route, &names, &err), XR_OK);
	cr_assert_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
	config.out = &out;
	config.route = &route;
	config.fd = slave;
	v = view_new(&config);
	cr_assert_not_null(v);
	cr_expect(moves(v, slave, 8, 4));
	cr_expect_not(moves(v, slave, 7, 4));
	cr_expect(moves(v, slave, 9, 5));
	cr_expect_not(moves(v, slave, 8, 3));
	cr_expect_not(moves(v, slave, 200, 0));
	cr_expect_not(moves(v, slave, 0, 200));
	cr_expect(moves(v, slave, 80, 24));
	fd_close(slave);
	view_begin(v, 1);
	cr_expect_not(view_moves(v));
	fd_close(master);
	view_free(v);
	route_fini(&route);
	buf_fini(&out);
}
