/* SPDX-License-Identifier: Apache-2.0 */
/* stdio_exec.c - see stdio_exec.h. Links with nothing: see preload.c. */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/mman.h>

#include "worker/job/stdio_call.h"
#include "worker/job/stdio_exec.h"
#include "worker/job/stdio_hook.h"

#pragma weak environ

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

#define EXEC_HEAD 256 /* bytes of a file that the kernel reads */

/* Into @head, with a NUL at the end; the length. */
static long
exec_read(long fd, char *head)
{
	long n = fd < 0 ? 0 : STDIO_CALL(SYS_pread64, fd, head, EXEC_HEAD - 1);

	if (n < 0)
		n = 0;
	head[n] = '\0';
	return n;
}

static long
exec_read_path(long dir, const char *path, char *head)
{
	long fd = STDIO_CALL(SYS_openat, dir, path,
		O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	long n = exec_read(fd, head);

	if (fd >= 0)
		STDIO_CALL(SYS_close, fd);
	return n;
}

static bool
exec_is_foreign_elf(const char *head, long len)
{
	return len >= EI_NIDENT && exec_behind(head, ELFMAG) != NULL &&
		head[EI_CLASS] != ELFCLASS64;
}

/* Unknown files count as programs of this machine. An interpreter is looked at,
 * but not the interpreter of an interpreter. */
static bool
exec_is_foreign(char *head, long len)
{
	char *path = (char *)exec_behind(head, "#!"), *end;

	if (path == NULL)
		return exec_is_foreign_elf(head, len);
	while (*path == ' ' || *path == '\t')
		path++;
	for (end = path; *end > ' ' || *end < '\0';)
		end++;
	*end = '\0';
	len = exec_read_path(AT_FDCWD, path, head);
	return exec_is_foreign_elf(head, len);
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

/* Gives the length of what is in @head of the program that execvp(3) would run. */
static long
exec_search(const char *name, char *head)
{
	const char *next = exec_path_of(environ), *slash = name;
	char path[PATH_MAX];

	while (*slash != '\0' && *slash != '/')
		slash++;
	if (*slash == '/')
		return exec_read_path(AT_FDCWD, name, head);
	while (next != NULL)
		if (exec_join(next, name, path, &next) &&
			STDIO_CALL(SYS_faccessat, AT_FDCWD, path, X_OK) == 0)
			return exec_read_path(AT_FDCWD, path, head);
	return 0;
}

static bool
exec_runs_foreign(const struct stdio_exec *e, int file)
{
	const uint64_t *args = e->frame->args;
	const char *path = (const char *)args[file];
	char head[EXEC_HEAD];
	long len = 0;

	if (e->way == STDIO_EXEC_FD)
		len = exec_read((int)args[0], head);
	else if (e->way == STDIO_EXEC_SHELL || path == NULL)
		return false;
	else if (e->way == STDIO_EXEC_AT && path[0] == '\0')
		len = exec_read((int)args[0], head);
	else if (e->way == STDIO_EXEC_AT)
		len = exec_read_path((int)args[0], path, head);
	else if (e->way == STDIO_EXEC_NAME)
		len = exec_search(path, head);
	else
		len = exec_read_path(AT_FDCWD, path, head);
	return len > 0 && exec_is_foreign(head, len);
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

/* Argument @i of a call. */
static uint64_t *
exec_arg(const struct stdio_exec *e, size_t i)
{
	return i < 6 ? &e->frame->args[i] : &e->frame->more[i - 6];
}

/* The number of the NULL that ends the list of execl(3). */
static size_t
exec_list_end(const struct stdio_exec *e)
{
	size_t i = 1;

	while (*exec_arg(e, i) != 0)
		i++;
	return i;
}

static char **
exec_env_of(const struct stdio_exec *e)
{
	if (e->env_at == HOOK_LIST_ENV)
		return (char **)*exec_arg(e, exec_list_end(e) + 1);
	return e->env_at < 0 ? environ : (char **)e->frame->args[e->env_at];
}

/* Copies of @env, with the entry @at without agents, and of the list. Returns false
 * if there is no agent in it, or no memory. */
static bool
exec_copy(struct stdio_exec *e, char **env, size_t at, const char *self)
{
	size_t count = 0, len = sizeof(EXEC_NAME), listed = 0;
	const char *value = exec_behind(env[at], EXEC_NAME);
	char *text;

	while (env[count] != NULL)
		count++;
	for (const char *p = value; *p != '\0'; p++)
		len++;
	if (e->env_at == HOOK_LIST || e->env_at == HOOK_LIST_ENV)
		listed = exec_list_end(e);
	e->size = (count + 1 + listed) * sizeof(char *) + len;
	e->map = stdio_call_map(e->size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (e->map == NULL)
		return false;
	e->env = e->map;
	e->argv = e->env + count + 1;
	text = (char *)(e->argv + listed);
	for (size_t i = 0; i < count; i++)
		e->env[i] = env[i];
	for (size_t i = 0; i < listed; i++)
		e->argv[i] = (char *)*exec_arg(e, i + 1);
	e->env[at] = text;
	return exec_filter(value, self, text) != NULL;
}

/* Returns true if a copy of the environment was made. */
static bool
exec_prepare(struct stdio_exec *e)
{
	const char *self = stdio_hook_path();
	char **env = exec_env_of(e);
	size_t at = 0;
	int file = e->way == STDIO_EXEC_AT || e->env_at == 5;

	while (env != NULL && env[at] != NULL &&
		exec_behind(env[at], EXEC_NAME) == NULL)
		at++;
	if (env == NULL || env[at] == NULL || self[0] != '/' ||
		(STDIO_CALL(SYS_faccessat, AT_FDCWD, self, R_OK) == 0 &&
			!exec_runs_foreign(e, file)))
		return false;
	return exec_copy(e, env, at, self);
}

/* --- calls ---------------------------------------------------------------- */

typedef uint64_t exec_fn(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	uint64_t);

/* For system() and popen(), which use environ. */
static uint64_t
exec_call_shell(struct stdio_exec *e, exec_fn *fn)
{
	const uint64_t *a = e->frame->args;
	char **saved = environ;
	uint64_t result;

	environ = e->env;
	result = fn(a[0], a[1], a[2], a[3], a[4], a[5]);
	if (environ == e->env)
		environ = saved;
	return result;
}

static uint64_t
exec_call(struct stdio_exec *e, exec_fn *fn)
{
	const uint64_t *a = e->frame->args;
	uint64_t list = e->env_at == HOOK_ENVIRON ? a[1] : (uint64_t)e->argv;
	uint64_t env = (uint64_t)e->env;

	switch (e->env_at) {
	case 2:
		return fn(a[0], a[1], env, 0, 0, 0);
	case 3:
		return fn(a[0], a[1], a[2], env, a[4], 0);
	case 5:
		return fn(a[0], a[1], a[2], a[3], a[4], env);
	default:
		fn = stdio_hook_find(e->way == STDIO_EXEC_NAME ? "execvpe" :
								 "execve");
		return fn(a[0], list, env, 0, 0, 0);
	}
}

bool
stdio_exec_run(struct stdio_exec *e, void *fn)
{
	bool copied = &environ != NULL && exec_prepare(e);
	uint64_t result;

	if (copied && e->way == STDIO_EXEC_SHELL)
		result = exec_call_shell(e, fn);
	else if (copied)
		result = exec_call(e, fn);
	if (e->map != NULL)
		STDIO_CALL(SYS_munmap, e->map, e->size);
	if (copied)
		e->frame->args[0] = result;
	return copied;
}
