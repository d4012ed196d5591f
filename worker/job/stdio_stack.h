/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio_stack.h - the alternate signal stack of block mode (stdio_block.h).
 *
 * A signal that comes because the stack of a thread is full needs another stack.
 * The thread that begins block mode gets one, unless it has one. A process has one
 * such stack: the first thread that needs it keeps it until it ends.
 */
#ifndef WORKER_JOB_STDIO_STACK_H
#define WORKER_JOB_STDIO_STACK_H

#include <stdbool.h>

/* stdio_stack_give() - gives the stack to the calling thread if it is free. */
void stdio_stack_give(void);

/* stdio_stack_take() - takes it from the calling thread. A program that sets or
 * queries its alternate signal stack does not see that of the agent. */
void stdio_stack_take(void);

/* stdio_stack_thread_exists() - returns true if the kernel knows @thread of this
 * process. */
bool stdio_stack_thread_exists(long thread);

#endif /* WORKER_JOB_STDIO_STACK_H */
