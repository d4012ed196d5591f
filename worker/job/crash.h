/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash.h - a fatal signal is told with its address and a backtrace.
 *
 * For SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT a handler is installed, which
 * writes what happened where, and then lets the signal do what it did before, from
 * where it came: exit status, core dump and a handler of the program stay as they
 * were. It is told in the error file of the rank, in the form of
 * torch.distributed.elastic, unless something stands there; where there is no such
 * file, on stderr.
 *
 * The handler allocates nothing, takes no lock of its own, and calls only what is
 * async-signal-safe, but for backtrace(3), which is called once before: then it
 * has what it needs. It runs on a stack of its own in the thread that installed it,
 * so that an overflow of the stack there can be told; in others it is not.
 *
 * Used by libxrun.so and by the agent of --stacks-on crash.
 */
#ifndef WORKER_JOB_CRASH_H
#define WORKER_JOB_CRASH_H

/*
 * crash_begin() - install the handlers, but where a signal is ignored.
 *
 * @error_file: its path, which is copied; NULL or "": stderr
 * Returns  0; else an errno, with nothing changed
 */
int crash_begin(const char *error_file);

#endif /* WORKER_JOB_CRASH_H */
