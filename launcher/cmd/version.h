/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - xrun version: which xrun this is, and made with what. */
#ifndef LAUNCHER_CMD_VERSION_H
#define LAUNCHER_CMD_VERSION_H

/* cmd_version() - prints the version; argv[1] may be --json. Returns the exit
 * status. */
int cmd_version(int argc, char **argv);

#endif /* LAUNCHER_CMD_VERSION_H */
