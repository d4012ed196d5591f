/* SPDX-License-Identifier: Apache-2.0 */
/* detach.h - the xrun that a person called with -d; sup/detach.h says the rest. */
#ifndef LAUNCHER_CMD_DETACH_H
#define LAUNCHER_CMD_DETACH_H

#include <stdbool.h>

#include "launcher/job/options.h"

struct detach;

/*
 * detach_call() - let a child run the job, wait until it runs, say so.
 *
 * Returns true in the caller, with xrun's exit status in @exit_status. False in
 * the child, with @detach: it has standard error and no other descriptor, no
 * terminal, and goes on as xrun does without -d.
 */
bool detach_call(const struct run_options *opt, struct detach **detach,
	int *exit_status);

#endif /* LAUNCHER_CMD_DETACH_H */
