/* SPDX-License-Identifier: Apache-2.0 */
/* verb_args.h - the words behind a verb: options, wherever they stand, and
 * operands. */
#ifndef LAUNCHER_CMD_VERB_ARGS_H
#define LAUNCHER_CMD_VERB_ARGS_H

#include "base/opt.h"

#define VERB_OPERANDS 4096

/* Of each row of a verb: it stands in no file and in no variable. */
#define VERB_ROW .common = true, .no_variable = true, .no_file = true

struct verb_args {
	struct opts opts; /* opt_fini() is the caller's */
	const char *operand[VERB_OPERANDS];
	int count;
};

/*
 * verb_args_read() - every word of @argv behind the verb itself.
 *
 * @table, @base: the verb's options and their settings; defaults are put
 * @most: operands it takes at most
 * Returns false, and the words are said, if one is wrong
 */
bool verb_args_read(struct verb_args *args, const struct opt *table, void *base,
	int most, char **argv);

#endif /* LAUNCHER_CMD_VERB_ARGS_H */
