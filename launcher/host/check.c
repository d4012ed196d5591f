/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - see check.h. */
#include <stdio.h>

#include "base/status.h"
#include "launcher/host/check.h"

#define MEMORY_A_RANK (64 * 1024) /* xrun's own share, not the program's */
#define PROCESSES_OWN 8
#define FILES_LEAST   2 /* of CHECK_FDS_OWN: what the other 46 leave */

/* Half of what would just fit, in one digit: others need some, too. */
static uint64_t
comfortable(uint64_t most)
{
	uint64_t unit = 1;

	for (most /= 2; most / unit >= 10; unit *= 10)
		continue;
	return most / unit * unit > 0 ? most / unit * unit : 1;
}

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* "31999 processes (ulimit -u)"; nothing where there is no limit. */
static void
put_processes(const struct limits *l, char *out, size_t cap)
{
	out[0] = '\0';
	if (l->processes != UINT64_MAX)
		snprintf(out, cap, ", and %llu processes (%s)",
			(unsigned long long)l->processes, l->processes_by);
}

/* "-n 10000 or less"; "-n 1" */
static const char *
fewer(uint64_t most, char *out, size_t cap)
{
	uint64_t ranks = comfortable(most);

	snprintf(out, cap, "-n %llu%s", (unsigned long long)ranks,
		ranks == 1 ? "" : " or less");
	return out;
}

/* Where not even one rank fits, a limit has to go up: which, and by how much.
 * xrun takes all that the hard one allows. */
static const char *
advice(const struct limits *l, uint64_t most, uint64_t fds, char *out,
	size_t cap)
{
	if (most > 0)
		return fewer(most, out, cap);
	if (l->files_max < fds)
		snprintf(out, cap,
			"ulimit -Hn %llu, by root or in limits.conf(5)",
			(unsigned long long)fds);
	else
		snprintf(out, cap, "a higher limit (%s)", l->processes_by);
	return out;
}

struct check_room
check_room(const struct limits *l)
{
	uint64_t own = CHECK_FDS_OWN + l->held;

	return (struct check_room){
		.by_files = l->files_max < own ?
			0 :
			(l->files_max - own) / CHECK_FDS_A_RANK,
		.by_processes = l->processes < PROCESSES_OWN ?
			0 :
			l->processes - PROCESSES_OWN,
		.by_memory = l->memory / MEMORY_A_RANK,
	};
}

enum xr_status
check_limits(const struct limits *l, uint32_t ranks, struct xr_error *err)
{
	const struct check_room room = check_room(l);
	uint64_t fds =
		(uint64_t)ranks * CHECK_FDS_A_RANK + CHECK_FDS_OWN + l->held;
	uint64_t most =
		least(least(room.by_files, room.by_processes), room.by_memory);
	char processes[96], less[64];

	put_processes(l, processes, sizeof(processes));
	if (ranks > room.by_files || ranks > room.by_processes)
		return fail(err, XR_E_RANGE,
			"%u %s %llu descriptors; this shell allows %llu%s\t%s",
			ranks, ranks == 1 ? "rank needs" : "ranks need",
			(unsigned long long)fds,
			(unsigned long long)l->files_max, processes,
			advice(l, most, fds, less, sizeof(less)));
	if (ranks > room.by_memory)
		return fail(err, XR_E_RANGE,
			"%u ranks need %llu MiB for xrun alone; %llu MiB are available\t%s",
			ranks, (unsigned long long)ranks * MEMORY_A_RANK >> 20,
			(unsigned long long)l->memory >> 20,
			fewer(most, less, sizeof(less)));
	return XR_OK;
}

uint64_t
check_files(uint32_t ranks)
{
	return (uint64_t)ranks * (CHECK_FDS_A_RANK + 1) + CHECK_FDS_OWN;
}

bool
check_spare(const struct limits *l, uint32_t ranks)
{
	return check_files(ranks) + l->held <= l->files_max;
}

uint32_t
check_files_max(const struct limits *l, uint32_t ranks, bool spare)
{
	uint64_t fds = (uint64_t)ranks * (CHECK_FDS_A_RANK + spare) +
		CHECK_FDS_OWN + l->held;

	return fds >= l->files_max ?
		FILES_LEAST :
		(uint32_t)least(l->files_max - fds + FILES_LEAST,
			UINT32_MAX / 2);
}

uint32_t
check_table(const struct limits *l, uint32_t ranks)
{
	uint64_t fds =
		(uint64_t)ranks * (CHECK_FDS_A_RANK + 1 + CHECK_FILES_A_RANK) +
		CHECK_FDS_OWN + l->held;

	return (uint32_t)least(least(fds, l->files_max), INT32_MAX);
}
