/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio_block.h - stdout by line while lines are rare, by block while they are
 * frequent.
 *
 * One write(2) for each line makes a program that prints millions of lines more
 * than ten times slower. So the agent counts calls that print. If
 * STDIO_BLOCK_CALLS come within STDIO_BLOCK_NS, it starts a thread and lets
 * stdout collect a block. Every STDIO_BLOCK_TICK_NS this thread writes the
 * lines of the block. When lines are rare again it switches stdout back to
 * lines and ends. A program that prints little never has this thread.
 *
 * Before anything that could show the difference, block mode ends: before fork
 * and exec, the start of another program, the end of the process, a change of
 * descriptor 1, of stdout or of a signal's action, and before write(1). While it
 * lasts, the agent handles those signals that would end the process; each handler
 * lets the thread write the lines and then lets the signal end the process.
 * Lines are lost if SIGKILL of another process ends one in block mode: those of
 * the last 20 ms.
 *
 * Only whole lines are written early, so a child has the same unfinished line in
 * its copy of the buffer as in line mode.
 *
 * If a program can change stdout without its lock, block mode never begins:
 * programs that import __overflow() (putc_unlocked() is expanded by the compiler),
 * and streams after __fsetlocking(). Nor does it after the program has confined
 * itself by seccomp(2): the kernel might end it for a system call of the agent.
 *
 * The thread alone changes stdout, with the lock of stdout held. All others ask it
 * and wait, so the agent never enters stdio in a signal handler.
 */
#ifndef WORKER_JOB_STDIO_BLOCK_H
#define WORKER_JOB_STDIO_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define STDIO_BLOCK_CALLS   128
#define STDIO_BLOCK_NS      100000000LL
#define STDIO_BLOCK_TICK_NS 15000000LL

/* stdio_block_allow() - stdout is xrun's pipe, @ino on @dev, and is written by
 * line: from now on calls are counted. */
void stdio_block_allow(uint64_t dev, uint64_t ino);

/* stdio_block_check() - as many calls were counted. Begins block mode if they came
 * fast. @is_stdout: whether the last of them wrote to stdout */
void stdio_block_check(bool is_stdout);

/* stdio_block_end() - ends block mode. Afterwards all whole lines are written,
 * unless the calling thread, in a signal handler, interrupted its own use of
 * stdout. */
void stdio_block_end(void);

/* stdio_block_end_thread() - the same, and returns when the thread exists no
 * longer: some system calls fail in a process of several threads. */
void stdio_block_end_thread(void);

/* stdio_block_forbid() - the same, and block mode never begins again. */
void stdio_block_forbid(void);

#endif /* WORKER_JOB_STDIO_BLOCK_H */
