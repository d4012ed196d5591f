/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio_exec.h - keeps the agent from programs that cannot load it.
 *
 * The dynamic loader prints an error for each object of LD_PRELOAD that it
 * cannot load: after chroot(2), where the file does not exist, and for programs
 * of 32 bits. So the agent takes its own files out of LD_PRELOAD in these two
 * cases, before such a program starts.
 */
#ifndef WORKER_JOB_STDIO_EXEC_H
#define WORKER_JOB_STDIO_EXEC_H

struct stdio_exec {
	const char *file; /* a path, or a name to look for in PATH; or NULL */
	char **env;       /* NULL for environ; replaced if it has to change */
};

/* stdio_exec_prepare() - corrects the environment of a program that is about to
 * start. Calls system calls only; may run in the child of vfork(2). */
void stdio_exec_prepare(struct stdio_exec *exec);

#endif /* WORKER_JOB_STDIO_EXEC_H */
