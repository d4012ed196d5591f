/* SPDX-License-Identifier: Apache-2.0 */
/* judge_machine.c - checks.h, as far as the machine and its limits go. */
#include <stdio.h>
#include <string.h>

#include "launcher/doctor/checks.h"
#include "launcher/host/check.h"

#define MIB        (UINT64_C(1) << 20)
#define MEMORY_LOW (256 * MIB)
#define PORTS_FEW  1000
#define ALLOW      "in a container, a seccomp profile that allows it"

/* What is missing, and what that costs. */
static const char *
missing(const struct kernel_facts *k)
{
	if (!k->pidfd_signal)
		return "pidfd_send_signal: jobs do not hear of kill(1), and nothing ends leftovers";
	if (!k->clone)
		return "clone(CLONE_VM|CLONE_PIDFD): ranks are made by fork, which is slower";
	if (!k->close_range)
		return "close_range: many ranks start slower";
	if (!k->memfd)
		return "memfd_create with seals: ranks share no memory with xrun, and --report may be cut where that is killed";
	if (!k->inotify)
		return "inotify, or none is left for this user: logs -f looks ten times a second";
	return NULL;
}

void
judge_kernel(const struct facts *f, struct finding *out)
{
	const struct kernel_facts *k = &f->kernel;

	if (!k->pidfd) {
		find_is(out, VERDICT_BAD,
			"Linux %s has no pidfd_open: no job can start",
			k->release);
		find_todo(out, "Linux 5.3 or later; " ALLOW);
	} else if (missing(k) != NULL) {
		find_is(out, VERDICT_WARN, "Linux %s has no %s", k->release,
			missing(k));
		find_todo(out, "a newer one; " ALLOW);
	} else {
		find_is(out, VERDICT_OK,
			"Linux %s: pidfd, clone, close_range, memfd, inotify",
			k->release);
	}
}

/* A rank for each processor is what people start. */
static enum verdict
enough(uint64_t ranks, const struct facts *f)
{
	if (ranks == 0)
		return VERDICT_BAD;
	return ranks < f->processors ? VERDICT_WARN : VERDICT_OK;
}

static const char *
plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

void
judge_files(const struct facts *f, struct finding *out)
{
	const struct limits *l = &f->limits;
	uint64_t ranks = check_room(l).by_files;

	find_is(out, enough(ranks, f),
		"%llu descriptors (ulimit -Hn): %llu rank%s",
		(unsigned long long)l->files_max, (unsigned long long)ranks,
		plural(ranks));
	if (out->verdict != VERDICT_OK)
		find_todo(out, "ulimit -Hn %llu, by root or in limits.conf(5)",
			(unsigned long long)(CHECK_FDS_OWN + l->held +
				CHECK_FDS_A_RANK * (uint64_t)f->processors));
}

void
judge_processes(const struct facts *f, struct finding *out)
{
	const struct limits *l = &f->limits;
	uint64_t ranks = check_room(l).by_processes;

	if (l->processes == UINT64_MAX) {
		find_is(out, VERDICT_OK, "as many as the machine has");
		return;
	}
	find_is(out, enough(ranks, f), "%llu (%s): %llu rank%s",
		(unsigned long long)l->processes, l->processes_by,
		(unsigned long long)ranks, plural(ranks));
	if (out->verdict != VERDICT_OK)
		find_todo(out, "a higher limit (%s)", l->processes_by);
}

void
judge_memory(const struct facts *f, struct finding *out)
{
	uint64_t can = f->limits.memory;

	if (can == UINT64_MAX) {
		find_is(out, VERDICT_OK, "not limited, as far as can be seen");
		return;
	}
	find_is(out, can < MEMORY_LOW ? VERDICT_WARN : VERDICT_OK,
		"%llu MiB can be had", (unsigned long long)(can / MIB));
	if (can < MEMORY_LOW)
		find_todo(out,
			"end what is not needed, or raise memory.max of the control group");
}

void
judge_cgroup(const struct facts *f, struct finding *out)
{
	switch (f->leaf) {
	case LEAF_KILL:
		find_is(out, VERDICT_OK,
			"each rank has one of its own, and nothing leaves it");
		break;
	case LEAF_MAKE:
		find_is(out, VERDICT_NOTE,
			"each rank has one; Linux before 5.14 cannot end all of it at once");
		break;
	case LEAF_NONE:
		find_is(out, VERDICT_NOTE,
			f->cgroup ?
				"none was delegated: processes that leave a rank's session are found by /proc" :
				"no version 2 here: processes that leave a rank's session are found by /proc");
		if (f->cgroup)
			find_todo(out,
				"systemd-run --user --scope -p Delegate=yes xrun ...");
		break;
	}
}

void
judge_ports(const struct facts *f, struct finding *out)
{
	find_is(out, f->ports < PORTS_FEW ? VERDICT_WARN : VERDICT_OK,
		"%u outside of those the kernel hands out itself", f->ports);
	if (f->ports < PORTS_FEW)
		find_todo(out,
			"sysctl net.ipv4.ip_local_port_range='32768 60999'");
}

static bool
is_slow_clock(const char *source)
{
	return strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0 ||
		strcmp(source, "jiffies") == 0;
}

void
judge_clock(const struct facts *f, struct finding *out)
{
	const int64_t day = 24 * 60 * 60;

	if (f->now + day < f->built) {
		find_is(out, VERDICT_WARN,
			"the time of day lies before this xrun was built: stamps of output will be wrong");
		find_todo(out, "set the clock");
	} else if (is_slow_clock(f->kernel.clock)) {
		find_is(out, VERDICT_NOTE,
			"the clock source is %s: each look at it is a slow system call",
			f->kernel.clock);
	} else {
		find_is(out, VERDICT_OK, "plausible%s%s",
			f->kernel.clock[0] == '\0' ? "" : ", clock source ",
			f->kernel.clock);
	}
}

void
judge_terminals(const struct facts *f, struct finding *out)
{
	if (f->terminals) {
		find_is(out, VERDICT_OK, "to be had");
		return;
	}
	find_is(out, VERDICT_WARN, "/dev/ptmx cannot be opened: no --pty");
	find_todo(out, "mount -t devpts devpts /dev/pts");
}

void
judge_devices(const struct facts *f, struct finding *out)
{
	if (f->no_devices[0] != '\0') {
		find_is(out, VERDICT_BAD, "%s", f->no_devices);
		find_todo(out, "mend the variable, or --platform cpu");
	} else if (f->devices[0] == '\0') {
		find_is(out, VERDICT_OK, "no accelerators: %u processor%s",
			f->processors, plural(f->processors));
	} else {
		find_is(out, VERDICT_OK, "%s", f->devices);
	}
}

/* Root may; others only their own children, which a rank is not of a tool. */
static bool
may_trace(const struct kernel_facts *k)
{
	return k->yama <= 0 || (k->traces && k->yama < 3);
}

void
judge_trace(const struct facts *f, struct finding *out)
{
	char tools[40] = "";

	snprintf(tools, sizeof(tools), "%s%s%s",
		f->eu_stack ? ", eu-stack" : "", f->gdb ? ", gdb" : "",
		f->py_spy ? ", py-spy" : "");
	if (tools[0] == '\0') {
		find_is(out, VERDICT_NOTE,
			"no eu-stack, gdb or py-spy: of a rank that hangs, only what /proc has can be shown");
		find_todo(out, "apt-get install elfutils, or gdb");
	} else if (!may_trace(&f->kernel)) {
		find_is(out, VERDICT_NOTE,
			"%s, but kernel.yama.ptrace_scope is %d: they may not look at ranks",
			tools + 2, f->kernel.yama);
		if (f->kernel.yama < 3)
			find_todo(out,
				"sysctl kernel.yama.ptrace_scope=0, by root");
	} else {
		find_is(out, VERDICT_OK, "%s", tools + 2);
	}
}

void
judge_core(const struct facts *f, struct finding *out)
{
	const char *pattern = f->kernel.core_pattern;

	if (pattern[0] == '|')
		find_is(out, VERDICT_OK, "given to %.*s",
			(int)strcspn(pattern + 1, " "), pattern + 1);
	else if (f->core.rlim_cur == 0)
		find_is(out, VERDICT_OK, "none (ulimit -c is 0)");
	else
		find_is(out, VERDICT_OK, "%s (kernel.core_pattern)", pattern);
}
