/* SPDX-License-Identifier: Apache-2.0 */
/* core.h - where the kernel put a core file, by core(5). */
#ifndef PROC_CORE_H
#define PROC_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

/* Of one process that dumped core. */
struct core {
	pid_t pid;
	int sig;
	const char *program; /* its file, for %e */
	const char *dir;     /* where it ran; NULL: where we are */
	int64_t since;       /* clock_wall() before its death */
};

enum core_kind {
	CORE_UNKNOWN, /* written, nobody knows where */
	CORE_FILE,    /* the name of a file that is there */
	CORE_PIPED,   /* the name of the program that was given it */
};

/*
 * core_expand() - the file name that @pattern makes for @c. Pure but for %h, %u
 * and %g, which are ours.
 *
 * @add_pid: kernel.core_uses_pid
 * Returns false where the pattern asks for what is not known (%t, %c, %d, ...)
 * or @out is too small
 */
bool core_expand(const char *pattern, bool add_pid, const struct core *c,
	char *out, size_t cap);

/* core_find() - reads kernel.core_pattern; a relative one is taken from
 * @c->dir. A file counts if it is younger than @c->since. */
enum core_kind core_find(const struct core *c, char *out, size_t cap);

#endif /* PROC_CORE_H */
