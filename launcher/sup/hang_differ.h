/* SPDX-License-Identifier: Apache-2.0 */
/* hang_differ.h - if all ranks hang, the few that are not where most ranks are. */
#ifndef LAUNCHER_SUP_HANG_DIFFER_H
#define LAUNCHER_SUP_HANG_DIFFER_H

#include <stdbool.h>

#include "launcher/job/job.h"

#define HANG_PLACE 64 /* bytes of a place in the kernel */

/* hang_differ_by_stacks() - marks the local ranks that @summary (stacks_fn) names as
 * different. Returns false if it names none; then @differs is all false. */
bool hang_differ_by_stacks(const struct job *job, const char *summary,
	bool *differs);

/* hang_differ_by_place() - marks the @count ranks that are not at the place in the kernel
 * where most are; "" is a rank that has ended. Returns false if no place has a majority,
 * or if all ranks are at one place; then @differs is all false. */
bool hang_differ_by_place(char (*place)[HANG_PLACE], uint32_t count,
	bool *differs);

#endif /* LAUNCHER_SUP_HANG_DIFFER_H */
