/* SPDX-License-Identifier: Apache-2.0 */
/* renew.c - see renew.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/renew.h"
#include "launcher/log/raw.h"

#define KNOWN_LEAST \
	256 /* descriptors: what xrun opens before has low numbers */
#define KNOWN      4096    /* beyond these it cannot begin again */
#define TABLE_MOST 1048576 /* fs.nr_open; before Linux 5.9 alone */

static struct {
	uint32_t count;
	struct pollfd fd[KNOWN];
} known; /* of the keeper, which has one thread */

/* One call tells of all which of them are open; false with errno. */
static bool
look(struct pollfd *fd, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		fd[i] = (struct pollfd){ .fd = (int)i };
	return poll(fd, count, 0) != -1;
}

void
renew_note(const struct job *job)
{
	int lowest = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	/* xrun's own are below the lowest that is free: so all that are looked
	 * at, and a few more, since others may have been left free between. */
	fd_close(lowest);
	known.count = KNOWN_LEAST;
	if (lowest >= KNOWN_LEAST)
		known.count = (uint32_t)lowest + 1;
	if (known.count > job->limits.files.rlim_cur)
		known.count = (uint32_t)job->limits.files.rlim_cur;
	if (known.count > KNOWN || !look(known.fd, known.count))
		known.count = 0;
}

/* Opened by a supervisor for all that follow. */
static bool
is_handed_on(const struct keeper_page *page, int fd)
{
	return fd == page->ctl.dir || fd == page->next || fd == page->listen ||
		fd == page->http || fd == page->record.file.fd;
}

/* All from @from on but what is handed on. */
static void
close_beyond(const struct keeper_page *page, unsigned from)
{
	const int keep[] = { page->ctl.dir, page->next, page->listen,
		page->http, page->record.file.fd };

	if (fd_close_but(from, keep, sizeof(keep) / sizeof(keep[0])))
		return;
	for (; from < TABLE_MOST; from++)
		if (!is_handed_on(page, (int)from))
			close((int)from);
}

static int
close_others(const struct keeper_page *page)
{
	static struct pollfd now[KNOWN];

	if (known.count == 0)
		errno = EMFILE;
	if (known.count == 0 || !look(now, known.count))
		return -1;
	for (uint32_t i = 0; i < known.count; i++)
		if ((known.fd[i].revents & POLLNVAL) != 0 &&
			(now[i].revents & POLLNVAL) == 0 &&
			!is_handed_on(page, (int)i))
			close((int)i);
	close_beyond(page, known.count);
	return 0;
}

/* A thread of the old one that sleeps on a disk may write into its own for
 * ever. */
static int
renew_share(struct job *job)
{
	struct raw_share *old = job->share;

	job->share = raw_share_new(job_size(job), job->plan.first,
		job->state.attempt_fd);
	if (job->share == NULL) {
		job->share = old;
		return -1;
	}
	job->share->rule = old->rule;
	job->share->reserve = old->reserve;
	job->share->before = old->before + raw_written(old);
	job->share->large = old->large;
	munmap(old, sizeof(*old) + old->streams * sizeof(old->slot[0]));
	return 0;
}

struct keeper_page *
keeper_page_new(void)
{
	struct keeper_page *page = mmap(NULL, sizeof(*page),
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	page->ctl = CTL_PLACE_NONE;
	page->listen = page->http = page->next = -1;
	page->again.best = -1;
	page->record.file = CTL_RECORD_NONE;
	return page;
}

static void
renew_page(struct job *job)
{
	struct keeper_page *page = job->page;

	page->verdict = page->follow = page->told = page->text = 0;
	page->closed = page->started = page->silent = 0;
	page->kept = 1;
	memset(page->screen, 0, sizeof(page->screen));
	memset(&page->leaves, 0, sizeof(page->leaves));
	if (job->state.attempt != NULL)
		snprintf(page->where, sizeof(page->where), "%s",
			job->state.attempt);
}

int
renew_job(struct job *job, const char **what)
{
	*what = "its descriptors";
	if (close_others(job->page) == -1)
		return -1;
	*what = "the folder of the next attempt";
	if (state_advance(&job->state, (int64_t)raw_written(job->share),
		    job->page->next) == -1)
		return -1;
	*what = "memory";
	if (renew_share(job) == -1)
		return -1;
	renew_page(job);
	job->begun_ns = clock_now();
	job->begun_wall = clock_wall();
	return 0;
}
