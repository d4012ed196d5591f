/* SPDX-License-Identifier: Apache-2.0 */
/* test_home.c - where a user's jobs are, whose folders are believed, and how
 * paths are shown. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "launcher/state/state.h"
#include "tests/unit/folder.h"
#include "tests/unit/sys_hook.h"

static void
prepare(void)
{
	folder_make();
	umask(0); /* the modes are ours, not the shell's */
}

TestSuite(home, .init = prepare, .fini = folder_remove);

static void
expect_home(const char *xdg, const char *home, const char *want)
{
	char *got;

	setenv("XDG_STATE_HOME", xdg, 1);
	setenv("HOME", home, 1);
	got = state_home();
	cr_expect_str_eq(got, want, "'%s' '%s': %s", xdg, home, got);
	free(got);
}

Test(home, the_root_is_where_the_XDG_says)
{
	expect_home("/x", "/h", "/x/xrun");
	expect_home("", "/h", "/h/.local/state/xrun");
	expect_home("relative", "/h", "/h/.local/state/xrun");
	unsetenv("XDG_STATE_HOME");
}

/* The folder of this user in /etc/passwd, a copy; NULL if it has no row. */
static char *
home_in_passwd(void)
{
	FILE *users = fopen("/etc/passwd", "re");
	struct passwd *pw;
	char *found = NULL;

	while (users != NULL && found == NULL &&
		(pw = fgetpwent(users)) != NULL)
		if (pw->pw_uid == getuid())
			found = strdup(pw->pw_dir);
	if (users != NULL)
		fclose(users);
	return found;
}

Test(home, without_a_HOME_the_folder_is_that_of_etc_passwd)
{
	char *want = home_in_passwd();
	const char *got;

	unsetenv("HOME");
	got = state_user_home();
	cr_expect_eq(got == NULL, want == NULL);
	cr_expect(want == NULL || got == NULL || strcmp(got, want) == 0,
		"%s, not %s", got, want);
	free(want);
}

FORKED_TEST(home, without_a_HOME_and_etc_passwd_there_is_no_folder)
{
	unsetenv("HOME");
	sys_trap(SYS_openat);
	sys_fail_begin(1, EACCES);
	EXPECT(state_user_home() == NULL);
	EXPECT(sys_fail_end());
}

Test(home, without_a_HOME_the_root_is_absolute_all_the_same)
{
	char *got;

	unsetenv("XDG_STATE_HOME");
	setenv("HOME", "relative", 1);
	got = state_home();
	cr_assert_not_null(got);
	cr_expect_eq(got[0], '/');
	free(got);
	unsetenv("HOME");
	got = state_home();
	cr_expect_eq(got[0], '/');
	free(got);
}

static bool
trusts(uid_t owner, mode_t mode)
{
	struct stat dir = { .st_uid = owner, .st_mode = S_IFDIR | mode };

	return state_is_trusted(&dir);
}

Test(home, trusted_is_who_alone_could_have_made_it)
{
	uid_t me = geteuid(), other = 54321;

	cr_expect(trusts(me, 0700));
	cr_expect(trusts(me, 0775));
	cr_expect(!trusts(me, 0777));
	cr_expect(!trusts(me, 01777));
	cr_expect(trusts(0, 0755));
	cr_expect(!trusts(0, 01777));
	cr_expect(!trusts(other, 0700));
	cr_expect(!trusts(other, 0755));
	if (me != 0)
		cr_expect(!trusts(0, 0775));
}

Test(home, a_path_at_home_is_shown_with_a_tilde)
{
	static const struct {
		const char *home, *path, *shown;
	} rows[] = {
		{ "/home/a", "/home/a", "~" },
		{ "/home/a", "/home/a/b/c", "~/b/c" },
		{ "/home/a", "/home/ab", "/home/ab" },
		{ "/home/a", "/home", "/home" },
		{ "/home/a", "/x/home/a", "/x/home/a" },
		{ "/", "/etc", "/etc" },
	};
	char shown[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setenv("HOME", rows[i].home, 1);
		cr_expect_eq(state_tilde(rows[i].path, shown, sizeof(shown)),
			shown);
		cr_expect_str_eq(shown, rows[i].shown, "%s", shown);
	}
}

Test(home, a_file_system_is_named_by_its_mount_point)
{
	struct stat got, root;
	char buf[PATH_MAX];
	const char *at;

	cr_expect_str_eq(state_mount("/", buf), "/");
	cr_expect_str_eq(state_mount("/proc/self/fdinfo", buf), "/proc");
	cr_expect_str_eq(state_mount("/nowhere/at/all", buf),
		"/nowhere/at/all");
	at = state_mount(".", buf);
	cr_assert_eq(stat(at, &got), 0);
	cr_assert_eq(stat(".", &root), 0);
	cr_expect_eq(got.st_dev, root.st_dev);
}
