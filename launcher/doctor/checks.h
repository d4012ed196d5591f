/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checks.h - what xrun doctor looks at, one row a check, and what it makes of it.
 *
 * A judge is pure: facts in, one finding out. Its texts are one line each, and
 * begin small, since the row's name stands before them.
 */
#ifndef LAUNCHER_DOCTOR_CHECKS_H
#define LAUNCHER_DOCTOR_CHECKS_H

#include "launcher/doctor/facts.h"

enum verdict {
	VERDICT_OK,
	VERDICT_NOTE, /* works, and somebody may want to know */
	VERDICT_WARN, /* some jobs will not go well */
	VERDICT_BAD,  /* no job, or none with default options, can start */
	VERDICTS,
};

struct finding {
	enum verdict verdict;
	char what[PATH_MAX + 256];
	char todo[PATH_MAX]; /* "": nothing to do */
};

typedef void judge_fn(const struct facts *f, struct finding *out);

struct check {
	const char *name;  /* NULL ends the table */
	const char *about; /* what it looks at */
	judge_fn *judge;
};

extern const struct check checks[];

/* verdict_name() - "ok", "note", "warn", "bad". */
const char *verdict_name(enum verdict verdict);

/* find_is() - write a finding. */
void find_is(struct finding *out, enum verdict verdict, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* find_todo() - what to do about it. */
void find_todo(struct finding *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* judge_machine.c */
judge_fn judge_kernel, judge_clock, judge_files, judge_processes, judge_memory,
	judge_cgroup, judge_ports, judge_trace, judge_core, judge_terminals,
	judge_devices;

/* judge_user.c */
judge_fn judge_state, judge_runtime, judge_settings, judge_variables,
	judge_locale, judge_program, judge_agent, judge_libraries,
	judge_leftovers;

#endif /* LAUNCHER_DOCTOR_CHECKS_H */
