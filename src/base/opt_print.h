/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt_print.h - a table of settings as people and shells read it.
 *
 * Everything here comes from the rows and goes to a buf. The `text` of a row
 * is scdoc(5), of which only *bold* and _underlined_ are used; plain text is
 * the same without the marks, filled to 80 columns.
 */
#ifndef BASE_OPT_PRINT_H
#define BASE_OPT_PRINT_H

#include "base/opt.h"

/* opt_print_short() - one line for each row that is `common`. */
void opt_print_short(const struct opt *table, struct buf *out);

/* opt_print_all() - headings and, for each row, names, variable, paragraph. */
void opt_print_all(const struct opt *table, struct buf *out);

/* opt_print_row() - one row as opt_print_all() shows it. */
void opt_print_row(const struct opt *o, struct buf *out);

/* opt_print_man() - the same for the manual: scdoc, headings of level 2. */
void opt_print_man(const struct opt *table, struct buf *out);

/*
 * opt_print_bash() - shell functions for completion.
 *
 *   _xrun_words          prints all options; those with values end in '='
 *   _xrun_takes OPTION   true if the next word is OPTION's value
 *   _xrun_values OPTION  prints words for it, or @file, or @dir
 */
void opt_print_bash(const struct opt *table, struct buf *out);

/* opt_print_fill() - @text without marks, @indent blanks before each line. */
void opt_print_fill(const char *text, unsigned indent, struct buf *out);

#endif /* BASE_OPT_PRINT_H */
