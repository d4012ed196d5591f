/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_process.c - carriers of TCP in processes of their own, which are
 * killed, and have children. */
#include <signal.h>
#include <unistd.h>

#include <sys/wait.h>

#include "tests/unit/net_rig.h"

TestSuite(net_process, .timeout = 90);

static struct side *two; /* the carrier that is tried: worker 2 */

static void
finish(void)
{
	for (uint32_t i = 0; i < MATES; i++)
		mate_close(&two->mates[i]);
	side_close(two);
}

/* It serves as before. */
static void
is_well(void)
{
	struct side *good = side_open(3);
	unsigned before = two->mates[3].delivered;

	mate_say(side_connect(good, two), 1, "hello");
	UNTIL(two, two->mates[3].delivered == before + 1);
	mate_close(&good->mates[2]);
	side_close(good);
}

/* Waits to be killed. */
static void
stay(void)
{
	for (;;)
		pause();
}

static void
run_alone(void (*body)(void))
{
	alarm(60);
	body();
	stay();
}

static pid_t
process(void (*body)(void))
{
	pid_t pid = fork();

	cr_assert_neq(pid, -1);
	if (pid == 0)
		run_alone(body);
	return pid;
}

static int address_pipe[2], word_pipe[2];

/* Worker 1 in a process of its own, linked to `two`. */
static struct side *
alone(void)
{
	struct side *s = side_new(1);
	char address[XR_ADDRESS_MAX + 1] = { 0 };

	if (read(address_pipe[0], address, sizeof(address) - 1) <= 0 ||
		tcp_carrier.open(&s->host, &s->opts, &s->self, &err) != XR_OK ||
		tcp_carrier.connect(s->self, address, 2, 1, &s->mates[2],
			&s->mates[2].link, &err) != XR_OK)
		_exit(1);
	return s;
}

static pid_t
open_with(void (*body)(void))
{
	pid_t pid;

	cr_assert_eq(pipe(address_pipe), 0);
	cr_assert_eq(pipe(word_pipe), 0);
	pid = process(body);
	two = side_open(2);
	cr_assert_gt(write(address_pipe[1], two->address, strlen(two->address)),
		0);
	return pid;
}

static void
send_much(void)
{
	struct side *s = alone();
	size_t len = 64 << 20;
	bool pending;

	mate_send(&s->mates[2], 1, calloc(1, len), len, &pending);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static bool is_begun;

/* In the middle of a body, which stays there until it is killed. */
static void *
hold(struct mate *m, uint64_t len)
{
	struct side *s = m->side;

	(void)len;
	pthread_mutex_lock(&s->lock);
	is_begun = true;
	pthread_cond_broadcast(&s->news);
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return NULL;
}

Test(net_process, a_peer_that_is_killed_in_a_body_delivers_nothing_of_it)
{
	pid_t pid;

	pthread_mutex_lock(&gate);
	pid = open_with(send_much);
	two->on_place = hold;
	UNTIL(two, is_begun);
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	pthread_mutex_unlock(&gate);
	UNTIL(two, two->mates[1].lost == 1);
	cr_expect_eq(two->mates[1].delivered, 0);
	cr_expect_not_null(strstr(two->mates[1].why, "worker 1 at 127.0.0.1:"));
	is_well();
	finish();
}

static void
echo(struct mate *m, const struct xr_record *r, const struct xr_body *body)
{
	struct xr_part part = { body->data, body->len };
	struct xr_message message = { .record = *r,
		.parts = &part,
		.count = 1 };
	bool pending;

	tcp_carrier.send(m->link, &message, &pending);
}

/* And says so: what came before that would have no answer. */
static void
answer_all(void)
{
	struct side *s = alone();

	s->on_message = echo;
	if (write(word_pipe[1], "", 1) != 1)
		_exit(1);
}

Test(net_process, two_processes_call_each_other)
{
	pid_t pid = open_with(answer_all);
	char ready;

	cr_assert_eq(read(word_pipe[0], &ready, 1), 1);
	UNTIL(two, two->mates[1].accepted == 1);
	two->mates[1].next = 1;
	for (unsigned i = 1; i <= 1000; i++) {
		mate_say(&two->mates[1], i, "there and back");
		UNTIL(two, two->mates[1].delivered == i);
	}
	cr_expect_eq(two->mates[1].wrong, 0);
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	UNTIL(two, two->mates[1].lost == 1);
	finish();
}

static void
have_a_child(void)
{
	struct side *s = alone();
	pid_t pid;
	bool pending;

	mate_send(&s->mates[2], 1, "hello", 5, &pending);
	pthread_mutex_lock(&s->lock); /* the child has it, then: held */
	pid = fork();
	pthread_mutex_unlock(&s->lock);
	if (pid == 0) {
		alarm(60); /* a child has none of its parent's */
		stay();
	}
	if (write(word_pipe[1], &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
}

Test(net_process, a_child_that_lives_on_does_not_hide_the_death_of_its_parent)
{
	pid_t pid = open_with(have_a_child), child = -1;

	UNTIL(two, two->mates[1].delivered == 1);
	cr_assert_eq(read(word_pipe[0], &child, sizeof(child)),
		(ssize_t)sizeof(child));
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	UNTIL(two, two->mates[1].lost == 1);
	cr_expect_eq(kill(child, 0), 0);
	kill(child, SIGKILL);
	finish();
}

/* What a forked child may do with its parent's carrier: nothing, unharmed. */
static int
try_as_child(struct side *s)
{
	struct xr_link *link = NULL;
	bool pending = true;

	alarm(30);
	if (mate_send(&s->mates[2], 1, "x", 1, &pending) != XR_E_STATE ||
		pending)
		return 1;
	if (tcp_carrier.connect(s->self, "tcp:127.0.0.1:1", 3, 1, s, &link,
		    &err) != XR_E_STATE)
		return 2;
	tcp_carrier.link_close(s->mates[2].link);
	tcp_carrier.free(s->self);
	/* But may have one of its own. */
	s = side_new(5);
	if (tcp_carrier.open(&s->host, &s->opts, &s->self, &err) != XR_OK)
		return 3;
	tcp_carrier.free(s->self);
	return 0;
}

Test(net_process, a_forked_child_leaves_the_carrier_alone)
{
	struct side *one;
	int status = -1;
	pid_t pid;

	two = side_open(2);
	one = side_open(1);
	mate_say(side_connect(one, two), 1, "hello");
	UNTIL(two, two->mates[1].delivered == 1);
	pid = fork();
	cr_assert_neq(pid, -1);
	if (pid == 0)
		_exit(try_as_child(one));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "the child ended with %x", status);
	mate_say(&one->mates[2], 2, "all is well here");
	UNTIL(two, two->mates[1].delivered == 2);
	cr_expect_eq(two->mates[1].lost + one->mates[2].lost, 0);
	mate_close(&one->mates[2]);
	side_close(one);
	finish();
}
