/* SPDX-License-Identifier: Apache-2.0 */
/* checks.c - see checks.h. */
#include <stdarg.h>
#include <stdio.h>

#include "launcher/doctor/checks.h"

const struct check checks[] = {
	{ "kernel", "system calls that start and watch ranks", judge_kernel },
	{ "files", "descriptors, and how many ranks they are enough for",
		judge_files },
	{ "processes", "processes, and how many ranks they are enough for",
		judge_processes },
	{ "memory", "memory that can be had", judge_memory },
	{ "cgroup", "a control group for each rank", judge_cgroup },
	{ "ports", "TCP ports that a job can hold", judge_ports },
	{ "clock", "time of day, and the price of reading it", judge_clock },
	{ "terminals", "terminals for --pty", judge_terminals },
	{ "devices", "accelerators, and the masks around them", judge_devices },
	{ "stacks", "tools that show where ranks are, and leave to use them",
		judge_trace },
	{ "core", "core files of ranks that crash", judge_core },
	{ "state", "the folder of output and records", judge_state },
	{ "runtime", "the folder of control sockets", judge_runtime },
	{ "settings", "files of settings, and variables XRUN_*",
		judge_settings },
	{ "variables", "what other launchers left in this shell",
		judge_variables },
	{ "locale", "characters of what xrun says", judge_locale },
	{ "program", "which xrun this shell means", judge_program },
	{ "agent", "the preloaded agent of ranks", judge_agent },
	{ "libraries", "what is opened only when it is needed",
		judge_libraries },
	{ "leftovers", "what jobs left that are over", judge_leftovers },
	{ 0 },
};

const char *
verdict_name(enum verdict verdict)
{
	static const char *const names[VERDICTS] = {
		[VERDICT_OK] = "ok",
		[VERDICT_NOTE] = "note",
		[VERDICT_WARN] = "warn",
		[VERDICT_BAD] = "bad",
	};

	return names[verdict];
}

void
find_is(struct finding *out, enum verdict verdict, const char *fmt, ...)
{
	va_list ap;

	out->verdict = verdict;
	va_start(ap, fmt);
	vsnprintf(out->what, sizeof(out->what), fmt, ap);
	va_end(ap);
}

void
find_todo(struct finding *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out->todo, sizeof(out->todo), fmt, ap);
	va_end(ap);
}
