/* SPDX-License-Identifier: Apache-2.0 */
/* stdio_exec.c - see stdio_exec.h. Links with nothing: see preload.c. */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "worker/job/stdio_exec.h"
#include "worker/job/stdio_hook.h"

#pragma weak environ
#pragma weak syscall

#define EXEC_NAME  "LD_PRELOAD="
#define EXEC_AGENT "libxrun-" /* begins the file name of each agent */

extern char **environ;

/* Behind @prefix in @text; NULL if @text does not begin with it. */
static const char *
exec_behind(const char *text, const char *prefix)
{
	while (*prefix != '\0' && *text == *prefix) {
		text++;
		prefix++;
	}
	return *prefix == '\0' ? text : NULL;
}

/* --- programs ------------------------------------------------------------- */

/* Unknown files count as programs of this machine. */
static bool
exec_is_foreign(const char *path)
{
	unsigned char head[EI_NIDENT];
	long fd = syscall(SYS_openat, AT_FDCWD, path,
		O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	long n;

	if (fd < 0)
		return false;
	n = syscall(SYS_pread64, fd, head, sizeof(head), 0L);
	syscall(SYS_close, fd);
	return n == sizeof(head) && head[EI_MAG0] == ELFMAG0 &&
		head[EI_MAG1] == ELFMAG1 && head[EI_MAG2] == ELFMAG2 &&
		head[EI_MAG3] == ELFMAG3 && head[EI_CLASS] != ELFCLASS64;
}

/* "DIR/FILE" into @out; false if it is too long. @dir ends at a colon. Gives where
 * the next folder begins, or NULL, in *@next. */
static bool
exec_join(const char *dir, const char *file, char *out, const char **next)
{
	size_t len = 0;

	for (; *dir != '\0' && *dir != ':'; dir++)
		if (len < PATH_MAX - 2)
			out[len++] = *dir;
	*next = *dir == ':' ? dir + 1 : NULL;
	if (len == 0)
		out[len++] = '.';
	out[len++] = '/';
	while (*file != '\0' && len < PATH_MAX - 1)
		out[len++] = *file++;
	out[len] = '\0';
	return *file == '\0';
}

static const char *
exec_path_of(char **env)
{
	const char *path = NULL;

	for (; path == NULL && env != NULL && *env != NULL; env++)
		path = exec_behind(*env, "PATH=");
	return path;
}

static bool
exec_is_foreign_name(const char *name)
{
	const char *next = exec_path_of(environ), *slash = name;
	char path[PATH_MAX];

	while (*slash != '\0' && *slash != '/')
		slash++;
	if (*slash == '/')
		return exec_is_foreign(name);
	while (next != NULL)
		if (exec_join(next, name, path, &next) &&
			syscall(SYS_faccessat, AT_FDCWD, path, X_OK) == 0)
			return exec_is_foreign(path);
	return false;
}

/* --- the environment ------------------------------------------------------ */

static bool
exec_is_separator(char c)
{
	return c == ':' || c == ' ';
}

/* Returns true if the word at @p, of @len bytes, is an agent in the folder of
 * @self. */
static bool
exec_is_agent(const char *p, size_t len, const char *self)
{
	const char *agent = EXEC_AGENT;
	size_t dir = 0, i = 0;

	for (size_t k = 0; self[k] != '\0'; k++)
		if (self[k] == '/')
			dir = k + 1;
	while (i < dir && i < len && p[i] == self[i])
		i++;
	if (i < dir)
		return false;
	while (*agent != '\0' && i < len && p[i] == *agent) {
		agent++;
		i++;
	}
	return *agent == '\0';
}

/* @from, the value of LD_PRELOAD, without the agents; NULL if it has none. */
static char *
exec_filter(const char *from, const char *self, char *out)
{
	const char *name = EXEC_NAME;
	bool any = false, first = true;
	size_t len;

	while (*name != '\0')
		*out++ = *name++;
	while (*from != '\0') {
		for (len = 0;
			from[len] != '\0' && !exec_is_separator(from[len]);)
			len++;
		if (exec_is_agent(from, len, self)) {
			any = true;
		} else if (len > 0) {
			if (!first)
				*out++ = ':';
			first = false;
			for (size_t i = 0; i < len; i++)
				*out++ = from[i];
		}
		from += len + (from[len] != '\0');
	}
	*out = '\0';
	return any ? out : NULL;
}

/* A copy of @env, with the entry @at without agents. The memory is never given
 * back: it belongs to the next program. */
static char **
exec_copy(char **env, size_t at, const char *value, const char *self)
{
	size_t count = 0, len = sizeof(EXEC_NAME), pointers;
	char **copy, *text;

	while (env[count] != NULL)
		count++;
	for (const char *p = value; *p != '\0'; p++)
		len++;
	pointers = (count + 1) * sizeof(*copy);
	copy = (void *)syscall(SYS_mmap, NULL, pointers + len,
		PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
	if (copy == MAP_FAILED)
		return env;
	text = (char *)copy + pointers;
	for (size_t i = 0; i < count; i++)
		copy[i] = env[i];
	copy[count] = NULL;
	copy[at] = text;
	if (exec_filter(value, self, text) != NULL)
		return copy;
	syscall(SYS_munmap, copy, pointers + len);
	return env;
}

void
stdio_exec_prepare(struct stdio_exec *e)
{
	const char *self, *value = NULL;
	char **env = e->env;
	size_t at = 0;

	if (syscall == NULL || &environ == NULL)
		return;
	if (env == NULL)
		env = environ;
	for (; env != NULL && env[at] != NULL; at++) {
		value = exec_behind(env[at], EXEC_NAME);
		if (value != NULL)
			break;
	}
	if (value == NULL)
		return;
	self = stdio_hook_path();
	if (self[0] != '/' ||
		(syscall(SYS_faccessat, AT_FDCWD, self, R_OK) == 0 &&
			(e->file == NULL || !exec_is_foreign_name(e->file))))
		return;
	env = exec_copy(env, at, value, self);
	if (e->env == NULL)
		environ = env;
	else
		e->env = env;
}
