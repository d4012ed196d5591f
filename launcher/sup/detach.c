/* SPDX-License-Identifier: Apache-2.0 */
/* detach.c - see detach.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "base/status.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/detach.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/report.h"

struct detach *
detach_new(void)
{
	struct detach *d = mmap(NULL, sizeof(*d), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (d == MAP_FAILED)
		return NULL;
	d->caller = getpid();
	d->words = d->hold = d->death = -1;
	return d;
}

enum xr_status
detach_open(struct job *job, struct xr_error *err)
{
	struct detach *d = job->detach;

	d->words = state_open_words(&job->state);
	if (d->words == -1)
		return fail(err, XR_E_SYS, "%s/%s: %s", job->state.attempt,
			STATE_WORDS, strerror(errno));
	d->death = (int)syscall(SYS_pidfd_open, d->caller, 0);
	/* The number may be another's by now. */
	if (d->death == -1 || getppid() != d->caller)
		return fail(err, XR_E_STATE,
			"the xrun that was called is gone");
	return XR_OK;
}

/* From now on the folder stays: it has what a person may want to know. */
static void
turn_to_file(struct job *job)
{
	struct detach *d = job->detach;

	watch_close(job->sup->caller);
	job->sup->caller = NULL;
	job->page->kept = 1;
	d->hold = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	dup2(d->words, STDERR_FILENO);
	fd_close(d->words);
	fd_close(d->death);
	d->words = d->death = -1;
}

/* On the helper thread, behind job.json: who has the id finds it. */
static void
let_go(void *detach)
{
	struct detach *d = detach;

	fd_close(d->hold);
	d->hold = -1;
}

static void
on_caller_died(int fd, void *ctx)
{
	struct job *job = ctx;

	(void)fd;
	turn_to_file(job);
	let_go(job->detach);
	stop_fail(job,
		"the xrun that was called was ended before all ranks were started");
}

bool
detach_watch(struct job *job)
{
	if (job->detach == NULL || job->detach->words == -1)
		return true;
	job->sup->caller = watch_open(job->sup->loop, job->detach->death, false,
		on_caller_died, job);
	return job->sup->caller != NULL;
}

static bool
caller_died(const struct detach *d)
{
	struct pollfd death = { .fd = d->death, .events = POLLIN };

	return poll(&death, 1, 0) == 1;
}

static bool
any_runs(const struct job *job)
{
	uint32_t r = 0;

	while (r < job_size(job) && job->rank[r].pid == 0)
		r++;
	return r < job_size(job);
}

void
detach_started(struct job *job)
{
	struct detach *d = job->detach;

	if (d == NULL || d->words == -1 || !any_runs(job))
		return;
	if (caller_died(d)) {
		on_caller_died(d->death, job);
		return;
	}
	snprintf(d->job, sizeof(d->job), "%s", job->state.id);
	snprintf(d->where, sizeof(d->where), "%s", job->state.attempt);
	d->ranks = job_size(job);
	__atomic_store_n(&d->runs, 1, __ATOMIC_SEQ_CST);
	turn_to_file(job);
	report_job(job);
	if (!work_post(job->sup->work, let_go, d))
		let_go(d);
	work_push(job->sup->work);
}
