/* SPDX-License-Identifier: Apache-2.0 */
/* test_doctor.c - what is made of facts about a machine, without the machine. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/status.h"
#include "launcher/doctor/checks.h"

/* A machine on which nothing is to be said. */
static struct facts
healthy(void)
{
	return (struct facts){
		.kernel = { .release = "6.1.0",
			.pidfd = true,
			.pidfd_signal = true,
			.clone = true,
			.close_range = true,
			.memfd = true,
			.inotify = true,
			.yama = -1,
			.core_pattern = "core",
			.clock = "tsc" },
		.limits = { .files_max = 1048576,
			.processes = UINT64_MAX,
			.memory = UINT64_C(8) << 30 },
		.processors = 8,
		.state = { .path = "~/.local/state/xrun",
			.kind = "ext4",
			.exists = true,
			.trusted = true,
			.writable = true,
			.room = UINT64_C(100) << 30,
			.inodes = UINT64_MAX },
		.runtime_given = true,
		.runtime = true,
		.runtime_at = "xrun in $XDG_RUNTIME_DIR",
		.terminals = true,
		.cgroup = true,
		.leaf = LEAF_KILL,
		.ports = 27000,
		.locale = "C.UTF-8",
		.utf8 = true,
		.self = "/usr/bin/xrun",
		.first = "/usr/bin/xrun",
		.first_is_self = true,
		.built = 1000000000,
		.now = 1700000000,
		.is_static = true,
		.twin = true,
		.notify = true,
		.agent = "/usr/lib/xrun/libxrun-preload.so",
		.eu_stack = true,
	};
}

static struct finding
judged(judge_fn *judge, const struct facts *f)
{
	struct finding out = { .verdict = VERDICTS };

	judge(f, &out);
	cr_expect_neq(out.what[0], '\0');
	cr_expect(strchr(out.what, '\n') == NULL &&
		strchr(out.todo, '\n') == NULL);
	return out;
}

static void
expect(judge_fn *judge, const struct facts *f, enum verdict verdict,
	const char *has)
{
	const struct finding found = judged(judge, f);

	cr_expect_eq(found.verdict, verdict, "%s: %s",
		verdict_name(found.verdict), found.what);
	cr_expect(strstr(found.what, has) != NULL, "%s", found.what);
}

Test(doctor, a_healthy_machine_has_nothing_to_be_said_of)
{
	const struct facts f = healthy();
	struct finding found;

	for (const struct check *c = checks; c->name != NULL; c++) {
		found = judged(c->judge, &f);
		cr_expect_eq(found.verdict, VERDICT_OK, "%s: %s", c->name,
			found.what);
		cr_expect_str_eq(found.todo, "", "%s", c->name);
		cr_expect_lt(strlen(c->name), 12);
	}
}

Test(doctor, a_machine_of_which_nothing_is_known_is_judged_too)
{
	const struct facts f = { 0 };

	for (const struct check *c = checks; c->name != NULL; c++)
		judged(c->judge, &f);
}

Test(doctor, a_kernel_without_pidfds_starts_nothing_and_others_are_slow)
{
	struct facts f = healthy();

	f.kernel.inotify = false;
	expect(judge_kernel, &f, VERDICT_WARN, "inotify");
	f.kernel.clone = false;
	expect(judge_kernel, &f, VERDICT_WARN, "by fork");
	f.kernel.pidfd_signal = false;
	expect(judge_kernel, &f, VERDICT_WARN, "do not hear of kill(1)");
	f.kernel.pidfd = false;
	expect(judge_kernel, &f, VERDICT_BAD, "pidfd_open: no job");
}

Test(doctor, limits_are_measured_by_a_rank_for_each_processor)
{
	struct facts f = healthy();

	f.limits.files_max = 72; /* 48 are xrun's, and 3 a rank's */
	expect(judge_files, &f, VERDICT_OK,
		"72 descriptors (ulimit -Hn): 8 ranks");
	f.limits.files_max = 71;
	expect(judge_files, &f, VERDICT_WARN, "7 ranks");
	cr_expect_str_eq(judged(judge_files, &f).todo,
		"ulimit -Hn 72, by root or in limits.conf(5)");
	f.limits.files_max = 51;
	expect(judge_files, &f, VERDICT_WARN, "1 rank");
	f.limits.files_max = 50;
	expect(judge_files, &f, VERDICT_BAD, "0 ranks");
	f.limits.processes = 12;
	f.limits.processes_by = "ulimit -u";
	expect(judge_processes, &f, VERDICT_WARN, "12 (ulimit -u): 4 ranks");
	f.limits.processes = 8;
	expect(judge_processes, &f, VERDICT_BAD, "0 ranks");
	f.limits.memory = 100 << 20;
	expect(judge_memory, &f, VERDICT_WARN, "100 MiB");
}

Test(doctor, a_folder_that_no_job_could_use_is_bad)
{
	struct facts f = healthy();

	f.state.kind[0] = '\0';
	expect(judge_state, &f, VERDICT_OK, "xrun: 102400 MiB");
	snprintf(f.state.kind, sizeof(f.state.kind), "nfs");
	expect(judge_state, &f, VERDICT_NOTE, "is on nfs");
	snprintf(f.state.kind, sizeof(f.state.kind), "tmpfs");
	expect(judge_state, &f, VERDICT_NOTE, "in memory (tmpfs)");
	f.state.inodes = 10;
	expect(judge_state, &f, VERDICT_WARN, "10 files are left");
	f.state.writable = false;
	expect(judge_state, &f, VERDICT_BAD, "cannot be written");
	f.state.trusted = false;
	expect(judge_state, &f, VERDICT_BAD, "somebody else");
	f.state.path[0] = '\0';
	expect(judge_state, &f, VERDICT_BAD, "no home");
}

Test(doctor, where_no_socket_can_be_jobs_run_all_the_same)
{
	struct facts f = healthy();

	f.runtime_kind = CTL_ROOT_TMP;
	snprintf(f.runtime_at, sizeof(f.runtime_at), "/tmp/xrun-7");
	expect(judge_runtime, &f, VERDICT_WARN, "/tmp/xrun-7 is used");
	f.runtime_given = false;
	expect(judge_runtime, &f, VERDICT_OK, "/tmp/xrun-7");
	f.runtime_kind = CTL_ROOT_STATE;
	fail(&f.runtime_trouble, XR_E_INVAL, "/tmp/xrun-7 belongs to user 8");
	expect(judge_runtime, &f, VERDICT_WARN,
		"/tmp/xrun-7 belongs to user 8; /tmp/xrun-7 is used, and -d is refused");
	f.runtime = false;
	f.runtime_sys = EPERM;
	expect(judge_runtime, &f, VERDICT_WARN, "/tmp/xrun-7: Operation not");
}

Test(doctor, tools_that_may_not_trace_are_no_help)
{
	struct facts f = healthy();

	f.gdb = true;
	expect(judge_trace, &f, VERDICT_OK, "eu-stack, gdb");
	f.kernel.yama = 1;
	expect(judge_trace, &f, VERDICT_NOTE, "ptrace_scope is 1");
	f.kernel.traces = true;
	expect(judge_trace, &f, VERDICT_OK, "eu-stack");
	f.kernel.yama = 3;
	expect(judge_trace, &f, VERDICT_NOTE, "ptrace_scope is 3");
	cr_expect_str_eq(judged(judge_trace, &f).todo, "");
	f.gdb = f.eu_stack = false;
	expect(judge_trace, &f, VERDICT_NOTE, "no eu-stack, gdb or py-spy");
}

Test(doctor, core_files_are_told_of_and_nothing_is_wrong_with_none)
{
	struct facts f = healthy();

	expect(judge_core, &f, VERDICT_OK, "ulimit -c is 0");
	f.core.rlim_cur = RLIM_INFINITY;
	expect(judge_core, &f, VERDICT_OK, "core (kernel.core_pattern)");
	snprintf(f.kernel.core_pattern, sizeof(f.kernel.core_pattern),
		"|/lib/systemd/systemd-coredump %%P");
	expect(judge_core, &f, VERDICT_OK,
		"given to /lib/systemd/systemd-coredump");
}

Test(doctor, of_several_errors_in_settings_the_first_is_said)
{
	struct facts f = healthy();

	snprintf(f.warning, sizeof(f.warning), "XRUN_RANK is");
	expect(judge_settings, &f, VERDICT_WARN, "XRUN_RANK is");
	snprintf(f.settings, sizeof(f.settings), "XRUN_GRACE: no");
	f.settings_wrong = 1;
	cr_expect_str_eq(judged(judge_settings, &f).what, "XRUN_GRACE: no");
	f.settings_wrong = 3;
	expect(judge_settings, &f, VERDICT_BAD, "XRUN_GRACE: no (and 2 more)");
}

Test(doctor, what_belongs_to_xrun_is_missed_only_where_it_is_needed)
{
	struct facts f = healthy();

	f.twin = false;
	expect(judge_libraries, &f, VERDICT_OK, "none is needed");
	snprintf(f.devices, sizeof(f.devices), "cuda:0-3");
	expect(judge_libraries, &f, VERDICT_WARN, "xrun-dynamic");
	f.twin = true;
	expect(judge_libraries, &f, VERDICT_NOTE, "libnvidia-ml");
	f.nvml = true;
	expect(judge_libraries, &f, VERDICT_OK, "libnvidia-ml");
	f.notify = false;
	expect(judge_libraries, &f, VERDICT_NOTE, "no --on-event");
	snprintf(f.no_devices, sizeof(f.no_devices),
		"CUDA_VISIBLE_DEVICES: no");
	expect(judge_devices, &f, VERDICT_BAD, "CUDA_VISIBLE_DEVICES: no");
	f.agent_wrong = "built for another machine";
	expect(judge_agent, &f, VERDICT_WARN, "is built for another machine");
	f.first_is_self = false;
	expect(judge_program, &f, VERDICT_WARN, "and not this one");
}

Test(doctor, a_clock_before_the_program_is_wrong)
{
	struct facts f = healthy();

	snprintf(f.kernel.clock, sizeof(f.kernel.clock), "hpet");
	expect(judge_clock, &f, VERDICT_NOTE, "hpet");
	f.now = f.built - 86400;
	expect(judge_clock, &f, VERDICT_NOTE, "hpet");
	f.now--;
	expect(judge_clock, &f, VERDICT_WARN, "before this xrun was built");
}

Test(doctor, leftovers_that_live_weigh_more_than_files_and_strangers_least)
{
	struct remain one[] = { { .known = true, .socket = true },
		{ .known = false, .count = 2 } };
	struct facts f = healthy();

	f.remains = (struct remains){ one, 2 };
	expect(judge_leftovers, &f, VERDICT_NOTE,
		"0 processes and files of 1 job");
	one[0].count = 1;
	expect(judge_leftovers, &f, VERDICT_WARN,
		"1 process and files of 1 job");
	one[0].known = false;
	expect(judge_leftovers, &f, VERDICT_NOTE,
		"3 processes of jobs that are not known");
}

/* --- all that is said, and what to do ------------------------------------------ */

static void
says(judge_fn *judge, const struct facts *f, enum verdict verdict,
	const char *what, const char *todo)
{
	const struct finding found = judged(judge, f);

	cr_expect_eq(found.verdict, verdict, "%s: %s",
		verdict_name(found.verdict), found.what);
	cr_expect_str_eq(found.what, what);
	cr_expect_str_eq(found.todo, todo);
}

#define MIB       (UINT64_C(1) << 20)
#define ELSEWHERE "XDG_STATE_HOME=DIR, --log-dir DIR, or --no-logs"

Test(doctor, each_missing_system_call_is_said_with_what_it_costs)
{
	static const char todo[] =
		"a newer one; in a container, a seccomp profile that allows it";
	struct facts f = healthy();

	says(judge_kernel, &f, VERDICT_OK,
		"Linux 6.1.0: pidfd, clone, close_range, memfd, inotify", "");
	f.kernel.inotify = false;
	says(judge_kernel, &f, VERDICT_WARN,
		"Linux 6.1.0 has no inotify, or none is left for this user: logs -f looks ten times a second",
		todo);
	f.kernel.memfd = false;
	says(judge_kernel, &f, VERDICT_WARN,
		"Linux 6.1.0 has no memfd_create with seals: ranks share no memory with xrun, and --report may be cut where that is killed",
		todo);
	f.kernel.close_range = false;
	says(judge_kernel, &f, VERDICT_WARN,
		"Linux 6.1.0 has no close_range: many ranks start slower",
		todo);
	f.kernel.clone = false;
	says(judge_kernel, &f, VERDICT_WARN,
		"Linux 6.1.0 has no clone(CLONE_VM|CLONE_PIDFD): ranks are made by fork, which is slower",
		todo);
	f.kernel.pidfd = false;
	says(judge_kernel, &f, VERDICT_BAD,
		"Linux 6.1.0 has no pidfd_open: no job can start",
		"Linux 5.3 or later; in a container, a seccomp profile that allows it");
}

Test(doctor, limits_are_told_to_the_byte)
{
	struct facts f = healthy();

	f.limits.held = 2;
	f.limits.files_max = 73;
	says(judge_files, &f, VERDICT_WARN,
		"73 descriptors (ulimit -Hn): 7 ranks",
		"ulimit -Hn 74, by root or in limits.conf(5)");
	f.limits.files_max = 74;
	says(judge_files, &f, VERDICT_OK,
		"74 descriptors (ulimit -Hn): 8 ranks", "");
	says(judge_processes, &f, VERDICT_OK, "as many as the machine has", "");
	f.limits.processes = 16;
	f.limits.processes_by = "pids.max";
	says(judge_processes, &f, VERDICT_OK, "16 (pids.max): 8 ranks", "");
	f.limits.processes = 9;
	says(judge_processes, &f, VERDICT_WARN, "9 (pids.max): 1 rank",
		"a higher limit (pids.max)");
	f.limits.memory = 256 * MIB;
	says(judge_memory, &f, VERDICT_OK, "256 MiB can be had", "");
	f.limits.memory--;
	says(judge_memory, &f, VERDICT_WARN, "255 MiB can be had",
		"end what is not needed, or raise memory.max of the control group");
	f.limits.memory = UINT64_MAX;
	says(judge_memory, &f, VERDICT_OK, "not limited, as far as can be seen",
		"");
	f.ports = 1000;
	says(judge_ports, &f, VERDICT_OK,
		"1000 outside of those the kernel hands out itself", "");
	f.ports = 999;
	says(judge_ports, &f, VERDICT_WARN,
		"999 outside of those the kernel hands out itself",
		"sysctl net.ipv4.ip_local_port_range='32768 60999'");
}

Test(doctor, each_state_of_control_groups_is_said)
{
	struct facts f = healthy();

	says(judge_cgroup, &f, VERDICT_OK,
		"each rank has one of its own, and nothing leaves it", "");
	f.leaf = LEAF_MAKE;
	says(judge_cgroup, &f, VERDICT_NOTE,
		"each rank has one; Linux before 5.14 cannot end all of it at once",
		"");
	f.leaf = LEAF_NONE;
	says(judge_cgroup, &f, VERDICT_NOTE,
		"none was delegated: processes that leave a rank's session are found by /proc",
		"systemd-run --user --scope -p Delegate=yes xrun ...");
	f.cgroup = false;
	says(judge_cgroup, &f, VERDICT_NOTE,
		"no version 2 here: processes that leave a rank's session are found by /proc",
		"");
}

static void
expect_slow_clock(const char *source)
{
	struct facts f = healthy();
	char what[128];

	snprintf(f.kernel.clock, sizeof(f.kernel.clock), "%s", source);
	snprintf(what, sizeof(what),
		"the clock source is %s: each look at it is a slow system call",
		source);
	says(judge_clock, &f, VERDICT_NOTE, what, "");
}

Test(doctor, the_clock_and_the_machine_are_described)
{
	struct facts f = healthy();

	says(judge_clock, &f, VERDICT_OK, "plausible, clock source tsc", "");
	f.kernel.clock[0] = '\0';
	says(judge_clock, &f, VERDICT_OK, "plausible", "");
	expect_slow_clock("hpet");
	expect_slow_clock("acpi_pm");
	expect_slow_clock("jiffies");
	says(judge_terminals, &f, VERDICT_OK, "to be had", "");
	f.terminals = false;
	says(judge_terminals, &f, VERDICT_WARN,
		"/dev/ptmx cannot be opened: no --pty",
		"mount -t devpts devpts /dev/pts");
	says(judge_devices, &f, VERDICT_OK, "no accelerators: 8 processors",
		"");
	f.processors = 1;
	says(judge_devices, &f, VERDICT_OK, "no accelerators: 1 processor", "");
	snprintf(f.devices, sizeof(f.devices), "tpu:0-3");
	says(judge_devices, &f, VERDICT_OK, "tpu:0-3", "");
	snprintf(f.no_devices, sizeof(f.no_devices), "X: no");
	says(judge_devices, &f, VERDICT_BAD, "X: no",
		"mend the variable, or --platform cpu");
}

Test(doctor, each_tool_that_may_look_at_ranks_is_named)
{
	static const char no[] =
		"py-spy, but kernel.yama.ptrace_scope is %d: they may not look at ranks";
	struct facts f = healthy();
	char what[128];

	f.eu_stack = false;
	f.py_spy = true;
	says(judge_trace, &f, VERDICT_OK, "py-spy", "");
	f.kernel.yama = 0;
	says(judge_trace, &f, VERDICT_OK, "py-spy", "");
	for (f.kernel.yama = 1; f.kernel.yama <= 3; f.kernel.yama++) {
		snprintf(what, sizeof(what), no, f.kernel.yama);
		says(judge_trace, &f, VERDICT_NOTE, what,
			f.kernel.yama < 3 ?
				"sysctl kernel.yama.ptrace_scope=0, by root" :
				"");
	}
	f.kernel.traces = true;
	f.kernel.yama = 2;
	says(judge_trace, &f, VERDICT_OK, "py-spy", "");
	f.py_spy = false;
	says(judge_trace, &f, VERDICT_NOTE,
		"no eu-stack, gdb or py-spy: of a rank that hangs, only what /proc has can be shown",
		"apt-get install elfutils, or gdb");
}

static void
expect_network(const char *kind)
{
	struct facts f = healthy();
	char what[128];

	snprintf(f.state.kind, sizeof(f.state.kind), "%s", kind);
	snprintf(what, sizeof(what),
		"~/.local/state/xrun is on %s: ranks wait for its server when they write much",
		kind);
	says(judge_state, &f, VERDICT_NOTE, what,
		"XDG_STATE_HOME or --log-dir on a disk of this machine");
}

Test(doctor, the_state_folder_is_described)
{
	static const char *const kinds[] = { "nfs", "cifs", "smb2", "ceph",
		"lustre", "gpfs", "9p", "fuse" };
	struct facts f = healthy();

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		expect_network(kinds[i]);
	f.state.room = 1024 * MIB;
	f.state.inodes = 1000;
	says(judge_state, &f, VERDICT_OK,
		"~/.local/state/xrun: ext4, 1024 MiB are left", "");
	f.state.inodes = 999;
	says(judge_state, &f, VERDICT_WARN,
		"~/.local/state/xrun: 1024 MiB and 999 files are left; ranks wait where it is full",
		"make room, or " ELSEWHERE);
	f.state.inodes = UINT64_MAX;
	f.state.room--;
	says(judge_state, &f, VERDICT_WARN,
		"~/.local/state/xrun: 1023 MiB are left; ranks wait where it is full",
		"make room, or " ELSEWHERE);
	f.state.room = UINT64_C(2) << 30;
	snprintf(f.state.kind, sizeof(f.state.kind), "ramfs");
	says(judge_state, &f, VERDICT_NOTE,
		"~/.local/state/xrun is in memory (ramfs): output takes it, and is gone with the next start",
		"");
	f.state.writable = false;
	says(judge_state, &f, VERDICT_BAD,
		"~/.local/state/xrun cannot be written", ELSEWHERE);
}

Test(doctor, the_runtime_folder_is_described)
{
	static const char todo[] =
		"XDG_RUNTIME_DIR=DIR of yours with mode 0700";
	struct facts f = healthy();

	says(judge_runtime, &f, VERDICT_OK, "xrun in $XDG_RUNTIME_DIR", "");
	fail(&f.runtime_trouble, XR_E_INVAL, "/tmp/a: no");
	says(judge_runtime, &f, VERDICT_WARN,
		"/tmp/a: no; xrun in $XDG_RUNTIME_DIR is used", "");
	f.runtime_kind = CTL_ROOT_USER;
	says(judge_runtime, &f, VERDICT_WARN,
		"$XDG_RUNTIME_DIR is no folder of yours alone (0700); xrun in $XDG_RUNTIME_DIR is used",
		"chmod 0700 \"$XDG_RUNTIME_DIR\", or unset it");
	f.runtime_kind = CTL_ROOT_STATE;
	says(judge_runtime, &f, VERDICT_WARN,
		"/tmp/a: no; xrun in $XDG_RUNTIME_DIR is used, and -d is refused",
		todo);
	f.runtime = false;
	f.runtime_sys = EPERM;
	says(judge_runtime, &f, VERDICT_WARN,
		"xrun in $XDG_RUNTIME_DIR: Operation not permitted: jobs run, and ps, stop and their like do not reach them",
		todo);
}

Test(doctor, settings_variables_and_locale_are_described)
{
	struct facts f = healthy();

	says(judge_settings, &f, VERDICT_OK, "no files, nothing wrong", "");
	snprintf(f.files, sizeof(f.files), "/etc/xrun.conf");
	says(judge_settings, &f, VERDICT_OK, "/etc/xrun.conf", "");
	f.settings_wrong = 2;
	snprintf(f.settings, sizeof(f.settings), "A: no");
	says(judge_settings, &f, VERDICT_BAD, "A: no (and 1 more)",
		"xrun config show says all that is wrong; no job starts before it is mended");
	says(judge_variables, &f, VERDICT_OK, "none", "");
	snprintf(f.inherited, sizeof(f.inherited), "RANK");
	says(judge_variables, &f, VERDICT_NOTE, "RANK",
		"xrun --show-env true says what becomes of them");
	says(judge_locale, &f, VERDICT_OK, "C.UTF-8", "");
	f.utf8 = false;
	f.locale[1] = '\0';
	says(judge_locale, &f, VERDICT_NOTE,
		"C: a rank's lines begin with \"[3] \" and not with \"3│ \"",
		"LC_ALL=C.UTF-8");
	f.locale[0] = '\0';
	says(judge_locale, &f, VERDICT_NOTE,
		"none is set: a rank's lines begin with \"[3] \" and not with \"3│ \"",
		"LC_ALL=C.UTF-8");
}

Test(doctor, programs_of_xrun_are_described)
{
	static const char todo[] = "install all of xrun: meson install";
	struct facts f = healthy();

	snprintf(f.other, sizeof(f.other), "/opt/xrun");
	says(judge_program, &f, VERDICT_NOTE,
		"/usr/bin/xrun; behind it in PATH is /opt/xrun", "");
	f.first_is_self = false;
	says(judge_program, &f, VERDICT_WARN,
		"xrun in PATH is /usr/bin/xrun, and not this one, /usr/bin/xrun",
		"xrun version: Cadence's simulator driver has the same name");
	f.first[0] = '\0';
	says(judge_program, &f, VERDICT_NOTE, "/usr/bin/xrun is not in PATH",
		"");
	f.agent_wrong = "damaged";
	says(judge_agent, &f, VERDICT_WARN,
		"/usr/lib/xrun/libxrun-preload.so is damaged: programs start without it",
		todo);
	f.agent[0] = '\0';
	says(judge_agent, &f, VERDICT_WARN,
		"libxrun-preload.so is not where xrun is: C programs show their lines late",
		todo);
	f.notify = false;
	says(judge_libraries, &f, VERDICT_NOTE,
		"xrun-notify is not where xrun is: no --on-event",
		"build xrun where libcurl is (Debian: libcurl4-openssl-dev)");
	snprintf(f.devices, sizeof(f.devices), "cuda:0");
	says(judge_libraries, &f, VERDICT_NOTE,
		"no libnvidia-ml.so.1: no --devices by UUID, and no names of them",
		"it is part of the driver");
	f.twin = f.is_static = false;
	says(judge_libraries, &f, VERDICT_NOTE,
		"no libnvidia-ml.so.1: no --devices by UUID, and no names of them",
		"it is part of the driver");
	f.is_static = true;
	says(judge_libraries, &f, VERDICT_WARN,
		"xrun-dynamic is not where xrun is: no --devices by UUID",
		todo);
}

Test(doctor, leftovers_of_each_kind_are_counted)
{
	static const char todo[] =
		"xrun doctor --clean; the next job does most of it, too";
	struct remain one[] = { { .known = true, .count = 2 },
		{ .known = false, .count = 5 }, { .known = true, .count = 3 } };
	struct facts f = healthy();

	f.remains = (struct remains){ one, 3 };
	says(judge_leftovers, &f, VERDICT_WARN,
		"5 processes and files of 2 jobs", todo);
	one[0].count = one[2].count = 0;
	says(judge_leftovers, &f, VERDICT_NOTE,
		"0 processes and files of 2 jobs", todo);
	one[0].known = one[2].known = false;
	one[1].count = 1;
	says(judge_leftovers, &f, VERDICT_NOTE,
		"1 process of jobs that are not known here", "");
	one[1].count = 0;
	says(judge_leftovers, &f, VERDICT_OK, "none", "");
}
