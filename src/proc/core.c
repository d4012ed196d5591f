/* SPDX-License-Identifier: Apache-2.0 */
/* core.c - see core.h. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "proc/core.h"

#define PATTERN_MAX 128 /* CORENAME_MAX_SIZE of the kernel, with its end */
#define COMM_MAX    15

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

/* What %@c stands for; NULL if that is not known. */
static const char *
value_of(char c, const struct core *core, char *out, size_t cap)
{
	switch (c) {
	case '%':
		return "%";
	case 'p':
	case 'P':
	case 'i':
	case 'I':
		snprintf(out, cap, "%d", (int)core->pid);
		return out;
	case 's':
		snprintf(out, cap, "%d", core->sig);
		return out;
	case 'u':
		snprintf(out, cap, "%u", (unsigned)getuid());
		return out;
	case 'g':
		snprintf(out, cap, "%u", (unsigned)getgid());
		return out;
	case 'h':
		return gethostname(out, cap) == 0 ? out : NULL;
	case 'e':
		snprintf(out, cap, "%.*s", COMM_MAX, base_name(core->program));
		return out;
	default:
		return NULL;
	}
}

bool
core_expand(const char *pattern, bool add_pid, const struct core *c, char *out,
	size_t cap)
{
	char one[HOST_NAME_MAX + 1], letter[2] = "";
	const char *value;
	size_t at = 0, len;
	bool has_pid = false;

	for (const char *p = pattern; *p != '\0'; p++) {
		letter[0] = *p;
		value = letter;
		if (*p == '%') {
			p++;
			has_pid = has_pid || *p == 'p';
			value = value_of(*p, c, one, sizeof(one));
		}
		len = value == NULL ? cap : strlen(value);
		if (at + len >= cap)
			return false;
		memcpy(out + at, value, len);
		at += len;
	}
	len = add_pid && !has_pid ?
		(size_t)snprintf(one, sizeof(one), ".%d", (int)c->pid) :
		0;
	if (at + len >= cap)
		return false;
	memcpy(out + at, one, len);
	out[at + len] = '\0';
	return true;
}

/* One line of /proc/sys/kernel; "" if there is none. */
static void
read_setting(const char *path, char *out, size_t cap)
{
	fd_read_small(path, out, cap);
	out[strcspn(out, "\n")] = '\0';
}

/* The name as seen from here. False if @cap is too small for it. */
static bool
put_dir(const struct core *c, char *out, size_t cap)
{
	size_t dir = c->dir == NULL ? 0 : strlen(c->dir) + 1;
	size_t len = strlen(out);

	if (dir == 0 || out[0] == '/')
		return true;
	if (dir + len >= cap)
		return false;
	memmove(out + dir, out, len + 1);
	memcpy(out, c->dir, dir - 1);
	out[dir - 1] = '/';
	return true;
}

enum core_kind
core_find(const struct core *c, char *out, size_t cap)
{
	char pattern[PATTERN_MAX], uses_pid[8];
	struct stat st;

	read_setting("/proc/sys/kernel/core_pattern", pattern, sizeof(pattern));
	read_setting("/proc/sys/kernel/core_uses_pid", uses_pid,
		sizeof(uses_pid));
	if (pattern[0] == '|') {
		pattern[1 + strcspn(pattern + 1, " ")] = '\0';
		snprintf(out, cap, "%s", base_name(pattern + 1));
		return CORE_PIPED;
	}
	if (pattern[0] == '\0' || strchr(pattern, '@') == pattern ||
		!core_expand(pattern, uses_pid[0] == '1', c, out, cap) ||
		!put_dir(c, out, cap) || stat(out, &st) == -1 ||
		st.st_mtim.tv_sec < c->since / NS_PER_S - 1)
		return CORE_UNKNOWN;
	return CORE_FILE;
}
