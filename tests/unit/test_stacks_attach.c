/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_attach.c - why a process may not be looked at (launcher/stacks/attach.c). */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "launcher/stacks/attach.h"
#include "tests/unit/folder.h"
#include "tests/unit/sys_hook.h"

TestSuite(stacks_attach, .init = folder_make, .fini = folder_remove);

static int refused; /* errno with which the memory cannot be opened */

/* Files of the test stand for those of the kernel. */
static long
proc_file(int nr, const long arg[5])
{
	const char *path = (const char *)arg[1];
	const char *name = strrchr(path, '/');

	if (strncmp(path, "/proc/", 6) != 0 || name == NULL)
		return 0;
	if (strcmp(name, "/mem") == 0)
		return -refused;
	return sys_do(nr,
		(long[]){ AT_FDCWD, (long)(name + 1), O_RDONLY | O_CLOEXEC, 0,
			0 });
}

static void
expect_why(const char *want)
{
	struct process p = { .pid = getpid() };
	int fds = folder_entries("/proc/self/fd");
	bool allowed;

	sys_hook = proc_file;
	allowed = attach_allowed(&p);
	sys_hook = NULL;
	EXPECT_EQ(allowed, want[0] == '\0');
	EXPECT_STR(p.why, want);
	EXPECT_EQ(folder_entries("/proc/self/fd"), fds);
}

static void
write_status(long tracer, unsigned uid)
{
	char text[128];

	snprintf(text, sizeof(text),
		"Name:\tx\nTracerPid:\t%ld\nUid:\t%u\t7\t7\t7\n", tracer, uid);
	folder_write("status", text, 0600);
}

FORKED_TEST(stacks_attach, who_is_refused_is_told_why)
{
	sys_trap(SYS_openat);
	write_status(0, geteuid());
	expect_why("");
	refused = ENOENT;
	expect_why("it has ended");
	refused = ESRCH;
	expect_why("it has ended");
	refused = EACCES;
	expect_why("it cannot be traced (Permission denied)");
	folder_write("ptrace_scope", "0\n", 0600);
	expect_why("it cannot be traced (Permission denied)");
	folder_write("ptrace_scope", "1\n", 0600);
	expect_why("/proc/sys/kernel/yama/ptrace_scope is 1: root may look");
	folder_write("ptrace_scope", "2\n", 0600);
	expect_why("/proc/sys/kernel/yama/ptrace_scope is 2: root may look");
	write_status(0, geteuid() + 1);
	if (geteuid() == 0)
		expect_why("it is another user's (uid 1): root may look");
	write_status(0, 0);
	if (geteuid() != 0)
		expect_why("it is another user's (uid 0): root may look");
	NEED(unlink("status") == 0);
	expect_why("/proc/sys/kernel/yama/ptrace_scope is 2: root may look");
}

FORKED_TEST(stacks_attach, who_traces_it_is_named)
{
	sys_trap(SYS_openat);
	write_status(1, geteuid());
	expect_why("a debugger traces it");
	folder_write("comm", "gdb\n", 0600);
	expect_why("gdb traces it");
}
