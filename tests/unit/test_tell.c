/* SPDX-License-Identifier: Apache-2.0 */
/* test_tell.c - what the agent of a rank reports on the control socket. */
#include <poll.h>

#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "tests/unit/forked.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/tell.h"

TestSuite(tell, .timeout = 150);

/* --- system calls that a test answers ------------------------------------------- */

ssize_t __real_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
int __real_poll(struct pollfd *fds, nfds_t count, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int ms);
void __wrap_slot_lost(void);
bool __wrap_figures_are_of_job(void);

static bool of_job;

bool
__wrap_figures_are_of_job(void)
{
	return of_job;
}

static const int *answers; /* errno of each send() to come; 0: it is sent */
static unsigned sends, polls, slots_lost;
static int polled_ms;

ssize_t
__wrap_send(int fd, const void *data, size_t len, int flags)
{
	if (answers == NULL)
		return __real_send(fd, data, len, flags);
	EXPECT_EQ(flags, MSG_DONTWAIT | MSG_NOSIGNAL);
	errno = answers[sends++];
	return errno == 0 ? (ssize_t)len : -1;
}

int
__wrap_poll(struct pollfd *fds, nfds_t count, int ms)
{
	if (answers == NULL)
		return __real_poll(fds, count, ms);
	EXPECT_EQ(count, 1);
	EXPECT_EQ(fds->events, POLLOUT);
	polls++;
	polled_ms = ms;
	return 0;
}

void
__wrap_slot_lost(void)
{
	slots_lost++;
}

static int supervisor = -1; /* its end of the control socket */

/* This process is rank @rank of a job, with a control socket and without a segment. */
static void
be_rank(const char *rank)
{
	char text[64];
	struct stat st;
	int pair[2];

	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	NEED(fstat(pair[1], &st) == 0);
	snprintf(text, sizeof(text), "%d:%llu", pair[1],
		(unsigned long long)st.st_ino);
	setenv("XRUN_CONTROL_FD", text, 1);
	setenv("XRUN_JOB", "k7q2", 1);
	setenv("XRUN_ATTEMPT", "3", 1);
	setenv("XRUN_SIZE", "100", 1);
	setenv("XRUN_RANK", rank, 1);
	supervisor = pair[0];
}

/* The next message; "" if there is none. */
static const char *
message(void)
{
	static char text[8192];
	ssize_t n = recv(supervisor, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void
open_agent(void)
{
	figures_open();
	tell_open();
}

static uint32_t
first_lost(void)
{
	struct figures_view v;

	figures_sum(&v);
	return v.lost;
}

FORKED_TEST(tell, a_lost_rank_is_reported_and_counted)
{
	be_rank("12");
	open_agent();
	tell_lost(0);
	EXPECT_STR(message(), "");
	EXPECT_EQ(first_lost(), 0);
	tell_lost(4);
	EXPECT_STR(message(), "{\"type\":\"lost\",\"rank\":12,\"peer\":3}");
	EXPECT_EQ(first_lost(), 4);
	tell_lost(1);
	EXPECT_STR(message(), "{\"type\":\"lost\",\"rank\":12,\"peer\":0}");
	EXPECT_EQ(first_lost(), 4);
}

FORKED_TEST(tell, outside_of_a_job_nothing_is_reported)
{
	be_rank("12");
	open_agent();
	EXPECT_STR(tell_place(), "k7q2/3/12");
	unsetenv("XRUN_RANK");
	tell_open();
	EXPECT_STR(tell_place(), "");
	tell_lost(4);
	EXPECT_STR(message(), "");
	EXPECT_EQ(first_lost(), 0);
	EXPECT_EQ(tell_figures(clock_now()), INT64_MAX);
	tell_last();
	EXPECT_STR(message(), "");
	EXPECT_EQ(tell_rank("k7q2/3/1"), 0);
	EXPECT_EQ(tell_rank(""), 0);
	be_rank("12");
	unsetenv("XRUN_JOB");
	tell_open();
	EXPECT_STR(tell_place(), "");
	be_rank("12");
	setenv("XRUN_JOB", "k", 1);
	tell_open();
	EXPECT_STR(tell_place(), "k/3/12");
	unsetenv("XRUN_CONTROL_FD");
	tell_open();
	EXPECT_EQ(tell_figures(clock_now()), INT64_MAX);
}

FORKED_TEST(tell, ranks_of_this_attempt_are_known)
{
	be_rank("12");
	open_agent();
	EXPECT_STR(tell_place(), "k7q2/3/12");
	EXPECT_EQ(tell_rank(NULL), 0);
	EXPECT_EQ(tell_rank(""), 0);
	EXPECT_EQ(tell_rank("k7q2/3/0"), 1);
	EXPECT_EQ(tell_rank("k7q2/3/9"), 10);
	EXPECT_EQ(tell_rank("k7q2/3/12"), 13);
	EXPECT_EQ(tell_rank("k7q2/3/4294967294"), 4294967295);
	EXPECT_EQ(tell_rank("k7q2/3/4294967295"), 0);
	EXPECT_EQ(tell_rank("k7q2/3/4294967296"), 0);
	EXPECT_EQ(tell_rank("k7q2/3/"), 0);
	EXPECT_EQ(tell_rank("k7q2/3/-1"), 0);
	EXPECT_EQ(tell_rank("k7q2/3/ 1"), 0);
	EXPECT_EQ(tell_rank("k7q2/3/:"), 0);
	EXPECT_EQ(tell_rank("k7q2/3/1x"), 0);
	EXPECT_EQ(tell_rank("k7q2/4/1"), 0);
	EXPECT_EQ(tell_rank("k7q3/3/1"), 0);
}

/* The supervisor reads them itself where they are in the segment. */
FORKED_TEST(tell, figures_of_the_segment_are_not_told)
{
	be_rank("12");
	of_job = true;
	open_agent();
	figures_add(FIGURE_ERRORS, 2);
	EXPECT_EQ(tell_figures(INT64_MAX - 1), INT64_MAX);
	tell_last();
	EXPECT_STR(message(), "");
	EXPECT_STR(tell_place(), "k7q2/3/12");
}

#define COUNTED(errors, served) \
	"{\"type\":\"rpc\",\"rank\":12,\"errors\":" errors \
	",\"timeouts\":0,\"oneway\":0,\"served\":" served \
	",\"bytes_out\":0,\"bytes_in\":0,\"call_ns\":0,\"latency\":[]}"

/* First after 100 ms. Then each second, and less often while nothing changes, with at
 * most 8 s between. */
FORKED_TEST(tell, what_was_counted_is_reported_when_it_is_due)
{
	int64_t from = clock_now(), due;

	be_rank("12");
	open_agent();
	figures_add(FIGURE_ERRORS, 2);
	due = tell_figures(from);
	EXPECT(due >= from + NS_PER_S / 10);
	EXPECT(due <= clock_now() + NS_PER_S / 10);
	EXPECT_EQ(tell_figures(due - 1), due);
	EXPECT_STR(message(), "");
	from = due;
	due = tell_figures(from);
	EXPECT_EQ(due, from + NS_PER_S);
	EXPECT_STR(message(), COUNTED("2", "0"));
	for (int64_t s = 2; s <= 16; s *= 2) {
		from = due;
		due = tell_figures(from);
		EXPECT_EQ(due, from + (s < 8 ? s : 8) * NS_PER_S);
		EXPECT_STR(message(), "");
	}
	figures_add(FIGURE_SERVED, 1);
	EXPECT_EQ(tell_figures(due), due + NS_PER_S);
	EXPECT_STR(message(), COUNTED("2", "1"));
	tell_last();
	EXPECT_STR(message(), "");
	figures_add(FIGURE_SERVED, 1);
	tell_last();
	EXPECT_STR(message(), COUNTED("2", "2"));
	figures_add(FIGURE_ERRORS, 1);
	tell_last();
	EXPECT_STR(message(), COUNTED("3", "2"));
	EXPECT_EQ(tell_figures(INT64_MAX - 1), INT64_MAX);
}

FORKED_TEST(tell, an_agent_that_is_opened_again_begins_with_short_times)
{
	int64_t due = clock_now() + NS_PER_S;

	be_rank("12");
	open_agent();
	EXPECT_EQ(tell_figures(due), due + NS_PER_S);
	EXPECT_STR(message(), COUNTED("0", "0"));
	for (int i = 0; i < 4; i++)
		due = tell_figures(due + 10 * NS_PER_S);
	tell_open();
	EXPECT_EQ(tell_figures(due), due + 2 * NS_PER_S);
}

/* Only the last report waits, for 100 ms. */
FORKED_TEST(tell, a_report_that_does_not_fit_is_dropped)
{
	int64_t from;

	be_rank("12");
	open_agent();
	for (int i = 0; i < 10000; i++)
		tell_lost(4);
	errno = EDOM;
	tell_lost(5);
	EXPECT_EQ(errno, EDOM);
	from = clock_now();
	tell_last();
	EXPECT(clock_now() - from >= NS_PER_S / 10);
	EXPECT_EQ(errno, EDOM);
	while (strstr(message(), "\"peer\":3") != NULL)
		continue;
	EXPECT_STR(message(), "");
	close(supervisor);
	errno = EDOM;
	tell_lost(5);
	EXPECT_EQ(errno, EDOM);
}

FORKED_TEST(tell, calls_are_reported_by_their_time)
{
	const char *text;

	be_rank("12");
	open_agent();
	figures_call(INT64_MAX, XR_E_TIMEOUT); /* of no time */
	figures_call(INT64_MAX, XR_OK);
	figures_call(-INT64_MAX / 2, XR_OK);
	tell_last();
	text = message();
	EXPECT(strstr(text, "\"errors\":1,\"timeouts\":1,") != NULL);
	EXPECT(strstr(text, "\"latency\":[[0,2],[111,1]]}") != NULL);
}

/* One that finds no room is tried once more; then its loss is noted. */
FORKED_TEST(tell, a_report_is_tried_twice)
{
	static const struct {
		int answers[2];
		unsigned sends, polls, lost;
	} row[] = {
		{ { 0, 0 }, 1, 0, 0 },
		{ { EAGAIN, 0 }, 2, 1, 0 },
		{ { EINTR, 0 }, 2, 1, 0 },
		{ { EPIPE, 0 }, 1, 0, 0 },
		{ { EAGAIN, EPIPE }, 2, 1, 0 },
		{ { EAGAIN, EAGAIN }, 2, 1, 1 },
		{ { EINTR, EINTR }, 2, 1, 1 },
	};

	be_rank("12");
	open_agent();
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		sends = polls = slots_lost = 0;
		polled_ms = 0;
		answers = row[i].answers;
		errno = EDOM;
		tell_lost(4);
		EXPECT_EQ(errno, EDOM);
		EXPECT_EQ(sends, row[i].sends);
		EXPECT_EQ(polls, row[i].polls);
		EXPECT_EQ(polled_ms, 0);
		EXPECT_EQ(slots_lost, row[i].lost);
	}
	/* Figures do not wait, but for the last ones. */
	sends = 0;
	figures_add(FIGURE_ERRORS, 1);
	polled_ms = -1;
	tell_figures(INT64_MAX - 1);
	EXPECT_EQ(sends, 2);
	EXPECT_EQ(polled_ms, 0);
	sends = 0;
	figures_add(FIGURE_ERRORS, 1);
	tell_last();
	EXPECT_EQ(sends, 2);
	EXPECT_EQ(polled_ms, 100);
}
