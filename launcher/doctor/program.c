/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - which xrun this is, what belongs to it, and which tools and
 * libraries of others are there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/stat.h>

#include "launcher/doctor/facts.h"
#include "launcher/host/in_path.h"
#include "launcher/host/own_file.h"
#include "proc/elf.h"

#define SELF  "/proc/self/exe"
#define AGENT "libxrun-preload.so"
#define TWIN  "xrun-dynamic"

/* Where the driver's installers put its library; a program without a loader
 * cannot ask one. */
static const char *const nvml_places[] = {
	"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
	"/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
	"/usr/lib64/libnvidia-ml.so.1",
	"/usr/lib/libnvidia-ml.so.1",
	"/usr/lib/wsl/lib/libnvidia-ml.so.1",
	"/usr/local/nvidia/lib64/libnvidia-ml.so.1",
};

static bool
is_same(const char *path, const struct stat *st)
{
	struct stat other;

	return stat(path, &other) == 0 && other.st_ino == st->st_ino &&
		other.st_dev == st->st_dev;
}

static bool
is_there(const char *program)
{
	char *path = in_path(program, 0);

	free(path);
	return path != NULL;
}

/* `xrun` in this shell, and others of that name. The twin is this one, too. */
static void
find_names(struct facts *f, const struct stat *self)
{
	char *twin = own_file(TWIN, "."), *path;
	char *notify = own_file("xrun-notify", ".");

	f->twin = twin != NULL;
	f->notify = notify != NULL;
	for (unsigned i = 0; (path = in_path("xrun", i)) != NULL; i++) {
		bool ours = is_same(path, self);

		if (i == 0) {
			snprintf(f->first, sizeof(f->first), "%s", path);
			f->first_is_self = ours;
		} else if (!ours && f->other[0] == '\0') {
			snprintf(f->other, sizeof(f->other), "%s", path);
		}
		free(path);
	}
	free(twin);
	free(notify);
}

/* A library has no loader of its own, as a static program: that is no fault. */
static void
find_agent(struct facts *f)
{
	char *path = own_file(AGENT, "../worker");
	struct elf_facts elf;

	if (path == NULL)
		return;
	if (realpath(path, f->agent) == NULL)
		snprintf(f->agent, sizeof(f->agent), "%s", path);
	switch (elf_probe(AT_FDCWD, path, NULL, &elf)) {
	case ELF_MACHINE:
	case ELF_DAMAGED:
	case ELF_NO_PROGRAM:
	case ELF_UNREADABLE:
		f->agent_wrong = elf_verdict_text(elf.verdict);
		break;
	case ELF_FITS:
	case ELF_STATIC:
	case ELF_LIBC:
	case ELF_SECURE:
	case ELF_SANITIZER:
		break;
	}
	free(path);
}

void
facts_programs(struct facts *f)
{
	struct stat self = { 0 };
	ssize_t n = readlink(SELF, f->self, sizeof(f->self) - 1);

	f->self[n < 0 ? 0 : n] = '\0';
	if (stat(SELF, &self) == 0)
		f->built = self.st_mtime;
	f->now = time(NULL);
	f->is_static = elf_is_static();
	find_names(f, &self);
	find_agent(f);
	f->eu_stack = is_there("eu-stack");
	f->gdb = is_there("gdb");
	f->py_spy = is_there("py-spy");
	for (size_t i = 0; i < sizeof(nvml_places) / sizeof(nvml_places[0]);
		i++)
		f->nvml = f->nvml || access(nvml_places[i], F_OK) == 0;
}
