/* SPDX-License-Identifier: Apache-2.0 */
/* test_core.c - names of core files; the settings of the kernel are the test's. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "proc/core.h"
#include "tests/unit/folder.h"

static const struct core dead = {
	.pid = 4711,
	.sig = 11,
	.program = "/home/a/train_a_very_long_name",
};

static const char *
expand(const char *pattern, bool add_pid)
{
	static char out[64];

	memset(out, 'x', sizeof(out));
	return core_expand(pattern, add_pid, &dead, out, sizeof(out)) ? out :
									NULL;
}

Test(core, a_pattern_names_the_file)
{
	char host[64], want[80];

	cr_expect_str_eq(expand("core", false), "core");
	cr_expect_str_eq(expand("core", true), "core.4711");
	cr_expect_str_eq(expand("core.%p", true), "core.4711");
	cr_expect_str_eq(expand("/var/%s-%i-%I-%P", false),
		"/var/11-4711-4711-4711");
	cr_expect_str_eq(expand("%P", true), "4711.4711");
	cr_expect_str_eq(expand("%%%e", false), "%train_a_very_lo");
	snprintf(want, sizeof(want), "%u/%u", getuid(), getgid());
	cr_expect_str_eq(expand("%u/%g", false), want);
	cr_assert_eq(gethostname(host, sizeof(host)), 0);
	cr_expect_str_eq(expand("%h", false), host);
}

Test(core, what_is_not_known_is_not_guessed)
{
	cr_expect_null(expand("core.%t", false));
	cr_expect_null(expand("%c", false));
	cr_expect_null(expand("core%", false));
}

Test(core, a_name_that_does_not_fit_is_none)
{
	char out[8];

	for (size_t cap = 0; cap <= sizeof(out); cap++) {
		cr_expect_eq(core_expand("core.%s", false, &dead, out, cap),
			cap >= 8, "%zu", cap);
		cr_expect_eq(core_expand("co", true, &dead, out, cap), cap >= 8,
			"%zu", cap);
	}
}

/* --- where it is ----------------------------------------------------------- */

static const char *pattern, *uses_pid; /* as the kernel has them */

size_t __wrap_fd_read_small(const char *path, char *out, size_t cap);

size_t
__wrap_fd_read_small(const char *path, char *out, size_t cap)
{
	bool is_pattern = strcmp(path, "/proc/sys/kernel/core_pattern") == 0;

	if (!is_pattern)
		cr_expect_str_eq(path, "/proc/sys/kernel/core_uses_pid");
	snprintf(out, cap, "%s", is_pattern ? pattern : uses_pid);
	return strlen(out);
}

static struct core ran = {
	.pid = 4711,
	.sig = 11,
	.program = "/bin/train",
};
static char found[600];

static enum core_kind
find(const char *as, size_t cap)
{
	pattern = as;
	memset(found, 'x', sizeof(found));
	found[0] = '\0';
	return core_find(&ran, found, cap);
}

TestSuite(core_file, .init = folder_make, .fini = folder_remove, .timeout = 60);

Test(core_file, a_file_is_named_as_it_is_seen_from_here)
{
	char want[PATH_MAX + 16];

	uses_pid = "0\n";
	folder_write("core", "", 0600);
	folder_write("core.4711", "", 0600);
	cr_expect_eq(find("core\n", sizeof(found)), CORE_FILE);
	cr_expect_str_eq(found, "core");
	uses_pid = "1\n";
	cr_expect_eq(find("core\n", sizeof(found)), CORE_FILE);
	cr_expect_str_eq(found, "core.4711");
	/* Where the process ran. */
	ran.dir = folder;
	snprintf(want, sizeof(want), "%s/core.4711", folder);
	cr_expect_eq(find("core\n", sizeof(found)), CORE_FILE);
	cr_expect_str_eq(found, want);
	cr_expect_eq(find("core", strlen(want) + 1), CORE_FILE);
	cr_expect_str_eq(found, want);
	cr_expect_eq(find("core", strlen(want)), CORE_UNKNOWN);
	ran.dir = ".";
	cr_expect_eq(find("core", sizeof(found)), CORE_FILE);
	cr_expect_str_eq(found, "./core.4711");
	/* A name from the root is that everywhere. */
	snprintf(want, sizeof(want), "%s/core", folder);
	uses_pid = "";
	ran.dir = "/elsewhere";
	cr_expect_eq(find(want, sizeof(found)), CORE_FILE);
	cr_expect_str_eq(found, want);
	cr_expect_eq(find("core", sizeof(found)), CORE_UNKNOWN);
}

Test(core_file, a_file_counts_if_it_is_not_older)
{
	struct stat st;

	uses_pid = "0";
	folder_write("core", "", 0600);
	cr_assert_eq(stat("core", &st), 0);
	/* The clock of files is coarse: a second is allowed. */
	ran.since = (st.st_mtim.tv_sec + 1) * NS_PER_S;
	cr_expect_eq(find("core", sizeof(found)), CORE_FILE);
	ran.since += NS_PER_S - 1;
	cr_expect_eq(find("core", sizeof(found)), CORE_FILE);
	ran.since++;
	cr_expect_eq(find("core", sizeof(found)), CORE_UNKNOWN);
	ran.since = 0;
	cr_expect_eq(find("core", sizeof(found)), CORE_FILE);
	cr_expect_eq(find("none", sizeof(found)), CORE_UNKNOWN);
	cr_expect_eq(find("\n", sizeof(found)), CORE_UNKNOWN);
	cr_expect_eq(find("", sizeof(found)), CORE_UNKNOWN);
	cr_expect_eq(find("core%t", sizeof(found)), CORE_UNKNOWN);
	/* A socket that a program listens on, since Linux 6.16. */
	folder_write("@core", "", 0600);
	folder_write("a@core", "", 0600);
	cr_expect_eq(find("@core", sizeof(found)), CORE_UNKNOWN);
	cr_expect_eq(find("a@core", sizeof(found)), CORE_FILE);
}

Test(core_file, a_program_that_takes_it_is_named)
{
	char longest[130] = "|/lib/";

	uses_pid = "0";
	cr_expect_eq(find("|/usr/lib/systemd/coredump %P %u\n", sizeof(found)),
		CORE_PIPED);
	cr_expect_str_eq(found, "coredump");
	cr_expect_eq(find("|keep\n", sizeof(found)), CORE_PIPED);
	cr_expect_str_eq(found, "keep");
	cr_expect_eq(find("|/bin/keep %p", 4), CORE_PIPED);
	cr_expect_str_eq(found, "kee");
	/* The longest that the kernel has. */
	memset(longest + 6, 'k', 127 - 6);
	cr_expect_eq(find(longest, sizeof(found)), CORE_PIPED);
	cr_expect_str_eq(found, longest + 6);
}
