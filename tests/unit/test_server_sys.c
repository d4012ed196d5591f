/* SPDX-License-Identifier: Apache-2.0 */
/* test_server_sys.c - the job's end of its control socket if a client or the kernel does
 * not do what is expected (launcher/ctl/server.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/un.h>

#include "base/along.h"
#include "base/clock.h"
#include "launcher/ctl/server.h"
#include "tests/unit/ctl_sys.h"

TestSuite(server_sys, .init = ctl_sys_begin, .fini = folder_remove);

#define STOP "{\"type\":\"stop\"}\n"

static struct loop *loop;
static struct ctl *ctl;
static unsigned messages, closed, gone;
static void *gone_of; /* what ctl_of() was of the last one that went */

static void
on_close(void *ctx, int fd)
{
	(void)ctx;
	close(fd);
	closed++;
}

static void
on_gone(void *ctx, struct ctl_client *client)
{
	(void)ctx;
	gone++;
	gone_of = *ctl_of(client);
	loop_stop(loop);
}

static void
stop_at_once(struct ctl_client *from, const struct control *m, void *ctx)
{
	(void)from;
	(void)m;
	(void)ctx;
	messages++;
	loop_stop(loop);
}

static void
open_server(ctl_fn *fn, uint32_t most)
{
	struct ctl_config config = { .job = "a",
		.most = most,
		.fn = fn,
		.close = on_close,
		.gone = on_gone };

	messages = closed = gone = 0;
	loop = config.loop = loop_new();
	ctl = ctl_open(&config);
	NEED(ctl != NULL);
}

static void
close_server(void)
{
	ctl_close(ctl);
	loop_free(loop);
}

/* The other end of a client that is admitted. */
static int
admit(void)
{
	int pair[2];

	NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		     pair) == 0);
	ctl_admit(ctl, pair[0], CTL_NO_RANK);
	return pair[1];
}

static void
say(int fd, const char *text)
{
	NEED(send(fd, text, strlen(text), MSG_NOSIGNAL) ==
		(ssize_t)strlen(text));
}

/* The time as the server and its loop see it, as long as it is not 0. */
static int64_t frozen_ns;

int64_t __real_clock_now(void);
int64_t __wrap_clock_now(void);

int64_t
__wrap_clock_now(void)
{
	return frozen_ns != 0 ? frozen_ns : __real_clock_now();
}

static void
stop_it(void *ctx)
{
	(void)ctx;
	loop_stop(loop);
}

/* Time passes, and then all that is due is done: it may stop a turn, too. */
static void
pass(int64_t ns)
{
	struct timer *t = timer_open(loop, stop_it, NULL);

	frozen_ns += ns;
	for (int turn = 0; turn < 4; turn++) {
		timer_arm(t, 0);
		loop_run(loop);
	}
	timer_close(t);
}

/* --- who comes -------------------------------------------------------------------- */

static struct sockaddr_un name;
static socklen_t name_len;

static void
listen_somewhere(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	NEED(bind(fd, (struct sockaddr *)&name, sizeof(sa_family_t)) == 0);
	name_len = sizeof(name);
	NEED(getsockname(fd, (struct sockaddr *)&name, &name_len) == 0);
	NEED(listen(fd, 8) == 0 && ctl_listen(ctl, fd));
}

static int
call_server(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	NEED(connect(fd, (struct sockaddr *)&name, name_len) == 0);
	return fd;
}

static int fails, fails_with;
static unsigned calls;
static unsigned
	changes; /* of what is watched, from the failure to the next call */

static long
fail_first(int nr, const long arg[5])
{
	(void)arg;
	changes += nr == SYS_epoll_ctl && calls == 1;
	return nr == fails && ++calls == 1 ? -fails_with : 0;
}

static void
fail_call(int nr, int sys)
{
	fails = nr;
	fails_with = sys;
	calls = changes = 0;
	sys_hook = fail_first;
}

FORKED_TEST(server_sys, a_client_that_was_refused_once_is_served)
{
	static const struct {
		int nr, sys;
		int64_t ns; /* that it takes at least */
	} rows[] = {
		{ SYS_accept4, EMFILE, 100 * NS_PER_MS },
		{ SYS_accept4, EAGAIN, 0 },
		{ SYS_accept4, EINTR, 0 },
		{ SYS_accept4, ECONNABORTED, 0 },
		{ SYS_recvmsg, EAGAIN, 0 },
		{ SYS_recvmsg, EINTR, 0 },
		{ SYS_sendmsg, EAGAIN, 0 },
		{ SYS_sendmsg, EINTR, 0 },
	};
	int64_t begun;
	char text[16] = "";
	int fd, before = fds();

	sys_trap(SYS_epoll_ctl);
	sys_trap(SYS_accept4);
	sys_trap(SYS_recvmsg);
	sys_trap(SYS_sendmsg);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sys_hook = NULL;
		open_server(stop_at_once, 2);
		listen_somewhere();
		fd = call_server();
		say(fd, STOP);
		begun = clock_now();
		fail_call(rows[i].nr, rows[i].sys);
		loop_run(loop);
		EXPECT_EQ(messages, 1);
		EXPECT(calls >= 2);
		EXPECT_EQ(gone, 0);
		EXPECT(clock_now() - begun >= rows[i].ns);
		/* the listener is paused only if the kernel lacks something */
		if (rows[i].nr == SYS_accept4)
			EXPECT_EQ(changes > 0, rows[i].sys == EMFILE);
		close_server();
		EXPECT_EQ(read(fd, text, 15), 15);
		EXPECT_STR(text, "{\"type\":\"welcom");
		close(fd);
		EXPECT_EQ(fds(), before);
	}
}

FORKED_TEST(server_sys, a_client_whose_socket_fails_is_dropped)
{
	static const int rows[] = { SYS_recvmsg, SYS_sendmsg };
	int fd;

	sys_trap(SYS_recvmsg);
	sys_trap(SYS_sendmsg);
	for (size_t i = 0; i < 2; i++) {
		open_server(stop_at_once, 2);
		fail_call(rows[i], EIO);
		fd = admit();
		if (gone == 0) { /* the greeting was sent */
			say(fd, STOP);
			loop_run(loop);
		}
		sys_hook = NULL;
		EXPECT_EQ(gone, 1);
		EXPECT_EQ(closed, 1);
		EXPECT_EQ(messages, 0);
		close(fd);
		close_server();
	}
}

FORKED_TEST(server_sys, only_this_user_and_root_are_served)
{
	int other, own;
	char c;

	sys_trap(SYS_getsockopt);
	open_server(stop_at_once, 2);
	listen_somewhere();
	/* One that the kernel says nothing of. */
	other = call_server();
	own = call_server();
	say(own, STOP);
	fail_call(SYS_getsockopt, EIO);
	loop_run(loop);
	sys_hook = NULL;
	EXPECT_EQ(messages, 1);
	EXPECT_EQ(read(other, &c, 1), 0);
	close(other);
	if (geteuid() == 0) {
		NEED(seteuid(12345) == 0);
		other = call_server();
		NEED(seteuid(0) == 0);
		say(other, STOP);
		close(own);
		own = call_server();
		say(own, STOP);
		while (messages < 2)
			loop_run(loop);
		EXPECT_EQ(recv(other, &c, 1, MSG_DONTWAIT) <= 0, true);
		EXPECT(errno != EAGAIN);
		close(other);
		/* Root is served by any user. */
		NEED(seteuid(0) == 0);
		other = call_server();
		NEED(seteuid(12345) == 0);
		say(other, STOP);
		while (messages < 3)
			loop_run(loop);
		NEED(seteuid(0) == 0);
		close(other);
	}
	close(own);
	close_server();
}

/* The first that comes to ask waits for the end. */
static void
wait_if_asked(struct ctl_client *from, const struct control *m, void *ctx)
{
	(void)ctx;
	*ctl_of(from) = &messages;
	EXPECT_EQ(m->type, CONTROL_WAIT);
	EXPECT(ctl_wait(from, m->id));
	EXPECT(!ctl_wait(from, m->id));
	messages++;
	loop_stop(loop);
}

#define WAIT "{\"type\":\"wait\",\"id\":7}\n"

FORKED_TEST(server_sys, a_client_that_waits_makes_room_if_all_wait)
{
	int a, b, c, d;

	open_server(wait_if_asked, 2);
	a = admit();
	say(a, WAIT);
	loop_run(loop);
	EXPECT_EQ(messages, 1);
	b = admit();
	EXPECT_EQ(gone, 0);
	c = admit(); /* b makes room, which does not wait */
	EXPECT_EQ(gone, 1);
	EXPECT(gone_of == NULL);
	say(c, WAIT);
	while (messages < 2)
		loop_run(loop);
	EXPECT_EQ(gone, 1);
	d = admit(); /* a, which was silent for longest */
	EXPECT_EQ(gone, 2);
	EXPECT(gone_of == &messages);
	EXPECT_EQ(send(b, "x", 1, MSG_NOSIGNAL), -1);
	EXPECT_EQ(send(a, "x", 1, MSG_NOSIGNAL), -1);
	EXPECT_EQ(send(c, "x", 1, MSG_NOSIGNAL), 1);
	close(a);
	close(b);
	close(c);
	close(d);
	close_server();
}

FORKED_TEST(server_sys, a_client_that_waits_may_end_its_side_until_it_is_gone)
{
	struct control_over over = { .exit = 3 };
	char text[512] = "";
	int a, b;

	open_server(wait_if_asked, 4);
	a = admit();
	b = admit();
	say(a, WAIT);
	say(b, WAIT);
	NEED(shutdown(a, SHUT_WR) == 0 && shutdown(b, SHUT_WR) == 0);
	while (messages < 2)
		loop_run(loop);
	EXPECT_EQ(gone, 0);
	close(b);
	while (gone == 0)
		loop_run(loop);
	EXPECT_EQ(gone, 1);
	ctl_end(ctl, &over);
	EXPECT(read(a, text, sizeof(text) - 1) > 0);
	EXPECT(strstr(text, "\"type\":\"over\"") != NULL);
	EXPECT(strstr(text, "\"id\":7") != NULL);
	close(a);
	close_server();
	ctl_end(NULL, &over);
	EXPECT_EQ(ctl_unlisten(NULL), -1);
}

/* Says something, the @nth message of all, and then something more: what others have
 * done before is seen by then. */
static void
let_see(int fd, unsigned nth)
{
	for (unsigned next = nth; next <= nth + 1; next++) {
		say(fd, WAIT);
		while (messages < next)
			loop_run(loop);
	}
}

static void
read_greeting(int fd)
{
	char text[512];

	EXPECT(read(fd, text, sizeof(text)) > 0);
}

static void
wait_and_ask(struct ctl_client *from, const struct control *m, void *ctx)
{
	(void)ctx;
	EXPECT_EQ(m->type, CONTROL_WAIT);
	ctl_wait(from, m->id);
	messages++;
	loop_stop(loop);
}

/* Its end was read before: only a look at it tells. */
FORKED_TEST(server_sys, a_client_that_goes_after_its_side_has_ended_is_met)
{
	int a, b, c;

	open_server(wait_and_ask, 4);
	a = admit();
	b = admit();
	c = admit();
	read_greeting(a);
	read_greeting(b);
	say(a, WAIT);
	say(b, WAIT);
	NEED(shutdown(a, SHUT_WR) == 0 && shutdown(b, SHUT_WR) == 0);
	let_see(c, 3);
	EXPECT_EQ(messages, 4);
	EXPECT_EQ(gone, 0);
	close(b);
	while (gone == 0)
		loop_run(loop);
	EXPECT_EQ(gone, 1);
	/* One that is gone as a whole is met at once. */
	b = admit();
	read_greeting(b);
	say(b, WAIT);
	let_see(c, 6);
	EXPECT_EQ(messages, 7);
	close(b);
	let_see(c, 8);
	EXPECT_EQ(gone, 2);
	close(a);
	close(c);
	close_server();
}

/* More messages than a turn takes. */
FORKED_TEST(server_sys, who_has_said_all_and_goes_is_heard_to_the_end)
{
	const unsigned said = 100;
	int a, fd;

	open_server(stop_at_once, 4);
	a = admit();
	fd = admit();
	read_greeting(a);
	read_greeting(fd);
	for (unsigned i = 0; i < said; i++)
		say(a, STOP);
	close(a);
	while (gone == 0)
		loop_run(loop);
	EXPECT_EQ(messages, said);
	close(fd);
	close_server();
}

/* --- descriptors and long lines ----------------------------------------------------- */

FORKED_TEST(server_sys, descriptors_that_nobody_takes_are_closed)
{
	int fd, before = fds();

	open_server(stop_at_once, 2);
	fd = admit();
	/* Half a line, with six: four are kept until it is whole. */
	for (int i = 0; i < 6; i++) {
		EXPECT_EQ(along_send(fd, &STOP[i], 1, 0), 1);
	}
	say(fd, &STOP[6]);
	while (messages == 0 || closed < 6)
		loop_run(loop);
	EXPECT_EQ(closed, 6);
	EXPECT_EQ(gone, 0);
	/* A client that goes amid a line. */
	EXPECT_EQ(along_send(fd, "{", 1, 0), 1);
	close(fd);
	while (gone == 0)
		loop_run(loop);
	EXPECT_EQ(closed, 8);
	close_server();
	EXPECT_EQ(fds(), before);
}

static bool blocked;

static long
block_sends(int nr, const long arg[5])
{
	(void)arg;
	return nr == SYS_sendmsg && blocked ? -EAGAIN : 0;
}

/* Answers with two lines, the second of which has a descriptor. */
static void
send_two(struct ctl_client *from, const struct control *m, void *ctx)
{
	struct control done = control_new(CONTROL_DONE, ++messages);

	(void)m;
	(void)ctx;
	if (messages > 1) {
		loop_stop(loop);
		return;
	}
	blocked = true;
	ctl_send(from, &done);
	EXPECT(ctl_send_fd(from, &done, STDIN_FILENO));
	EXPECT(!ctl_send_fd(from, &done, STDIN_FILENO));
	blocked = false;
}

FORKED_TEST(server_sys, a_descriptor_goes_with_its_line)
{
	struct along got = { 0 };
	char text[256];
	ssize_t n;
	int fd, before = fds();

	sys_trap(SYS_sendmsg);
	open_server(send_two, 2);
	fd = admit();
	n = read(fd, text, sizeof(text)); /* the greeting */
	EXPECT(n > 0);
	sys_hook = block_sends;
	say(fd, STOP STOP); /* the second waits until the answers are out */
	loop_run(loop);
	sys_hook = NULL;
	EXPECT_EQ(messages, 2);
	do {
		n = along_receive(fd, text, 1, &got);
		EXPECT_EQ(got.count, 0);
	} while (n == 1 && text[0] != '\n');
	EXPECT_EQ(along_receive(fd, text, 1, &got), 1);
	EXPECT_EQ(got.count, 1);
	close(got.fd[0]);
	close(fd);
	close_server();
	EXPECT_EQ(fds(), before);
}

static size_t fed, feed_max;
static char end_of_feed[] = "\n";

/* Blanks, until there are feed_max; then the end of the line. */
static void
feed(int fd, void *ctx)
{
	static char blanks[4096];
	size_t left = feed_max - fed;
	ssize_t n;

	(void)ctx;
	memset(blanks, ' ', sizeof(blanks));
	n = send(fd, left > 0 ? blanks : end_of_feed,
		left > sizeof(blanks) ? sizeof(blanks) :
			left > 0      ? left :
					1,
		MSG_NOSIGNAL);
	if (n > 0 && left > 0)
		fed += (size_t)n;
	if (n < 0 && errno != EAGAIN)
		loop_stop(loop);
}

FORKED_TEST(server_sys, a_line_that_is_too_long_ends_its_client)
{
	struct watch *watch;
	int fd;

	open_server(stop_at_once, 2);
	fd = admit();
	fed = 0;
	feed_max = 2 * CONTROL_LINE_MAX;
	watch = watch_open(loop, fd, true, feed, NULL);
	loop_run(loop);
	EXPECT_EQ(gone, 1);
	EXPECT(fed >= CONTROL_LINE_MAX);
	EXPECT_EQ(messages, 0);
	watch_close(watch);
	close(fd);
	close_server();
}

FORKED_TEST(server_sys, half_a_line_is_shorter_than_the_longest_line)
{
	size_t left = CONTROL_LINE_MAX - 1;
	int fd;

	frozen_ns = NS_PER_S;
	open_server(stop_at_once, 2);
	fd = admit();
	while (left > 0) {
		static const char part[4096]; /* whatever it is */
		ssize_t n = send(fd, part,
			left < sizeof(part) ? left : sizeof(part),
			MSG_NOSIGNAL);

		NEED(n > 0);
		left -= (size_t)n;
		pass(0);
	}
	EXPECT_EQ(gone, 0);
	say(fd, " ");
	pass(0);
	EXPECT_EQ(gone, 1);
	close(fd);
	close_server();
}

/* --- clients that are late ---------------------------------------------------------- */

#define HALF_NS (10 * NS_PER_S)
#define SLOW_NS (30 * NS_PER_S)

FORKED_TEST(server_sys, half_a_line_whose_rest_does_not_come_ends_its_client)
{
	int fd;

	frozen_ns = 1000 * NS_PER_S;
	open_server(stop_at_once, 2);
	fd = admit();
	say(fd, "{");
	pass(0);
	say(fd, " ");
	pass(HALF_NS - 1);
	EXPECT_EQ(gone, 0);
	pass(1);
	EXPECT_EQ(gone, 1);
	EXPECT_EQ(messages, 0);
	close(fd);
	close_server();
}

FORKED_TEST(server_sys, each_line_has_time_of_its_own)
{
	int fd;

	frozen_ns = 1000 * NS_PER_S;
	open_server(stop_at_once, 2);
	fd = admit();
	pass(HALF_NS);
	say(fd, "{");
	pass(0);
	say(fd, &STOP[1]);
	say(fd, "{");
	pass(HALF_NS - 1);
	EXPECT_EQ(messages, 1);
	pass(HALF_NS - 1);
	EXPECT_EQ(gone, 0);
	/* Whole ones only: it may be silent as long as it likes. */
	say(fd, &STOP[1]);
	pass(0);
	EXPECT_EQ(messages, 2);
	pass(HALF_NS);
	pass(10 * HALF_NS);
	EXPECT_EQ(gone, 0);
	say(fd, "{");
	pass(HALF_NS);
	EXPECT_EQ(gone, 0);
	pass(HALF_NS);
	EXPECT_EQ(gone, 1);
	close(fd);
	close_server();
}

FORKED_TEST(server_sys, who_takes_nothing_of_what_it_is_told_is_dropped)
{
	char text[256];
	int slow, later, quick;

	sys_trap(SYS_sendmsg);
	frozen_ns = 1000 * NS_PER_S;
	open_server(stop_at_once, 3);
	quick = admit();
	sys_hook = block_sends;
	blocked = true;
	slow = admit(); /* has no greeting */
	pass(1);
	later = admit();
	pass(SLOW_NS - 2);
	EXPECT_EQ(gone, 0);
	pass(1);
	EXPECT_EQ(gone, 1);
	EXPECT_EQ(read(slow, text, sizeof(text)), 0);
	blocked = false; /* the other takes all of it in time */
	pass(0);
	EXPECT(read(later, text, sizeof(text)) > 0);
	pass(SLOW_NS);
	EXPECT_EQ(gone, 1);
	sys_hook = NULL;
	EXPECT(read(quick, text, sizeof(text)) > 0);
	EXPECT_EQ(read(quick, text, sizeof(text)), -1);
	close(slow);
	close(later);
	close(quick);
	close_server();
}
