/* SPDX-License-Identifier: Apache-2.0 */
/* team_inner.h - a group, for team.c and team_fail.c. */
#ifndef WORKER_COLL_TEAM_INNER_H
#define WORKER_COLL_TEAM_INNER_H

#include <stdbool.h>

#include <xrun/error.h>

struct op_reach;
struct xr_coll;

/* team_fail_what_needs() - it has failed, as @why says, and so does what needs who is at
 * @reach. The others are told first, if @tell: the program may end when it hears of it.
 * What the first failure left to go on a second may not. */
void team_fail_what_needs(struct xr_coll *team, const struct xr_error *why,
	const struct op_reach *reach, bool tell);

#endif /* WORKER_COLL_TEAM_INNER_H */
