/* SPDX-License-Identifier: Apache-2.0 */
/* test_renew.c - what the next supervisor of a job finds. */
#include <poll.h>

#include <sys/mman.h>

#include "base/clock.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/renew.h"
#include "launcher/log/raw.h"
#include "tests/unit/forked.h"

static struct job job;

static struct {
	int advance_sys; /* of state_advance() */
	bool no_share;
	bool no_range; /* before Linux 5.9 */
	int poll_sys;
	int64_t bytes;
	int next;
} played;

int __real_poll(struct pollfd *p, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *p, nfds_t count, int timeout);
int __wrap_state_advance(struct state *state, int64_t bytes, int fd);
struct raw_share *__real_raw_share_new(uint32_t ranks, uint32_t first, int dir);
struct raw_share *__wrap_raw_share_new(uint32_t ranks, uint32_t first, int dir);
uint64_t __wrap_raw_written(const struct raw_share *share);
bool __real_fd_close_but(unsigned from, const int *keep, unsigned count);
bool __wrap_fd_close_but(unsigned from, const int *keep, unsigned count);
int64_t __wrap_clock_now(void);
int64_t __wrap_clock_wall(void);
int __real_munmap(void *p, size_t size);
int __wrap_munmap(void *p, size_t size);

static unsigned close_from;
static nfds_t looked; /* at so many descriptors */

int
__wrap_poll(struct pollfd *p, nfds_t count, int timeout)
{
	looked = count;
	EXPECT_EQ(timeout, 0);
	errno = played.poll_sys;
	return played.poll_sys != 0 ? -1 : __real_poll(p, count, timeout);
}

int
__wrap_state_advance(struct state *state, int64_t bytes, int fd)
{
	EXPECT(state == &job.state);
	played.bytes = bytes;
	played.next = fd;
	errno = played.advance_sys;
	return played.advance_sys != 0 ? -1 : 0;
}

struct raw_share *
__wrap_raw_share_new(uint32_t ranks, uint32_t first, int dir)
{
	errno = ENOMEM;
	return played.no_share ? NULL : __real_raw_share_new(ranks, first, dir);
}

uint64_t
__wrap_raw_written(const struct raw_share *share)
{
	return share->failed;
}

/* That of the test stays open. */
bool
__wrap_fd_close_but(unsigned from, const int *keep, unsigned count)
{
	int kept[8] = { forked_report };

	close_from = from;
	memcpy(kept + 1, keep, count * sizeof(*keep));
	return !played.no_range && __real_fd_close_but(from, kept, count + 1);
}

int64_t
__wrap_clock_now(void)
{
	return 1234;
}

int64_t
__wrap_clock_wall(void)
{
	return 5678;
}

static size_t unmapped;

int
__wrap_munmap(void *p, size_t size)
{
	unmapped = size;
	return __real_munmap(p, size);
}

static void
begin(void)
{
	for (int fd = 3; fd < FORKED_FD_MIN; fd++)
		close(fd);
	job.page = keeper_page_new();
	NEED(job.page != NULL);
	job.limits.files.rlim_cur = 4096;
	job.plan.local_size = 3;
	job.plan.first = 2;
	job.state.attempt_fd = 77;
	job.share = __real_raw_share_new(3, 2, 77);
	NEED(job.share != NULL);

	EXPECT_EQ(forked_report, FORKED_FD_MIN);
}

static bool
is_open(int fd)
{
	return fcntl(fd, F_GETFD) != -1;
}

static void
open_at(int fd)
{
	NEED(dup2(STDIN_FILENO, fd) == fd);
}

FORKED_TEST(renew, a_new_page_says_nothing)
{
	struct keeper_page *page = keeper_page_new(), none;

	NEED(page != NULL);
	memset(&none, 0, sizeof(none));
	none.ctl = CTL_PLACE_NONE;
	none.listen = none.http = none.next = -1;
	none.again.best = -1;
	none.record.file = CTL_RECORD_NONE;
	EXPECT_EQ(page->ctl.dir, -1);
	EXPECT_EQ(page->listen, -1);
	EXPECT_EQ(page->http, -1);
	EXPECT_EQ(page->next, -1);
	EXPECT_EQ(page->again.best, -1);
	EXPECT_EQ(page->record.file.fd, -1);
	EXPECT(memcmp(page, &none, sizeof(none)) == 0);
}

FORKED_TEST(renew, what_the_dead_one_opened_is_closed)
{
	const char *what = NULL;

	begin();
	open_at(5);
	open_at(9);
	renew_note(&job);
	EXPECT(!is_open(3)); /* what it looked with */
	EXPECT_EQ(looked, 256);
	for (int fd = 3; fd < 20; fd++)
		open_at(fd);
	open_at(254);
	open_at(255);
	open_at(256);
	open_at(290);
	open_at(299);
	job.page->ctl.dir = 11;
	job.page->next = 12;
	job.page->listen = 13;
	job.page->http = 14;
	job.page->record.file.fd = 290;
	looked = 0;
	EXPECT_EQ(renew_job(&job, &what), 0);
	EXPECT_EQ(looked, 256);
	EXPECT_EQ(close_from, 256);
	for (int fd = 3; fd < 300; fd++)
		EXPECT_EQ(is_open(fd),
			fd == 5 || fd == 9 || (fd >= 11 && fd <= 14) ||
				fd == 290);
	EXPECT(is_open(0) && is_open(1) && is_open(2));
	EXPECT_EQ(played.next, 12);
}

/* Before Linux 5.9. */
FORKED_TEST(renew, they_are_closed_one_by_one_if_need_be)
{
	const char *what = NULL;

	begin();
	played.no_range = true;
	renew_note(&job);
	open_at(3);
	open_at(256);
	open_at(257);
	open_at(258);
	open_at(259);
	open_at(260);
	open_at(261);
	open_at(262);
	job.page->ctl.dir = 257;
	job.page->next = 258;
	job.page->listen = 259;
	job.page->http = FORKED_FD_MIN; /* where the test reports */
	job.page->record.file.fd = 261;
	EXPECT_EQ(renew_job(&job, &what), 0);
	for (int fd = 256; fd < 263; fd++)
		EXPECT_EQ(is_open(fd),
			fd == 257 || fd == 258 || fd == 259 || fd == 261);
	EXPECT(!is_open(3));
}

FORKED_TEST(renew, all_that_are_open_at_first_are_known)
{
	const char *what = NULL;

	begin();
	for (int fd = 3; fd < 255; fd++)
		open_at(fd);
	renew_note(&job); /* the lowest that is free is 255 */
	EXPECT_EQ(looked, 256);
	open_at(255);
	renew_note(&job);
	EXPECT_EQ(looked, 257);
	open_at(256);
	renew_note(&job);
	EXPECT_EQ(looked, 258);
	job.limits.files.rlim_cur = 258;
	renew_note(&job);
	EXPECT_EQ(looked, 258);
	job.limits.files.rlim_cur = 257;
	renew_note(&job);
	EXPECT_EQ(looked, 257);
	EXPECT_EQ(renew_job(&job, &what), 0);
	EXPECT(is_open(255) && is_open(256));
	EXPECT_EQ(looked, 257);
}

FORKED_TEST(renew, too_many_descriptors_are_not_known)
{
	struct rlimit many = { 5000, 5000 };
	const char *what = NULL;

	begin();
	NEED(setrlimit(RLIMIT_NOFILE, &many) == 0);
	job.limits.files.rlim_cur = 5000;
	for (int fd = 3; fd < 4095; fd++)
		if (fd != forked_report)
			open_at(fd);
	renew_note(&job); /* 4095 is free */
	EXPECT_EQ(looked, 4096);
	EXPECT_EQ(renew_job(&job, &what), 0);
	open_at(4095);
	looked = 0;
	renew_note(&job); /* 4096 is */
	EXPECT_EQ(looked, 0);
	errno = 0;
	EXPECT_EQ(renew_job(&job, &what), -1);
	EXPECT_EQ(errno, EMFILE);
	EXPECT_STR(what, "its descriptors");
	EXPECT_EQ(looked, 0);
}

FORKED_TEST(renew, what_failed_is_told)
{
	const char *what = NULL;
	struct raw_share *old;

	begin();
	old = job.share;
	played.poll_sys = EINVAL;
	renew_note(&job);
	played.poll_sys = 0;
	EXPECT_EQ(renew_job(&job, &what), -1);
	EXPECT_EQ(errno, EMFILE);
	renew_note(&job);
	played.poll_sys = EINVAL;
	EXPECT_EQ(renew_job(&job, &what), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_STR(what, "its descriptors");
	played.poll_sys = 0;
	played.advance_sys = ENOSPC;
	job.page->verdict = 5;
	EXPECT_EQ(renew_job(&job, &what), -1);
	EXPECT_STR(what, "the folder of the next attempt");
	EXPECT_EQ(errno, ENOSPC);
	played.advance_sys = 0;
	played.no_share = true;
	EXPECT_EQ(renew_job(&job, &what), -1);
	EXPECT_STR(what, "memory");
	EXPECT_EQ(errno, ENOMEM);
	EXPECT(job.share == old);
	EXPECT_EQ(job.page->verdict, 5);
	EXPECT_EQ(job.begun_ns, 0);
}

FORKED_TEST(renew, page_and_pipes_begin_again)
{
	struct keeper_page *p, want;
	const char *what = NULL;
	struct raw_share *old;

	begin();
	renew_note(&job);
	p = job.page;
	memset(&want, 0, sizeof(want));
	want.ctl.dir = want.next = want.listen = want.http = -1;
	want.record.file.fd = -1;
	want.keeper = want.overdue = want.heard = want.removed = want.done =
		want.cleaned = want.http_over = 8;
	*p = want;
	p->verdict = p->follow = p->told = p->text = p->closed = p->started =
		p->silent = 9;
	memset(p->screen, 1, sizeof(p->screen));
	memset(&p->leaves, 1, sizeof(p->leaves));
	snprintf(p->where, sizeof(p->where), "/old");
	snprintf(want.where, sizeof(want.where), "/old");
	want.kept = 1;
	old = job.share;
	old->failed = 6;
	old->before = 100;
	old->reserve = 33;
	old->large = 44;
	old->left = 55;
	old->rule.size = 66;
	EXPECT_EQ(renew_job(&job, &what), 0);
	EXPECT(memcmp(p, &want, sizeof(want)) == 0);
	EXPECT_EQ(played.bytes, 6);
	EXPECT_EQ(unmapped, sizeof(*old) + 6 * sizeof(old->slot[0]));
	EXPECT_EQ(job.share->dir, 77);
	EXPECT_EQ(job.share->streams, 6);
	EXPECT_EQ(job.share->base, 4);
	EXPECT_EQ(job.share->before, 106);
	EXPECT_EQ(job.share->reserve, 33);
	EXPECT_EQ(job.share->large, 44);
	EXPECT_EQ(job.share->left, 0);
	EXPECT_EQ(job.share->failed, 0);
	EXPECT_EQ(job.share->rule.size, 66);
	EXPECT_EQ(job.begun_ns, 1234);
	EXPECT_EQ(job.begun_wall, 5678);
	job.state.attempt = (char *)"/new/2";
	EXPECT_EQ(renew_job(&job, &what), 0);
	EXPECT_STR(p->where, "/new/2");
}
