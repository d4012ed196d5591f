/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio_hook.h - functions of libc with something to do before them.
 *
 * The agent defines the functions of stdio_hook.def, so programs call these
 * instead of those of libc. A call costs two instructions and a jump more, unless there is
 * something to do: see stdio_block.h. Used on x86-64 only.
 *
 * The agent asks the dynamic loader for as few names as it can, since each one
 * costs every program that a rank starts. It finds all others by itself, when
 * they are first needed.
 */
#ifndef WORKER_JOB_STDIO_HOOK_H
#define WORKER_JOB_STDIO_HOOK_H

#include <stdbool.h>
#include <stdint.h>

#define HOOK_STDOUT (-1)

/* The environment of a program, if no argument is it: environ, and the arguments
 * of the program are a list; the same, and the environment follows the list. */
#define HOOK_ENVIRON  (-1)
#define HOOK_LIST     (-2)
#define HOOK_LIST_ENV (-3)

enum stdio_hook_kind {
	STDIO_HOOK_TEXT,
	STDIO_HOOK_CHAR,
	STDIO_HOOK_END,
	STDIO_HOOK_FD,
	STDIO_HOOK_STREAM,
	STDIO_HOOK_UNLOCKED,
	STDIO_HOOK_KILL,
	STDIO_HOOK_ALONE,
	STDIO_HOOK_STACK,
	STDIO_HOOK_PRCTL,
	STDIO_HOOK_CALL,
	STDIO_HOOK_EXEC,
};

/* Calls that may still write text before stdio_block_check() is called. Threads
 * decrement it without a lock: a lost decrement does no harm. */
extern int32_t stdio_hook_calls;

/* Nonzero while stdout is written in blocks. */
extern int32_t stdio_hook_armed;

/* The saved registers and the stack of a call. */
struct stdio_hook_frame {
	uint64_t args[6]; /* may be changed */
	uint64_t r10, rax, index, back;
	uint64_t more[]; /* further arguments */
};

/* stdio_hook_slow() - does what has to be done before function @index is called.
 * Returns the address of a function to jump to. Called by the entry points only. */
void *stdio_hook_slow(struct stdio_hook_frame *frame, uint32_t index);

/* stdio_hook_find() - the address of @name in the objects behind the agent, in
 * the order in which the loader searches them; NULL if there is none. Takes no
 * lock and sets no errno. */
void *stdio_hook_find(const char *name);

/* stdio_hook_find_file() - as stdio_hook_find(); @file receives the path of the object
 * that defines the function, and is valid only if there is one. */
void *stdio_hook_find_file(const char *name, const char **file);

/* stdio_hook_imports() - returns true if a loaded object uses the function @name of
 * another object, or if this is unknown. */
bool stdio_hook_imports(const char *name);

/* stdio_hook_path() - the file name of the agent itself; "" if unknown. */
const char *stdio_hook_path(void);

#endif /* WORKER_JOB_STDIO_HOOK_H */
