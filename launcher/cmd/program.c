/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - see program.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/suggest.h"
#include "launcher/cmd/program.h"
#include "launcher/cmd/verb.h"
#include "launcher/host/in_path.h"
#include "launcher/job/foreign.h"
#include "launcher/job/outcome.h"

/* What runs a file of this kind if it cannot run by itself. */
static const struct {
	const char *suffix, *interpreter;
} interpreters[] = {
	{ ".py", "python3" },
	{ ".sh", "bash" },
	{ ".pl", "perl" },
	{ ".jl", "julia" },
	{ ".R", "Rscript" },
	{ ".js", "node" },
};

static bool
exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

static bool
is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static const char *
interpreter_of(const char *name)
{
	const char *dot = strrchr(name, '.');
	unsigned n = sizeof(interpreters) / sizeof(interpreters[0]);

	for (unsigned i = 0; dot != NULL && i < n; i++)
		if (strcmp(dot, interpreters[i].suffix) == 0)
			return interpreters[i].interpreter;
	return NULL;
}

static enum xr_status
not_executable(const char *name, uint32_t ranks, struct xr_error *err)
{
	const char *with = interpreter_of(name);

	if (with != NULL)
		return fail(err, XR_E_INVAL,
			"%s: not executable\txrun -n %u %s %s", name, ranks,
			with, name);
	return fail(err, XR_E_INVAL, "%s: not executable\tchmod +x %s", name,
		name);
}

/* A file that cannot be run: 126 and why. */
static enum xr_status
cannot_run(const char *name, const char *path, uint32_t ranks,
	struct xr_error *err)
{
	struct stat st;

	if (stat(path, &st) == -1)
		return fail(err, XR_E_INVAL, "%s: %s", name, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return fail(err, XR_E_INVAL, "%s: is a directory", name);
	if (!S_ISREG(st.st_mode))
		return fail(err, XR_E_INVAL, "%s: not a regular file", name);
	return not_executable(name, ranks, err);
}

/* Suggests the nearest program of PATH. */
static enum xr_status
misspelt_in_path(const char *name, struct xr_error *err)
{
	struct suggest near;
	const char *best;

	suggest_init(&near, name, strlen(name));
	in_path_offer(&near);
	best = suggest_best(&near);
	if (best == NULL || !program_exists(best))
		return fail(err, XR_E_NOTFOUND, "%s: not found in PATH", name);
	return fail(err, XR_E_NOTFOUND,
		"%s: not found in PATH (did you mean %s?)", name, best);
}

/* A name without a slash that PATH does not have. */
static enum xr_status
not_in_path(struct program *p, const char *name, uint32_t ranks,
	struct xr_error *err)
{
	char other[NAME_MAX + 8], *found;
	const char *verb, *instead;

	snprintf(other, sizeof(other), "./%s", name);
	p->exit_status = EXIT_NOT_FOUND;
	if (in_path_runs(other))
		return fail(err, XR_E_NOTFOUND, "%s: not found in PATH\t%s",
			name, other);
	if (is_file(other)) {
		p->exit_status = EXIT_CANNOT;
		return cannot_run(name, other, ranks, err);
	}
	snprintf(other, sizeof(other), "%s3", name);
	found = in_path(other, 0);
	free(found);
	if (found != NULL)
		return fail(err, XR_E_NOTFOUND, "%s: not found in PATH\t%s",
			name, other);
	if (verb_find(name) != NULL)
		return fail(err, XR_E_NOTFOUND,
			"%s: not found in PATH; a verb of xrun stands first, before options and without --\txrun %s",
			name, name);
	instead = foreign_find_verb(name);
	if (instead != NULL)
		return fail(err, XR_E_NOTFOUND,
			"%s: not found in PATH, and no verb of xrun\t%s", name,
			instead);
	verb = verb_suggest(name);
	if (verb != NULL)
		return fail(err, XR_E_NOTFOUND,
			"%s: not found in PATH (did you mean xrun %s?)", name,
			verb);
	return misspelt_in_path(name, err);
}

/* A path that names no file: suggests a program of the same folder. */
static enum xr_status
not_there(const char *name, struct xr_error *err)
{
	const char *slash = strrchr(name, '/'), *best;
	size_t len = (size_t)(slash - name) + 1;
	char folder[PATH_MAX], other[PATH_MAX + SUGGEST_MAX];
	struct suggest near;

	suggest_init(&near, slash + 1, strlen(slash + 1));
	if (len < sizeof(folder)) {
		snprintf(folder, sizeof(folder), "%.*s", (int)len, name);
		in_path_offer_folder(&near, folder);
		best = suggest_best(&near);
		snprintf(other, sizeof(other), "%s%s", folder,
			best != NULL ? best : "");
		if (best != NULL && in_path_runs(other))
			return fail(err, XR_E_NOTFOUND,
				"%s: not found (did you mean %s?)", name,
				other);
	}
	return fail(err, XR_E_NOTFOUND, "%s: not found\tbuild it first", name);
}

/* No ELF file and no #! line: the kernel would refuse it, rank by rank. */
static enum xr_status
check_format(struct program *p, const char *name, uint32_t ranks,
	struct xr_error *err)
{
	unsigned char head[4] = { 0 };
	int fd = open(p->path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	const char *with = interpreter_of(name);

	if (fd == -1)
		return XR_OK; /* may be run and not read */
	n = fd_read_some(fd, head, sizeof(head));
	fd_close(fd);
	if (n < 0 || memcmp(head, "\177ELF", 4) == 0 ||
		memcmp(head, "#!", 2) == 0 ||
		access("/proc/sys/fs/binfmt_misc/status", F_OK) == 0)
		return XR_OK;
	p->exit_status = EXIT_CANNOT;
	return fail(err, XR_E_INVAL,
		"%s: neither a program nor a script with a #! line\txrun -n %u %s %s",
		name, ranks, with != NULL ? with : "sh", name);
}

enum xr_status
program_find(struct program *p, const char *name, uint32_t ranks,
	struct xr_error *err)
{
	*p = (struct program){ .exit_status = EXIT_CANNOT };
	if (name[0] == '\0') {
		p->exit_status = EXIT_NOT_FOUND;
		return fail(err, XR_E_NOTFOUND,
			"the name of the program is empty");
	}
	if (strchr(name, '/') == NULL) {
		p->path = in_path(name, 0);
		if (p->path == NULL)
			return not_in_path(p, name, ranks, err);
		return check_format(p, name, ranks, err);
	}
	if (!exists(name) && (errno == ENOENT || errno == ENOTDIR)) {
		p->exit_status = EXIT_NOT_FOUND;
		return not_there(name, err);
	}
	if (!in_path_runs(name))
		return cannot_run(name, name, ranks, err);
	p->path = xstrdup(name);
	return check_format(p, name, ranks, err);
}

bool
program_exists(const char *name)
{
	char *found = in_path(name, 0);

	free(found);
	return found != NULL;
}
