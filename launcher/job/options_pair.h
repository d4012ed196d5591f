/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_pair.h - options that cannot be had together: one of two does nothing
 * then, which is said, or nobody knows which is meant, which is refused.
 *
 * Nothing is said of what a stronger source takes back: XRUN_LOG_DIR in
 * somebody's profile and --no-logs on the command line is how it should be.
 * The other way round it is not: what was said on the command line does nothing
 * because of a variable that nobody thinks of.
 */
#ifndef LAUNCHER_JOB_OPTIONS_PAIR_H
#define LAUNCHER_JOB_OPTIONS_PAIR_H

#include "launcher/job/options.h"

/*
 * options_pairs() - look at all pairs.
 *
 * Of --quiet and --verbose the stronger counts: the other one is taken back in
 * @opt. What does nothing has a line in found->warnings.
 *
 * Returns  XR_OK; XR_E_INVAL with the words in @err
 */
enum xr_status options_pairs(struct run_options *opt,
	struct options_found *found, struct xr_error *err);

#endif /* LAUNCHER_JOB_OPTIONS_PAIR_H */
