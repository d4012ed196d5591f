/* SPDX-License-Identifier: Apache-2.0 */
/* judge_user.c - checks.h, as far as this user's folders, shell and programs
 * go. */
#include <stdio.h>
#include <string.h>

#include "launcher/doctor/checks.h"

#define MIB        (UINT64_C(1) << 20)
#define ROOM_LOW   (1024 * MIB)
#define INODES_LOW 1000
#define ELSEWHERE  "XDG_STATE_HOME=DIR, --log-dir DIR, or --no-logs"

static bool
is_network(const char *kind)
{
	static const char *const kinds[] = { "nfs", "cifs", "smb2", "ceph",
		"lustre", "gpfs", "9p", "fuse" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kind, kinds[i]) == 0)
			return true;
	return false;
}

static bool
is_memory(const char *kind)
{
	return strcmp(kind, "tmpfs") == 0 || strcmp(kind, "ramfs") == 0;
}

static bool
judge_no_folder(const struct folder_facts *s, struct finding *out)
{
	if (s->path[0] == '\0')
		find_is(out, VERDICT_BAD, "this user has no home");
	else if (!s->trusted)
		find_is(out, VERDICT_BAD,
			"%s belongs to somebody else, or all may write it",
			s->path);
	else if (!s->writable)
		find_is(out, VERDICT_BAD, "%s cannot be written", s->path);
	else
		return false;
	find_todo(out, ELSEWHERE);
	return true;
}

void
judge_state(const struct facts *f, struct finding *out)
{
	const struct folder_facts *s = &f->state;
	const char *path = s->path, *kind = s->kind;
	char files[48];

	if (judge_no_folder(s, out))
		return;
	if (s->room < ROOM_LOW || s->inodes < INODES_LOW) {
		snprintf(files, sizeof(files), " and %llu files",
			(unsigned long long)s->inodes);
		find_is(out, VERDICT_WARN,
			"%s: %llu MiB%s are left; ranks wait where it is full",
			path, (unsigned long long)(s->room / MIB),
			s->inodes == UINT64_MAX ? "" : files);
		find_todo(out, "make room, or " ELSEWHERE);
	} else if (is_network(kind)) {
		find_is(out, VERDICT_NOTE,
			"%s is on %s: ranks wait for its server when they write much",
			path, kind);
		find_todo(out,
			"XDG_STATE_HOME or --log-dir on a disk of this machine");
	} else if (is_memory(kind)) {
		find_is(out, VERDICT_NOTE,
			"%s is in memory (%s): output takes it, and is gone with the next start",
			path, kind);
	} else {
		find_is(out, VERDICT_OK, "%s: %s%s%llu MiB are left", path,
			kind, kind[0] == '\0' ? "" : ", ",
			(unsigned long long)(s->room / MIB));
	}
}

void
judge_runtime(const struct facts *f, struct finding *out)
{
	if (!f->runtime) {
		find_is(out, VERDICT_WARN,
			"%s: %s: jobs run, and ps, stop and their like do not reach them",
			f->runtime_at, strerror(f->runtime_sys));
		find_todo(out, "XDG_RUNTIME_DIR=DIR of yours with mode 0700");
	} else if (f->runtime_kind == CTL_ROOT_STATE) {
		find_is(out, VERDICT_WARN, "%s; %s is used, and -d is refused",
			f->runtime_trouble.text, f->runtime_at);
		find_todo(out, "XDG_RUNTIME_DIR=DIR of yours with mode 0700");
	} else if (f->runtime_given && f->runtime_kind != CTL_ROOT_RUNTIME) {
		find_is(out, VERDICT_WARN,
			"$XDG_RUNTIME_DIR is no folder of yours alone (0700); %s is used",
			f->runtime_at);
		find_todo(out, "chmod 0700 \"$XDG_RUNTIME_DIR\", or unset it");
	} else if (f->runtime_trouble.text[0] != '\0') {
		find_is(out, VERDICT_WARN, "%s; %s is used",
			f->runtime_trouble.text, f->runtime_at);
	} else {
		find_is(out, VERDICT_OK, "%s", f->runtime_at);
	}
}

void
judge_settings(const struct facts *f, struct finding *out)
{
	char more[32] = "";

	if (f->settings_wrong > 1)
		snprintf(more, sizeof(more), " (and %u more)",
			f->settings_wrong - 1);
	if (f->settings_wrong > 0) {
		find_is(out, VERDICT_BAD, "%s%s", f->settings, more);
		find_todo(out,
			"xrun config show says all that is wrong; no job starts before it is mended");
	} else if (f->warning[0] != '\0') {
		find_is(out, VERDICT_WARN, "%s", f->warning);
	} else {
		find_is(out, VERDICT_OK, "%s",
			f->files[0] == '\0' ? "no files, nothing wrong" :
					      f->files);
	}
}

void
judge_variables(const struct facts *f, struct finding *out)
{
	if (f->inherited[0] == '\0') {
		find_is(out, VERDICT_OK, "none");
		return;
	}
	find_is(out, VERDICT_NOTE, "%s", f->inherited);
	find_todo(out, "xrun --show-env true says what becomes of them");
}

void
judge_locale(const struct facts *f, struct finding *out)
{
	if (f->utf8) {
		find_is(out, VERDICT_OK, "%s", f->locale);
		return;
	}
	find_is(out, VERDICT_NOTE,
		"%s: a rank's lines begin with \"[3] \" and not with \"3│ \"",
		f->locale[0] == '\0' ? "none is set" : f->locale);
	find_todo(out, "LC_ALL=C.UTF-8");
}

void
judge_program(const struct facts *f, struct finding *out)
{
	if (f->first[0] == '\0') {
		find_is(out, VERDICT_NOTE, "%s is not in PATH", f->self);
	} else if (!f->first_is_self) {
		find_is(out, VERDICT_WARN,
			"xrun in PATH is %s, and not this one, %s", f->first,
			f->self);
		find_todo(out,
			"xrun version: Cadence's simulator driver has the same name");
	} else if (f->other[0] != '\0') {
		find_is(out, VERDICT_NOTE, "%s; behind it in PATH is %s",
			f->first, f->other);
	} else {
		find_is(out, VERDICT_OK, "%s", f->first);
	}
}

void
judge_agent(const struct facts *f, struct finding *out)
{
	if (f->agent[0] == '\0') {
		find_is(out, VERDICT_WARN,
			"libxrun-preload.so is not where xrun is: C programs show their lines late");
		find_todo(out, "install all of xrun: meson install");
	} else if (f->agent_wrong != NULL) {
		find_is(out, VERDICT_WARN,
			"%s is %s: programs start without it", f->agent,
			f->agent_wrong);
		find_todo(out, "install all of xrun: meson install");
	} else {
		find_is(out, VERDICT_OK, "%s", f->agent);
	}
}

/* Of NVIDIA's, where there are such devices: how a UUID becomes a number. */
void
judge_libraries(const struct facts *f, struct finding *out)
{
	bool cuda = strncmp(f->devices, "cuda:", 5) == 0;

	if (cuda && f->is_static && !f->twin) {
		find_is(out, VERDICT_WARN,
			"xrun-dynamic is not where xrun is: no --devices by UUID");
		find_todo(out, "install all of xrun: meson install");
	} else if (cuda && !f->nvml) {
		find_is(out, VERDICT_NOTE,
			"no libnvidia-ml.so.1: no --devices by UUID, and no names of them");
		find_todo(out, "it is part of the driver");
	} else if (!f->notify) {
		find_is(out, VERDICT_NOTE,
			"xrun-notify is not where xrun is: no --on-event");
		find_todo(out,
			"build xrun where libcurl is (Debian: libcurl4-openssl-dev)");
	} else {
		find_is(out, VERDICT_OK, "%s",
			cuda ? "libnvidia-ml.so.1" : "none is needed");
	}
}

/* What of them lives, and what is only files. */
static void
count(const struct remains *r, uint32_t *processes, uint32_t *jobs,
	uint32_t *strangers)
{
	*processes = *jobs = *strangers = 0;
	for (size_t i = 0; i < r->count; i++) {
		if (!r->remain[i].known) {
			*strangers += r->remain[i].count;
			continue;
		}
		*processes += r->remain[i].count;
		++*jobs;
	}
}

void
judge_leftovers(const struct facts *f, struct finding *out)
{
	uint32_t processes, jobs, strangers;

	count(&f->remains, &processes, &jobs, &strangers);
	if (jobs > 0) {
		find_is(out, processes > 0 ? VERDICT_WARN : VERDICT_NOTE,
			"%u process%s and files of %u job%s", processes,
			processes == 1 ? "" : "es", jobs, jobs == 1 ? "" : "s");
		find_todo(out,
			"xrun doctor --clean; the next job does most of it, too");
	} else if (strangers > 0) {
		find_is(out, VERDICT_NOTE,
			"%u process%s of jobs that are not known here",
			strangers, strangers == 1 ? "" : "es");
	} else {
		find_is(out, VERDICT_OK, "none");
	}
}
