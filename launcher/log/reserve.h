/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.h - free space that output files leave on their file system.
 *
 * Output files grow only while the file system has more space for unprivileged
 * users than --log-reserve. The blocks reserved for root are never used.
 *
 * statvfs(2) is called once for each credit. A credit is at most a quarter of
 * the space above the reserve, at most RESERVE_CREDIT bytes, and lasts for at
 * most a second. So the cost does not depend on the number of writes.
 */
#ifndef LAUNCHER_LOG_RESERVE_H
#define LAUNCHER_LOG_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

#define RESERVE_AUTO   UINT64_MAX /* 5 % of the file system, or RESERVE_MOST */
#define RESERVE_MOST   (2ULL << 30)  /* bytes */
#define RESERVE_CREDIT (64ULL << 20) /* bytes */
#define RESERVE_NS     1000000000LL  /* life of a credit */

struct reserve {
	uint64_t size;   /* bytes to leave free, or RESERVE_AUTO */
	uint64_t credit; /* bytes that may be written without another check */
	int64_t since;   /* ns; first use of the credit; 0: none */
};

/* reserve_parse() - "2G"; RESERVE_AUTO for NULL. Returns false if @text is not
 * a size. */
bool reserve_parse(const char *text, uint64_t *size);

/* reserve_size() - bytes that @size leaves free on the file system of @dir; 0
 * if the file system does not report its size. */
uint64_t reserve_size(int dir, uint64_t size);

/* reserve_above() - bytes that may be written to the file system of @dir before
 * it reaches the reserve. UINT64_MAX if it does not report its free space. */
uint64_t reserve_above(int dir, uint64_t size);

/* reserve_room() - bytes that may be written now; 0: the reserve is reached. */
uint64_t reserve_room(struct reserve *reserve, int dir);

/* reserve_spend() - @bytes were written at @now, in ns of one clock. */
void reserve_spend(struct reserve *reserve, uint64_t bytes, int64_t now);

#endif /* LAUNCHER_LOG_RESERVE_H */
