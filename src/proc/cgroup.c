/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - see cgroup.h. The files are described in cgroups(7) and proc(5). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "proc/cgroup.h"

#define PROC_MAX (256 * 1024) /* mounts of a machine with many containers */

/* A whole file of /proc, whose size is not known before; "" if it is not
 * there. Freed by the caller; NULL: no memory. */
static char *
read_proc(const char *root, const char *name)
{
	char path[PATH_MAX], *text = malloc(PROC_MAX);

	snprintf(path, sizeof(path), "%s/proc/%s", root, name);
	if (text != NULL)
		fd_read_small(path, text, PROC_MAX);
	return text;
}

/* Cuts the next line off; NULL behind the last. */
static char *
next_line(char **rest)
{
	char *line = *rest, *end;

	if (line == NULL || *line == '\0')
		return NULL;
	end = strchr(line, '\n');
	*rest = end == NULL ? NULL : end + 1;
	if (end != NULL)
		*end = '\0';
	return line;
}

/* Does "cpu,cpuacct" hold @word? */
static bool
holds(const char *list, size_t len, const char *word)
{
	const char *at = list, *end = list + len;
	size_t n;

	for (; at < end; at += n + 1) {
		n = strcspn(at, ",");
		if (n > (size_t)(end - at))
			n = (size_t)(end - at);
		if (n == strlen(word) && memcmp(at, word, n) == 0)
			return true;
	}
	return false;
}

/* The path of "4:memory:/a/b", for @controller; of "0::/a/b", for NULL. */
static const char *
path_in(const char *line, const char *controller)
{
	const char *list = strchr(line, ':'), *path;

	path = list == NULL ? NULL : strchr(list + 1, ':');
	if (path == NULL || path[1] != '/')
		return NULL;
	if (controller == NULL)
		return path == list + 1 && list == line + 1 && *line == '0' ?
			path + 1 :
			NULL;
	return holds(list + 1, (size_t)(path - list - 1), controller) ?
		path + 1 :
		NULL;
}

/* The path that such a file tells, malloc'ed; NULL. */
static char *
copy_path(const char *text, const char *controller)
{
	char *copy = text == NULL ? NULL : strdup(text);
	char *rest = copy, *line, *out;
	const char *path = NULL;

	while (path == NULL && (line = next_line(&rest)) != NULL)
		path = path_in(line, controller);
	out = path == NULL ? NULL : strdup(path);
	free(copy);
	return out;
}

/* One line of mountinfo: 36 35 98:0 /root /mount/point options - type from
 * its,options. */
struct mount {
	char *root, *point, *type, *options;
};

static bool
parse_mount(char *line, struct mount *m)
{
	char *field[10] = { NULL }, *tail = strstr(line, " - ");
	int n = 0;

	if (tail == NULL)
		return false;
	*tail = '\0';
	for (char *at = line; at != NULL && n < 5; n++) {
		field[n] = at;
		at = strchr(at, ' ');
		if (at != NULL)
			*at++ = '\0';
	}
	m->root = field[3];
	m->point = field[4];
	m->type = tail + 3;
	m->options = strrchr(m->type, ' ');
	tail = strchr(m->type, ' ');
	if (field[4] == NULL || tail == NULL)
		return false;
	m->options++;
	*tail = '\0';
	return true;
}

static bool
is_wanted(const struct mount *m, const char *controller)
{
	if (controller == NULL)
		return strcmp(m->type, "cgroup2") == 0;
	return strcmp(m->type, "cgroup") == 0 &&
		holds(m->options, strlen(m->options), controller);
}

/* @path below the root of the mount: what a container sees of it. */
static bool
place(struct cgroup *out, const char *root, const struct mount *m,
	const char *path)
{
	size_t len = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);
	int n;

	if (strncmp(path, m->root, len) != 0 ||
		(path[len] != '/' && path[len] != '\0'))
		return false;
	path += len;
	out->mount = strlen(root) + strlen(m->point);
	n = snprintf(out->dir, sizeof(out->dir), "%s%s%s", root, m->point,
		strcmp(path, "/") == 0 ? "" : path);
	return n < (int)sizeof(out->dir);
}

/* What it takes to find groups, read once. */
struct texts {
	const char *root;
	char *groups, *mounts; /* NULL: no memory */
};

static struct texts
texts_read(const char *root)
{
	return (struct texts){
		.root = root,
		.groups = read_proc(root, "self/cgroup"),
		.mounts = read_proc(root, "self/mountinfo"),
	};
}

static void
texts_fini(struct texts *t)
{
	free(t->groups);
	free(t->mounts);
}

static bool
find_in(struct cgroup *out, const struct texts *t, const char *controller)
{
	char *path = copy_path(t->groups, controller);
	char *text = NULL, *rest, *line;
	bool found = false;
	struct mount m;

	if (path != NULL && t->mounts != NULL)
		text = strdup(t->mounts);
	rest = text;
	while (!found && (line = next_line(&rest)) != NULL)
		found = parse_mount(line, &m) && is_wanted(&m, controller) &&
			place(out, t->root, &m, path);
	free(text);
	free(path);
	return found;
}

static bool
find(struct cgroup *out, const struct texts *t, const char *controller)
{
	*out = (struct cgroup){ .v1 = true };
	if (controller != NULL && find_in(out, t, controller))
		return true;
	*out = (struct cgroup){ 0 };
	return find_in(out, t, NULL);
}

bool
cgroup_find(struct cgroup *out, const char *root, const char *controller)
{
	struct texts t = texts_read(root);
	bool found = find(out, &t, controller);

	texts_fini(&t);
	return found;
}

char *
cgroup_path(pid_t pid)
{
	char file[32], *text, *path;

	snprintf(file, sizeof(file), pid == 0 ? "self/cgroup" : "%d/cgroup",
		(int)pid);
	text = read_proc("", file);
	path = copy_path(text, NULL);
	free(text);
	return path;
}

const char *
cgroup_name(const struct cgroup *cgroup)
{
	const char *name = cgroup->dir + cgroup->mount;

	return *name == '\0' ? "/" : name;
}

/* A small file of the group as text; false if it is not there. */
static bool
read_file(const struct cgroup *cgroup, const char *name, char *text, size_t cap)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", cgroup->dir, name);
	return fd_read_small(path, text, cap) > 0;
}

/* Version 1 says "no limit" with the largest number of pages. */
static uint64_t
number_of(const char *text)
{
	uint64_t n;

	if (*text < '0' || *text > '9')
		return CGROUP_NONE;
	n = strtoull(text, NULL, 10);
	return n >= UINT64_C(1) << 62 ? CGROUP_NONE : n;
}

uint64_t
cgroup_number(const struct cgroup *cgroup, const char *name)
{
	char text[64];

	return read_file(cgroup, name, text, sizeof(text)) ? number_of(text) :
							     CGROUP_NONE;
}

uint64_t
cgroup_field(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *at = text; at != NULL && *at != '\0';
		at = strchr(at, '\n'), at = at == NULL ? NULL : at + 1)
		if (strncmp(at, key, len) == 0 && at[len] == ' ')
			return number_of(at + len + 1);
	return CGROUP_NONE;
}

static uint64_t
room(uint64_t max, uint64_t used)
{
	return used == CGROUP_NONE ? max : max > used ? max - used : 0;
}

void
cgroup_limit(struct cgroup_limit *out, const struct cgroup *cgroup,
	const char *max, const char *used)
{
	struct cgroup at = *cgroup;
	uint64_t m, u;
	char *up;

	*out = (struct cgroup_limit){ .max = CGROUP_NONE };
	for (;;) {
		m = cgroup_number(&at, max);
		u = m == CGROUP_NONE ? 0 : cgroup_number(&at, used);
		if (m != CGROUP_NONE &&
			(out->max == CGROUP_NONE ||
				room(m, u) < room(out->max, out->used)))
			*out = (struct cgroup_limit){ at, m, u };
		up = strrchr(at.dir + at.mount, '/');
		if (up == NULL)
			return;
		*up = '\0';
	}
}

static void
memory_limit(struct cgroup_limit *out, const struct texts *t)
{
	struct cgroup c;

	*out = (struct cgroup_limit){ .max = CGROUP_NONE };
	if (find(&c, t, "memory"))
		cgroup_limit(out, &c,
			c.v1 ? "memory.limit_in_bytes" : "memory.max",
			c.v1 ? "memory.usage_in_bytes" : "memory.current");
}

static void
pids_limit(struct cgroup_limit *out, const struct texts *t)
{
	struct cgroup c;

	*out = (struct cgroup_limit){ .max = CGROUP_NONE };
	if (find(&c, t, "pids"))
		cgroup_limit(out, &c, "pids.max", "pids.current");
}

void
cgroup_limits(struct cgroup_limit *memory, struct cgroup_limit *pids,
	const char *root)
{
	struct texts t = texts_read(root);

	if (memory != NULL)
		memory_limit(memory, &t);
	if (pids != NULL)
		pids_limit(pids, &t);
	texts_fini(&t);
}
