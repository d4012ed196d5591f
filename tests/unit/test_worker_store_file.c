/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_store_file.c - stores in files: what is in them, who was killed
 * while he wrote, and whose they are. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <xrun/store.h>

static char address[64], *path;
static struct xr_error err;

static void
begin(void)
{
	snprintf(address, sizeof(address), "file:///tmp/xrun-test-file.%d",
		(int)getpid());
	path = address + 7;
	unlink(path);
}

static void
end(void)
{
	unlink(path);
}

TestSuite(worker_store_file, .init = begin, .fini = end, .timeout = 60);

static enum xr_status
try_open(struct xr_store **store)
{
	struct xr_store_options o = XR_STORE_OPTIONS;

	o.rank = 0;
	o.dynamic = true;
	o.timeout = XR_SECONDS(10);
	return xr_store_open(address, &o, store, &err);
}

static struct xr_store *
opened(void)
{
	struct xr_store *store = NULL;

	cr_assert_eq(try_open(&store), XR_OK, "%s", err.text);
	return store;
}

static void
set(struct xr_store *store, const char *key, const char *text)
{
	cr_assert_eq(xr_store_set(store, key, text, strlen(text), &err), XR_OK,
		"%s", err.text);
}

static void
has(struct xr_store *store, const char *key, const char *text)
{
	struct xr_store_value v = { 0 };
	enum xr_status status = xr_store_get(store, key, 0, &v, &err);

	if (text == NULL) {
		cr_expect_eq(status, XR_E_NOTFOUND, "%s", key);
		return;
	}
	cr_assert_eq(status, XR_OK, "%s", err.text);
	cr_expect_str_eq(v.data, text);
	xr_store_value_free(&v);
}

static void
put_bytes(const void *data, size_t len, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);

	cr_assert_eq(write(fd, data, len), (ssize_t)len);
	close(fd);
}

static off_t
size_now(void)
{
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	return st.st_size;
}

Test(worker_store_file, what_was_set_outlives_who_set_it)
{
	struct xr_store *s = opened();
	struct stat st;

	set(s, "k", "kept");
	set(s, "gone", "x");
	cr_assert_eq(xr_store_delete(s, "gone", NULL, &err), XR_OK);
	xr_store_free(s);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0600);
	s = opened();
	has(s, "k", "kept");
	has(s, "gone", NULL);
	xr_store_free(s);
}

Test(worker_store_file, wherever_a_writer_was_killed_the_next_goes_on)
{
	struct xr_store *s = opened();
	off_t whole, all;

	set(s, "k", "kept");
	whole = size_now();
	set(s, "torn", "a value of some bytes");
	all = size_now();
	xr_store_free(s);
	for (off_t at = all - 1; at > whole; at -= 3) {
		cr_assert_eq(truncate(path, at), 0);
		s = opened();
		has(s, "k", "kept");
		has(s, "torn", NULL);
		set(s, "torn", "a value of some bytes");
		cr_expect_eq(size_now(), all);
		xr_store_free(s);
	}
	for (off_t at = 15; at > 0; at -= 7) {
		cr_assert_eq(truncate(path, at), 0);
		s = opened();
		has(s, "k", NULL);
		set(s, "k", "kept");
		has(s, "k", "kept");
		xr_store_free(s);
	}
}

Test(worker_store_file, a_file_that_is_no_store_is_left_as_it_is)
{
	struct xr_store *s = NULL;
	off_t before;

	put_bytes("#!/bin/sh\necho dear to somebody\n", 32, O_TRUNC);
	cr_expect_eq(try_open(&s), XR_E_PROTO);
	cr_expect(strstr(err.text, "is no store") != NULL, "%s", err.text);
	cr_expect_eq(size_now(), 32);
	unlink(path);
	s = opened();
	set(s, "k", "v");
	xr_store_free(s);
	put_bytes("and then something that nobody understands", 42, O_APPEND);
	before = size_now();
	cr_expect_eq(try_open(&s), XR_E_PROTO);
	cr_expect(strstr(err.text, "damaged") != NULL, "%s", err.text);
	cr_expect_eq(size_now(), before);
}

Test(worker_store_file, what_is_no_regular_file_is_refused_without_a_wait)
{
	struct xr_store *s = NULL;

	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_expect_neq(try_open(&s), XR_OK);
	unlink(path);
	cr_assert_eq(symlink("/tmp/xrun-test-elsewhere", path), 0);
	cr_expect_eq(try_open(&s), XR_E_SYS);
	unlink(path);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_expect_neq(try_open(&s), XR_OK);
	rmdir(path);
}

Test(worker_store_file, a_file_that_others_can_read_is_refused)
{
	static const mode_t open_modes[] = { 0644, 0640, 0602, 0610 };
	struct xr_store *s = opened();

	set(s, "k", "v");
	xr_store_free(s);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(chmod(path, open_modes[i]), 0);
		cr_expect_eq(try_open(&s), XR_E_AUTH);
		cr_expect_neq(strstr(err.text, "chmod 600"), NULL, "%s",
			err.text);
	}
	cr_assert_eq(chmod(path, 0600), 0);
	xr_store_free(opened());
}

Test(worker_store_file, a_long_log_is_rewritten_and_all_see_the_new_one)
{
	static char value[1 << 20];
	struct xr_store *a = opened(), *b = opened();

	set(b, "kept", "by b");
	for (int i = 0; i < 20; i++) {
		memset(value, 'a' + i, sizeof(value));
		cr_assert_eq(xr_store_set(a, "k", value, sizeof(value), &err),
			XR_OK, "%s", err.text);
	}
	cr_expect_lt(size_now(), 6 << 20);
	has(b, "kept", "by b");
	set(b, "more", "from b");
	has(a, "more", "from b");
	has(a, "kept", "by b");
	xr_store_free(a);
	xr_store_free(b);
}

Test(worker_store_file, a_long_log_of_values_that_are_all_current_is_kept)
{
	static char value[1 << 20];
	struct xr_store *s = opened();
	char key[16];
	struct stat st;
	int log = open(path, O_RDONLY | O_CLOEXEC);

	cr_assert_neq(log, -1);
	for (int i = 0; i < 18; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		cr_assert_eq(xr_store_set(s, key, value, sizeof(value), &err),
			XR_OK, "%s", err.text);
	}
	cr_assert_eq(fstat(log, &st), 0);
	cr_expect_eq(st.st_nlink, 1); /* 0: another file has its place */
	close(log);
	xr_store_free(s);
}

Test(worker_store_file, a_file_that_is_removed_is_an_empty_store)
{
	struct xr_store *a = opened(), *b = opened();

	set(a, "k", "old");
	unlink(path);
	has(b, "k", NULL);
	set(b, "k", "new");
	has(a, "k", "new");
	xr_store_free(a);
	xr_store_free(b);
}

Test(worker_store_file, processes_that_add_lose_nothing)
{
	struct xr_store *s;
	int status;

	for (int p = 0; p < 4; p++) {
		if (fork() != 0)
			continue;
		s = opened();
		for (int i = 0; i < 50; i++)
			if (xr_store_add(s, "n", 1, NULL, NULL) != XR_OK)
				_exit(1);
		xr_store_free(s);
		_exit(0);
	}
	for (int p = 0; p < 4; p++) {
		wait(&status);
		cr_expect_eq(status, 0);
	}
	s = opened();
	has(s, "n", "200");
	xr_store_free(s);
}

Test(worker_store_file, a_wait_for_a_lock_that_another_process_keeps_ends)
{
	struct xr_store *s = opened();
	struct xr_store_options o = XR_STORE_OPTIONS;
	struct xr_store *late = NULL;
	int told[2];
	char byte;
	pid_t holder;

	cr_assert_eq(pipe(told), 0);
	holder = fork();
	if (holder == 0) {
		flock(open(path, O_RDWR), LOCK_EX);
		(void)!write(told[1], "x", 1);
		pause();
	}
	cr_assert_eq(read(told[0], &byte, 1), 1);
	o.rank = 1;
	o.dynamic = true;
	o.timeout = XR_SECONDS(0.1);
	cr_expect_eq(xr_store_open(address, &o, &late, &err), XR_E_TIMEOUT);
	cr_expect(strstr(err.text, "keeps it locked") != NULL, "%s", err.text);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	set(s, "k", "v");
	xr_store_free(s);
}
