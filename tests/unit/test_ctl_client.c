/* SPDX-License-Identifier: Apache-2.0 */
/* test_ctl_client.c - a verb's end of a control socket: what each answer, and each
 * failure, is to the caller (launcher/ctl/client.c). */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "base/clock.h"
#include "launcher/ctl/client.h"
#include "launcher/ctl/place.h"
#include "tests/unit/ctl_sys.h"

TestSuite(ctl_client, .init = ctl_sys_begin, .fini = folder_remove);

static int listening = -1, accepted = -1;
static const char *greeting;  /* sent when the client waits; NULL: none */
static int fails, fails_with; /* the system call, once, and its errno */
static unsigned failed;

static long
serve(int nr, const long arg[5])
{
	if (nr == fails && failed == 0) {
		failed++;
		return -fails_with;
	}
	if (nr == SYS_poll && accepted == -1 && greeting != NULL) {
		accepted = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
		NEED(write(accepted, greeting, strlen(greeting)) ==
			(ssize_t)strlen(greeting));
		NEED(shutdown(accepted, SHUT_WR) == 0);
	}
	(void)arg;
	return 0;
}

static struct ctl_place place;

static void
serve_begin(void)
{
	NEED(ctl_place_open(&place, "k7m2", NULL) == XR_OK);
	listening = ctl_place_listen(&place);
	sys_trap(SYS_poll);
	sys_trap(SYS_recvfrom);
	sys_trap(SYS_connect);
	sys_trap(SYS_socket);
	sys_hook = serve;
}

#define WELCOME "{\"type\":\"welcome\",\"v\":1,\"job\":\"k7m2\",\"pid\":1}\n"

static const struct {
	const char *greeting;
	int call, sys;
	enum xr_status status;
	const char *text;
} dial_rows[] = {
	{ WELCOME, -1, 0, XR_OK, "" },
	{ WELCOME, SYS_poll, EINTR, XR_OK, "" },
	{ WELCOME, SYS_recvfrom, EINTR, XR_OK, "" },
	{ WELCOME, SYS_recvfrom, EAGAIN, XR_OK, "" },
	{ WELCOME, SYS_connect, EAGAIN, XR_OK, "" },
	{ WELCOME, SYS_poll, ENOMEM, XR_E_TIMEOUT,
		"k7m2 runs, but its supervisor does not answer\txrun stop k7m2" },
	{ WELCOME, SYS_recvfrom, ECONNRESET, XR_E_CLOSED,
		"k7m2 has ended\txrun ps k7m2" },
	{ WELCOME, SYS_recvfrom, EPIPE, XR_E_CLOSED,
		"k7m2 has ended\txrun ps k7m2" },
	{ WELCOME, SYS_recvfrom, ENOTCONN, XR_E_CLOSED,
		"k7m2 has ended\txrun ps k7m2" },
	{ WELCOME, SYS_recvfrom, EIO, XR_E_SYS,
		"k7m2: its control socket: Input/output error" },
	{ WELCOME, SYS_connect, ENOENT, XR_E_NOTFOUND,
		"k7m2: its control socket: No such file or directory" },
	{ WELCOME, SYS_connect, ECONNREFUSED, XR_E_NOTFOUND,
		"k7m2: its control socket: Connection refused" },
	{ WELCOME, SYS_connect, EACCES, XR_E_SYS,
		"k7m2: its control socket: Permission denied" },
	{ WELCOME, SYS_socket, EMFILE, XR_E_SYS,
		"k7m2: its control socket: Too many open files" },
	{ "", -1, 0, XR_E_CLOSED, "k7m2 has ended\txrun ps k7m2" },
	{ "{\"type\":\"welcome\"", -1, 0, XR_E_CLOSED,
		"k7m2 has ended\txrun ps k7m2" },
	{ "{\"type\":\"done\"}\n", -1, 0, XR_E_PROTO,
		"k7m2: it does not greet" },
	{ "{\"type\":\"welcome\",\"v\":2,\"job\":\"a\",\"pid\":1}\n", -1, 0,
		XR_E_PROTO,
		"k7m2: it speaks version 2 of the control protocol, and this xrun 1\tthe xrun that started it" },
};

FORKED_TEST(ctl_client, a_call_is_what_its_first_line_and_its_failures_say)
{
	struct ctl_call call;
	struct xr_error err;
	enum xr_status status;
	int before;

	serve_begin();
	for (size_t i = 0; i < sizeof(dial_rows) / sizeof(dial_rows[0]); i++) {
		before = fds();
		greeting = dial_rows[i].greeting;
		fails = dial_rows[i].call;
		fails_with = dial_rows[i].sys;
		failed = 0;
		err = (struct xr_error){ 0 };
		status = ctl_dial_within(&call, "k7m2", 100 * NS_PER_S, &err);
		if (status != dial_rows[i].status ||
			strcmp(err.text, dial_rows[i].text) != 0)
			forked_note(__LINE__, "row %zu: %d, '%s'", i, status,
				err.text);
		EXPECT_EQ(failed, dial_rows[i].call != -1);
		EXPECT_EQ(call.fd != -1, status == XR_OK);
		ctl_hang_up(&call);
		if (accepted == -1)
			accepted = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
		fd_close(accepted);
		accepted = -1;
		EXPECT_EQ(fds(), before);
	}
	EXPECT(ctl_place_remove(&place));
}

FORKED_TEST(ctl_client, an_answer_that_never_comes_is_not_awaited)
{
	struct ctl_call call;
	struct xr_error err;

	serve_begin();
	greeting = NULL;
	EXPECT_EQ(ctl_dial_within(&call, "k7m2", NS_PER_MS, &err),
		XR_E_TIMEOUT);
	EXPECT_EQ(call.fd, -1);
	EXPECT(ctl_place_remove(&place));
}

FORKED_TEST(ctl_client, a_question_has_an_answer_of_its_own_type)
{
	static const struct {
		enum control_type question;
		const char *answer;
		enum xr_status status;
		const char *text;
	} rows[] = {
		{ CONTROL_STOP, "{\"type\":\"done\"}\n", XR_OK, "" },
		{ CONTROL_STOP,
			"{\"type\":\"welcome\",\"v\":1,\"job\":\"a\",\"pid\":1}\n",
			XR_E_PROTO, "k7m2: 'stop' is answered by 'welcome'" },
		{ CONTROL_WAIT, "{\"type\":\"done\"}\n", XR_E_PROTO,
			"k7m2: 'wait' is answered by 'done'" },
		{ CONTROL_STATUS, "{\"type\":\"done\"}\n", XR_E_PROTO,
			"k7m2: 'status' is answered by 'done'" },
		{ CONTROL_STOP,
			"{\"type\":\"error\",\"code\":\"XR_E_NOTFOUND\",\"text\":\"no\"}\n",
			XR_E_NOTFOUND, "no" },
		{ CONTROL_STOP, "", XR_E_CLOSED,
			"k7m2 has ended\txrun ps k7m2" },
	};
	struct control question, answer;
	struct xr_error err;
	enum xr_status status;
	int pair[2];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ctl_call call = { .id = "k7m2" };

		NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ==
			0);
		call.fd = pair[0];
		NEED(write(pair[1], rows[i].answer, strlen(rows[i].answer)) ==
			(ssize_t)strlen(rows[i].answer));
		NEED(shutdown(pair[1], SHUT_WR) == 0);
		question = control_new(rows[i].question, 1);
		err = (struct xr_error){ 0 };
		status = ctl_ask(&call, &question, &answer, &err);
		if (status != rows[i].status ||
			strcmp(err.text, rows[i].text) != 0)
			forked_note(__LINE__, "row %zu: %d, '%s'", i, status,
				err.text);
		ctl_hang_up(&call);
		close(pair[1]);
	}
}
