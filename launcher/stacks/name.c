/* SPDX-License-Identifier: Apache-2.0 */
/* name.c - see name.h. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "launcher/stacks/name.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static bool
begins_with(struct span text, const char *prefix)
{
	size_t len = strlen(prefix);

	return text.len > len && memcmp(text.at, prefix, len) == 0;
}

/* Where @text ends once @mark and all behind it is off; what begins so is kept. */
static void
cut_at(struct span *text, const char *mark)
{
	const char *at = memmem(text->at, text->len, mark, strlen(mark));

	if (at != NULL && at != text->at)
		text->len = (size_t)(at - text->at);
}

/* "__GI___poll" is poll, "__pthread_cond_wait" pthread_cond_wait; but
 * "_PyEval_EvalFrameDefault" and "_start" are called so. */
static void
cut_prefix(struct span *text)
{
	struct span rest = *text;

	if (begins_with(rest, "__GI_"))
		rest = (struct span){ rest.at + 5, rest.len - 5 };
	if (begins_with(rest, "__") || rest.at != text->at)
		while (begins_with(rest, "_"))
			rest = (struct span){ rest.at + 1, rest.len - 1 };
	if (begins_with(rest, "libc_") && !begins_with(rest, "libc_start"))
		rest = (struct span){ rest.at + 5, rest.len - 5 };
	*text = rest;
}

char *
name_function(struct span text)
{
	static const char *const marks[] = { "@", ".isra.", ".part.",
		".constprop.", ".cold", ".lto_priv.", ".llvm.", " [clone" };
	const char *whole = text.at;

	if (text.len >= 2 && memcmp(text.at, "??", 2) == 0)
		return xstrdup("");
	for (size_t i = 0; i < COUNT(marks); i++)
		cut_at(&text, marks[i]);
	/* No C++: its own names have no such prefix. */
	if (memchr(whole, ':', text.len) == NULL)
		cut_prefix(&text);
	return xasprintf("%.*s", (int)text.len, text.at);
}

char *
name_file(struct span text)
{
	const char *slash = memrchr(text.at, '/', text.len);
	size_t from = slash == NULL ? 0 : (size_t)(slash + 1 - text.at), len;
	struct span name = { text.at + from, text.len - from };

	/* "[vdso: 1234]", where 1234 is the process */
	if (name.len == 0 || name.at[0] != '[')
		return xasprintf("%.*s", (int)name.len, name.at);
	for (len = 1; len < name.len; len++)
		if (strchr(": ]", name.at[len]) != NULL)
			break;
	return xasprintf("%.*s]", (int)len, name.at);
}

static bool
is_one_of(const char *name, const char *const *table, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, table[i]) == 0)
			return true;
	return false;
}

bool
name_is_start(const char *function)
{
	static const char *const names[] = { "_start", "start",
		"libc_start_main", "libc_start_call_main",
		"libc_start_main_impl", "clone", "clone3", "start_thread",
		"thread_start" };

	return is_one_of(function, names, COUNT(names));
}

/* Of glibc's nptl. */
bool
name_is_wait(const char *function)
{
	static const char *const names[] = { "do_futex_wait",
		"new_sem_wait_slow", "new_sem_wait_slow64",
		"pthread_cond_wait_common", "syscall_cancel",
		"syscall_cancel_arch", "internal_syscall_cancel",
		"pthread_clockjoin_ex", "old_sem_wait" };

	return strncmp(function, "futex_", 6) == 0 ||
		strncmp(function, "lll_", 4) == 0 ||
		is_one_of(function, names, COUNT(names));
}

bool
name_is_python(const char *function)
{
	static const char *const threads = "PyThread_";
	static const char *const prefixes[] = { "_Py", "Py", "method_",
		"cfunction_", "builtin_", "slot_tp_", "object_vacall",
		"run_mod", "run_eval_code_obj", "pyrun_", "pymain_",
		"vectorcall_" };

	if (strncmp(function, threads, strlen(threads)) == 0)
		return false; /* by what it waits */
	for (size_t i = 0; i < COUNT(prefixes); i++)
		if (strncmp(function, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}
