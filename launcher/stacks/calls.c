/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - names of system calls that somebody may wait in; see threads.h. */
#include <stdlib.h>

#include <sys/syscall.h>

#include "launcher/stacks/parse.h"
#include "launcher/stacks/threads.h"

/* clang-format off */
#define ON_FILE true
#define CALL(name, file) { SYS_##name, #name, file }

static const struct {
	long number;
	const char *name;
	bool on_file;
} calls[] = {
	CALL(read, ON_FILE), CALL(write, ON_FILE), CALL(readv, ON_FILE),
	CALL(writev, ON_FILE), CALL(pread64, ON_FILE), CALL(pwrite64, ON_FILE),
	CALL(preadv, ON_FILE), CALL(pwritev, ON_FILE),
	CALL(recvfrom, ON_FILE), CALL(recvmsg, ON_FILE),
	CALL(recvmmsg, ON_FILE), CALL(sendto, ON_FILE), CALL(sendmsg, ON_FILE),
	CALL(sendmmsg, ON_FILE), CALL(accept, ON_FILE), CALL(accept4, ON_FILE),
	CALL(connect, ON_FILE), CALL(close, ON_FILE), CALL(ioctl, ON_FILE),
	CALL(flock, ON_FILE), CALL(fcntl, ON_FILE), CALL(fsync, ON_FILE),
	CALL(fdatasync, ON_FILE), CALL(ftruncate, ON_FILE),
	CALL(fallocate, ON_FILE), CALL(splice, ON_FILE), CALL(tee, ON_FILE),
	CALL(sendfile, ON_FILE), CALL(getdents64, ON_FILE),
	CALL(fstat, ON_FILE), CALL(lseek, ON_FILE),
	CALL(epoll_pwait, ON_FILE), CALL(pselect6, false), CALL(ppoll, false),
#ifdef SYS_epoll_wait
	CALL(epoll_wait, ON_FILE), CALL(select, false), CALL(poll, false),
	CALL(pause, false), CALL(open, false), CALL(stat, false),
	CALL(fork, false), CALL(vfork, false),
#endif
#ifdef SYS_epoll_pwait2
	CALL(epoll_pwait2, ON_FILE),
#endif
#ifdef SYS_io_uring_enter
	CALL(io_uring_enter, ON_FILE),
#endif
#ifdef SYS_newfstatat
	CALL(newfstatat, false),
#endif
#ifdef SYS_futex_waitv
	CALL(futex_waitv, false),
#endif
#ifdef SYS_clone3
	CALL(clone3, false),
#endif
	CALL(futex, false), CALL(nanosleep, false),
	CALL(clock_nanosleep, false), CALL(wait4, false), CALL(waitid, false),
	CALL(rt_sigsuspend, false), CALL(rt_sigtimedwait, false),
	CALL(sched_yield, false), CALL(openat, false), CALL(execve, false),
	CALL(clone, false), CALL(mmap, false), CALL(munmap, false),
	CALL(madvise, false), CALL(mprotect, false), CALL(msync, false),
	CALL(io_getevents, false), CALL(msgrcv, false), CALL(msgsnd, false),
	CALL(semop, false), CALL(semtimedop, false),
	CALL(mq_timedreceive, false), CALL(mq_timedsend, false),
	CALL(restart_syscall, false), CALL(exit, false),
	CALL(exit_group, false), CALL(process_vm_readv, false),
	CALL(unlinkat, false), CALL(renameat2, false), CALL(sync, false),
	CALL(statx, false), CALL(getrandom, false), CALL(tgkill, false),
};
/* clang-format on */

long
call_parse(struct span text, int64_t *first)
{
	int64_t number;
	char digits[32], *end;
	struct span hex;

	*first = -1;
	if (!parse_number(&text, &number) || number > INT32_MAX)
		return -1;
	if (!parse_skip(&text, " ") || !parse_split(&text, " ", &hex) ||
		hex.len >= sizeof(digits))
		return (long)number;
	for (size_t i = 0; i < hex.len; i++)
		digits[i] = hex.at[i];
	digits[hex.len] = '\0';
	*first = (int64_t)strtoull(digits, &end, 16);
	if (*end != '\0' || end == digits)
		*first = -1;
	return (long)number;
}

const char *
call_name(long number, bool *on_file)
{
	*on_file = false;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].number == number) {
			*on_file = calls[i].on_file;
			return calls[i].name;
		}
	return NULL;
}
