/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio_call.h - system calls of the preloaded agent.
 *
 * On x86-64 the agent makes them itself: it stands before syscall(2), too, and
 * must not meet its own hook. Elsewhere it uses syscall(2) of libc, which may be
 * missing. All arguments that are not given are 0.
 */
#ifndef WORKER_JOB_STDIO_CALL_H
#define WORKER_JOB_STDIO_CALL_H

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include <sys/syscall.h>

struct stdio_call {
	long n, a, b, c, d, e, f;
};

/* stdio_call_do() - makes a system call. Returns its result, or -errno. Sets no
 * errno on x86-64. */
#if defined(__x86_64__) && defined(__LP64__)
static inline long
stdio_call_do(const struct stdio_call *s)
{
	register long r10 __asm__("r10") = s->d;
	register long r8 __asm__("r8") = s->e;
	register long r9 __asm__("r9") = s->f;
	long result;

	__asm__ volatile("syscall"
		: "=a"(result)
		: "a"(s->n), "D"(s->a), "S"(s->b), "d"(s->c), "r"(r10), "r"(r8),
		"r"(r9)
		: "rcx", "r11", "memory");
	return result;
}

static inline bool
stdio_call_is_here(void)
{
	return true;
}
#else
#pragma weak syscall

static inline long
stdio_call_do(const struct stdio_call *s)
{
	long result = syscall(s->n, s->a, s->b, s->c, s->d, s->e, s->f);

	return result == -1 ? -(long)errno : result;
}

static inline bool
stdio_call_is_here(void)
{
	return &syscall != NULL;
}
#endif

#define STDIO_CALL(...) STDIO_CALL_7(__VA_ARGS__, 0, 0, 0, 0, 0, 0, )
#define STDIO_CALL_7(n, a, b, c, d, e, f, ...) \
	stdio_call_do(&(const struct stdio_call){ (long)(n), (long)(a), \
		(long)(b), (long)(c), (long)(d), (long)(e), (long)(f) })

/* Returns NULL if mmap(2) failed. */
static inline void *
stdio_call_map(size_t size, int prot, int flags, int fd)
{
	long at = STDIO_CALL(SYS_mmap, 0, size, prot, flags, fd);

	return at < 0 && at > -4096 ? NULL : (void *)at;
}

#endif /* WORKER_JOB_STDIO_CALL_H */
