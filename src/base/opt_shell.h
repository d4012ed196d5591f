/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt_shell.h - a table of settings as shells complete it. Everything comes
 * from the rows and goes to a buf; what only looks at words is the caller's.
 */
#ifndef BASE_OPT_SHELL_H
#define BASE_OPT_SHELL_H

#include "base/opt.h"

/*
 * opt_shell_bash() - shell functions for completion.
 *
 *   _xrun_words          prints all options; those with values end in '='
 *   _xrun_part_words     prints those of one program of several
 *   _xrun_takes OPTION   true if the next word is OPTION's value
 *   _xrun_values OPTION  prints words for it, or @file, or @dir
 */
void opt_shell_bash(const struct opt *table, struct buf *out);

/* opt_shell_zsh() - the array _xrun_options, of specs for _arguments. @part:
 * only those of one program of several. */
void opt_shell_zsh(const struct opt *table, bool part, struct buf *out);

/*
 * opt_shell_fish() - a `complete` for each option, where __xrun_at_options
 * holds, or of options of the whole job __xrun_at_first_options; and
 * __xrun_takes, a list of the words whose next word is a value.
 */
void opt_shell_fish(const struct opt *table, struct buf *out);

/* opt_shell_words() - each way to write an option, a line each: for shells that
 * ask xrun itself. */
void opt_shell_words(const struct opt *table, struct buf *out);

/* opt_shell_values() - words for the value of the option written @word, a line
 * each; none where any may stand. False: @word is not one that is followed by its
 * value. */
bool opt_shell_values(const struct opt *table, const char *word,
	struct buf *out);

#endif /* BASE_OPT_SHELL_H */
