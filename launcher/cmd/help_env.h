/* SPDX-License-Identifier: Apache-2.0 */
/* help_env.h - xrun help environ: every variable that a table knows of. */
#ifndef LAUNCHER_CMD_HELP_ENV_H
#define LAUNCHER_CMD_HELP_ENV_H

struct buf;

/* help_environ() - what ranks are told, by profile; what they are not told;
 * and the variables of options. */
void help_environ(struct buf *out);

/* help_environ_man() - the same as sections of xrun-environ(7). */
void help_environ_man(struct buf *out);

#endif /* LAUNCHER_CMD_HELP_ENV_H */
