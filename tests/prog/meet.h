/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meet.h - ranks find each other through names in a folder.
 *
 * A rank listens and then shows its address as PATH.RANK by renaming, so a name
 * that is there can be connected to. Whoever waits for a name is woken by
 * inotify. Unix sockets by default, TCP on the loopback if asked.
 */
#ifndef TESTS_PROG_MEET_H
#define TESTS_PROG_MEET_H

#include <stdbool.h>
#include <stdint.h>

/* meet_listen() - a listening socket, shown as @path.@rank. */
int meet_listen(const char *path, int64_t rank, bool tcp);

/* meet_connect() - a connection to @path.@rank, waiting till it is shown. */
int meet_connect(const char *path, int64_t rank, bool tcp);

/* meet_accept() - the next one who connects. */
int meet_accept(int fd);

#endif /* TESTS_PROG_MEET_H */
