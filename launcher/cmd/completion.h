/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completion.h - xrun completion bash|zsh|fish: what each shell sources.
 *
 * Options and their values come from the rows, verbs and what may stand behind
 * them from the table of verbs; the program and its own words are completed as
 * the shell would without xrun.
 */
#ifndef LAUNCHER_CMD_COMPLETION_H
#define LAUNCHER_CMD_COMPLETION_H

struct buf;

int cmd_completion(int argc, char **argv);

void completion_bash(struct buf *out);
void completion_zsh(struct buf *out);
void completion_fish(struct buf *out);

/* completion_script.c */
extern const char completion_bash_script[];
extern const char completion_zsh_script[];
extern const char completion_fish_script[];

#endif /* LAUNCHER_CMD_COMPLETION_H */
