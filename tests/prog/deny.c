/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deny.c - run a command in a sandbox that refuses some system calls, as
 * container engines of some years ago do.
 *
 *   deny CALL=ERROR... -- COMMAND [ARG]...
 *
 * CALL is vfork (clone with CLONE_VFORK, nothing else), thread (clone with
 * CLONE_THREAD; libc asks clone3 first), clone3, close_range,
 * pidfd_open, pidfd_send_signal, splice, memfd_create, waitid, ioctl, epoll_ctl,
 * epoll_wait, poll, sched_setaffinity or process_vm_readv; ERROR is EPERM, ENOSYS,
 * EINVAL or EAGAIN.
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/prog/prog.h"

#define CODE_MAX 64

static const struct call {
	const char *name;
	long number;
	unsigned flags; /* of the first argument; 0: whatever it is */
} calls[] = {
	{ "vfork", SYS_clone, CLONE_VFORK },
	{ "thread", SYS_clone, CLONE_THREAD },
	{ "clone3", SYS_clone3, 0 },
	{ "close_range", SYS_close_range, 0 },
	{ "pidfd_open", SYS_pidfd_open, 0 },
	{ "pidfd_send_signal", SYS_pidfd_send_signal, 0 },
	{ "splice", SYS_splice, 0 },
	{ "memfd_create", SYS_memfd_create, 0 },
	{ "waitid", SYS_waitid, 0 },
	{ "ioctl", SYS_ioctl, 0 },
	{ "epoll_ctl", SYS_epoll_ctl, 0 },
#ifdef SYS_poll
	{ "poll", SYS_poll, 0 },
	{ "epoll_wait", SYS_epoll_wait, 0 },
#else
	{ "poll", SYS_ppoll, 0 },
	{ "epoll_wait", SYS_epoll_pwait, 0 },
#endif
	{ "sched_setaffinity", SYS_sched_setaffinity, 0 },
	{ "process_vm_readv", SYS_process_vm_readv, 0 },
};

static const struct error {
	const char *name;
	int number;
} errors[] = {
	{ "EPERM", EPERM },
	{ "ENOSYS", ENOSYS },
	{ "EINVAL", EINVAL },
	{ "EAGAIN", EAGAIN },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct sock_filter code[CODE_MAX];
static unsigned short used;

static void
add(struct sock_filter one)
{
	if (used == CODE_MAX)
		prog_die(0, "too many calls");
	code[used++] = one;
}

static const struct call *
find_call(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT(calls); i++)
		if (strlen(calls[i].name) == len &&
			memcmp(calls[i].name, name, len) == 0)
			return &calls[i];
	prog_die(0, "unknown call %.*s", (int)len, name);
}

static int
find_error(const char *name)
{
	for (size_t i = 0; i < COUNT(errors); i++)
		if (strcmp(errors[i].name, name) == 0)
			return errors[i].number;
	prog_die(0, "unknown error %s", name);
}

/* Little-endian: the lower half of an argument comes first. */
static void
deny(const struct call *call, int error)
{
	unsigned char past = call->flags != 0 ? 3 : 1;

	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		offsetof(struct seccomp_data, nr)));
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
		(unsigned)call->number, 0, past));
	if (call->flags != 0) {
		add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			offsetof(struct seccomp_data, args[0])));
		add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
			call->flags, 0, 1));
	}
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
		SECCOMP_RET_ERRNO | (unsigned)error));
}

int
main(int argc, char **argv)
{
	struct sock_fprog filter = { .filter = code };
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *equals = strchr(argv[i], '=');

		if (equals == NULL)
			prog_die(0, "'%s' is not CALL=ERROR", argv[i]);
		deny(find_call(argv[i], (size_t)(equals - argv[i])),
			find_error(equals + 1));
	}
	if (i + 1 >= argc)
		prog_die(0, "which command?");
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	filter.len = used;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == -1)
		prog_die(errno, "seccomp");
	execvp(argv[i + 1], argv + i + 1);
	prog_die(errno, "%s", argv[i + 1]);
}
