/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt_print.h - a table of settings as people read it; as shells do: opt_shell.h.
 *
 * Everything here comes from the rows and goes to a buf. The `text` of a row
 * is scdoc(5), of which only *bold* and _underlined_ are used; plain text is
 * the same without the marks, filled to 80 columns.
 */
#ifndef BASE_OPT_PRINT_H
#define BASE_OPT_PRINT_H

#include "base/opt.h"

struct json;

/* opt_print_short() - one line for each row that is `common`. */
void opt_print_short(const struct opt *table, struct buf *out);

/* opt_print_all() - headings and, for each row, names, variable, paragraph. */
void opt_print_all(const struct opt *table, struct buf *out);

/* opt_print_row() - one row as opt_print_all() shows it. */
void opt_print_row(const struct opt *o, struct buf *out);

/* opt_print_man() - the same for the manual: scdoc, headings of level 2. */
void opt_print_man(const struct opt *table, struct buf *out);

/* opt_print_keys() - one entry for each row that may stand in a file. */
void opt_print_keys(const struct opt *table, struct buf *out);

/* opt_print_keys_man() - the same for the manual. */
void opt_print_keys_man(const struct opt *table, struct buf *out);

/*
 * opt_print_schema() - the same as members of "properties" of a JSON Schema,
 * draft 2020-12. It asks for the plainest form: what passes it is of the right
 * kind, but a number as text passes opt_file() only.
 */
void opt_print_schema(const struct opt *table, struct json *j);

/* opt_print_value() - what @base says of a row, as a person would type it; the
 * items of a list a line each, "" if there is none. */
void opt_print_value(const struct opt *o, const void *base, struct buf *out);

/* opt_print_json() - the same as a JSON value called @key. */
void opt_print_json(const struct opt *o, const void *base, const char *key,
	struct json *j);

/* opt_print_fill() - @text without marks, @indent blanks before each line. */
void opt_print_fill(const char *text, unsigned indent, struct buf *out);

#endif /* BASE_OPT_PRINT_H */
