/* SPDX-License-Identifier: Apache-2.0 */
/* test_program.c - finding the program of a job, or saying why not. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "launcher/cmd/program.h"
#include "tests/unit/folder.h"

static struct program found;
static struct xr_error err;

static enum xr_status
find(const char *name)
{
	free(found.path);
	found = (struct program){ 0 };
	err = (struct xr_error){ 0 };
	return program_find(&found, name, 8, &err);
}

/* Found, and this file. */
static void
expect_path(const char *name, const char *path)
{
	enum xr_status status = find(name);

	cr_assert_eq(status, XR_OK, "%s: %s", name, err.text);
	cr_expect_str_eq(found.path, path);
	cr_expect_str_eq(err.text, "");
}

static void
expect_error(const char *name, int exit_status, const char *text)
{
	enum xr_status status = find(name);

	cr_expect_eq(status, exit_status == 127 ? XR_E_NOTFOUND : XR_E_INVAL,
		"%s: %d", name, (int)status);
	cr_expect_eq(found.exit_status, exit_status, "%s: %d", name,
		found.exit_status);
	cr_expect_str_eq(err.text, text);
	free(found.path);
	cr_expect_eq(program_find(&found, name, 8, NULL), status);
}

static void
prepare(void)
{
	folder_make();
	cr_assert_eq(mkdir("bin", 0755), 0);
	cr_assert_eq(mkdir("more", 0755), 0);
	cr_assert_eq(setenv("PATH", "bin:more", 1), 0);
}

static void
finish(void)
{
	free(found.path);
	folder_remove();
}

TestSuite(program, .init = prepare, .fini = finish);

Test(program, a_name_with_a_slash_is_taken_as_it_is)
{
	folder_write("train", "#!/bin/sh\n", 0755);
	folder_write("bin/tool", "#!/bin/sh\n", 0700);
	expect_path("./train", "./train");
	expect_path("bin/tool", "bin/tool");
	expect_path("/bin/sh", "/bin/sh");
}

Test(program, a_name_without_is_looked_for_in_PATH)
{
	folder_write("bin/a", "#!/bin/sh\n", 0755);
	folder_write("more/a", "#!/bin/sh\n", 0755);
	folder_write("more/b", "#!/bin/sh\n", 0755);
	expect_path("a", "bin/a");
	expect_path("b", "more/b");
}

Test(program, what_cannot_run_in_PATH_is_passed_over)
{
	cr_assert_eq(mkdir("bin/a", 0755), 0);
	folder_write("bin/b", "#!/bin/sh\n", 0644);
	folder_write("more/a", "#!/bin/sh\n", 0755);
	folder_write("more/b", "#!/bin/sh\n", 0755);
	expect_path("a", "more/a");
	expect_path("b", "more/b");
}

Test(program, an_empty_entry_of_PATH_is_the_working_directory)
{
	static const char *const paths[] = { "", ":", ":bin",
		"bin:", "bin::more" };

	folder_write("here", "#!/bin/sh\n", 0755);
	folder_write("more/there", "#!/bin/sh\n", 0755);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		setenv("PATH", paths[i], 1);
		expect_path("here", "here");
	}
	expect_path("there", "more/there");
	setenv("PATH", ".", 1);
	expect_path("here", "./here");
}

Test(program, without_PATH_the_usual_places_are_looked_at)
{
	unsetenv("PATH");
	cr_assert_eq(find("sh"), XR_OK, "%s", err.text);
	cr_expect(strcmp(found.path, "/bin/sh") == 0 ||
			strcmp(found.path, "/usr/bin/sh") == 0,
		"%s", found.path);
}

Test(program, entries_of_PATH_beyond_any_path_are_passed_over)
{
	char path[2 * PATH_MAX + 16];

	folder_write("more/a", "#!/bin/sh\n", 0755);
	memset(path, 'x', sizeof(path));
	strncpy(path + sizeof(path) - 8, ":more", 8);
	setenv("PATH", path, 1);
	expect_path("a", "more/a");
}

Test(program, a_file_that_is_not_there_is_to_be_built)
{
	folder_write("file", "", 0644);
	expect_error("./train", 127, "./train: not found\tbuild it first");
	expect_error("/nowhere/train", 127,
		"/nowhere/train: not found\tbuild it first");
	expect_error("file/train", 127,
		"file/train: not found\tbuild it first");
}

Test(program, a_script_without_the_bit_is_given_its_interpreter)
{
	static const struct {
		const char *name, *with;
	} rows[] = {
		{ "./train.py", "python3" },
		{ "./a.sh", "bash" },
		{ "./a.pl", "perl" },
		{ "./a.jl", "julia" },
		{ "./a.R", "Rscript" },
		{ "./a.b.js", "node" },
	};
	char want[128];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		folder_write(rows[i].name, "", 0644);
		snprintf(want, sizeof(want),
			"%s: not executable\txrun -n 8 %s %s", rows[i].name,
			rows[i].with, rows[i].name);
		expect_error(rows[i].name, 126, want);
	}
}

Test(program, another_file_without_the_bit_is_to_get_it)
{
	folder_write("train", "", 0644);
	folder_write("a.py.txt", "", 0644);
	expect_error("./train", 126,
		"./train: not executable\tchmod +x ./train");
	expect_error("./a.py.txt", 126,
		"./a.py.txt: not executable\tchmod +x ./a.py.txt");
}

/* Typed without "./": what stands here is meant. */
Test(program, a_file_here_that_PATH_lacks_is_met)
{
	folder_write("train", "#!/bin/sh\n", 0755);
	folder_write("train.py", "", 0644);
	folder_write("data", "", 0644);
	expect_error("train", 127, "train: not found in PATH\t./train");
	expect_error("train.py", 126,
		"train.py: not executable\txrun -n 8 python3 train.py");
	expect_error("data", 126, "data: not executable\tchmod +x data");
}

Test(program, a_name_that_nothing_has_is_told)
{
	folder_write("bin/python3", "#!/bin/sh\n", 0755);
	expect_error("python", 127, "python: not found in PATH\tpython3");
	expect_error("julia", 127, "julia: not found in PATH");
	expect_error("", 127, "the name of the program is empty");
}

Test(program, a_folder_here_is_not_what_was_meant)
{
	cr_assert_eq(mkdir("python", 0755), 0);
	folder_write("bin/python3", "#!/bin/sh\n", 0755);
	expect_error("python", 127, "python: not found in PATH\tpython3");
}

Test(program, a_slip_in_a_verb_is_met)
{
	expect_error("versoin", 127,
		"versoin: not found in PATH (did you mean xrun version?)");
}

Test(program, a_misspelt_program_is_named)
{
	folder_write("bin/python3", "#!/bin/sh\n", 0755);
	folder_write("more/pyhton", "", 0644);
	expect_error("pyhton3", 127,
		"pyhton3: not found in PATH (did you mean python3?)");
	expect_error("bin/pyhton3", 127,
		"bin/pyhton3: not found (did you mean bin/python3?)");
	expect_error("./bni/python3", 127,
		"./bni/python3: not found\tbuild it first");
}

Test(program, a_file_without_the_bit_is_not_suggested)
{
	folder_write("more/traim", "", 0644);
	expect_error("traimn", 127, "traimn: not found in PATH");
	expect_error("more/traimn", 127,
		"more/traimn: not found\tbuild it first");
}

Test(program, a_verb_of_another_tool_has_advice)
{
	expect_error("run", 127,
		"run: not found in PATH, and no verb of xrun\txrun -n N PROGRAM");
	expect_error("list", 127,
		"list: not found in PATH, and no verb of xrun\txrun ps");
	folder_write("bin/run", "#!/bin/sh\n", 0755);
	expect_path("run", "bin/run");
}

Test(program, what_is_no_file_is_told)
{
	cr_assert_eq(mkdir("src", 0755), 0);
	cr_assert_eq(mkfifo("pipe", 0755), 0);
	cr_assert_eq(symlink("loop", "loop"), 0);
	expect_error("./src", 126, "./src: is a directory");
	expect_error("./src/", 126, "./src/: is a directory");
	expect_error("./pipe", 126, "./pipe: not a regular file");
	expect_error("/dev/null", 126, "/dev/null: not a regular file");
	expect_error("./loop", 126,
		"./loop: Too many levels of symbolic links");
}

Test(program, a_dangling_link_is_not_found)
{
	cr_assert_eq(symlink("gone", "train"), 0);
	cr_assert_eq(symlink("/bin/sh", "shell"), 0);
	expect_error("./train", 127, "./train: not found\tbuild it first");
	expect_path("./shell", "./shell");
}

static bool
kernel_has_more_formats(void)
{
	return access("/proc/sys/fs/binfmt_misc/status", F_OK) == 0;
}

Test(program, a_file_of_no_known_format_is_met_before_the_ranks)
{
	if (kernel_has_more_formats())
		folder_skip("binfmt_misc may know it");
	folder_write("bin/tool", "echo hello\n", 0755);
	folder_write("train.py", "import torch\n", 0755);
	folder_write("empty", "", 0755);
	folder_write("short", "#", 0755);
	expect_error("tool", 126,
		"tool: neither a program nor a script with a #! line\txrun -n 8 sh tool");
	expect_error("./train.py", 126,
		"./train.py: neither a program nor a script with a #! line\txrun -n 8 python3 ./train.py");
	expect_error("./empty", 126,
		"./empty: neither a program nor a script with a #! line\txrun -n 8 sh ./empty");
	expect_error("./short", 126,
		"./short: neither a program nor a script with a #! line\txrun -n 8 sh ./short");
}

Test(program, names_of_any_length_are_refused_in_words)
{
	char name[2 * PATH_MAX];

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cr_expect_eq(find(name), XR_E_NOTFOUND);
	cr_expect_eq(found.exit_status, 127);
	cr_expect_eq(strncmp(err.text, "aaaa", 4), 0);
	name[0] = '/';
	cr_expect_eq(find(name), XR_E_INVAL);
	cr_expect_eq(found.exit_status, 126);
}
