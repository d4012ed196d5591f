/* SPDX-License-Identifier: Apache-2.0 */
/* test_server_say.c - what the job's end of its control socket says, and when it listens
 * (launcher/ctl/server.c). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/ctl/server.h"

#define STOP    "{\"type\":\"stop\",\"id\":5}\n"
#define BEGIN   (1000 * NS_PER_S)
#define SLOW_NS (30 * NS_PER_S)
#define FRAME \
	(sizeof("{\"type\":\"error\",\"id\":1,\"code\":\"c\",\"text\":\"\"}\n") - \
		1)
#define OUT_MAX ((size_t)80 << 20)

static struct loop *loop;
static struct ctl *ctl;
static unsigned messages, gone, closed, mores, paused;
static int64_t now = BEGIN;
static struct ctl_client *last; /* who has said something */

int64_t __wrap_clock_now(void);
void __real_watch_pause(struct watch *watch);
void __wrap_watch_pause(struct watch *watch);

int64_t
__wrap_clock_now(void)
{
	return now;
}

void
__wrap_watch_pause(struct watch *watch)
{
	paused++;
	__real_watch_pause(watch);
}

static void
on_close(void *ctx, int fd)
{
	(void)ctx;
	closed++;
	close(fd);
}

static void
on_gone(void *ctx, struct ctl_client *client)
{
	(void)ctx;
	if (client == last)
		last = NULL;
	gone++;
}

static void
on_message(struct ctl_client *from, const struct control *m, void *ctx)
{
	cr_expect_eq(ctx, &messages);
	cr_expect_eq(m->type,
		ctl_rank(from) == CTL_NO_RANK ? CONTROL_STOP : CONTROL_READY);
	messages++;
	last = from;
}

static size_t more_bytes; /* of each wanted answer */

/* An answer of that many bytes. */
static void
send_bytes(struct ctl_client *to, size_t n)
{
	struct xr_error err = { 0 };
	struct control m = control_new(CONTROL_ERROR, 1);
	char *text = malloc(n + 1);

	(void)err;
	cr_assert_not_null(text);
	memset(text, 'x', n);
	text[n] = '\0';
	m.error.code = "c";
	m.error.text = text;
	ctl_send(to, &m);
	free(text);
}

static void
on_more(void *ctx, struct ctl_client *client)
{
	cr_expect_eq(ctx, &messages);
	mores++;
	if (more_bytes > 0)
		send_bytes(client, more_bytes);
	ctl_want(client);
}

static void
stop_it(void *ctx)
{
	(void)ctx;
	loop_stop(loop);
}

/* All that is due is done. */
static void
turns(unsigned count)
{
	struct timer *t = timer_open(loop, stop_it, NULL);

	for (unsigned i = 0; i < count; i++) {
		timer_arm(t, 0);
		loop_run(loop);
	}
	timer_close(t);
}

static void
pass(int64_t ns)
{
	now += ns;
	turns(4);
}

static void
begin(void)
{
	struct ctl_config config = {
		.job = "k7m2",
		.pid = 12,
		.most = 2,
		.fn = on_message,
		.close = on_close,
		.more = on_more,
		.gone = on_gone,
		.ctx = &messages,
	};

	loop = config.loop = loop_new();
	ctl = ctl_open(&config);
	cr_assert_not_null(ctl);
}

static void
end(void)
{
	ctl_close(ctl);
	loop_free(loop);
}

TestSuite(server_say, .init = begin, .fini = end, .timeout = 20);

static int
admit(uint32_t rank)
{
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX,
			     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			     pair),
		0);
	ctl_admit(ctl, pair[0], rank);
	return pair[1];
}

static void
say(int fd, const char *text)
{
	cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL),
		(ssize_t)strlen(text));
}

static void
expect_said(int fd, const char *text)
{
	char got[1000];
	ssize_t n = read(fd, got, sizeof(got) - 1);

	got[n > 0 ? n : 0] = '\0';
	cr_expect_str_eq(got, text);
}

/* Bytes, all that there are. */
static size_t
drain(int fd)
{
	static char got[1 << 16];
	size_t sum = 0;
	ssize_t n;

	while ((n = read(fd, got, sizeof(got))) > 0)
		sum += (size_t)n;
	return sum;
}

#define WELCOME "{\"type\":\"welcome\",\"v\":1,\"job\":\"k7m2\",\"pid\":12"

Test(server_say, who_comes_is_greeted)
{
	int fd = admit(CTL_NO_RANK);

	expect_said(fd, WELCOME "}\n");
	cr_expect_eq(paused, 1); /* there is nothing to be written */
	close(fd);
	fd = admit(3);
	expect_said(fd, WELCOME ",\"rank\":3}\n");
	say(fd, "{\"type\":\"ready\"}\n");
	turns(2);
	cr_assert_not_null(last);
	cr_expect_eq(ctl_rank(last), 3);
	cr_expect_null(*ctl_of(last));
	close(fd);
}

Test(server_say, what_is_not_understood_is_refused)
{
	int fd = admit(CTL_NO_RANK);

	drain(fd);
	say(fd, "{\"type\":\"nonsense\",\"id\":4}\n" STOP);
	turns(2);
	expect_said(fd,
		"{\"type\":\"error\",\"id\":4,\"code\":\"XR_E_NOTFOUND\","
		"\"text\":\"message: there is no type \\\"nonsense\\\" here\"}\n");
	cr_expect_eq(messages, 1);
	cr_expect_eq(gone, 0);
	/* A job at the other end would answer, and so on. */
	say(fd, WELCOME "}\n" STOP);
	turns(2);
	cr_expect_eq(messages, 1);
	cr_expect_eq(gone, 1);
	cr_expect_eq(closed, 1);
	close(fd);
}

Test(server_say, ranks_make_room_for_their_own_only)
{
	int client = admit(CTL_NO_RANK), fd[CTL_RANK_MOST + 1];

	for (int i = 0; i < CTL_RANK_MOST; i++)
		fd[i] = admit(1);
	cr_expect_eq(gone, 0);
	fd[CTL_RANK_MOST] = admit(1);
	cr_expect_eq(gone, 1);
	drain(fd[0]);
	cr_expect_eq(read(fd[0], &(char){ 0 }, 1), 0);
	for (int i = 0; i <= CTL_RANK_MOST; i++)
		close(fd[i]);
	fd[0] = admit(CTL_NO_RANK);
	cr_expect_eq(gone, 1);
	fd[1] = admit(2);
	cr_expect_eq(gone, 1);
	close(fd[0]);
	close(fd[1]);
	close(client);
}

/* Its answers are read slowly: what it says further waits until they are. */
Test(server_say, who_does_not_read_is_not_heard)
{
	int fd = admit(CTL_NO_RANK);
	size_t unread;

	drain(fd);
	say(fd, STOP);
	turns(2);
	cr_assert_not_null(last);
	send_bytes(last, 1 << 20);
	say(fd, STOP);
	turns(4);
	cr_expect_eq(messages, 1);
	unread = drain(fd);
	cr_expect(unread > 0 && unread < 1 << 20);
	for (int i = 0; i < 100 && messages == 1; i++) {
		turns(2);
		unread += drain(fd);
	}
	cr_expect_eq(messages, 2);
	cr_expect(unread > (1 << 20) - (64 << 10));
	turns(2);
	unread += drain(fd);
	cr_expect_eq(unread,
		(1 << 20) +
			strlen("{\"type\":\"error\",\"id\":1,\"code\":\"c\","
			       "\"text\":\"\"}\n"));
	cr_expect_eq(gone, 0);
	close(fd);
}

/* Who takes some of it has time again. */
Test(server_say, who_reads_slowly_is_kept)
{
	int fd = admit(CTL_NO_RANK);

	drain(fd);
	say(fd, STOP);
	turns(2);
	cr_assert_not_null(last);
	now += 5;
	send_bytes(last, 4 << 20);
	pass(SLOW_NS - 1);
	cr_expect_eq(gone, 0);
	cr_expect(drain(fd) > 0);
	pass(0);
	pass(SLOW_NS - 1);
	cr_expect_eq(gone, 0);
	pass(1);
	cr_expect_eq(gone, 1);
	close(fd);
}

Test(server_say, what_nobody_takes_has_a_limit)
{
	int fd = admit(CTL_NO_RANK);

	drain(fd);
	say(fd, STOP);
	turns(2);
	cr_assert_not_null(last);
	send_bytes(last, OUT_MAX - FRAME);
	turns(1);
	cr_expect_eq(gone, 0); /* some of it was sent at once */
	if (gone == 0)
		send_bytes(last, 1 << 20);
	turns(4);
	cr_expect_eq(gone, 1);
	close(fd);
}

/* No more of them than a turn bears, and none while it does not read. */
Test(server_say, answers_that_are_wanted_come_in_turns)
{
	int fd = admit(CTL_NO_RANK);
	unsigned before;

	drain(fd);
	say(fd, STOP);
	turns(2);
	cr_assert_not_null(last);
	more_bytes = 300 << 10;
	ctl_want(last);
	cr_expect_eq(mores, 0);
	turns(4);
	cr_expect_eq(mores, 1); /* it is choked by it */
	turns(4);
	cr_expect_eq(mores, 1);
	for (int i = 0; i < 100 && mores < 3; i++) {
		drain(fd);
		turns(2);
	}
	cr_expect_eq(mores, 3);
	/* Small ones: many of them in a turn. */
	more_bytes = 1;
	before = mores;
	for (int i = 0; i < 100 && mores < before + 100; i++) {
		drain(fd);
		turns(1);
	}
	cr_expect(mores >= before + 100);
	close(fd);
}

Test(server_say, who_waits_for_an_answer_may_close_its_side)
{
	int fd = admit(CTL_NO_RANK);

	drain(fd);
	say(fd, STOP);
	turns(2);
	cr_assert_not_null(last);
	ctl_hold(last, 2);
	cr_assert_eq(shutdown(fd, SHUT_WR), 0);
	turns(4);
	cr_expect_eq(gone, 0);
	ctl_hold(last, -1);
	pass(NS_PER_S);
	cr_expect_eq(gone, 0);
	send_bytes(last, 1);
	ctl_hold(last, -1);
	pass(NS_PER_S - 1);
	cr_expect_eq(gone, 0); /* it is looked at once a second */
	pass(1);
	cr_expect_eq(gone, 1);
	cr_expect(drain(fd) > 0);
	close(fd);
}

/* What is not sent yet is an answer as well. */
Test(server_say, who_has_closed_its_side_gets_all_of_its_answers)
{
	int fd = admit(CTL_NO_RANK);
	size_t n = 0;

	drain(fd);
	say(fd, STOP);
	turns(2);
	cr_assert_not_null(last);
	send_bytes(last, 1 << 20);
	cr_assert_eq(shutdown(fd, SHUT_WR), 0);
	turns(4);
	cr_expect_eq(gone, 0);
	for (int i = 0; i < 200 && gone == 0; i++) {
		n += drain(fd);
		turns(2);
	}
	n += drain(fd);
	cr_expect_eq(gone, 1);
	cr_expect(n > 1 << 20);
	close(fd);
}

Test(server_say, a_server_may_listen_no_more)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_expect_eq(ctl_unlisten(ctl), -1);
	cr_assert(ctl_listen(ctl, fd));
	cr_expect_eq(ctl_unlisten(ctl), fd);
	cr_expect_eq(ctl_unlisten(ctl), -1);
	cr_expect_eq(close(fd), 0); /* it was open still */
	ctl_close(NULL);
}
