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

#include "launcher/state/state_inner.h"
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

/* --- a user without a home ----------------------------------------------------- */

static char shared[32];       /* the path that was to be made */
static const char *shared_at; /* the path that stands for it */
static int shared_fails; /* the system call that fails with EIO; -1: none */

/* /etc/passwd has no row for this user. The folder below /var/tmp is @shared_at. */
static long
no_home(int nr, const long arg[5])
{
	bool at =
		nr == SYS_mkdirat || nr == SYS_newfstatat || nr == SYS_fchmodat;
	char *path = (char *)arg[at || nr == SYS_openat];

	if (nr == SYS_openat)
		return strcmp(path, "/etc/passwd") == 0 ? -ENOENT : 0;
	if (strncmp(path, "/var/tmp/", 9) == 0) {
		snprintf(shared, sizeof(shared), "%s", path);
		memcpy(path, shared_at, strlen(shared_at) + 1);
	}
	return nr == shared_fails ? -EIO : 0;
}

static void
expect_shared(const char *want, const char *is)
{
	struct xr_error why = { .text = "" };
	enum xr_status status;
	char path[32], text[300];
	char *root;

	shared[0] = '\0';
	shared_at = is;
	sys_hook = no_home;
	status = state_find_root(&root, &why);
	sys_hook = NULL;
	snprintf(path, sizeof(path), "/var/tmp/xrun-%u", (unsigned)getuid());
	EXPECT_STR(shared, path);
	EXPECT_STR(root, is);
	free(root);
	snprintf(text, sizeof(text), "%s%s%s", want[0] == '\0' ? "" : is, want,
		want[0] == '\0' ? "" :
				  "\tHOME=DIR, --log-dir DIR or --no-logs");
	if (shared_fails != -1)
		snprintf(text, sizeof(text),
			"%s: %s\t--log-dir DIR or --no-logs", is,
			strerror(EIO));
	EXPECT_STR(why.text, text);
	EXPECT_EQ(status,
		shared_fails != -1      ? XR_E_SYS :
			want[0] != '\0' ? XR_E_INVAL :
					  XR_OK);
}

static void
trap_shared(void)
{
#ifdef SYS_mkdir /* not on all architectures */
	sys_trap(SYS_mkdir);
	sys_trap(SYS_chmod);
#endif
	sys_trap(SYS_mkdirat);
	sys_trap(SYS_newfstatat);
	sys_trap(SYS_fchmodat);
	sys_trap(SYS_openat);
	unsetenv("HOME");
	unsetenv("XDG_STATE_HOME");
	shared_fails = -1;
}

static mode_t
mode_of(const char *path)
{
	struct stat is;

	return lstat(path, &is) == 0 ? is.st_mode : 0;
}

FORKED_TEST(home, without_a_home_the_root_is_a_folder_of_this_user_alone)
{
	trap_shared();
	expect_shared("", "new");
	EXPECT_EQ(mode_of("new"), S_IFDIR | 0700);
	expect_shared("", "new");
	NEED(mkdir("open", 0755) == 0);
	expect_shared("", "open");
	EXPECT_EQ(mode_of("open"), S_IFDIR | 0700);
	NEED(mkdir("sticky", 0) == 0 && chmod("sticky", 01700) == 0);
	expect_shared("", "sticky");
	EXPECT_EQ(mode_of("sticky"), S_IFDIR | 0700);
	/* One whose mode is right is not touched. */
	shared_fails = SYS_fchmodat;
#ifdef SYS_chmod
	shared_fails = SYS_chmod;
#endif
	NEED(mkdir("wide", 0701) == 0);
	expect_shared("", "wide");
	EXPECT_EQ(mode_of("wide"), S_IFDIR | 0701);
}

FORKED_TEST(home, a_shared_root_of_another_user_is_refused)
{
	static const char no_folder[] =
		": is no folder, and without a HOME xrun keeps its files there";

	trap_shared();
	folder_write("file", "", 0700);
	expect_shared(no_folder, "file");
	NEED(mkdir("own", 0700) == 0 && symlink("own", "link") == 0);
	expect_shared(no_folder, "link");
	if (geteuid() == 0) {
		NEED(mkdir("other", 0755) == 0 && chown("other", 7, 0) == 0);
		expect_shared(
			": belongs to user 7, and without a HOME xrun keeps its files there",
			"other");
		EXPECT_EQ(mode_of("other"), S_IFDIR | 0755);
	} else {
		expect_shared(
			": belongs to user 0, and without a HOME xrun keeps its files there",
			"/");
	}
}

FORKED_TEST(home, a_shared_root_that_cannot_be_made_is_told)
{
	trap_shared();
	NEED(mkdir("own", 0700) == 0);
	shared_fails = SYS_newfstatat;
	expect_shared("", "own");
	shared_fails = SYS_mkdirat;
#ifdef SYS_mkdir
	shared_fails = SYS_mkdir;
#endif
	expect_shared("", "own");
	EXPECT_EQ(mode_of("own"), S_IFDIR | 0700);
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
