/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_link.c - links of carriers of TCP: who is at the other end, both at
 * once, and how they end; in one process. */
#include <dirent.h>
#include <unistd.h>

#include <xrun/rpc.h>

#include "tests/kit/entries.h"
#include "tests/unit/net_pair.h"

TestSuite(net_link, .timeout = 120);

/* --- where it is ----------------------------------------------------------- */

static struct side *
side_at(uint32_t id, const char *interface)
{
	struct side *s = side_new(id);

	s->opts.interface = interface;
	if (tcp_carrier.open(&s->host, &s->opts, &s->self, &err) == XR_OK)
		tcp_carrier.address(s->self, s->address, sizeof(s->address));
	return s;
}

Test(net_link, a_link_over_the_interface_that_was_named)
{
	one = side_at(1, "lo");
	two = side_at(2, "::1");
	if (two->self == NULL)
		cr_skip_test("there is no IPv6: %s", err.text);
	cr_expect_eq(strncmp(two->address, "tcp:[::1]:", 10), 0);
	to_two = side_connect(one, two);
	mate_say(to_two, 1, "hello");
	UNTIL(two, two->mates[1].delivered == 1);
	pair_down();
}

Test(net_link, where_nobody_may_listen_nothing_is_opened)
{
	unsigned fds = entries("/proc/self/fd");
	struct side *s = side_at(1, "0.0.0.0");

	cr_expect_null(s->self);
	cr_expect_not_null(strstr(err.text, "every interface"), "%s", err.text);
	side_close(s);
	s = side_at(1, "eth77");
	cr_expect_null(s->self);
	cr_expect_not_null(strstr(err.text, "one of lo"), "%s", err.text);
	side_close(s);
	s = side_new(XR_WORKER_ID_MAX + 1);
	cr_expect_eq(tcp_carrier.open(&s->host, &s->opts, &s->self, &err),
		XR_E_INVAL);
	side_close(s);
	cr_expect_eq(entries("/proc/self/fd"), fds);
}

/* --- who it is ------------------------------------------------------------- */

Test(net_link, another_secret_is_found_out_by_who_dials)
{
	one = side_open(1);
	two = side_new(2);
	two->opts.secret = secret_b;
	side_start(two);
	to_two = side_connect(one, two);
	UNTIL(one, to_two->lost == 1);
	cr_expect_not_null(strstr(to_two->why, "worker 2 at 127.0.0.1:"));
	cr_expect_not_null(strstr(to_two->why, "its secret is another"), "%s",
		to_two->why);
	cr_expect_eq(two->mates[1].accepted, 0);
	pair_down();
}

Test(net_link, without_a_secret_no_link_is_made_or_taken)
{
	struct xr_link *link = NULL;

	one = side_open(1);
	two = side_new(2);
	two->opts.secret = NULL;
	side_start(two);
	cr_expect_eq(tcp_carrier.connect(two->self, one->address, 1, 1,
			     &two->mates[1], &link, &err),
		XR_E_NODEV);
	cr_expect_not_null(strstr(err.text, "no secret of the job"));
	to_two = side_connect(one, two);
	UNTIL(one, to_two->lost == 1);
	cr_expect_not_null(strstr(to_two->why, "it has no secret"), "%s",
		to_two->why);
	pair_down();
}

Test(net_link, a_link_to_somebody_else_than_was_meant_is_lost)
{
	struct mate *m;

	one = side_open(1);
	two = side_open(2);
	m = side_dial(one, two->address, 3, 1);
	UNTIL(one, m->lost == 1);
	cr_expect_not_null(strstr(m->why, "it is another worker"), "%s",
		m->why);
	m = side_dial(one, two->address, 2, 7);
	UNTIL(one, m->lost == 1);
	cr_expect_not_null(strstr(m->why,
				   "its incarnation is 1, and 7 was meant"),
		"%s", m->why);
	cr_expect_eq(two->mates[1].accepted, 0);
	pair_down();
}

Test(net_link, nobody_connects_to_himself_or_to_no_address)
{
	static const char *const bad[] = { "tcp:", "tcp:localhost:1",
		"tcp:127.0.0.1", "tcp:127.0.0.1:0", "tcp:127.0.0.1:65536",
		"tcp:0.0.0.0:80", "tcp:[::]:80", "tcp:::1:80", "tcp:[::1:80",
		"tcp:127.0.0.1:+8", "tcp:[127.0.0.1]x:80" };
	struct xr_link *link = NULL;

	one = side_open(1);
	cr_expect_eq(tcp_carrier.connect(one->self, one->address, 1, 1, one,
			     &link, &err),
		XR_E_INVAL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(tcp_carrier.connect(one->self, bad[i], 2, 1, one,
				     &link, &err),
			XR_E_INVAL, "%s", bad[i]);
	cr_expect_eq(tcp_carrier.connect(one->self, "shm:4", 2, 1, one, &link,
			     &err),
		XR_E_NODEV);
	cr_expect_eq(tcp_carrier.connect(one->self, NULL, 2, 1, one, &link,
			     &err),
		XR_E_NODEV);
	cr_expect_null(link);
	side_close(one);
}

Test(net_link, whom_the_host_does_not_know_is_told_so)
{
	one = side_open(1);
	two = side_new(2);
	two->knows_nobody = true;
	side_start(two);
	to_two = side_connect(one, two);
	UNTIL(one, to_two->lost == 1);
	cr_expect_not_null(strstr(to_two->why, "it knows no such worker"), "%s",
		to_two->why);
	pair_down();
}

Test(net_link, nobody_listens_there_any_more)
{
	char address[XR_ADDRESS_MAX + 1];
	bool pending = true;

	one = side_open(1);
	two = side_open(2);
	memcpy(address, two->address, sizeof(address));
	side_close(two);
	to_two = side_dial(one, address, 2, 1);
	/* Kept and dropped, or refused: it may be lost already. */
	mate_send(to_two, 1, "", 0, &pending);
	cr_expect(!pending);
	UNTIL(one, to_two->lost == 1);
	cr_expect_not_null(strstr(to_two->why, "refused"), "%s", to_two->why);
	mate_close(to_two);
	side_close(one);
}

/* --- lives ----------------------------------------------------------------- */

Test(net_link, who_was_started_again_replaces_his_former_self)
{
	struct side *again = side_new(1);

	pair_up();
	mate_say(to_two, 1, "of the first life");
	UNTIL(two, two->mates[1].delivered == 1);
	again->opts.incarnation = 2;
	side_start(again);
	mate_say(side_connect(again, two), 2, "of the second");
	UNTIL(two, two->mates[1].delivered == 2);
	cr_expect_eq(two->mates[1].lost, 1);
	cr_expect_eq(two->mates[1].accepted, 2);
	cr_expect_eq(two->mates[1].incarnation, 2);
	cr_expect_not_null(strstr(two->mates[1].why, "started again"), "%s",
		two->mates[1].why);
	UNTIL(one, to_two->lost == 1);
	mate_close(&again->mates[2]);
	pair_down();
	side_close(again);
}

/* Where the former link is lost, the next is there, and not told of yet. */
static void
take_and_close(struct mate *m, struct xr_link *lost)
{
	struct xr_link *next = NULL;

	(void)lost;
	if (m->side != two)
		return;
	cr_expect_eq(tcp_carrier.connect(two->self, "tcp:127.0.0.1:1", 1, 2,
			     &two->mates[5], &next, &err),
		XR_OK, "%s", err.text);
	cr_expect_not_null(next);
	cr_expect_neq(next, lost);
	tcp_carrier.link_close(next);
}

Test(net_link, what_was_closed_before_it_was_told_of_is_not_told_of)
{
	struct side *again = side_new(1);

	pair_up();
	mate_say(to_two, 1, "of the first life");
	UNTIL(two, two->mates[1].delivered == 1);
	two->on_lost = take_and_close;
	again->opts.incarnation = 2;
	side_start(again);
	side_connect(again, two);
	UNTIL(again, again->mates[2].lost == 1);
	cr_expect_eq(two->mates[1].accepted, 1);
	cr_expect_eq(two->mates[1].lost, 1);
	cr_expect_eq(two->mates[5].lost, 0);
	mate_close(&again->mates[2]);
	pair_down();
	side_close(again);
}

Test(net_link, a_life_that_is_over_is_refused_and_harms_nobody)
{
	struct side *before = side_open(1);
	struct side *now = side_new(1);
	struct mate *m;

	now->opts.incarnation = 5;
	side_start(now);
	two = side_open(2);
	mate_say(side_connect(now, two), 1, "it is me");
	UNTIL(two, two->mates[1].delivered == 1);
	m = side_connect(before, two);
	UNTIL(before, m->lost == 1);
	cr_expect_not_null(strstr(m->why, "knows a later life"), "%s", m->why);
	cr_expect_not_null(strstr(m->why, "incarnation 5"), "%s", m->why);
	mate_say(&now->mates[2], 2, "still");
	UNTIL(two, two->mates[1].delivered == 2);
	cr_expect_eq(two->mates[1].lost, 0);
	cr_expect_eq(two->mates[1].accepted, 1);
	mate_close(m);
	mate_close(&now->mates[2]);
	mate_close(&two->mates[1]);
	side_close(before);
	side_close(now);
	side_close(two);
}

Test(net_link, a_later_life_that_the_host_tells_of_ends_the_link_to_the_former)
{
	struct xr_link *link = NULL;

	pair_up();
	mate_say(to_two, 1, "hello");
	UNTIL(two, two->mates[1].delivered == 1);
	one->mates[3] = one->mates[2];
	mate_close(to_two); /* The next one bears another row. */
	to_two = side_connect(one, two);
	mate_say(to_two, 2, "hello again");
	UNTIL(two, two->mates[1].delivered == 2);
	cr_assert_eq(tcp_carrier.connect(one->self, "tcp:127.0.0.1:1", 2, 2,
			     &one->mates[4], &link, &err),
		XR_OK);
	UNTIL(one, to_two->lost == 1);
	cr_expect_not_null(strstr(to_two->why, "started again"));
	UNTIL(one, one->mates[4].lost == 1);
	one->mates[4].link = link;
	cr_expect_eq(tcp_carrier.connect(one->self, two->address, 2, 1,
			     &one->mates[2], &link, &err),
		XR_E_FENCED);
	cr_expect_not_null(strstr(err.text, "incarnation 1 is over"), "%s",
		err.text);
	one->mates[3].link = NULL;
	pair_down();
}

/* --- both ------------------------------------------------------------------ */

Test(net_link, there_is_one_link_whoever_asks_for_it)
{
	struct mate *back;

	pair_up();
	mate_say(to_two, 1, "hello");
	UNTIL(two, two->mates[1].delivered == 1);
	back = &two->mates[1];
	cr_expect_eq(side_connect(two, one)->link, back->link);
	cr_expect_eq(side_connect(one, two)->link, to_two->link);
	mate_say(back, 2, "hello");
	UNTIL(one, to_two->delivered == 1);
	cr_expect_eq(one->mates[2].accepted, 0);
	pair_down();
}

static pthread_barrier_t at_once;

static void *
connect_at_once(void *ctx)
{
	struct side *s = ctx;
	struct mate *m;

	pthread_barrier_wait(&at_once);
	m = side_connect(s, s == one ? two : one);
	mate_say(m, 1, "first");
	mate_say(m, 2, "second");
	return NULL;
}

Test(net_link, both_connect_at_once_and_nothing_is_lost_or_doubled)
{
	pthread_t thread;
	unsigned crossed = 0;

	one = side_open(1);
	two = side_open(2);
	pthread_barrier_init(&at_once, NULL, 2);
	for (unsigned i = 1; i <= 1000; i++) {
		one->mates[2].next = two->mates[1].next = 1;
		cr_assert_eq(pthread_create(&thread, NULL, connect_at_once,
				     two),
			0);
		connect_at_once(one);
		pthread_join(thread, NULL);
		UNTIL(one, one->mates[2].delivered == 2 * i);
		UNTIL(two, two->mates[1].delivered == 2 * i);
		crossed += one->mates[2].accepted + two->mates[1].accepted == 0;
		one->mates[2].accepted = two->mates[1].accepted = 0;
		mate_close(&one->mates[2]);
		mate_close(&two->mates[1]);
	}
	cr_expect_eq(one->mates[2].wrong + two->mates[1].wrong, 0);
	cr_expect_gt(crossed, 0, "they never met");
	pthread_barrier_destroy(&at_once);
	side_close(one);
	side_close(two);
}

/* --- the end --------------------------------------------------------------- */

Test(net_link, a_link_that_the_other_end_closed_is_lost_once)
{
	pair_up();
	mate_say(to_two, 1, "hello");
	UNTIL(two, two->mates[1].delivered == 1);
	mate_close(&two->mates[1]);
	UNTIL(one, to_two->lost == 1);
	cr_expect_not_null(strstr(to_two->why, "it has closed the connection"),
		"%s", to_two->why);
	cr_expect_eq(two->mates[1].lost, 0);
	mate_close(to_two);
	/* And can be made again, by the other one as well. */
	mate_say(side_connect(two, one), 2, "again");
	UNTIL(one, to_two->delivered == 1);
	cr_expect_eq(to_two->lost, 1);
	pair_down();
}

static void
close_it(struct mate *m, struct xr_link *link)
{
	pthread_mutex_lock(&m->side->lock);
	if (m->link == link)
		m->link = NULL;
	pthread_mutex_unlock(&m->side->lock);
	tcp_carrier.link_close(link);
}

/* For a side that closes links elsewhere, too. */
static void
close_own(struct mate *m, struct xr_link *link)
{
	bool is_own;

	pthread_mutex_lock(&m->side->lock);
	is_own = m->link == link;
	if (is_own)
		m->link = NULL;
	pthread_mutex_unlock(&m->side->lock);
	if (is_own)
		tcp_carrier.link_close(link);
}

Test(net_link, a_link_may_be_closed_where_its_loss_is_told)
{
	pair_up();
	one->on_lost = close_own;
	UNTIL(two, two->mates[1].accepted == 1);
	mate_close(&two->mates[1]);
	UNTIL(one, to_two->lost == 1);
	mate_say(side_connect(one, two), 1, "again");
	UNTIL(two, two->mates[1].delivered == 1);
	pair_down();
}

Test(net_link, a_link_that_is_closed_at_once_says_nothing)
{
	one = side_open(1);
	two = side_open(2);
	two->on_lost = close_it;
	for (unsigned i = 0; i < 200; i++) {
		to_two = side_connect(one, two);
		mate_close(to_two);
	}
	to_two = side_connect(one, two);
	mate_say(to_two, 1, "the last one is there");
	UNTIL(two, two->mates[1].delivered == 1);
	cr_expect_eq(to_two->lost, 0);
	mate_close(to_two);
	UNTIL(two, two->mates[1].lost == two->mates[1].accepted);
	side_close(one);
	side_close(two);
}

Test(net_link, closing_leaves_no_thread_and_no_descriptor)
{
	unsigned fds, threads;

	/* What libcrypto opens, once. */
	pair_up();
	mate_say(to_two, 1, "hello");
	UNTIL(two, two->mates[1].delivered == 1);
	pair_down();
	fds = entries("/proc/self/fd");
	threads = entries("/proc/self/task");
	for (unsigned i = 0; i < 100; i++) {
		pair_up();
		if (i % 2 == 0) {
			mate_say(to_two, 1, "hello");
			UNTIL(two, two->mates[1].delivered == 1);
		}
		pair_down();
	}
	cr_expect_eq(entries("/proc/self/fd"), fds);
	cr_expect_eq(entries("/proc/self/task"), threads);
}

/* How often the threads of this process, but the first, have slept. */
static unsigned long
naps(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	unsigned long all = 0, n;
	char path[300], line[200];
	FILE *file;

	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' ||
			strtol(entry->d_name, NULL, 10) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status",
			entry->d_name);
		file = fopen(path, "re");
		while (fgets(line, sizeof(line), file) != NULL)
			if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) ==
				1)
				all += n;
		fclose(file);
	}
	closedir(dir);
	return all;
}

Test(net_link, who_has_nothing_to_do_sleeps)
{
	const struct timespec second = { .tv_sec = 1 };
	unsigned long before;
	unsigned tries = 0;

	pair_up();
	mate_say(to_two, 1, "hello");
	UNTIL(two, two->mates[1].delivered == 1);
	/* Whether that arrived is looked for once more. */
	do {
		before = naps();
		nanosleep(&second, NULL);
	} while (naps() != before && ++tries < 5);
	cr_expect_lt(tries, 5, "it wakes up for nothing");
	pair_down();
}
