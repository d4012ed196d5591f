/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_threads_proc.c - threads as files of /proc tell of them, which the test makes up. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/stacks/threads.h"
#include "proc/descend.h"

/* Files of thread 12 of process 10, and what the descriptor 255 is. */
static struct {
	const char *stat, *syscall, *wchan, *stack, *fd;
} file;

static struct stacks s;
static struct process *p;
static struct thread *t;

size_t __wrap_fd_read_small(const char *path, char *out, size_t cap);
ssize_t __wrap_readlink(const char *path, char *out, size_t cap);
void __wrap_proc_each_thread(pid_t pid, proc_each_fn *fn, void *ctx);

size_t
__wrap_fd_read_small(const char *path, char *out, size_t cap)
{
	static const char folder[] = "/proc/10/task/12/";
	const char *name = path + sizeof(folder) - 1, *text = NULL;

	cr_assert_eq(strncmp(path, folder, sizeof(folder) - 1), 0, "%s", path);
	if (strcmp(name, "stat") == 0)
		text = file.stat;
	else if (strcmp(name, "syscall") == 0)
		text = file.syscall;
	else if (strcmp(name, "wchan") == 0)
		text = file.wchan;
	else if (strcmp(name, "stack") == 0)
		text = file.stack;
	else
		cr_assert_fail("%s", path);
	snprintf(out, cap, "%s", text == NULL ? "" : text);
	return strlen(out);
}

ssize_t
__wrap_readlink(const char *path, char *out, size_t cap)
{
	size_t len = file.fd == NULL ? 0 : strlen(file.fd);

	cr_expect_eq(cap, PATH_MAX - 1);

	if (strcmp(path, "/proc/10/fd/255") != 0 || file.fd == NULL) {
		errno = ENOENT;
		return -1;
	}
	len = len < cap ? len : cap;
	memcpy(out, file.fd, len);
	return (ssize_t)len;
}

void
__wrap_proc_each_thread(pid_t pid, proc_each_fn *fn, void *ctx)
{
	cr_assert_eq(pid, 10);
	fn(12, ctx);
}

static void
begin(void)
{
	stacks_fini(&s);
	s = (struct stacks){ 0 };
	p = stacks_add_process(&s, 0, 10);
	file.stat = "12 (name) S 1 2";
	file.syscall = file.wchan = file.stack = file.fd = NULL;
}

static void
end(void)
{
	stacks_fini(&s);
}

TestSuite(stacks_threads_proc, .init = begin, .fini = end);

static void
look(void)
{
	threads_read(p);
	t = &p->thread[0];
}

/* --- name and state --------------------------------------------------------- */

static void
expect_stat(const char *stat, const char *name, char state)
{
	begin();
	file.stat = stat;
	look();
	cr_assert_eq(p->threads, 1);
	cr_expect_eq(t->tid, 12);
	cr_expect_str_eq(t->comm, name, "'%s' of '%s'", t->comm, stat);
	cr_expect_eq(t->state, state, "'%c' of '%s'", t->state, stat);
}

Test(stacks_threads_proc, a_name_may_hold_anything)
{
	expect_stat("12 (name) S 1 2", "name", 'S');
	expect_stat("12 (a) b (c) R 1", "a) b (c", 'R');
	expect_stat("12 () Z", "", 'Z');
	expect_stat("12 (a\nb) D 1", "a?b", 'D');
	expect_stat("12 (0123456789abcdefg) S", "0123456789abcdef", 'S');
}

Test(stacks_threads_proc, of_what_is_no_stat_nothing_is_known)
{
	static const char *const none[] = { "", "12", "12 (name", "12 name) S",
		"12 (name)S" };

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		begin();
		file.wchan = "pipe_read";
		file.stat = none[i];
		look();
		cr_assert_eq(p->threads, 1);
		cr_expect_str_eq(t->comm, "", "%zu", i);
		cr_expect_str_eq(t->wchan, "", "%zu", i);
	}
}

Test(stacks_threads_proc, one_that_is_stopped_makes_its_process_so)
{
	look();
	cr_expect_not(p->stopped);
	file.stat = "12 (name) T 1";
	look();
	cr_expect(p->stopped);
	file.stat = "12 (name) t 1";
	look();
	cr_expect(p->stopped, "it was before");
}

/* --- where it sleeps --------------------------------------------------------- */

Test(stacks_threads_proc, where_it_sleeps)
{
	file.wchan = "pipe_read";
	look();
	cr_expect_str_eq(t->wchan, "pipe_read");
	file.wchan = "0";
	look();
	cr_expect_str_eq(t->wchan, "");
	file.wchan = "0x";
	look();
	cr_expect_str_eq(t->wchan, "0x");
	file.wchan = "pipe_read\n";
	look();
	cr_expect_str_eq(t->wchan, "pipe_read");
}

/* --- its system call ------------------------------------------------------------ */

static void
expect_call(long number, const char *args, const char *fd, const char *want)
{
	char text[200];

	begin();
	snprintf(text, sizeof(text), "%ld%s\n", number, args);
	file.syscall = text;
	file.fd = fd;
	look();
	cr_expect_str_eq(t->call, want, "'%s', not '%s'", t->call, want);
}

Test(stacks_threads_proc, calls_with_what_they_are_about)
{
	expect_call(SYS_read, " 0xff 0x1 0x2", "pipe:[12]", "read pipe");
	expect_call(SYS_read, " 0xff 0x1", "socket:[13]", "read socket");
	expect_call(SYS_read, " 0xff 0x1", "anon_inode:[eventpoll]",
		"read eventpoll");
	expect_call(SYS_read, " 0xff 0x1", "anon_inode:inotify",
		"read inotify");
	expect_call(SYS_read, " 0xff 0x1", "/data/x:y]", "read /data/x:y]");
	expect_call(SYS_read, " 0xff 0x1", "/a\nb", "read /a?b");
	expect_call(SYS_read, " 0xff 0x1", NULL, "read");
	expect_call(SYS_read, " 0xff 0x1", "", "read");
	expect_call(SYS_read, " 0xfe 0x1", "pipe:[12]", "read");
	expect_call(SYS_futex, " 0xff 0x1", "pipe:[12]", "futex");
	expect_call(9999, " 0xff 0x1", "pipe:[12]", "system call 9999");
	expect_call(-1, " 0xff 0x1", "pipe:[12]", "");
}

Test(stacks_threads_proc, a_call_is_cut_to_its_room)
{
	char path[300], want[sizeof(((struct thread *)0)->call)];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[299] = '\0';
	memset(want, 'x', sizeof(want));
	memcpy(want, "read /", 6);
	want[sizeof(want) - 1] = '\0';
	expect_call(SYS_read, " 0xff 0x1", path, want);
}

Test(stacks_threads_proc, one_that_runs_is_in_none)
{
	file.syscall = "running\n";
	look();
	cr_expect_str_eq(t->call, "");
}

/* --- in the kernel ------------------------------------------------------------------ */

Test(stacks_threads_proc, its_stack_in_the_kernel)
{
	file.stack = "[<0>] futex_wait+0x67/0x120\n[<0>] do_futex+0x1/0x2\n"
		     "nothing\n[<0>] no offset\n[<0>] last+0x1/0x2";
	look();
	cr_assert_eq(t->kernel.count, 3);
	cr_expect_str_eq(t->kernel.at[0].function, "futex_wait");
	cr_expect_str_eq(t->kernel.at[0].file, "");
	cr_expect_eq(t->kernel.at[0].line, 0);
	cr_expect_str_eq(t->kernel.at[1].function, "do_futex");
	cr_expect_str_eq(t->kernel.at[2].function, "last");
	begin();
	look();
	cr_expect_eq(t->kernel.count, 0);
}
