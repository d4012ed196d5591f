/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_hook.h - a test decides on each system call of a set: it is done, fails, or
 * something else happens first, as another process would do it.
 *
 * sys_trap() adds a system call to the set. The filter is never removed, so that only
 * forked tests (forked.h) may call it. While sys_hook is NULL all calls are done. A hook
 * runs in a signal handler, in the thread that makes the call; the system calls that it
 * makes itself are done. Calls with six arguments lose the last one.
 */
#ifndef TESTS_UNIT_SYS_HOOK_H
#define TESTS_UNIT_SYS_HOOK_H

#include <ucontext.h>

#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"

/* As the sixth argument: the call is done. No caller has it there by chance. */
#define SYS_DONE 0x5eccca11u

/* Returns 0 to do the call, or a negative errno with which it fails. */
typedef long sys_hook_fn(int nr, const long arg[5]);
static sys_hook_fn *sys_hook;

static inline long
sys_do(int nr, const long arg[5])
{
	long got = syscall(nr, arg[0], arg[1], arg[2], arg[3], arg[4],
		(long)SYS_DONE);

	return got == -1 ? -errno : got;
}

static void
sys_on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	sys_hook_fn *hook = sys_hook;
	int sys = errno, nr = info->si_syscall;
	long got = 0;
#ifdef __x86_64__
	greg_t *r = u->uc_mcontext.gregs;
	const long arg[] = { r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10],
		r[REG_R8] };
	greg_t *result = &r[REG_RAX];
#else
	unsigned long long *r = u->uc_mcontext.regs;
	const long arg[] = { (long)r[0], (long)r[1], (long)r[2], (long)r[3],
		(long)r[4] };
	unsigned long long *result = &r[0];
#endif

	(void)sig;
	if (hook != NULL) {
		sys_hook = NULL;
		got = hook(nr, arg);
		sys_hook = hook;
	}
	*result = got != 0 ? got : sys_do(nr, arg);
	errno = sys;
}

static inline void
sys_trap(int nr)
{
	struct sock_filter filter[] = {
		SECCOMP_LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 3),
		SECCOMP_LOAD(args[5]), /* little-endian: the low half */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_DONE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sigaction action = { .sa_sigaction = sys_on_trap,
		.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART };

	NEED(sigaction(SIGSYS, &action, NULL) == 0);
	NEED(seccomp_install(filter, sizeof(filter) / sizeof(filter[0])) == 0);
}

/* --- one call of the set fails ---------------------------------------------- */

static struct {
	unsigned until; /* calls until that which fails; 0: it has failed */
	int sys;        /* its errno */
	int nr;         /* the call that has failed; -1: none */
} sys_fail = { .nr = -1 };

static inline long
sys_fail_one(int nr, const long arg[5])
{
	(void)arg;
	if (sys_fail.until == 0 || --sys_fail.until > 0)
		return 0;
	sys_fail.nr = nr;
	return -sys_fail.sys;
}

/* sys_fail_begin() - from now on the @n-th call of the set, from 1, fails with @sys. */
static inline void
sys_fail_begin(unsigned n, int sys)
{
	sys_fail.until = n;
	sys_fail.sys = sys;
	sys_fail.nr = -1;
	sys_hook = sys_fail_one;
}

/* sys_fail_end() - returns false if there were fewer calls. */
static inline bool
sys_fail_end(void)
{
	sys_hook = NULL;
	return sys_fail.nr != -1;
}

#endif /* TESTS_UNIT_SYS_HOOK_H */
