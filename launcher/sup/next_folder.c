/* SPDX-License-Identifier: Apache-2.0 */
/* next_folder.c - see next_folder.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "launcher/job/sup.h"
#include "launcher/job/words.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/next.h"
#include "launcher/sup/next_folder.h"
#include "launcher/tell/report.h"

static bool
is_wanted(const struct job *job)
{
	return again_is_due(&job->page->again) && job->state.dir_fd != -1;
}

/* On the helper thread. */
static void
make(void *ctx)
{
	struct job *job = ctx;
	int fd = state_make_next(&job->state);

	__atomic_store_n(&job->page->next, fd == -1 ? -errno : fd,
		__ATOMIC_SEQ_CST);
}

/* False: there is nothing to wait for. */
static bool
ask(struct job *job)
{
	if (!is_wanted(job))
		return false;
	__atomic_store_n(&job->page->next, -ETIMEDOUT, __ATOMIC_SEQ_CST);
	if (work_post(job->sup->work, make, job))
		return true;
	job->page->next = -ENOMEM;
	return false;
}

static void
look(struct job *job)
{
	int fd = __atomic_load_n(&job->page->next, __ATOMIC_SEQ_CST);
	char why[PATH_MAX + 128];

	if (!is_wanted(job) || fd >= 0)
		return;
	snprintf(why, sizeof(why),
		"the job cannot begin again: the folder of attempt %u in %s: %s",
		job->state.number + 1, job->state.dir,
		report_lost_text(job, -fd));
	if (words_have_room())
		words_line("%s", why);
	next_cannot(job, why);
}

bool
next_folder_known(struct job *job)
{
	enum next_folder *stage = &job->sup->next_folder;

	if (*stage == NEXT_FOLDER_UNASKED) {
		*stage = NEXT_FOLDER_ASKED;
		if (ask(job) && report_wait(job))
			return false;
	}
	if (*stage == NEXT_FOLDER_ASKED)
		look(job);
	*stage = NEXT_FOLDER_KNOWN;
	return true;
}
