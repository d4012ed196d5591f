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
