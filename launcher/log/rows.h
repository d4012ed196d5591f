/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - how many rows of a terminal a line takes. Pure.
 *
 * Terminals do not agree about the width of every character, and a count that
 * is wrong by one row would later paint over somebody's line. So this counts
 * what all agree about, and says so where it does not know.
 */
#ifndef LAUNCHER_LOG_ROWS_H
#define LAUNCHER_LOG_ROWS_H

#include <stdint.h>

#include "base/buf.h"

/* rows_of() - of @line, which may hold SGR sequences, on a terminal of @cols
 * columns; 0: unknown. */
uint32_t rows_of(struct span line, uint32_t cols);

/* rows_clip() - bytes of @line whose characters are no more than @cols; the
 * wide ones may still take twice that. Sequences do not count. */
size_t rows_clip(struct span line, uint32_t cols);

#endif /* LAUNCHER_LOG_ROWS_H */
