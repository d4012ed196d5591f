/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - what the kernel, and the sandbox around us, lets xrun do. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/close_range.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "launcher/doctor/facts.h"

#define CAP_PTRACE  19 /* CAP_SYS_PTRACE, see linux/capability.h */
#define STACK_BYTES (64 * 1024)

/* On a table of descriptors of its own by then, as a rank before its exec. */
static __attribute__((no_sanitize("address"))) int
newborn(void *arg)
{
	bool *close_range_works = arg;

	*close_range_works = close_range(~0u, ~0u, CLOSE_RANGE_UNSHARE) == 0;
	_exit(0);
}

/* The clone that ranks are made by, of a process that ends at once. */
static void
try_clone(struct kernel_facts *k)
{
	int flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_PIDFD;
	char *stack = malloc(STACK_BYTES);
	int pidfd = -1;
	pid_t pid;

	if (stack == NULL)
		return;
	pid = clone(newborn, stack + STACK_BYTES, flags | SIGCHLD,
		&k->close_range, &pidfd);
	k->clone = pid != -1;
	if (pid != -1)
		waitpid(pid, NULL, 0);
	fd_close(pidfd);
	free(stack);
}

static void
try_pidfd(struct kernel_facts *k)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	k->pidfd = fd != -1;
	k->pidfd_signal =
		fd != -1 && syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0;
	fd_close(fd);
}

static void
try_descriptors(struct kernel_facts *k)
{
	int fd = memfd_create("xrun-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	k->memfd = fd != -1 && fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL) == 0;
	fd_close(fd);
	fd = inotify_init1(IN_CLOEXEC);
	k->inotify = fd != -1;
	fd_close(fd);
}

static bool
has_capability(unsigned number)
{
	static const char name[] = "\nCapEff:";
	char text[4096];
	const char *at;

	fd_read_small("/proc/self/status", text, sizeof(text));
	at = strstr(text, name);
	return at != NULL &&
		(strtoull(at + sizeof(name) - 1, NULL, 16) >> number & 1) != 0;
}

static void
read_line(const char *path, char *out, size_t cap)
{
	fd_read_small(path, out, cap);
	out[strcspn(out, "\n")] = '\0';
}

void
facts_kernel(struct facts *f)
{
	struct kernel_facts *k = &f->kernel;
	struct utsname name;
	char text[32];

	if (uname(&name) == 0)
		snprintf(k->release, sizeof(k->release), "%s", name.release);
	try_pidfd(k);
	try_clone(k);
	try_descriptors(k);
	read_line("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text));
	k->yama = text[0] == '\0' ? -1 : (int)strtol(text, NULL, 10);
	k->traces = has_capability(CAP_PTRACE);
	read_line("/proc/sys/kernel/core_pattern", k->core_pattern,
		sizeof(k->core_pattern));
	read_line(
		"/sys/devices/system/clocksource/clocksource0/current_clocksource",
		k->clock, sizeof(k->clock));
}
