/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_peer.c - other ends of TCP that are odd, slow, hostile, or gone: made
 * by hand. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <xrun/rpc.h>

#include "base/clock.h"
#include "tests/unit/net_rig.h"
#include "worker/net/greet.h"
#include "worker/net/head.h"
#include "worker/net/proof.h"
#include "worker/net/where.h"

TestSuite(net_peer, .timeout = 90);

static struct side *two; /* the carrier that is tried: worker 2 */

/* --- made by hand: worker 1 ------------------------------------------------- */

static struct greet_self hand = { .id = 1, .incarnation = 1 };
static struct greet greet;

static int
dialled(void)
{
	struct where where;
	const int on = 1;
	int fd;

	cr_assert_eq(where_parse(two->address, &where, &err), XR_OK);
	fd = socket(where.at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(connect(fd, &where.at.any, where.len), 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void
say(int fd, const char *bytes, size_t len)
{
	cr_assert_eq(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void
say_byte_by_byte(int fd, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		say(fd, bytes + i, 1);
}

/* Until the other end closes: how much it said. */
static size_t
hear_all(int fd)
{
	char data[4096];
	size_t all = 0;
	ssize_t n;

	while ((n = recv(fd, data, sizeof(data), 0)) > 0)
		all += (size_t)n;
	return all;
}

static enum greet_event
hear(int fd)
{
	char bytes[GREET_SIZE_MAX];
	enum greet_event event = GREET_MORE;
	ssize_t n;

	while (event == GREET_MORE && greet.out_len == 0) {
		n = recv(fd, bytes, greet_need(&greet), 0);
		cr_assert_gt(n, 0, "closed in the greeting");
		event = greet_feed(&greet, bytes, (size_t)n);
	}
	return event;
}

static void
begin(uint64_t dial)
{
	static const uint8_t challenge[32] = "nobody foretells";

	hand.secret = secret_a;
	hand.crypto = proof_crypto(&err);
	cr_assert_not_null(hand.crypto, "%s", err.text);
	greet_dial(&greet, &hand, 2, two->opts.incarnation, dial);
	greet_challenge(&greet, challenge);
}

static void
put(int fd, void (*how)(int fd, const char *bytes, size_t len))
{
	how(fd, greet.out, greet.out_len);
	greet.out_len = 0;
}

/* A connection that is agreed upon. */
static int
linked_by(uint64_t dial, void (*how)(int fd, const char *bytes, size_t len))
{
	int fd = dialled();

	begin(dial);
	put(fd, how);
	cr_assert_eq(hear(fd), GREET_MORE);
	put(fd, how);
	cr_assert_eq(hear(fd), GREET_AGREED);
	return fd;
}

static int
linked(void)
{
	return linked_by(1, say);
}

static void
put_message(char *out, uint64_t corr, const char *text)
{
	struct net_head head = { .record.corr = corr, .len = strlen(text) };

	net_head_put(out, &head);
	memcpy(out + NET_HEAD, text, head.len);
}

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

/* --- cut ------------------------------------------------------------------- */

Test(net_peer, a_byte_at_a_time_is_as_good)
{
	char bytes[NET_HEAD + 20];
	int fd;

	two = side_open(2);
	two->mates[1].next = 1;
	fd = linked_by(1, say_byte_by_byte);
	for (uint64_t i = 1; i <= 3; i++) {
		put_message(bytes, i, "twenty bytes of text");
		say_byte_by_byte(fd, bytes, sizeof(bytes));
	}
	UNTIL(two, two->mates[1].delivered == 3);
	cr_expect_eq(two->mates[1].wrong, 0);
	close(fd);
	finish();
}

Test(net_peer, a_greeting_that_ends_anywhere_costs_nothing)
{
	int fd;

	two = side_open(2);
	for (size_t cut = 0; cut < GREET_HELLO_SIZE + GREET_PROOF_SIZE; cut++) {
		size_t hello = cut < GREET_HELLO_SIZE ? cut : GREET_HELLO_SIZE;

		fd = dialled();
		begin(1);
		say(fd, greet.out, hello);
		greet.out_len = 0;
		if (cut >= GREET_HELLO_SIZE) {
			cr_assert_eq(hear(fd), GREET_MORE);
			say(fd, greet.out, cut - hello);
		}
		shutdown(fd, SHUT_WR);
		cr_assert_eq(hear_all(fd), 0, "cut at %zu", cut);
		close(fd);
	}
	cr_expect_eq(two->mates[1].accepted, 0);
	is_well();
	finish();
}

Test(net_peer, an_end_in_a_message_is_told)
{
	char bytes[NET_HEAD + 20];
	unsigned lost = 0;
	int fd;

	two = side_open(2);
	put_message(bytes, 1, "twenty bytes of text");
	for (size_t cut = 1; cut < sizeof(bytes); cut += 9) {
		fd = linked_by(cut, say);
		say(fd, bytes, sizeof(bytes));
		say(fd, bytes, cut);
		close(fd);
		lost++;
		UNTIL(two, two->mates[1].lost == lost);
		cr_expect_eq(two->mates[1].delivered, lost);
		cr_expect_not_null(strstr(two->mates[1].why,
					   "in the middle of a message"),
			"%s", two->mates[1].why);
		mate_close(&two->mates[1]);
	}
	finish();
}

/* --- hostile --------------------------------------------------------------- */

Test(net_peer, rubbish_is_cut_off_and_answered_nothing)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
	char noise[4096];
	unsigned seed = 1;
	int fd;

	two = side_open(2);
	fd = dialled();
	say(fd, http, sizeof(http) - 1);
	cr_expect_eq(hear_all(fd), 0);
	close(fd);
	for (unsigned i = 0; i < 100; i++) {
		for (size_t j = 0; j < sizeof(noise); j++)
			noise[j] = (char)rand_r(&seed);
		if (i % 2 == 0)
			memcpy(noise, "xnet\1\0\x50\0", 8);
		fd = dialled();
		send(fd, noise, sizeof(noise), MSG_NOSIGNAL);
		/* To what looks like a HELLO: why not. */
		cr_expect_leq(hear_all(fd), GREET_VERDICT_SIZE);
		close(fd);
	}
	cr_expect_eq(two->mates[1].accepted, 0);
	is_well();
	finish();
}

Test(net_peer, who_has_another_secret_is_told_so_and_nothing_else)
{
	int fd;

	two = side_open(2);
	fd = dialled();
	begin(1);
	put(fd, say);
	cr_assert_eq(hear(fd), GREET_MORE);
	/* He goes on all the same. */
	memset(greet.out + 8, 7, 32);
	put(fd, say);
	cr_expect_eq(hear(fd), GREET_ENDED);
	cr_expect_eq(greet.verdict, GREET_UNPROVED);
	cr_expect_eq(hear_all(fd), 0);
	close(fd);
	cr_expect_eq(two->mates[1].accepted, 0);
	finish();
}

/* The carrier refuses worker @id, whose proof is valid. */
static void
is_unknown(uint32_t id)
{
	int fd = dialled();

	hand.id = id;
	begin(1);
	put(fd, say);
	cr_assert_eq(hear(fd), GREET_MORE);
	put(fd, say);
	cr_expect_eq(hear(fd), GREET_ENDED);
	cr_expect_eq(greet.verdict, GREET_UNKNOWN);
	cr_expect_eq(greet.status, XR_E_NOTFOUND);
	cr_expect_eq(greet.number, 0);
	cr_expect_eq(hear_all(fd), 0);
	close(fd);
	hand.id = 1;
}

Test(net_peer, the_verdict_on_an_unknown_worker_has_no_number)
{
	two = side_open(2);
	is_unknown(XR_WORKER_ID_MAX + 1);
	is_unknown(MATES); /* rig_accepted() rejects it */
	is_well();
	finish();
}

Test(net_peer, what_was_heard_once_cannot_be_said_again)
{
	char hello[GREET_HELLO_SIZE], proof[GREET_PROOF_SIZE];
	int fd;

	two = side_open(2);
	fd = dialled();
	begin(1);
	memcpy(hello, greet.out, sizeof(hello));
	put(fd, say);
	cr_assert_eq(hear(fd), GREET_MORE);
	memcpy(proof, greet.out, sizeof(proof));
	put(fd, say);
	cr_assert_eq(hear(fd), GREET_AGREED);
	UNTIL(two, two->mates[1].accepted == 1);
	close(fd);
	UNTIL(two, two->mates[1].lost == 1);
	mate_close(&two->mates[1]);
	fd = dialled();
	say(fd, hello, sizeof(hello));
	say(fd, proof, sizeof(proof));
	cr_expect_eq(hear_all(fd), GREET_ANSWER_SIZE + GREET_VERDICT_SIZE);
	close(fd);
	cr_expect_eq(two->mates[1].accepted, 1);
	finish();
}

Test(net_peer, what_is_no_message_ends_the_link)
{
	struct net_head head = { .len = XR_MESSAGE_MAX + 1 };
	char bytes[NET_HEAD];
	int fd;

	two = side_open(2);
	net_head_put(bytes, &head);
	fd = linked_by(1, say);
	say(fd, bytes, sizeof(bytes));
	UNTIL(two, two->mates[1].lost == 1);
	cr_expect_not_null(strstr(two->mates[1].why, "1099511627777 bytes"),
		"%s", two->mates[1].why);
	mate_close(&two->mates[1]);
	close(fd);
	fd = linked_by(2, say);
	bytes[3] ^= 1;
	say(fd, bytes, sizeof(bytes));
	UNTIL(two, two->mates[1].lost == 2);
	cr_expect_not_null(strstr(two->mates[1].why, "checksum"), "%s",
		two->mates[1].why);
	close(fd);
	finish();
}

Test(net_peer, those_who_say_nothing_keep_nobody_out)
{
	enum { SILENT = 200 };
	int fd[SILENT], gone = 0;
	int64_t begun;
	char byte;

	two = side_open(2);
	for (int i = 0; i < SILENT; i++)
		fd[i] = dialled();
	begun = clock_now();
	is_well();
	/* 200 are ahead in the queue, 64 at a time, a quarter of a second each;
	 * ten times that is allowed. */
	cr_expect_lt(clock_now() - begun, 10 * NS_PER_S);
	for (int i = 0; i < SILENT; i++) {
		gone += recv(fd[i], &byte, 1, 0) <= 0;
		close(fd[i]);
	}
	cr_expect_eq(gone, SILENT);
	cr_expect_lt(clock_now() - begun, 20 * NS_PER_S);
	finish();
}

Test(net_peer, an_older_connection_of_a_peer_is_void)
{
	int first, late, next;

	two = side_open(2);
	late = dialled();
	begin(4);
	put(late, say);
	cr_assert_eq(hear(late), GREET_MORE);
	{
		/* Between its words another one was faster. */
		struct greet kept = greet;

		first = linked_by(5, say);
		greet = kept;
	}
	put(late, say);
	cr_assert_eq(hear(late), GREET_ENDED);
	cr_expect_eq(greet.verdict, GREET_STALE);
	close(late);
	cr_expect_eq(two->mates[1].lost, 0);
	/* But a later one means that he has lost the link. */
	next = linked_by(6, say);
	UNTIL(two, two->mates[1].accepted == 2);
	cr_expect_eq(two->mates[1].lost, 1);
	cr_expect_not_null(strstr(two->mates[1].why, "anew"));
	cr_expect_eq(hear_all(first), 0);
	close(first);
	close(next);
	finish();
}

/* --- who is dialled -------------------------------------------------------- */

static int
listening(char *address, size_t cap)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&at, len), 0);
	cr_assert_eq(listen(fd, 10), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	snprintf(address, cap, "tcp:127.0.0.1:%u", ntohs(at.sin_port));
	return fd;
}

Test(net_peer, something_else_that_listens_there_is_told)
{
	char address[64];
	int door, fd;

	two = side_open(2);
	door = listening(address, sizeof(address));
	side_dial(two, address, 1, 1);
	fd = accept(door, NULL, NULL);
	say(fd, "220 mail.example.org ESMTP\r\n", 28);
	UNTIL(two, two->mates[1].lost == 1);
	cr_expect_not_null(strstr(two->mates[1].why, "something else"), "%s",
		two->mates[1].why);
	close(fd);
	close(door);
	finish();
}

/* Its host answers, so it is stopped or slow: for longer than all tries of a link
 * may take, which is 10 s. */
Test(net_peer, a_peer_that_does_not_greet_is_lost_when_its_socket_is_closed)
{
	int64_t end = clock_now() + 12 * NS_PER_S;
	struct pollfd p = { .events = POLLIN };
	char address[64];
	int door, fd;

	two = side_open(2);
	door = listening(address, sizeof(address));
	side_dial(two, address, 1, 1);
	fd = accept(door, NULL, NULL);
	p.fd = door;
	while (clock_now() < end) {
		cr_assert_eq(poll(&p, 1, 100), 0, "it has dialled again");
		pthread_mutex_lock(&two->lock);
		cr_assert_eq(two->mates[1].lost, 0, "%s", two->mates[1].why);
		pthread_mutex_unlock(&two->lock);
	}
	close(door);
	close(fd);
	UNTIL(two, two->mates[1].lost == 1);
	cr_expect_not_null(strstr(two->mates[1].why, "refused"), "%s",
		two->mates[1].why);
	finish();
}

Test(net_peer, who_closes_the_first_connection_gets_another)
{
	static const uint8_t challenge[32] = "ours";
	char address[64];
	struct greet_self self;
	int door, fd;

	two = side_open(2);
	begin(1);
	self = hand;
	door = listening(address, sizeof(address));
	side_dial(two, address, 1, 1);
	mate_say(&two->mates[1], 1, "it was kept");
	close(accept(door, NULL, NULL));
	fd = accept(door, NULL, NULL);
	greet_answer(&greet, &self);
	greet_challenge(&greet, challenge);
	cr_assert_eq(hear(fd), GREET_MORE);
	put(fd, say);
	cr_assert_eq(hear(fd), GREET_PROVEN);
	cr_expect_eq(greet.dial, 2);
	greet_decide(&greet, GREET_OK, 0);
	put(fd, say);
	{
		char bytes[NET_HEAD + 11];

		cr_assert_eq(recv(fd, bytes, sizeof(bytes), MSG_WAITALL),
			(ssize_t)sizeof(bytes));
		cr_expect_arr_eq(bytes + NET_HEAD, "it was kept", 11);
	}
	cr_expect_eq(two->mates[1].lost, 0);
	close(fd);
	close(door);
	finish();
}

/* --- silence --------------------------------------------------------------- */

/* From now on nothing that arrives at @fd is heard, or acknowledged: as if the
 * machine had lost its power. */
static void
make_deaf(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = { .len = 1, .filter = &drop };

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
		    sizeof(filter)) == 0)
		return;
	cr_assert_eq(errno, EPERM);
	cr_assert_neq(geteuid(), 0);
	cr_skip_test("only root can attach a socket filter here");
}

/* As much as goes. */
static void
fill(struct mate *m)
{
	static char data[100000];
	bool pending;

	while (mate_send(m, 1, data, sizeof(data), &pending) == XR_OK)
		continue;
}

Test(net_peer, a_machine_that_is_gone_is_lost_and_one_that_is_stopped_is_not)
{
	int gone, stopped;
	int64_t begun;

	two = side_open(2);
	gone = linked();
	UNTIL(two, two->mates[1].accepted == 1);
	hand.id = 4;
	stopped = linked();
	hand.id = 1;
	UNTIL(two, two->mates[4].accepted == 1);
	make_deaf(gone);
	begun = clock_now();
	fill(&two->mates[4]); /* nobody reads there, and its kernel says so */
	mate_say(&two->mates[1], 1, "is anybody there?");
	UNTIL(two, two->mates[1].lost == 1);
	cr_expect_not_null(strstr(two->mates[1].why,
				   "acknowledged nothing for"),
		"%s", two->mates[1].why);
	cr_expect_geq(clock_now() - begun, 6 * NS_PER_S, "a short partition");
	cr_expect_lt(clock_now() - begun, 15 * NS_PER_S);
	cr_expect_eq(two->mates[4].lost, 0);
	close(gone);
	close(stopped);
	UNTIL(two, two->mates[4].lost == 1);
	finish();
}
