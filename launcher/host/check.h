/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - whether descriptors, processes and memory suffice for a number of ranks.
 * Called before the first rank exists.
 */
#ifndef LAUNCHER_HOST_CHECK_H
#define LAUNCHER_HOST_CHECK_H

#include <stdbool.h>

#include "proc/limit.h"
#include "xrun/error.h"

#define CHECK_FDS_A_RANK   3  /* pidfd and the read ends of two pipes */
#define CHECK_FILES_A_RANK 2  /* raw files, kept open where that many fit */
#define CHECK_FDS_OWN      48 /* xrun's own, and a few raw files at a time */

/* How many ranks would fit, by each limit alone. */
struct check_room {
	uint64_t by_files, by_processes, by_memory;
};

/* check_room() - Pure. */
struct check_room check_room(const struct limits *limits);

/*
 * check_limits() - XR_OK, or XR_E_RANGE: "N ranks need D descriptors; this
 * shell allows ...", with a number that would do behind a tab. Pure.
 */
enum xr_status check_limits(const struct limits *limits, uint32_t ranks,
	struct xr_error *err);

/* check_files() - descriptors that so many ranks want, raw files aside: for
 * limit_count(). Pure. */
uint64_t check_files(uint32_t ranks);

/* check_spare() - returns true if one more descriptor for each rank fits. Pure. */
bool check_spare(const struct limits *limits, uint32_t ranks);

/* check_files_max() - raw files that may stay open beside all ranks; @spare:
 * each has one descriptor more. Pure. */
uint32_t check_files_max(const struct limits *limits, uint32_t ranks,
	bool spare);

/* check_table() - descriptors that xrun may come to hold at once, at most: for
 * fd_reserve(). Pure. */
uint32_t check_table(const struct limits *limits, uint32_t ranks);

#endif /* LAUNCHER_HOST_CHECK_H */
