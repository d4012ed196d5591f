/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_proc_meet.c - ranks that meet in shared memory (worker/proc/meet.c): what is found,
 * who is waited for and how long, and what fails. The clock, futexes and the ends of ranks
 * are the test's.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "tests/unit/short_memory.h"
#include "worker/proc/meet.h"
#include "worker/proc/rank_process.h"

TestSuite(proc_meet, .timeout = 60);

#define NOW  (1000 * NS_PER_S + 5)
#define MANY 60

static struct xr_error err;
static int place; /* of the test */

/* --- the clock, futexes and ranks --------------------------------------------------- */

int64_t __wrap_clock_now(void);
long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, ...);
bool __wrap_rank_process_ended(pid_t pid);
ssize_t __real_pwrite64(int fd, const void *data, size_t len, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t len, off_t at);

static int64_t now = NOW;
static unsigned sleeps, wakes;
static int64_t slept_until[4];
static uint32_t seen, bell;          /* by the one that slept */
static void (*while_asleep)(void);   /* once */
static void (*when_looked_at)(void); /* once */
static pid_t ended;
static pid_t looked_at[8];
static unsigned looks;
static unsigned until_refused; /* writes */

int64_t
__wrap_clock_now(void)
{
	return now;
}

static void
call_once(void (**fn)(void))
{
	void (*call)(void) = *fn;

	*fn = NULL;
	if (call != NULL)
		call();
}

/* Who sleeps does so until its time, or until @while_asleep has left something. */
static long
futex(const uint32_t *word, int op, uint32_t value, const struct timespec *at,
	uint32_t bits)
{
	if (op == FUTEX_WAKE) {
		cr_assert_eq(value, INT_MAX);
		wakes++;
		return 0;
	}
	cr_assert_eq(op, FUTEX_WAIT_BITSET);
	cr_assert_eq(bits, FUTEX_BITSET_MATCH_ANY);
	cr_assert_not_null(at);
	cr_assert_lt(sleeps, 4);
	slept_until[sleeps++] = at->tv_sec * NS_PER_S + at->tv_nsec;
	seen = value;
	bell = *word;
	if (while_asleep != NULL)
		call_once(&while_asleep);
	else
		now = slept_until[sleeps - 1];
	return 0;
}

long
__wrap_syscall(long nr, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_futex)
		return futex((const uint32_t *)a[0], (int)a[1], (uint32_t)a[2],
			(const struct timespec *)a[3], (uint32_t)a[5]);
	return __real_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

bool
__wrap_rank_process_ended(pid_t pid)
{
	if (looks < 8)
		looked_at[looks] = pid;
	looks++;
	if (pid != ended)
		return false;
	call_once(&when_looked_at);
	return true;
}

ssize_t
__wrap_pwrite64(int fd, const void *data, size_t len, off_t at)
{
	if (until_refused == 0 || --until_refused > 0)
		return __real_pwrite64(fd, data, len, at);
	errno = ENOSPC;
	return -1;
}

/* --- ranks -------------------------------------------------------------------------- */

static void
make(uint32_t count)
{
	cr_assert_eq(meet_make(count, &place, &err), XR_OK);
	meet_take(place, 0);
	cr_assert(meet_is_here());
}

/* As rank @index, which this process is then. */
static enum xr_status
leave(uint32_t index, struct meet *m, int64_t n)
{
	struct xr_value *value = xr_value_new_i64(n);
	enum xr_status status;

	meet_take(place, index);
	status = meet_leave(m, value, &err);
	xr_value_unref(value);
	return status;
}

static void
expect_all(const struct meet *m, uint32_t count, const int64_t *want)
{
	struct xr_value *all = NULL;
	int64_t n = -1;

	err.text[0] = '\0';
	cr_expect_eq(meet_collect(m, &all, &err), XR_OK, "%s", err.text);
	cr_assert_not_null(all);
	cr_expect_eq(xr_value_count(all), count);
	for (uint32_t i = 0; i < count; i++) {
		xr_value_get_i64(xr_value_at(all, i), &n);
		cr_expect_eq(n, want[i], "rank %u: %d", i, (int)n);
	}
	xr_value_unref(all);
}

static void
expect_none(const struct meet *m, enum xr_status status, const char *text)
{
	struct xr_value *all = NULL;

	cr_expect_eq(meet_collect(m, &all, &err), status);
	cr_expect_str_eq(err.text, text);
	cr_expect_null(all);
}

/* --- what is found ------------------------------------------------------------------- */

Test(proc_meet, a_record_is_of_its_tag_and_round_only)
{
	static char longest[128];
	const char *const tag[] = { "start", "other", "star", "starts",
		longest };
	struct meet m = { .deadline = NOW };

	memset(longest, 't', 127);
	make(1);
	for (int64_t i = 0; i < 5; i++) {
		m.tag = tag[i];
		for (m.round = 0; m.round < 2; m.round++)
			cr_assert_eq(leave(0, &m, 10 * i + m.round), XR_OK);
	}
	for (int64_t i = 0; i < 5; i++) {
		m.tag = tag[i];
		for (m.round = 0; m.round < 2; m.round++)
			expect_all(&m, 1, (int64_t[]){ 10 * i + m.round });
	}
	m.round = 2;
	m.tag = "start";
	expect_none(&m, XR_E_TIMEOUT,
		"rendezvous start: rank 0 did not come in time");
	m.round = 0;
	m.tag = "stars";
	expect_none(&m, XR_E_TIMEOUT,
		"rendezvous stars: rank 0 did not come in time");
	cr_expect_eq(sleeps, 0);
}

Test(proc_meet, who_leaves_a_record_wakes_all)
{
	struct meet m = { .tag = "start", .deadline = NOW };
	uint32_t word[4];

	make(3);
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert_eq(leave(i, &m, i), XR_OK);
		cr_expect_eq(wakes, i + 1);
		cr_assert_eq(pread(place, word, sizeof(word), 0), 16);
		cr_expect_eq(word[2], 3); /* ranks */
		cr_expect_eq(word[3], i + 1);
	}
	expect_all(&m, 3, (int64_t[]){ 0, 1, 2 });
}

Test(proc_meet, of_what_is_dropped_the_payload_is_gone_and_no_more)
{
	struct meet m = { .tag = "start", .deadline = NOW };
	char before[4096] = { 0 }, after[4096] = { 0 };
	ssize_t len;

	make(1);
	meet_drop(m.left); /* there is none */
	cr_assert_eq(leave(0, &m, -1), XR_OK);
	m.round = 1;
	len = pread(place, before, sizeof(before), 0);
	cr_assert_gt(len, 64);
	cr_expect_eq(m.left.at + m.left.len, (uint64_t)len);
	meet_drop(m.left);
	cr_assert_eq(pread(place, after, sizeof(after), 0), len);
	cr_expect_arr_eq(after, before, m.left.at);
	for (uint64_t i = 0; i < m.left.len; i++)
		cr_expect_eq(after[m.left.at + i], 0);
	cr_assert_eq(leave(0, &m, 7), XR_OK);
	expect_all(&m, 1, (int64_t[]){ 7 });
	meet_drop((struct meet_spot){ 0 });
	expect_all(&m, 1, (int64_t[]){ 7 });
}

/* --- who is waited for ---------------------------------------------------------------- */

static struct meet later = { .tag = "start" };

static void
others_leave(void)
{
	cr_assert_eq(leave(1, &later, 11), XR_OK);
	cr_assert_eq(leave(2, &later, 12), XR_OK);
	meet_take(place, 0);
}

Test(proc_meet, others_are_slept_for_until_the_bell_rings)
{
	struct meet m = { .tag = "start", .deadline = INT64_MAX };

	make(3);
	cr_assert_eq(leave(0, &m, 10), XR_OK);
	while_asleep = others_leave;
	expect_all(&m, 3, (int64_t[]){ 10, 11, 12 });
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(slept_until[0], NOW + RANK_PROCESS_POLL_NS);
	cr_expect_eq(seen, 1);
	cr_expect_eq(bell, 1);
}

Test(proc_meet, a_sleep_ends_with_the_time_or_when_ranks_are_looked_at)
{
	struct meet m = { .tag = "start",
		.deadline = NOW + RANK_PROCESS_POLL_NS + 1 };

	make(3);
	cr_assert_eq(leave(0, &m, 10), XR_OK);
	expect_none(&m, XR_E_TIMEOUT,
		"rendezvous start: ranks 1, 2 did not come in time");
	cr_expect_eq(sleeps, 2);
	cr_expect_eq(slept_until[0], NOW + RANK_PROCESS_POLL_NS);
	cr_expect_eq(slept_until[1], m.deadline);
	sleeps = 0;
	now = NOW;
	m.deadline = NOW + RANK_PROCESS_POLL_NS;
	expect_none(&m, XR_E_TIMEOUT,
		"rendezvous start: ranks 1, 2 did not come in time");
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(slept_until[0], m.deadline);
}

Test(proc_meet, of_many_that_did_not_come_the_first_are_named)
{
	struct meet m = { .tag = "a tag of more than sixty bytes is cut, and "
				 "ends where it says 60: then comes no more",
		.deadline = NOW };
	char want[300];
	int n = snprintf(want, sizeof(want), "rendezvous %.60s: ranks 1",
		m.tag);

	make(MANY);
	cr_assert_eq(leave(0, &m, 10), XR_OK);
	/* 84 bytes and more are enough: 9 of one digit and 17 of two have 84. */
	for (int i = 2; i <= 24; i++)
		n += snprintf(want + n, sizeof(want) - (size_t)n, ", %d", i);
	snprintf(want + n, sizeof(want) - (size_t)n, " did not come in time");
	expect_none(&m, XR_E_TIMEOUT, want);
}

/* --- ranks that have ended ------------------------------------------------------------- */

/* Rank @index has the number @pid. */
static void
set_pid(uint32_t index, int32_t pid)
{
	cr_assert_eq(__real_pwrite64(place, &pid, sizeof(pid),
			     24 + 16 * (off_t)index + 8),
		sizeof(pid));
}

Test(proc_meet, a_rank_that_has_ended_without_a_record_is_named)
{
	struct meet m = { .tag = "start", .deadline = NOW };

	make(4);
	cr_assert_eq(leave(0, &m, 10), XR_OK);
	set_pid(0, 1000); /* it has come */
	set_pid(2, 1002); /* rank 1 has not begun */
	set_pid(3, 1003);
	ended = 1003;
	expect_none(&m, XR_E_PEER_LOST,
		"rendezvous start: rank 3 ended before it came");
	cr_expect_eq(looks, 2);
	cr_expect_eq(looked_at[0], 1002);
	cr_expect_eq(looked_at[1], 1003);
	ended = 1000;
	looks = 0;
	expect_none(&m, XR_E_TIMEOUT,
		"rendezvous start: ranks 1, 2, 3 did not come in time");
	cr_expect_eq(looks, 2);
}

static void
rank_1_leaves(void)
{
	cr_assert_eq(leave(1, &later, 21), XR_OK);
	set_pid(1, 1001);
	meet_take(place, 0);
}

Test(proc_meet, a_record_that_was_left_before_the_end_counts)
{
	struct meet m = { .tag = "start", .deadline = INT64_MAX };

	make(2);
	cr_assert_eq(leave(0, &m, 20), XR_OK);
	set_pid(1, 1001);
	ended = 1001;
	when_looked_at = rank_1_leaves;
	expect_all(&m, 2, (int64_t[]){ 20, 21 });
	cr_expect_eq(looks, 1);
}

/* --- what fails -------------------------------------------------------------------------- */

Test(proc_meet, what_is_not_written_whole_is_not_found)
{
	struct meet m = { .tag = "start", .deadline = NOW };
	struct xr_value *value = xr_value_new_list();
	char *bytes = calloc(1, 1 << 20);
	unsigned refused = 0, n = 0;
	enum xr_status status;

	cr_assert_not_null(bytes);
	for (int i = 0; i < 2; i++)
		xr_value_append(value, xr_value_new_bytes(bytes, 1 << 20));
	free(bytes);
	make(1);
	do {
		m.left = (struct meet_spot){ 0 };
		until_refused = ++n;
		status = meet_leave(&m, value, &err);
		if (until_refused > 0)
			break;
		refused++;
		cr_expect_eq(status, XR_E_SYS);
		cr_expect_eq(err.sys, ENOSPC);
		cr_expect_str_eq(err.text,
			"rendezvous start: No space left on device");
		cr_expect_eq(m.left.len, 0);
		cr_expect_eq(wakes, 0);
		expect_none(&m, XR_E_TIMEOUT,
			"rendezvous start: rank 0 did not come in time");
	} while (n < 20);
	until_refused = 0;
	cr_expect_geq(refused, 5, "%u: head, tag, and parts", refused);
	cr_expect_eq(status, XR_OK);
	cr_expect_eq(wakes, 1);
	xr_value_unref(value);
}

Test(proc_meet, without_memory_nothing_is_collected)
{
	struct meet m = { .tag = "start", .deadline = NOW };
	unsigned n = 0, failed = 0;
	struct xr_value *all;
	enum xr_status status;

	make(3);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_eq(leave(i, &m, i), XR_OK);
	do {
		all = NULL;
		was_short = false;
		until_short = ++n;
		status = meet_collect(&m, &all, &err);
		until_short = 0;
		cr_expect_eq(status, was_short ? XR_E_NOMEM : XR_OK);
		cr_expect_eq(all != NULL, !was_short);
		failed += was_short;
		xr_value_unref(all);
	} while (was_short && n < 50);
	cr_expect_geq(failed, 5);
}

/* The lengths of the record of rank 0 are those of @len and @tag_len. */
static void
lie(uint64_t len, uint32_t tag_len)
{
	uint64_t at;

	cr_assert_eq(pread(place, &at, sizeof(at), 24), sizeof(at));
	cr_assert_eq(__real_pwrite64(place, &tag_len, 4, (off_t)at + 12), 4);
	cr_assert_eq(__real_pwrite64(place, &len, 8, (off_t)at + 16), 8);
}

Test(proc_meet, a_payload_that_is_cut_is_refused)
{
	struct meet m = { .tag = "start", .deadline = NOW };
	struct stat st;

	make(1);
	cr_assert_eq(leave(0, &m, 10), XR_OK);
	cr_assert_eq(fstat(place, &st), 0);
	lie(m.left.len + 1, 5);
	expect_none(&m, XR_E_DECODE, "a payload is cut");
	lie((uint64_t)st.st_size, 5);
	expect_none(&m, XR_E_DECODE, "a payload is cut");
	lie(UINT64_MAX, 5); /* no byte more than that */
	expect_none(&m, XR_E_DECODE, "a payload is cut");
	lie(m.left.len, 6);
	expect_none(&m, XR_E_TIMEOUT,
		"rendezvous start: rank 0 did not come in time");
	lie(m.left.len, 5);
	expect_all(&m, 1, (int64_t[]){ 10 });
}
