/* SPDX-License-Identifier: Apache-2.0 */
/* team_fail.c - how a group fails, and who hears of it; see team.h. */
#include <stdio.h>

#include "base/status.h"
#include "worker/coll/letter.h"
#include "worker/coll/mail.h"
#include "worker/coll/op.h"
#include "worker/coll/post.h"
#include "worker/coll/team.h"
#include "worker/coll/team_inner.h"

enum xr_status
team_failed(const struct xr_coll *team, struct xr_error *err)
{
	if (team->failed == XR_OK)
		return XR_OK;
	return fail(err, team->failed, "%s", team->why);
}

/* Is a message awaited here, or does one wait that is to be sent? */
static bool
has_posts(const struct xr_coll *team)
{
	bool any = !TAILQ_EMPTY(&team->awaited);

	for (uint32_t i = 0; i < team->count && !any; i++)
		any = !TAILQ_EMPTY(&team->account[i].waiting);
	return any;
}

/* What the lock is held for. Gives whether somebody here hears of it, so that others are
 * to know, and from what on. */
static bool
mark_failed(struct xr_coll *team, const struct xr_error *why,
	const struct op_reach *reach, uint32_t *seq)
{
	bool first, any;

	pthread_mutex_lock(&team->lock);
	first = team->failed == XR_OK;
	if (first) {
		snprintf(team->why, sizeof(team->why), "%s", why->text);
		team->failed = why->status;
		op_forget_early(team);
	}
	*seq = op_first_to_fail(team, reach, &any);
	any = any || (first && has_posts(team));
	team->untold = (team->untold || first) && !any;
	pthread_cond_broadcast(&team->changed);
	pthread_mutex_unlock(&team->lock);
	return any;
}

void
team_tell(struct xr_coll *team)
{
	bool untold;
	uint32_t seq;

	pthread_mutex_lock(&team->lock);
	untold = team->untold && team->failed != XR_E_CLOSED;
	team->untold = false;
	seq = team->next & 0xffffff;
	pthread_mutex_unlock(&team->lock);
	if (untold)
		mail_failed(team, seq);
}

void
team_fail_what_needs(struct xr_coll *team, const struct xr_error *why,
	const struct op_reach *reach, bool tell)
{
	uint32_t seq;

	if (mark_failed(team, why, reach, &seq) && tell)
		mail_failed(team, seq);
	pthread_mutex_lock(&team->lock);
	op_fail_all(team, reach);
	pthread_mutex_unlock(&team->lock);
	post_fail_all(team);
	letter_fail_all(team);
}

void
team_fail(struct xr_coll *team, enum xr_status status, const char *why,
	bool tell)
{
	const struct op_reach all = { .place = -1 };
	struct xr_error err = { 0 };

	fail(&err, status, "%s", why);
	team_fail_what_needs(team, &err, &all, tell);
}
