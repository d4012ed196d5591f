/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_local.c - stores in files (worker/store/file.c, loopback_file.c): their
 * folders, their locks, and kernels that fail. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/syscall.h>

#include <xrun/store.h>

#include "base/clock.h"
#include "base/host.h"
#include "tests/unit/folder.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"
#include "tests/unit/short_memory.h"
#include "tests/unit/sys_hook.h"
#include "worker/store/driver.h"

static struct xr_error err;
static char run[PATH_MAX + 16], state[PATH_MAX + 16];

/* A user without processes; unique, since several runs of this test share /tmp. */
static uid_t uid;
static char tmp[32];

TestSuite(store_local, .init = folder_make, .fini = folder_remove,
	.timeout = 60);

/* --- the folder of env:// on one machine ----------------------------------- */

static enum xr_status
open_local(bool serve, int64_t ns, struct driver **driver)
{
	const struct store_address address = { .place = STORE_AT_TCP,
		.host = "localhost",
		.port = 7,
		.serve = serve,
		.local = true };

	err = (struct xr_error){ 0 };
	*driver = NULL;
	return loopback_file_open(&address, clock_now() + ns, driver, &err);
}

/* Opens it as rank 0; the lock is in @place while it is open, "" if it fails. */
static void
expect_in(int line, const char *place)
{
	struct driver *d;
	char lock[PATH_MAX + 512];
	enum xr_status status = open_local(true, 0, &d);

	snprintf(lock, sizeof(lock), "%s/store-7.lock", place);
	if (place[0] == '\0') {
		if (status != XR_E_AUTH ||
			strstr(err.text, "is a folder of this user alone") ==
				NULL)
			forked_note(line, "%s", err.text);
		return;
	}
	if (status != XR_OK || access(lock, F_OK) != 0)
		forked_note(line, "%s: %s: %s", place, lock, err.text);
	if (status != XR_OK)
		return;
	d->ops->free(d);
	if (access(lock, F_OK) == 0)
		forked_note(line, "%s stays", lock);
}

#define EXPECT_IN(place) expect_in(__LINE__, place)

static void
become_other(void)
{
	snprintf(run, sizeof(run), "%s/run", folder);
	snprintf(state, sizeof(state), "%s/state", folder);
	NEED(chmod(folder, 0777) == 0);
	NEED(seteuid(uid) == 0);
	NEED(mkdir(run, 0700) == 0);
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
}

static void
runtime_rows(void)
{
	char inner[PATH_MAX + 32];

	EXPECT_IN(tmp);
	setenv("XDG_RUNTIME_DIR", "run", 1);
	EXPECT_IN(tmp);
	setenv("XDG_RUNTIME_DIR", run, 1);
	snprintf(inner, sizeof(inner), "%s/xrun", run);
	EXPECT_IN(inner);
	EXPECT_IN(inner); /* it exists */
	/* Others can write it, or it is another user's, or no folder. */
	NEED(chmod(inner, 0720) == 0);
	EXPECT_IN(tmp);
	NEED(rmdir(inner) == 0);
	folder_write(inner, "", 0600);
	EXPECT_IN(tmp);
	NEED(unlink(inner) == 0);
	NEED(chmod(run, 0702) == 0);
	EXPECT_IN(tmp);
	NEED(chmod(run, 0755) == 0);
	EXPECT_IN(inner);
	NEED(chmod(run, 0500) == 0 && rmdir(inner) == -1);
	NEED(chmod(run, 0700) == 0 && rmdir(inner) == 0);
	NEED(chmod(run, 0500) == 0);
	EXPECT_IN(tmp);
	setenv("XDG_RUNTIME_DIR", "/", 1);
	EXPECT_IN(tmp);
}

static void
state_rows(void)
{
	char host[256], place[PATH_MAX + 512];

	unsetenv("XDG_RUNTIME_DIR");
	host_name(host, sizeof(host));
	EXPECT_IN("");
	setenv("HOME", "rel", 1);
	EXPECT_IN("");
	setenv("XDG_STATE_HOME", "rel", 1);
	EXPECT_IN("");
	setenv("HOME", folder, 1);
	snprintf(place, sizeof(place), "%s/.local/state/xrun/.run-%s", folder,
		host);
	EXPECT_IN(place);
	setenv("XDG_STATE_HOME", state, 1);
	snprintf(place, sizeof(place), "%s/xrun/.run-%s", state, host);
	EXPECT_IN(place);
	NEED(chmod(place, 0770) == 0);
	EXPECT_IN("");
}

FORKED_TEST(store_local, the_folder_is_the_first_that_is_this_users_alone)
{
	if (geteuid() != 0)
		return;
	uid = 1u << 30 | (uid_t)getpid();
	snprintf(tmp, sizeof(tmp), "/tmp/xrun-%u", uid);
	become_other();
	runtime_rows();
	NEED(chmod(tmp, 0777) == 0);
	state_rows();
	NEED(rmdir(tmp) == 0);
	folder_write(tmp, "", 0600);
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	EXPECT_IN("");
	NEED(unlink(tmp) == 0);
	NEED(seteuid(0) == 0);
}

/* --- the lock of rank 0 ---------------------------------------------------- */

static void
begin_here(void)
{
	snprintf(run, sizeof(run), "%s/run", folder);
	NEED(mkdir(run, 0700) == 0);
	setenv("XDG_RUNTIME_DIR", run, 1);
}

static enum xr_status
ask_get(struct driver *d)
{
	struct store_request q = { .op = STORE_GET, .key = span_of("/k") };
	struct store_reply r;

	d->ops->ask(d, &q, clock_now() + 20 * NS_PER_S, &r);
	err = r.err;
	return r.status;
}

FORKED_TEST(store_local, handles_of_one_process_share_the_lock_of_rank_0)
{
	struct driver *zero, *again, *one;

	begin_here();
	EXPECT_EQ(open_local(false, 0, &one), XR_E_TIMEOUT);
	EXPECT(strstr(err.text, "rank 0 did not open its store in") != NULL);
	NEED(open_local(true, 0, &zero) == XR_OK);
	NEED(open_local(true, 0, &again) == XR_OK);
	NEED(open_local(false, 0, &one) == XR_OK);
	zero->ops->free(zero);
	again->ops->free(again);
	EXPECT_EQ(access("run/xrun/store-7", F_OK), 0);
	EXPECT_EQ(ask_get(one), XR_E_NOTFOUND);
	one->ops->free(one);
	EXPECT_EQ(folder_entries("run/xrun"), 0);
}

/* What it was told is kept until its end. */
FORKED_TEST(store_local, a_store_is_lost_with_the_process_of_rank_0)
{
	struct driver *zero, *one;
	int gate[2], ready[2], status;
	char byte;
	pid_t pid;

	begin_here();
	NEED(pipe2(gate, O_CLOEXEC) == 0 && pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		close(gate[1]);
		NEED(open_local(true, 0, &zero) == XR_OK);
		NEED(write(ready[1], "x", 1) == 1);
		_exit(read(gate[0], &byte, 1) == 1);
	}
	NEED(read(ready[0], &byte, 1) == 1);
	NEED(open_local(false, 0, &one) == XR_OK);
	EXPECT_EQ(ask_get(one), XR_E_NOTFOUND);
	/* Two processes may be rank 0. */
	NEED(open_local(true, 0, &zero) == XR_OK);
	zero->ops->free(zero);
	EXPECT_EQ(ask_get(one), XR_E_NOTFOUND);
	close(gate[1]);
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(ask_get(one), XR_E_PEER_LOST);
	EXPECT(strstr(err.text, "rank 0, which this store ends with") != NULL);
	one->ops->free(one);
	/* What it has left is none of the next one's. */
	NEED(open_local(true, 0, &zero) == XR_OK);
	EXPECT_EQ(ask_get(zero), XR_E_NOTFOUND);
	zero->ops->free(zero);
	EXPECT_EQ(folder_entries("run/xrun"), 0);
}

FORKED_TEST(store_local, a_lock_that_cannot_be_had_is_reported)
{
	struct driver *d;
	int before;

	begin_here();
	before = folder_entries("/proc/self/fd");
	NEED(mkdir("run/xrun", 0700) == 0);
	NEED(symlink("elsewhere", "run/xrun/store-7.lock") == 0);
	EXPECT_EQ(open_local(true, 0, &d), XR_E_SYS);
	EXPECT(strstr(err.text, strerror(ELOOP)) != NULL);
	EXPECT_EQ(open_local(false, 0, &d), XR_E_TIMEOUT);
	NEED(unlink("run/xrun/store-7.lock") == 0);
	/* Of what cannot be removed there is no lock for one alone. */
	NEED(mkdir("run/xrun/store-7", 0700) == 0);
	EXPECT_EQ(open_local(true, 0, &d), XR_E_SYS);
	NEED(rmdir("run/xrun/store-7") == 0);
	NEED(seccomp_refuse(SYS_fcntl, ENOLCK) == 0);
	EXPECT_EQ(open_local(true, 0, &d), XR_E_SYS);
	EXPECT(strstr(err.text, strerror(EAGAIN)) != NULL);
	EXPECT_EQ(folder_entries("/proc/self/fd"), before);
}

FORKED_TEST(store_local, a_store_that_is_closed_answers_nothing)
{
	struct driver *d;

	begin_here();
	NEED(open_local(true, 0, &d) == XR_OK);
	EXPECT_EQ(ask_get(d), XR_E_NOTFOUND);
	d->ops->close(d);
	EXPECT_EQ(ask_get(d), XR_E_CLOSED);
	d->ops->free(d);
}

/* Another process, whose store is over, has removed the lock, and a third has made it. */
static unsigned replaced;

static long
replace_lock(int nr, const long arg[5])
{
	(void)nr;
	if (arg[1] != F_SETLK || replaced++ > 0)
		return 0;
	unlink("run/xrun/store-7.lock");
	folder_write("run/xrun/store-7.lock", "", 0600);
	return 0;
}

/* True if a child sees that the file that has the name is locked for reading. */
static bool
is_locked(void)
{
	int status;
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0) {
		struct flock fl = { .l_type = F_WRLCK };
		int fd = open("run/xrun/store-7.lock", O_RDWR | O_CLOEXEC);

		_exit(fd == -1 || fcntl(fd, F_GETLK, &fl) == -1 ||
			fl.l_type != F_RDLCK);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	return status == 0;
}

FORKED_TEST(store_local, the_lock_is_that_of_the_file_that_has_the_name)
{
	struct driver *d;

	begin_here();
	NEED(mkdir("run/xrun", 0700) == 0);
	sys_trap(SYS_fcntl);
	sys_hook = replace_lock;
	EXPECT_EQ(open_local(true, 20 * NS_PER_S, &d), XR_OK);
	sys_hook = NULL;
	EXPECT(replaced > 1);
	EXPECT(is_locked());
	if (d != NULL)
		d->ops->free(d);
	EXPECT_EQ(folder_entries("run/xrun"), 0);
}

/* lstat() reports the same inode number on another device. */
static bool is_elsewhere;

int __real_lstat64(const char *path, struct stat *s);
int __wrap_lstat64(const char *path, struct stat *s);

int
__wrap_lstat64(const char *path, struct stat *s)
{
	int got = __real_lstat64(path, s);

	if (got == 0 && is_elsewhere)
		s->st_dev++;
	return got;
}

FORKED_TEST(store_local, a_file_of_another_file_system_is_not_the_lock)
{
	struct driver *d;

	begin_here();
	is_elsewhere = true;
	EXPECT_EQ(open_local(true, 0, &d), XR_E_SYS);
	EXPECT(strstr(err.text, strerror(EAGAIN)) != NULL);
	is_elsewhere = false;
	NEED(open_local(true, 0, &d) == XR_OK);
	d->ops->free(d);
	EXPECT_EQ(folder_entries("run/xrun"), 0);
}

FORKED_TEST(store_local, without_memory_no_lock_is_kept)
{
	enum xr_status status;
	struct driver *d;
	unsigned n = 0;

	begin_here();
	do {
		was_short = false;
		until_short = ++n;
		status = open_local(true, 0, &d);
		until_short = 0;
		EXPECT_EQ(status, was_short ? XR_E_NOMEM : XR_OK);
		if (status == XR_OK)
			d->ops->free(d);
		EXPECT_EQ(folder_entries("run/xrun") <= 0, 1);
	} while (was_short);
	EXPECT(n > 3);
}

/* --- files ----------------------------------------------------------------- */

static enum xr_status
open_file(struct xr_store **s)
{
	struct xr_store_options o = XR_STORE_OPTIONS;
	char address[PATH_MAX + 32];

	snprintf(address, sizeof(address), "file://%s/store", folder);
	err = (struct xr_error){ 0 };
	*s = NULL;
	o.rank = 0;
	o.dynamic = true;
	o.timeout = XR_SECONDS(20);
	return xr_store_open(address, &o, s, &err);
}

static const struct {
	int call, sys;
	enum xr_status open, set;
	const char *words;
} calls[] = {
	{ SYS_flock, ENOLCK, XR_E_SYS, XR_E_SYS, "its lock: " },
	{ SYS_pread64, EIO, XR_E_SYS, XR_OK, "Input/output error" },
	{ SYS_pwrite64, ENOSPC, XR_OK, XR_E_SYS,
		"not written: No space left on device" },
	{ SYS_ftruncate, EFBIG, XR_OK, XR_E_SYS,
		"not written: File too large" },
	{ SYS_eventfd2, EMFILE, XR_E_SYS, XR_OK, "Too many open files" },
	{ SYS_inotify_init1, EMFILE, XR_OK, XR_OK, "" },
	{ SYS_inotify_add_watch, ENOSPC, XR_OK, XR_OK, "" },
};

/* A handle that was opened before sets a key, and another is opened; in a process of its
 * own. */
static void
refuse_call(size_t i)
{
	struct xr_store *s, *other;
	struct xr_store_value v;

	NEED(open_file(&s) == XR_OK);
	NEED(xr_store_set(s, "old", "1", 1, &err) == XR_OK);
	NEED(seccomp_refuse(calls[i].call, calls[i].sys) == 0);
	NEED(xr_store_set(s, "k", "v", 1, &err) == calls[i].set);
	if (calls[i].set != XR_OK)
		NEED(strstr(err.text, calls[i].words) != NULL);
	NEED(open_file(&other) == calls[i].open);
	if (calls[i].open != XR_OK) {
		NEED(strstr(err.text, calls[i].words) != NULL);
		NEED(other == NULL);
		_exit(0);
	}
	NEED(xr_store_get(other, "old", 0, &v, &err) == XR_OK);
	xr_store_value_free(&v);
	NEED(xr_store_get(other, "k", XR_SECONDS(0.01), &v, &err) ==
		(calls[i].set == XR_OK ? XR_OK : XR_E_TIMEOUT));
	_exit(0);
}

FORKED_TEST(store_local, a_system_call_that_fails_is_reported_and_loses_nothing)
{
	struct xr_store *s;
	struct xr_store_value v;
	int status;
	pid_t pid;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		unlink("store");
		pid = fork();
		NEED(pid != -1);
		if (pid == 0)
			refuse_call(i);
		NEED(waitpid(pid, &status, 0) == pid);
		if (status != 0)
			forked_note(__LINE__, "row %zu: status %x", i, status);
		NEED(open_file(&s) == XR_OK);
		EXPECT_EQ(xr_store_get(s, "old", 0, &v, &err), XR_OK);
		xr_store_value_free(&v);
		xr_store_free(s);
	}
}

FORKED_TEST(store_local, a_file_of_another_user_is_refused)
{
	struct xr_store *s;

	if (geteuid() != 0)
		return;
	NEED(open_file(&s) == XR_OK);
	xr_store_free(s);
	NEED(chown("store", 41234, 0) == 0);
	EXPECT_EQ(open_file(&s), XR_E_AUTH);
	EXPECT(strstr(err.text, "is another user's") != NULL);
}

/* A log that cannot be replaced stays, and the draft of the next one does not. */
FORKED_TEST(store_local, a_log_that_cannot_be_replaced_stays)
{
	static char value[3 << 20];
	struct xr_store *s;
	struct stat st;

	NEED(open_file(&s) == XR_OK);
	NEED(seccomp_refuse(SYS_rename, EPERM) == 0);
	for (int i = 0; i < 7; i++)
		EXPECT_EQ(xr_store_set(s, "k", value, sizeof(value), &err),
			XR_OK);
	NEED(stat("store", &st) == 0);
	EXPECT(st.st_size > 7 * (off_t)sizeof(value));
	EXPECT_EQ(folder_entries("."), 1);
	xr_store_free(s);
}
