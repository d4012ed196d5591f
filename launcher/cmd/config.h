/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - xrun config: settings, and the files they stand in.
 *
 *   show [--origin] [--json] [OPTION...]  what a job would be run with, and why
 *   check FILE...                         what is wrong in files
 *   schema                                JSON Schema of a file
 */
#ifndef LAUNCHER_CMD_CONFIG_H
#define LAUNCHER_CMD_CONFIG_H

int cmd_config(int argc, char **argv);

#endif /* LAUNCHER_CMD_CONFIG_H */
