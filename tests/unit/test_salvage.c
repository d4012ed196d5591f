/* SPDX-License-Identifier: Apache-2.0 */
/* test_salvage.c - what the keeper saves of a supervisor that has ended. */
#include <poll.h>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "launcher/job/job.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/salvage.h"
#include "launcher/log/modes.h"
#include "launcher/log/raw.h"
#include "tests/unit/forked.h"

static struct {
	pid_t by;  /* who drained */
	int tells; /* his parent-death signal */
	int64_t patience;
	unsigned calls;
} *drained; /* shared */

static struct {
	bool no_fork;
	bool hangs;    /* raw_drain() */
	uint64_t lost; /* more by raw_drain() */
	int room;      /* of poll(2) with a terminal */
} played;

static int waited; /* poll's patience for a child */
static char polled[64];

int __real_poll(struct pollfd *p, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *p, nfds_t count, int timeout);
pid_t __real_keeper_fork(int *pidfd);
pid_t __wrap_keeper_fork(int *pidfd);
uint64_t __wrap_raw_drain(struct raw_share *share, int64_t patience);

int
__wrap_poll(struct pollfd *p, nfds_t count, int timeout)
{
	size_t len = strlen(polled);

	EXPECT_EQ(count, 1);
	if (p->events == POLLIN) {
		waited = timeout;
		if (played.hangs)
			return 0;
		return __real_poll(p, count, 20000);
	}
	snprintf(polled + len, sizeof(polled) - len, "%d:%d,%d ", p->fd,
		p->events, timeout);
	return played.room;
}

pid_t
__wrap_keeper_fork(int *pidfd)
{
	return played.no_fork ? -1 : __real_keeper_fork(pidfd);
}

uint64_t
__wrap_raw_drain(struct raw_share *share, int64_t patience)
{
	drained->by = getpid();
	drained->patience = patience;
	drained->calls++;
	prctl(PR_GET_PDEATHSIG, &drained->tells);
	share->failed += played.lost;
	while (played.hangs && !played.no_fork)
		pause();
	return 0;
}

static struct job job;
static int out, err;

static void
begin(void)
{
	alarm(20);
	drained = mmap(NULL, sizeof(*drained), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	job.share = raw_share_new(1, 0, -1);
	job.page = keeper_page_new();
	out = memfd_create("out", MFD_CLOEXEC);
	err = memfd_create("err", MFD_CLOEXEC);
	NEED(drained != MAP_FAILED && job.share != NULL && job.page != NULL &&
		out != -1 && dup2(out, 1) == 1 && err != -1 &&
		dup2(err, 2) == 2);
}

static void
expect_text(int fd, const char *text)
{
	char got[1000];
	ssize_t n = pread(fd, got, sizeof(got) - 1, 0);

	got[n > 0 ? n : 0] = '\0';
	EXPECT_STR(got, text);
	NEED(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
}

/* The child of the keeper, who shares its descriptors. */
static int
reap(void)
{
	int status = -1;
	pid_t pid = waitpid(-1, &status, 0);

	if (pid == -1)
		return -1;
	EXPECT(drained->by == 0 || pid == drained->by);
	return status;
}

FORKED_TEST(salvage, a_child_stores_what_was_left)
{
	begin();
	salvage_output(&job); /* nothing is left */
	EXPECT_EQ(drained->calls, 0);
	EXPECT_EQ(reap(), -1);
	job.share->left = 1;
	job.share->failed = 3; /* told of before */
	salvage_output(&job);
	EXPECT_EQ(reap(), 0);
	EXPECT_EQ(drained->calls, 1);
	EXPECT(drained->by != getpid());
	EXPECT_EQ(drained->patience, 5 * NS_PER_S);
	EXPECT_EQ(drained->tells, SIGKILL);
	EXPECT_EQ(waited, 6000);
	expect_text(err, "");
}

FORKED_TEST(salvage, what_is_lost_is_told_of)
{
	char lost[RAW_LOST_MAX];

	begin();
	job.share->left = 1;
	job.share->failed = 3;
	job.share->sys = ENOSPC;
	played.lost = 1;
	salvage_output(&job);
	EXPECT_EQ(reap(), 0);
	EXPECT_EQ(job.share->failed, 4);
	expect_text(err, raw_lost_text(job.share, lost));
	EXPECT(lost[0] != '\0');
}

FORKED_TEST(salvage, a_child_that_hangs_is_ended)
{
	int status;

	begin();
	job.share->left = 1;
	played.hangs = true;
	salvage_output(&job);
	status = reap();
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

FORKED_TEST(salvage, without_a_child_the_keeper_stores_it)
{
	begin();
	job.share->left = 1;
	played.no_fork = true;
	salvage_output(&job);
	EXPECT_EQ(drained->by, getpid());
	EXPECT_EQ(drained->calls, 1);
	EXPECT_EQ(drained->patience, 5 * NS_PER_S);
	EXPECT_EQ(drained->tells, 0);
	EXPECT_EQ(waited, 0);
}

#define ON  "\033[?1049h"
#define OFF "\033[?1049l"

static void
switch_on(int kind)
{
	modes_follow(&job.page->screen[kind],
		(struct span){ ON, sizeof(ON) - 1 });
}

FORKED_TEST(salvage, the_modes_of_each_terminal_are_switched_off)
{
	char off[MODES_END_MAX + 1];
	struct modes m = { 0 };

	begin();
	modes_follow(&m, (struct span){ ON, sizeof(ON) - 1 });
	off[modes_end(&m, off)] = '\0';
	played.room = 1;
	salvage_terminal(&job);
	EXPECT_STR(polled, "");
	switch_on(RAW_OUT);
	salvage_terminal(&job);
	EXPECT_STR(polled, "1:4,1000 1:4,0 ");
	expect_text(out, off);
	expect_text(err, "");
	polled[0] = '\0';
	switch_on(RAW_ERR);
	salvage_terminal(&job);
	EXPECT_STR(polled, "2:4,1000 2:4,0 ");
	expect_text(out, "");
	expect_text(err, off);
	/* One that is stopped. */
	played.room = 0;
	switch_on(RAW_OUT);
	salvage_terminal(&job);
	expect_text(out, "");
}
