/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio_exec.h - keeps the agent from programs that cannot load it.
 *
 * The dynamic loader prints an error for each object of LD_PRELOAD that it
 * cannot load: after chroot(2), where the file does not exist, and for programs
 * of 32 bits. In these two cases the agent calls the function that starts the
 * program itself, with a copy of the environment in which LD_PRELOAD does not
 * name the agent. The environment of the caller does not change.
 */
#ifndef WORKER_JOB_STDIO_EXEC_H
#define WORKER_JOB_STDIO_EXEC_H

#include <stdbool.h>

/* How a function names its program. */
enum stdio_exec_way {
	STDIO_EXEC_PATH,  /* a path */
	STDIO_EXEC_NAME,  /* a path, or a name to look for in PATH */
	STDIO_EXEC_FD,    /* a descriptor */
	STDIO_EXEC_AT,    /* a folder and a path */
	STDIO_EXEC_SHELL, /* it is the shell */
};

struct stdio_hook_frame;

struct stdio_exec {
	int way;
	int env_at; /* the argument, or HOOK_ENVIRON, HOOK_LIST, HOOK_LIST_ENV */
	struct stdio_hook_frame *frame;
	void *map; /* of the copies; NULL: none */
	size_t size;
	char **env;
	char **argv; /* of a list */
};

/* stdio_exec_run() - returns false if the program can load the agent. Otherwise
 * calls @fn, the function that was called, or its equal that accepts an
 * environment. Returns true if this returns; the first argument of the call is
 * its result, and errno is set. May run in the child of vfork(2). */
bool stdio_exec_run(struct stdio_exec *exec, void *fn);

#endif /* WORKER_JOB_STDIO_EXEC_H */
