/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_name.c - names of functions and files as they are shown. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/stacks/name.h"

static void
expect_function(const char *text, const char *want)
{
	char *name = name_function((struct span){ text, strlen(text) });

	cr_expect_str_eq(name, want, "'%s' of '%s'", name, text);
	free(name);
}

Test(stacks_name, what_compilers_add_is_off)
{
	expect_function("poll", "poll");
	expect_function("poll@@GLIBC_2.2.5", "poll");
	expect_function("f.isra.0", "f");
	expect_function("f.part.3", "f");
	expect_function("f.constprop.0", "f");
	expect_function("f.cold", "f");
	expect_function("f.lto_priv.0", "f");
	expect_function("f.llvm.123", "f");
	expect_function("f [clone .x]", "f");
	expect_function("f.isra.0.cold", "f");
	expect_function("f.cold.isra.0@x", "f");
	expect_function("@f", "@f");
	expect_function(".cold", ".cold");
	expect_function("", "");
}

Test(stacks_name, what_glibc_adds_is_off)
{
	expect_function("__GI___poll", "poll");
	expect_function("__GI_poll", "poll");
	expect_function("__poll", "poll");
	expect_function("___poll", "poll");
	expect_function("_poll", "_poll");
	expect_function("_", "_");
	expect_function("__", "__");
	expect_function("__GI_", "GI_");
	expect_function("__libc_recv", "recv");
	expect_function("libc_recv", "recv");
	expect_function("libc_", "libc_");
	expect_function("__libc_start_main", "libc_start_main");
	expect_function("__libc_start", "start");
	expect_function("_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault");
	expect_function("std::__cxx::f", "std::__cxx::f");
	expect_function("__f(a::b)", "__f(a::b)");
}

Test(stacks_name, one_that_is_not_known_has_none)
{
	char *name;

	expect_function("??", "");
	expect_function("?? ()", "");
	expect_function("?", "?");
	expect_function("?f", "?f");
	name = name_function((struct span){ "??", 1 });
	cr_expect_str_eq(name, "?");
	free(name);
}

static void
expect_file(const char *text, const char *want)
{
	char *name = name_file((struct span){ text, strlen(text) });

	cr_expect_str_eq(name, want, "'%s' of '%s'", name, text);
	free(name);
}

Test(stacks_name, files_have_no_folder)
{
	expect_file("/usr/lib/libc.so.6", "libc.so.6");
	expect_file("libc.so.6", "libc.so.6");
	expect_file("/x", "x");
	expect_file("/usr/lib/", "");
	expect_file("", "");
	expect_file("[vdso]", "[vdso]");
	expect_file("[vdso: 1234]", "[vdso]");
	expect_file("[vdso 1234]", "[vdso]");
	expect_file("[stack", "[stack]");
	expect_file("[", "[]");
	expect_file("[]", "[]");
}

/* Each of @list, and none of them with another last byte. */
static void
expect_all(bool (*is)(const char *), const char *const *list, size_t count)
{
	char other[64];

	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(list[i]);

		cr_expect(is(list[i]), "%s", list[i]);
		memcpy(other, list[i], len);
		other[len - 1] = '!';
		other[len] = '\0';
		cr_expect_not(is(other), "%s", other);
	}
}

#define ALL(is, list) expect_all(is, list, sizeof(list) / sizeof((list)[0]))

Test(stacks_name, where_threads_start)
{
	static const char *const names[] = { "_start", "start",
		"libc_start_main", "libc_start_call_main",
		"libc_start_main_impl", "clone", "clone3", "start_thread",
		"thread_start" };

	ALL(name_is_start, names);
	cr_expect_not(name_is_start("main"));
	cr_expect_not(name_is_start(""));
	cr_expect_not(name_is_start("clone32"));
}

Test(stacks_name, what_waits_in_glibc)
{
	static const char *const names[] = { "do_futex_wait",
		"new_sem_wait_slow", "new_sem_wait_slow64",
		"pthread_cond_wait_common", "syscall_cancel",
		"syscall_cancel_arch", "internal_syscall_cancel",
		"pthread_clockjoin_ex", "old_sem_wait", "futex_", "lll_" };

	ALL(name_is_wait, names);
	cr_expect(name_is_wait("futex_wait"));
	cr_expect(name_is_wait("lll_lock"));
	cr_expect_not(name_is_wait("pthread_cond_wait"));
	cr_expect_not(name_is_wait(""));
}

Test(stacks_name, what_is_of_the_interpreter)
{
	static const char *const names[] = { "_Py", "Py", "method_",
		"cfunction_", "builtin_", "slot_tp_", "object_vacall",
		"run_mod", "run_eval_code_obj", "pyrun_", "pymain_",
		"vectorcall_" };

	ALL(name_is_python, names);
	cr_expect(name_is_python("PyObject_Call"));
	cr_expect(name_is_python("PyThread"));
	cr_expect_not(name_is_python("PyThread_acquire_lock"));
	cr_expect_not(name_is_python("main"));
	cr_expect_not(name_is_python(""));
}
