/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name.h - names of functions as a person knows them, the same by every tool
 * and in every process: without versions (pthread_join@GLIBC_2.34), what the
 * compiler made of it (.isra.0, .constprop.1), and the prefixes by which the C
 * library calls its own.
 */
#ifndef LAUNCHER_STACKS_NAME_H
#define LAUNCHER_STACKS_NAME_H

#include <stdbool.h>

#include "base/span.h"

/* name_function() - what the caller frees; "" for "??". */
char *name_function(struct span text);

/* name_file() - "/usr/lib/libc.so.6", "./nptl/wait.c": without the folder, and
 * what makes it another one for each process. The caller frees. */
char *name_file(struct span text);

/* name_is_start() - does every stack begin so: _start, start_thread? */
bool name_is_start(const char *function);

/* name_is_wait() - is it what others wait by: futex_wait? Who waits is meant. */
bool name_is_wait(const char *function);

/* name_is_python() - is it the interpreter, beside what was interpreted? */
bool name_is_python(const char *function);

#endif /* LAUNCHER_STACKS_NAME_H */
