/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp.h - system calls that fail, in this process and its children, as in
 * a sandbox. For forked tests only, as no filter can be removed.
 */
#ifndef TESTS_UNIT_SECCOMP_H
#define TESTS_UNIT_SECCOMP_H

#include <stddef.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define SECCOMP_LOAD(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

static inline int
seccomp_install(struct sock_filter *filter, unsigned short len)
{
	const struct sock_fprog prog = { .len = len, .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static inline int
seccomp_answer(int nr, unsigned answer)
{
	struct sock_filter filter[] = {
		SECCOMP_LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return seccomp_install(filter, sizeof(filter) / sizeof(filter[0]));
}

/* seccomp_refuse() - the system call @nr fails with @sys. */
static inline int
seccomp_refuse(int nr, int sys)
{
	return seccomp_answer(nr, SECCOMP_RET_ERRNO | (unsigned)sys);
}

/* seccomp_kill() - the system call @nr ends its process, with SIGSYS. */
static inline int
seccomp_kill(int nr)
{
	return seccomp_answer(nr, SECCOMP_RET_KILL_PROCESS);
}

/* seccomp_refuse_where() - only if @flag, of the low half of argument @arg, is set. */
static inline int
seccomp_refuse_where(int nr, unsigned arg, unsigned flag, int sys)
{
	struct sock_filter filter[] = {
		SECCOMP_LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 3),
		SECCOMP_LOAD(args[arg]), /* little-endian */
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flag, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)sys),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
		"the low half of args[arg] comes first");
	return seccomp_install(filter, sizeof(filter) / sizeof(filter[0]));
}

/* seccomp_refuse_flag() - the same of the first argument. */
static inline int
seccomp_refuse_flag(int nr, unsigned flag, int sys)
{
	return seccomp_refuse_where(nr, 0, flag, sys);
}

/* seccomp_refuse_shared_maps() - mmap(2) of shared memory fails with @sys; that of memory
 * which an allocator needs succeeds. */
static inline int
seccomp_refuse_shared_maps(int sys)
{
	return seccomp_refuse_where(SYS_mmap, 3, MAP_SHARED, sys);
}

#endif /* TESTS_UNIT_SECCOMP_H */
