/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stamp.c - when did this rank begin to run?
 *
 * Adds one record {i64 rank, i64 CLOCK_MONOTONIC ns} to the file named as first
 * operand. One write on O_APPEND a rank: the records of any number of ranks
 * stand side by side, and their number is the number of ranks that ran.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/prog/prog.h"

int
main(int argc, char **argv)
{
	int64_t record[2] = { 0, clock_now() };
	int fd;

	if (argc < 2)
		prog_die(0, "which file?");
	record[0] = prog_rank();
	fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd == -1 || write(fd, record, sizeof(record)) != sizeof(record))
		prog_die(errno, "%s", argv[1]);
	return 0;
}
