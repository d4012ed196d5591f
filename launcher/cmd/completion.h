/* SPDX-License-Identifier: Apache-2.0 */
/* completion.h - xrun completion bash: the script that a shell sources. */
#ifndef LAUNCHER_CMD_COMPLETION_H
#define LAUNCHER_CMD_COMPLETION_H

struct buf;

int cmd_completion(int argc, char **argv);

/* completion_bash() - the script: options, their values, verbs, and then what
 * the program itself would be completed with. */
void completion_bash(struct buf *out);

#endif /* LAUNCHER_CMD_COMPLETION_H */
