/* SPDX-License-Identifier: Apache-2.0 */
/* test_doctor_facts.c - what xrun doctor reads of a machine (launcher/doctor). */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>

#include <criterion/criterion.h>

#include "launcher/doctor/facts.h"
#include "place/port.h"
#include "proc/cgroup.h"
#include "tests/unit/folder.h"
#include "tests/unit/sys_hook.h"

static char path[PATH_MAX + 8]; /* of a folder below that of the test */

static void
set_folder(const char *variable, const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	setenv(variable, path, 1);
}

static void
prepare(void)
{
	folder_make();
	set_folder("XDG_STATE_HOME", "state");
	setenv("HOME", folder, 1);
	umask(0); /* the modes are ours, not the shell's */
}

TestSuite(doctor_facts, .init = prepare, .fini = folder_remove);

static struct facts f;

static void
read_folders(void)
{
	memset(&f, 0, sizeof(f));
	facts_folders(&f);
}

/* --- folders -------------------------------------------------------------------- */

Test(doctor_facts, a_state_folder_that_is_absent_will_be_made)
{
	read_folders();
	cr_expect_str_eq(f.state.path, "~/state/xrun");
	cr_expect(!f.state.exists && f.state.trusted && f.state.writable);
	cr_expect_lt(f.state.room, UINT64_MAX);
	/* Nothing of it is there but the root. */
	setenv("XDG_STATE_HOME", "/xrun-test-nowhere/state", 1);
	read_folders();
	cr_expect_str_eq(f.state.path, "/xrun-test-nowhere/state/xrun");
	cr_expect(!f.state.exists && f.state.trusted);
	cr_expect_eq(f.state.writable, access("/", W_OK) == 0);
	cr_expect_lt(f.state.room, UINT64_MAX);
}

Test(doctor_facts, a_state_folder_is_trusted_unless_others_may_write_it)
{
	cr_assert_eq(mkdir("state", 0700), 0);
	cr_assert_eq(mkdir("state/xrun", 0700), 0);
	read_folders();
	cr_expect(f.state.exists && f.state.trusted && f.state.writable);
	cr_assert_eq(chmod("state/xrun", 0702), 0);
	read_folders();
	cr_expect(f.state.exists && !f.state.trusted);
	cr_assert_eq(rmdir("state/xrun"), 0);
	folder_write("state/xrun", "", 0700);
	read_folders();
	cr_expect(f.state.exists && !f.state.trusted);
	cr_assert_eq(chmod("state/xrun", 0600), 0);
	read_folders();
	cr_expect(!f.state.writable);
}

static struct {
	struct statfs is; /* of all file systems */
	int sys;          /* with which its calls fail, or 0 */
	bool no_terminal;
} machine;

/* A call that returns 1 has not failed for glibc. */
static long
machine_call(int nr, const long arg[5])
{
	if (nr == SYS_openat)
		return machine.no_terminal &&
				strcmp((const char *)arg[1], "/dev/ptmx") == 0 ?
			-EIO :
			0;
	if (machine.sys != 0)
		return -machine.sys;
	memcpy((void *)arg[1], &machine.is, sizeof(machine.is));
	return 1;
}

static void
expect_kind(unsigned magic, const char *kind)
{
	machine.is.f_type = magic;
	sys_hook = machine_call;
	read_folders();
	sys_hook = NULL;
	EXPECT_STR(f.state.kind, kind);
}

FORKED_TEST(doctor_facts, file_systems_are_known_by_their_numbers)
{
	sys_trap(SYS_statfs);
	machine.is.f_bsize = machine.is.f_frsize = 4096;
	expect_kind(0xEF53, "ext4");
	expect_kind(0x58465342, "xfs");
	expect_kind(0x9123683E, "btrfs");
	expect_kind(0x2FC12FC1, "zfs");
	expect_kind(0xF2F52010, "f2fs");
	expect_kind(0x794C7630, "overlay");
	expect_kind(0x01021994, "tmpfs");
	expect_kind(0x858458F6, "ramfs");
	expect_kind(0x4D44, "vfat");
	expect_kind(0x6969, "nfs");
	expect_kind(0xFF534D42, "cifs");
	expect_kind(0xFE534D42, "smb2");
	expect_kind(0x00C36400, "ceph");
	expect_kind(0x0BD00BD0, "lustre");
	expect_kind(0x47504653, "gpfs");
	expect_kind(0x01021997, "9p");
	expect_kind(0x65735546, "fuse");
	expect_kind(0x12345678, "");
}

FORKED_TEST(doctor_facts, room_is_what_this_user_may_take)
{
	sys_trap(SYS_statfs);
	sys_trap(SYS_openat);
	machine.is = (struct statfs){ .f_bsize = 512,
		.f_frsize = 4096,
		.f_blocks = 100,
		.f_bfree = 30,
		.f_bavail = 20,
		.f_files = 1,
		.f_ffree = 7 };
	machine.no_terminal = true;
	expect_kind(0xEF53, "ext4");
	EXPECT_EQ(f.state.room, 20 * 4096);
	EXPECT_EQ(f.state.inodes, 7);
	EXPECT(!f.terminals);
	machine.is.f_files = 0; /* it does not count them */
	machine.no_terminal = false;
	expect_kind(0xEF53, "ext4");
	EXPECT(f.state.inodes == UINT64_MAX);
	EXPECT_EQ(f.terminals, access("/dev/ptmx", R_OK | W_OK) == 0);
	machine.sys = EIO;
	expect_kind(0xEF53, "");
	EXPECT(f.state.room == UINT64_MAX);
	EXPECT(f.state.inodes == UINT64_MAX);
}

Test(doctor_facts, the_runtime_folder_is_looked_for_and_not_made)
{
	set_folder("XDG_RUNTIME_DIR", "run");
	cr_assert_eq(mkdir("run", 0700), 0);
	read_folders();
	cr_expect(f.runtime_given && f.runtime);
	cr_expect_eq(f.runtime_sys, ENOENT);
	cr_expect_eq(f.runtime_kind, CTL_ROOT_RUNTIME);
	cr_expect_str_eq(f.runtime_at, "xrun in $XDG_RUNTIME_DIR");
	cr_expect_str_eq(f.runtime_trouble.text, "");
	cr_expect_eq(folder_entries("run"), 0);
	cr_assert_eq(mkdir("run/xrun", 0700), 0);
	read_folders();
	cr_expect(f.runtime);
	cr_expect_eq(f.runtime_sys, 0);
	unsetenv("XDG_RUNTIME_DIR");
	read_folders();
	cr_expect(!f.runtime_given);
	cr_expect_neq(f.runtime_kind, CTL_ROOT_RUNTIME);
}

Test(doctor_facts, no_descriptor_is_left_open)
{
	int fds;

	read_folders();
	fds = folder_entries("/proc/self/fd");
	read_folders();
	facts_kernel(&f);
	facts_programs(&f);
	cr_expect_eq(folder_entries("/proc/self/fd"), fds);
}

/* --- the kernel ----------------------------------------------------------------- */

static int missing; /* the system call that the kernel does not have */

static long
miss(int nr, const long arg[5])
{
	(void)arg;
	return nr == missing ? -ENOSYS : 0;
}

/* All but the system call @nr are there. */
static struct kernel_facts
kernel_without(int nr)
{
	missing = nr;
	sys_hook = miss;
	memset(&f, 0, sizeof(f));
	facts_kernel(&f);
	sys_hook = NULL;
	return f.kernel;
}

FORKED_TEST(doctor_facts, a_system_call_that_is_missing_is_found_out)
{
	struct kernel_facts k, all;

	facts_kernel(&f);
	all = f.kernel;
	EXPECT(all.pidfd && all.clone);
	sys_trap(SYS_pidfd_open);
	sys_trap(SYS_pidfd_send_signal);
	sys_trap(SYS_memfd_create);
	sys_trap(SYS_inotify_init1);
	k = kernel_without(-1);
	EXPECT(memcmp(&k, &all, sizeof(k)) == 0);
	k = kernel_without(SYS_pidfd_open);
	EXPECT(!k.pidfd && !k.pidfd_signal && k.clone && k.memfd == all.memfd);
	k = kernel_without(SYS_pidfd_send_signal);
	EXPECT(k.pidfd && !k.pidfd_signal);
	k = kernel_without(SYS_memfd_create);
	EXPECT(!k.memfd && k.inotify == all.inotify);
	k = kernel_without(SYS_inotify_init1);
	EXPECT(!k.inotify && k.memfd == all.memfd);
}

/* A trapped clone cannot be done: its child has no stack to return to. */
FORKED_TEST(doctor_facts, a_kernel_that_cannot_clone_as_spawn_does_is_found_out)
{
	struct kernel_facts k;

	facts_kernel(&f);
	EXPECT_EQ(f.kernel.close_range,
		close_range(~0u, ~0u, CLOSE_RANGE_UNSHARE) == 0);
	sys_trap(SYS_close_range);
	k = kernel_without(SYS_close_range);
	EXPECT(k.clone && !k.close_range);
	sys_trap(SYS_clone);
	k = kernel_without(SYS_clone);
	EXPECT(!k.clone && !k.close_range && k.pidfd);
}

static void
expect_line(const char *name, const char *got)
{
	char want[128] = "";
	FILE *file = fopen(name, "re");

	if (file != NULL && fgets(want, sizeof(want), file) != NULL)
		want[strcspn(want, "\n")] = '\0';
	if (file != NULL)
		fclose(file);
	EXPECT_STR(got, want);
}

FORKED_TEST(doctor_facts, what_the_kernel_says_of_itself_is_read)
{
	struct utsname name;
	char yama[16] = "";

	facts_kernel(&f);
	NEED(uname(&name) == 0);
	EXPECT_STR(f.kernel.release, name.release);
	expect_line("/proc/sys/kernel/core_pattern", f.kernel.core_pattern);
	expect_line(
		"/sys/devices/system/clocksource/clocksource0/current_clocksource",
		f.kernel.clock);
	if (f.kernel.yama != -1)
		snprintf(yama, sizeof(yama), "%d", f.kernel.yama);
	expect_line("/proc/sys/kernel/yama/ptrace_scope", yama);
}

/* Only the right @number is left. Returns false if this process does not have it. */
static bool
have_only(unsigned number)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[2];
	bool has;

	NEED(syscall(SYS_capget, &head, data) == 0);
	has = (data[0].permitted >> number & 1) != 0;
	data[0].effective = has ? 1u << number : 0;
	data[1].effective = 0;
	NEED(syscall(SYS_capset, &head, data) == 0);
	return has;
}

FORKED_TEST(doctor_facts, who_may_trace_has_the_right_to_it)
{
	bool has = have_only(CAP_SYS_PTRACE);

	facts_kernel(&f);
	EXPECT_EQ(f.kernel.traces, has);
	have_only(CAP_SYS_PTRACE - 1);
	facts_kernel(&f);
	EXPECT(!f.kernel.traces);
	have_only(CAP_SYS_PTRACE + 1);
	facts_kernel(&f);
	EXPECT(!f.kernel.traces);
}

/* --- programs and variables ------------------------------------------------------- */

static void
read_programs(const char *folders)
{
	setenv("PATH", folders, 1);
	memset(&f, 0, sizeof(f));
	facts_programs(&f);
}

Test(doctor_facts, the_first_xrun_in_PATH_is_told_and_the_first_other)
{
	const time_t before = time(NULL);
	char self[PATH_MAX] = "";
	struct stat is;

	cr_assert_gt(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
	cr_assert(stat(self, &is) == 0);
	cr_assert(mkdir("a", 0700) == 0 && mkdir("b", 0700) == 0);
	cr_assert(mkdir("c", 0700) == 0);
	cr_assert_eq(symlink(self, "a/xrun"), 0);
	folder_write("b/xrun", "", 0700);
	folder_write("b/gdb", "", 0700);
	folder_write("c/xrun", "", 0700);
	folder_write("c/py-spy", "", 0700);
	read_programs("a:a:b:c");
	cr_expect_str_eq(f.self, self);
	cr_expect_eq(f.built, is.st_mtime);
	cr_expect(f.now >= before && f.now <= time(NULL));
	cr_expect_str_eq(f.first, "a/xrun");
	cr_expect(f.first_is_self);
	cr_expect_str_eq(f.other, "b/xrun");
	cr_expect(f.gdb && f.py_spy && !f.eu_stack);
	read_programs("b:a");
	cr_expect_str_eq(f.first, "b/xrun");
	cr_expect(!f.first_is_self);
	cr_expect_str_eq(f.other, "");
	cr_expect(f.gdb && !f.py_spy);
	folder_write("a/eu-stack", "", 0700);
	read_programs("a");
	cr_expect(f.first_is_self && f.eu_stack && !f.gdb);
	cr_expect_str_eq(f.other, "");
	read_programs("none");
	cr_expect_str_eq(f.first, "");
}

static bool no_exe; /* there is no /proc/self/exe */

/* The path of this program is longer than any, or not known. */
static long
long_exe(int nr, const long arg[5])
{
	bool is_at = nr == SYS_readlinkat || nr == SYS_newfstatat;
	const long *a = is_at ? &arg[1] : arg;

	if (strcmp((const char *)a[0], "/proc/self/exe") != 0)
		return 0;
	if (no_exe)
		return -ENOENT;
	if (nr == SYS_newfstatat)
		return 0;
	memset((void *)a[1], '/', (size_t)a[2]);
	return a[2];
}

FORKED_TEST(doctor_facts, a_path_of_this_program_that_is_too_long_is_cut)
{
	setenv("PATH", "a", 1);
	NEED(mkdir("a", 0700) == 0);
	folder_write("a/xrun", "", 0700);
#ifdef SYS_readlink
	sys_trap(SYS_readlink);
#endif
	sys_trap(SYS_readlinkat);
	sys_trap(SYS_newfstatat);
	memset(f.self, 0xff, sizeof(f.self));
	sys_hook = long_exe;
	facts_programs(&f);
	EXPECT_EQ(strnlen(f.self, sizeof(f.self)), PATH_MAX - 1);
	EXPECT_EQ(f.self[PATH_MAX - 2], '/');
	EXPECT_STR(f.first, "a/xrun");
	EXPECT(!f.first_is_self);
	/* Without /proc nothing is known of it. */
	no_exe = true;
	memset(&f, 0, sizeof(f));
	f.self[0] = 'x';
	facts_programs(&f);
	sys_hook = NULL;
	EXPECT_STR(f.self, "");
	EXPECT_EQ(f.built, 0);
	EXPECT_STR(f.first, "a/xrun");
	EXPECT(!f.first_is_self);
}

/* Ports that are free for MASTER_PORT. */
static uint32_t
ports(void)
{
	static struct port_limits limits;
	uint32_t count = 0;

	port_limits_read(&limits);
	for (uint32_t port = 10240; port < 65536; port++) {
		if (port >= limits.low && port <= limits.high)
			continue;
		if ((limits.reserved[port >> 3] & 1u << (port & 7)) == 0)
			count++;
	}
	return count;
}

Test(doctor_facts, all_of_it_is_read)
{
	char *vars[] = { "PATH=/bin", "XRUN_GRACE=soon",
		"LD_PRELOAD=", "WORLD_SIZE=2", "RANKS=1", "RANK=0", NULL };
	char *no_vars[] = { "PATH=/bin", NULL };
	struct rlimit core;
	char *group = cgroup_path(0);
	uint64_t held;
	int fd;

	cr_assert_eq(getrlimit(RLIMIT_CORE, &core), 0);
	core.rlim_cur = core.rlim_max < 4096 ? core.rlim_max : 4096;
	cr_assert_eq(setrlimit(RLIMIT_CORE, &core), 0);
	setenv("LC_ALL", "C.UTF-8", 1);
	memset(&f, 0xff, sizeof(f));
	facts_read(&f, vars);
	cr_expect_eq(f.core.rlim_cur, core.rlim_cur);
	cr_expect_eq(f.core.rlim_max, core.rlim_max);
	cr_expect_eq(f.cgroup, group != NULL);
	free(group);
	cr_expect_str_eq(f.inherited, "RANK WORLD_SIZE LD_PRELOAD");
	cr_expect_eq(f.ports, ports());
	cr_expect_str_eq(f.locale, "C.UTF-8");
	cr_expect(f.utf8);
	cr_expect(f.kernel.pidfd && f.state.trusted && f.self[0] == '/');
	cr_expect(f.limits.files_max > 0 && f.processors > 0);
	cr_expect_eq(f.leaf, leaf_can());
	cr_expect_eq(f.settings_wrong, 1);
	cr_expect_str_eq(f.settings,
		"XRUN_GRACE: 'soon' is not a time such as 250ms, 30s, 10m or 1h30m");
	held = f.limits.held;
	cr_expect_lt(f.limits.memory, UINT64_MAX);
	facts_fini(&f);
	setenv("LC_ALL", "C", 1);
	fd = fcntl(0, F_DUPFD_CLOEXEC, 200);
	facts_read(&f, no_vars);
	close(fd);
	cr_expect_eq(f.limits.held, held + 1);
	cr_expect_str_eq(f.inherited, "");
	cr_expect_str_eq(f.locale, "C");
	cr_expect(!f.utf8);
	cr_expect_eq(f.settings_wrong, 0);
	cr_expect_str_eq(f.settings, "");
	facts_fini(&f);
}

/* The folder of settings is that of the test. */
Test(doctor_facts, files_of_settings_are_named_and_their_errors_counted)
{
	char *vars[] = { NULL };

	set_folder("XDG_CONFIG_HOME", "settings");
	cr_assert_eq(mkdir("settings", 0700), 0);
	cr_assert_eq(mkdir("settings/xrun", 0700), 0);
	folder_write("settings/xrun/config.json", "{\"grace\": \"2s\"}\n",
		0600);
	facts_read(&f, vars);
	/* Behind that of the system, if there is one. */
	cr_expect(strstr(f.files, "~/settings/xrun/config.json") != NULL, "%s",
		f.files);
	cr_expect_neq(f.files[0], ',');
	cr_expect_eq(f.settings_wrong, 0, "%s", f.settings);
	facts_fini(&f);
	folder_write("settings/xrun/config.json",
		"{\"grace\": \"soon\",\n\"timeout\": \"x\"}\n", 0600);
	facts_read(&f, vars);
	cr_expect_eq(f.settings_wrong, 2);
	cr_expect_str_eq(f.settings,
		"~/settings/xrun/config.json:1:11: grace: 'soon' is not a time such as 250ms, 30s, 10m or 1h30m");
	facts_fini(&f);
}
