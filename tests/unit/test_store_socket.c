/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_socket.c - the socket of a store that xrun serves (worker/store/control.c):
 * by its name, of the job, and of a rank. The test is the supervisor. */
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "tests/unit/speech_rig.h"
#include "tests/unit/sys_hook.h"

TestSuite(store_socket, .init = speech_begin, .fini = speech_end,
	.timeout = 60);

/* --- where the socket is --------------------------------------------------- */

Test(store_socket, a_socket_that_is_none_is_named)
{
	struct xr_store *s;
	char where[PATH_MAX + 200];

	snprintf(where, sizeof(where), "control:%s/none/control", folder);
	cr_expect_eq(open_it(where, 20, &s), XR_E_NOTFOUND);
	expect_words("none/control: No such file or directory");
	snprintf(where, sizeof(where), "control:%s/none", folder);
	cr_expect_eq(open_it(where, 20, &s), XR_E_NOTFOUND);
	folder_write("file", "", 0600);
	snprintf(where, sizeof(where), "control:%s/file", folder);
	cr_expect_eq(open_it(where, 20, &s), XR_E_SYS);
	expect_words(strerror(ECONNREFUSED));
	snprintf(where, sizeof(where), "control:%s/%0100d", folder, 0);
	cr_expect_eq(open_it(where, 20, &s), XR_E_SYS);
	expect_words(strerror(ENAMETOOLONG));
	cr_expect_eq(open_it("control:", 20, &s), XR_E_NOTFOUND);
	expect_words("control: is for ranks of xrun");
}

/* A socket that has as many connections as may wait to be accepted. */
Test(store_socket, a_supervisor_that_does_not_accept_is_given_up)
{
	struct xr_store *s;
	int waiting;

	cr_assert_eq(listen(listener, 0), 0);
	waiting = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(connect(waiting, (struct sockaddr *)&place, sizeof(place)),
		0);
	cr_expect_eq(open_it(address, 0.03, &s), XR_E_SYS);
	expect_words(strerror(EAGAIN));
	close(waiting);
}

/* Without the descriptor the job's own socket is asked. */
Test(store_socket, the_socket_of_the_job_is_in_its_runtime_folder)
{
	struct xr_store *s;

	setenv("XRUN_JOB", "k7m2", 1);
	setenv("XRUN_RANK", "0", 1);
	setenv("XRUN_SIZE", "1", 1);
	setenv("XDG_RUNTIME_DIR", folder, 1);
	cr_assert_eq(mkdir("xrun", 0700), 0);
	cr_assert_eq(mkdir("xrun/k7m2", 0700), 0);
	cr_expect_eq(open_it("control:", 0.03, &s), XR_E_NOTFOUND);
	cr_assert_eq(rename("control", "xrun/k7m2/control"), 0);
	setenv("XDG_RUNTIME_DIR", ".", 1);
	cr_expect_eq(open_it("control:", 0.03, &s), XR_E_NOTFOUND);
	unsetenv("XDG_RUNTIME_DIR");
	cr_expect_eq(open_it("control:", 0.03, &s), XR_E_NOTFOUND);
	setenv("XDG_RUNTIME_DIR", folder, 1);
	start(WELCOME, NULL);
	cr_expect_eq(open_it("control:", 20, &s), XR_OK, "%s", err.text);
	finish(s);
}

static void
listen_as(uid_t uid)
{
	NEED(seteuid(uid) == 0);
	NEED(listen(listener, 8) == 0);
	NEED(seteuid(0) == 0);
}

/* Who listens is known by the credentials of listen(). */
FORKED_TEST(store_socket, a_socket_of_another_user_is_not_asked)
{
	struct xr_store *s;

	if (geteuid() != 0)
		return;
	listen_as(1001);
	EXPECT_EQ(open_it(address, 20, &s), XR_E_AUTH);
	EXPECT_STR(err.text, "store: that control socket is another user's");
	close(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	/* Of root it is, by any user. */
	listen_as(0);
	NEED(chmod(folder, 0755) == 0 && chmod("control", 0666) == 0);
	NEED(seteuid(1001) == 0);
	start(WELCOME, NULL);
	EXPECT_EQ(open_it(address, 20, &s), XR_OK);
	finish(s);
	NEED(seteuid(0) == 0);
}

/* The supervisor's thread ends when the connection is closed. */
FORKED_TEST(store_socket, a_connection_without_its_eventfd_is_closed)
{
	struct xr_store *s;

	sys_trap(SYS_eventfd2);
	start(WELCOME, NULL);
	sys_fail_begin(1, EMFILE);
	EXPECT_EQ(open_it(address, 20, &s), XR_E_SYS);
	EXPECT(sys_fail_end());
	EXPECT_STR(err.text, "store: Too many open files");
	finish(s);
}

/* --- a rank ---------------------------------------------------------------- */

static int ours[2]; /* the socket of all ranks; ours is the second */

static void
become_rank(void)
{
	struct stat st;
	char text[64];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
			     ours),
		0);
	cr_assert_eq(fstat(ours[0], &st), 0);
	snprintf(text, sizeof(text), "%d:%llu", ours[0],
		(unsigned long long)st.st_ino);
	setenv("XRUN_CONTROL_FD", text, 1);
	setenv("XRUN_RANK", "3", 1);
	setenv("XRUN_SIZE", "8", 1);
}

static struct xr_store *
open_rank(double seconds, enum xr_status want)
{
	struct xr_store_options o = XR_STORE_OPTIONS;
	struct xr_store *s = NULL;

	o.timeout = XR_SECONDS(seconds);
	cr_expect_eq(xr_store_open("control:", &o, &s, &err), want, "%s",
		err.text);
	return s;
}

static void *
take_rank(void *ctx)
{
	static int fd;
	char hello[128] = "";

	(void)ctx;
	cr_assert_gt(take_some(ours[1], hello, sizeof(hello) - 1, &fd), 0);
	cr_expect_str_eq(hello, "{\"type\":\"hello\",\"rank\":3}");
	cr_assert_eq(fcntl(fd, F_SETFL, 0), 0); /* it would not block */
	return supervise(&fd);
}

Test(store_socket, a_rank_sends_one_end_of_a_pair_with_its_hello)
{
	struct xr_store *s;
	char more;

	become_rank();
	talk.greeting = WELCOME;
	talk.replies = LINES_OF("{\"type\":\"done\",\"id\":1}\n");
	cr_assert_eq(pthread_create(&thread, NULL, take_rank, NULL), 0);
	errno = EAGAIN; /* of something else */
	s = open_rank(20, XR_OK);
	cr_assert_not_null(s);
	cr_expect_eq(xr_store_rank(s), 3);
	cr_expect_eq(xr_store_size(s), 8);
	cr_expect_eq(xr_store_set(s, "k", "", 0, &err), XR_OK, "%s", err.text);
	finish(s);
	cr_expect_eq(recv(ours[1], &more, 1, MSG_DONTWAIT), -1);
	cr_expect_eq(errno, EAGAIN, "it has said hello once");
	close(ours[0]);
	close(ours[1]);
}

Test(store_socket, a_rank_whose_supervisor_takes_nothing_gives_up)
{
	become_rank();
	while (send(ours[0], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		;
	cr_assert_eq(errno, EAGAIN);
	open_rank(0.03, XR_E_SYS);
	cr_expect_str_eq(err.text,
		"store: control:: Resource temporarily unavailable");
	close(ours[1]);
	open_rank(20, XR_E_SYS);
	cr_expect_str_eq(err.text, "store: control:: Connection reset by peer");
	close(ours[0]);
	/* The descriptor is closed: it is no rank, and has no job. */
	open_rank(20, XR_E_NOTFOUND);
}
