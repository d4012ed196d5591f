/* SPDX-License-Identifier: Apache-2.0 */
/* test_server.c - the job's end of its control socket: whose turn it is. */
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/ctl/server.h"

#define CLIENTS 3
#define LINE    "{\"type\":\"ready\"}\n"
#define LONG_NS (20 * NS_PER_MS) /* more than a turn may take */

static struct loop *loop;
static struct timer *belt; /* ends a loop that nobody stops */
static int peer[CLIENTS];
static char turns[CLIENTS + 1]; /* who had its answer, in order */

static void
give_up(void *ctx)
{
	(void)ctx;
	loop_stop(loop);
}

static void
say(int fd)
{
	cr_assert_eq(send(fd, LINE, strlen(LINE), MSG_NOSIGNAL),
		(ssize_t)strlen(LINE));
}

/* Who says something for the first time wants an answer. */
static void
on_message(struct ctl_client *from, const struct control *m, void *ctx)
{
	void **known = ctl_of(from);

	(void)m;
	(void)ctx;
	if (*known == NULL)
		ctl_want(from);
	*known = turns;
}

/* That of A takes a whole turn, in which B says something more. */
static void
on_more(void *ctx, struct ctl_client *client)
{
	uint32_t r = ctl_rank(client);
	int64_t until = clock_now() + LONG_NS;

	(void)ctx;
	turns[strlen(turns)] = (char)('A' + r);
	if (r == 0)
		say(peer[1]);
	while (r == 0 && clock_now() < until)
		continue;
	if (strlen(turns) == CLIENTS)
		loop_stop(loop);
}

static void
on_close(void *ctx, int fd)
{
	(void)ctx;
	close(fd);
}

Test(server, who_speaks_while_a_turn_is_cut_before_it_makes_nobody_wait)
{
	struct ctl_config config = {
		.job = "a",
		.most = CLIENTS,
		.fn = on_message,
		.more = on_more,
		.close = on_close,
	};
	struct ctl *ctl;
	int fd[2];

	loop = config.loop = loop_new();
	ctl = ctl_open(&config);
	belt = timer_open(loop, give_up, NULL);
	cr_assert_not_null(ctl);
	timer_arm(belt, 20 * NS_PER_S);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		cr_assert_eq(socketpair(AF_UNIX,
				     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
				     0, fd),
			0);
		peer[i] = fd[1];
		ctl_admit(ctl, fd[0], i);
		say(peer[i]);
	}
	loop_run(loop);
	cr_expect_str_eq(turns, "ACB");
	ctl_close(ctl);
	timer_close(belt);
	loop_free(loop);
}
