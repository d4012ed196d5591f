/* SPDX-License-Identifier: Apache-2.0 */
/* proc.h - what the processes of proc.c run. */
#ifndef TESTS_PROG_PROC_H
#define TESTS_PROG_PROC_H

#include <xrun/proc.h>

struct proc_function {
	const char *name; /* NULL ends the table */
	xr_proc_fn *fn;
};

extern const struct proc_function proc_functions[];

/* What they see of the program's memory. */
extern int proc_shared;

/* proc_note_end() - a finaliser, which says what it is. */
void proc_note_end(void *ctx);

#endif /* TESTS_PROG_PROC_H */
