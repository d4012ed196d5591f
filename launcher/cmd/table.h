/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - rows of a table, for people: each is one line, and not wider than
 * the terminal, whatever words stand in it. */
#ifndef LAUNCHER_CMD_TABLE_H
#define LAUNCHER_CMD_TABLE_H

#include <stdint.h>

#include "base/buf.h"

/* table_columns() - of standard output's terminal; 0: it is none. */
uint32_t table_columns(void);

/* table_put_word() - a word that anybody chose: '?' for what would steer a
 * terminal, or end the line or column. */
void table_put_word(struct buf *out, const char *word);

/* table_end_row() - what @out holds from @at on is a row: it is cut to @cols
 * columns (0: not at all), and ended, without blanks. */
void table_end_row(struct buf *out, size_t at, uint32_t cols);

#endif /* LAUNCHER_CMD_TABLE_H */
