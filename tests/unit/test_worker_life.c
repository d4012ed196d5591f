/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_life.c - signs of life of a rank without a slot, and who has the slot of a
 * rank (worker/job/life.c). The clock is the test's. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#include <xrun/job.h>

#include "segment/owner.h"
#include "worker/job/life.h"
#include "worker/job/slot.h"

#define SECOND INT64_C(1000000000)

static int64_t now = 1000 * SECOND;
static int told = -1, teller = -1;

int __wrap_clock_gettime(clockid_t id, struct timespec *t);

int
__wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	cr_expect_eq(id, CLOCK_MONOTONIC_COARSE);
	*t = (struct timespec){ now / SECOND, now % SECOND };
	return 0;
}

static void
join_job(const char *rank)
{
	struct stat st;
	char name[64];
	int fd[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
	told = fd[0];
	teller = fd[1];
	cr_assert_eq(fstat(teller, &st), 0);
	snprintf(name, sizeof(name), "%d:%llu", teller,
		(unsigned long long)st.st_ino);
	setenv("XRUN_CONTROL_FD", name, 1);
	setenv("XRUN_RANK", rank, 1);
	unsetenv("XRUN_SEGMENT_FD");
	slot_init();
	life_init();
}

/* Expects one message more, and no further one; NULL: none. */
static void
expect_told(const char *want)
{
	char text[256] = "";
	ssize_t n = recv(told, text, sizeof(text) - 1, MSG_DONTWAIT);

	cr_expect_str_eq(text, want != NULL ? want : "");
	cr_expect_eq(n, want != NULL ? (ssize_t)strlen(want) : -1);
	cr_expect_eq(recv(told, text, sizeof(text), MSG_DONTWAIT), -1);
}

static void
beat(void)
{
	errno = EDOM;
	xr_heartbeat();
	cr_expect_eq(errno, EDOM);
}

TestSuite(worker_life, .timeout = 60);

Test(worker_life, a_sign_of_life_says_whose_it_is)
{
	static const char *const rank[] = { "0", "7", "10", "907",
		"4294967295" };
	char want[96];

	for (size_t i = 0; i < sizeof(rank) / sizeof(rank[0]); i++) {
		join_job(rank[i]);
		now += SECOND;
		beat();
		snprintf(want, sizeof(want),
			"{\"type\":\"progress\",\"rank\":%s}", rank[i]);
		expect_told(want);
		close(told);
		close(teller);
	}
}

Test(worker_life, there_is_one_a_second)
{
	const char *const want = "{\"type\":\"progress\",\"rank\":3}";

	join_job("3");
	beat();
	expect_told(want);
	beat();
	now += SECOND - 1;
	beat();
	expect_told(NULL);
	now++;
	beat();
	beat();
	expect_told(want);
	now += 5 * SECOND;
	beat();
	expect_told(want);
}

Test(worker_life, what_is_not_the_socket_of_the_job_is_told_nothing)
{
	struct stat st;
	char name[64];

	join_job("3");
	unsetenv("XRUN_CONTROL_FD");
	life_init();
	beat();
	expect_told(NULL);
	cr_assert_eq(fstat(teller, &st), 0);
	snprintf(name, sizeof(name), "%d:%llu", teller,
		(unsigned long long)st.st_ino + 1);
	setenv("XRUN_CONTROL_FD", name, 1);
	life_init();
	beat();
	expect_told(NULL);
	unsetenv("XRUN_CONTROL_FD");
	life_init();
	now += SECOND;
	beat();
	expect_told(NULL);
	setenv("XRUN_CONTROL_FD", "rubbish", 1);
	life_init();
	now += SECOND;
	beat();
	expect_told(NULL);
}

/* Of the socket's own number, but no socket: a file. */
Test(worker_life, a_file_in_place_of_the_socket_is_not_written)
{
	FILE *file = tmpfile();
	struct stat st;
	char name[64];

	cr_assert_not_null(file);
	join_job("3");
	cr_assert_eq(fstat(fileno(file), &st), 0);
	snprintf(name, sizeof(name), "%d:%llu", fileno(file),
		(unsigned long long)st.st_ino);
	setenv("XRUN_CONTROL_FD", name, 1);
	life_init();
	beat();
	cr_assert_eq(fstat(fileno(file), &st), 0);
	cr_expect_eq(st.st_size, 0);
	fclose(file);
}

/* The segment of a job of 20, in which this is local rank @rank. */
static int
join_segment(const char *rank)
{
	const struct segment_wish wish = { .job = "k7m2", .ranks = 20 };
	int fd = segment_create(&wish);
	struct stat st;
	char name[64];

	cr_assert(fd != -1 && fstat(fd, &st) == 0);
	snprintf(name, sizeof(name), "%d:%llu", fd,
		(unsigned long long)st.st_ino);
	setenv("XRUN_SEGMENT_FD", name, 1);
	setenv("XRUN_LOCAL_RANK", rank, 1);
	setenv("XRUN_RANK", "5", 1);
	setenv("XRUN_JOB", "k7m2", 1);
	slot_init();
	return fd;
}

/* Expects that what this rank shows stands in slot @index, or in none. */
static void
expect_slot(const char *rank, uint32_t index)
{
	int fd = join_segment(rank);
	struct segment_view view;
	pid_t holder = -1;

	cr_expect_eq(slot_progress(41, 97), index < 20, "%s", rank);
	cr_expect_eq(slot_hold(&holder), index < 20);
	cr_expect_eq(holder, 0);
	for (uint32_t i = 0; i < 20; i++) {
		cr_assert(segment_look(fd, i, INT64_MAX, &view));
		cr_expect_eq(view.step, i == index ? 41 : -1, "%u", i);
		cr_expect_eq(view.total, i == index ? 97 : -1);
		cr_expect_eq(view.when, i == index ? now : 0);
		cr_expect_eq(view.tick, i == index);
		cr_expect_eq(view.holder, i == index ? (uint32_t)getpid() : 0);
	}
	slot_let_go();
	close(fd);
}

Test(worker_life, who_has_a_slot_tells_nothing)
{
	struct segment_view view;
	int fd;

	join_job("5");
	fd = join_segment("1");
	beat();
	expect_told(NULL);
	cr_assert(segment_look(fd, 1, INT64_MAX, &view));
	cr_expect_eq(view.tick, 1);
	close(fd);
}

Test(worker_life, a_slot_is_that_of_the_local_rank)
{
	now = 1234567 * SECOND + 890;
	expect_slot("0", 0);
	expect_slot("9", 9);
	expect_slot("010", 10);
	expect_slot("19", 19);
	expect_slot("20000", 20);
	expect_slot("4294967295", 20);
	expect_slot("4294967296", 20);
	expect_slot("1x", 20);
	expect_slot("-1", 20);
	expect_slot("", 20);
}

static void
expect_holder(const char *name)
{
	int fd = join_segment("1"), status = -1;
	struct xr_error err = { 0 };
	char want[96];
	pid_t pid;

	cr_assert_eq(prctl(PR_SET_NAME, name), 0);
	cr_assert_eq(xr_job_attach(&err), XR_OK);
	snprintf(want, sizeof(want), "rank 5 is held by process %d%s%s%s",
		(int)getpid(), name[0] != '\0' ? " (" : "", name,
		name[0] != '\0' ? ")" : "");
	pid = fork();
	if (pid == 0)
		_exit(xr_job_attach(&err) == XR_E_EXISTS &&
					strcmp(err.text, want) == 0 ?
				0 :
				1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	xr_job_detach();
	close(fd);
}

Test(worker_life, who_holds_a_slot_is_told_with_its_name)
{
	expect_holder("the holder");
	expect_holder("h");
	expect_holder("");
}

Test(worker_life, a_name_may_have_one_letter)
{
	setenv("XRUN_JOB", "j", 1);
	setenv("XRUN_DEVICE", "d", 1);
	cr_expect_str_eq(xr_job_id(), "j");
	cr_expect_str_eq(xr_job_device(), "d");
	setenv("XRUN_JOB", "", 1);
	setenv("XRUN_DEVICE", "", 1);
	cr_expect_str_eq(xr_job_id(), "");
	cr_expect_str_eq(xr_job_device(), "cpu");
}
