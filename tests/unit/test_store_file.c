/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_file.c - how a store in a file waits, for its lock and for changes, and what
 * fails (worker/store/file.c): by the test's clock, with the test in place of the kernel. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "store/frame.h"
#include "tests/unit/folder.h"
#include "tests/unit/noted.h"
#include "tests/unit/short_memory.h"
#include "worker/store/driver.h"

#define START (1000 * NS_PER_S)

static struct xr_error err;
static struct store_address address = { .place = STORE_AT_FILE };
static int64_t now;
static unsigned refused; /* that often a lock is refused */
static int refuse_sys;   /* with this */
static bool no_inotify, no_eventfd;
static int write_sys, read_sys, rename_sys, truncate_sys; /* what fails, once */
static size_t write_most; /* bytes that are written at once; 0: all */
static void (*in_poll)(void);
static void (*in_sleep)(void);
static int seen; /* what poll() said of the file's changes */

int64_t __wrap_clock_now(void);
int __wrap_flock(int fd, int how);
int __real_flock(int fd, int how);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __real_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_inotify_init1(int flags);
int __real_inotify_init1(int flags);
int __wrap_eventfd(unsigned count, int flags);
int __real_eventfd(unsigned count, int flags);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t len, off_t at);
ssize_t __real_pwrite64(int fd, const void *data, size_t len, off_t at);
ssize_t __wrap_pread64(int fd, void *data, size_t len, off_t at);
ssize_t __real_pread64(int fd, void *data, size_t len, off_t at);
int __wrap_rename(const char *from, const char *to);
int __real_rename(const char *from, const char *to);
int __wrap_ftruncate64(int fd, off_t size);
int __real_ftruncate64(int fd, off_t size);

int64_t
__wrap_clock_now(void)
{
	return now;
}

int
__wrap_flock(int fd, int how)
{
	if (how == LOCK_UN) {
		note("unlock ");
		return __real_flock(fd, how);
	}
	cr_expect_eq(how, LOCK_EX | LOCK_NB);
	if (refused > 0) {
		refused--;
		errno = refuse_sys;
		return -1;
	}
	note("lock ");
	return __real_flock(fd, how);
}

int
__wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	cr_expect_null(left);
	cr_expect_eq(t->tv_sec, 0);
	note("%ldus ", t->tv_nsec / 1000);
	now += t->tv_nsec;
	if (in_sleep != NULL)
		in_sleep();
	return 0;
}

int
__wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	cr_assert_eq(n, 2);
	cr_expect_eq(p[0].events, POLLIN);
	cr_expect_eq(p[1].events, POLLIN);
	cr_expect_eq(p[1].fd == -1, no_inotify);
	note("poll-%d ", ms);
	now += ms * NS_PER_MS;
	if (in_poll != NULL)
		in_poll();
	__real_poll(p, n, 0);
	seen = p[1].revents;
	return (p[0].revents != 0) + (p[1].revents != 0);
}

int
__wrap_inotify_init1(int flags)
{
	cr_expect_eq(flags, IN_CLOEXEC | IN_NONBLOCK);
	return no_inotify ? -1 : __real_inotify_init1(flags);
}

int
__wrap_eventfd(unsigned count, int flags)
{
	if (!no_eventfd)
		return __real_eventfd(count, flags);
	errno = EMFILE;
	return -1;
}

/* Returns true if that is what fails now. */
static bool
fails(int *sys)
{
	if (*sys == 0)
		return false;
	errno = *sys;
	*sys = 0;
	return true;
}

ssize_t
__wrap_pwrite64(int fd, const void *data, size_t len, off_t at)
{
	if (fails(&write_sys))
		return -1;
	if (write_most > 0 && len > write_most)
		len = write_most;
	return __real_pwrite64(fd, data, len, at);
}

ssize_t
__wrap_pread64(int fd, void *data, size_t len, off_t at)
{
	if (fails(&read_sys))
		return -1;
	if (write_most > 0 && len > write_most)
		len = write_most;
	return __real_pread64(fd, data, len, at);
}

int
__wrap_rename(const char *from, const char *to)
{
	return fails(&rename_sys) ? -1 : __real_rename(from, to);
}

int
__wrap_ftruncate64(int fd, off_t size)
{
	return fails(&truncate_sys) ? -1 : __real_ftruncate64(fd, size);
}

/* --- a test ---------------------------------------------------------------- */

static void
begin(void)
{
	folder_make();
	snprintf(address.path, sizeof(address.path), "%.4000s/s", folder);
	now = START;
	refuse_sys = EWOULDBLOCK;
}

TestSuite(store_file, .init = begin, .fini = folder_remove, .timeout = 60);

static enum xr_status
try_open(int64_t ns, struct file_owner *owner, struct driver **d)
{
	err = (struct xr_error){ 0 };
	*d = NULL;
	return file_open(&address, owner, now + ns, d, &err);
}

static struct driver *
opened(void)
{
	struct driver *d;

	cr_assert_eq(try_open(NS_PER_S, NULL, &d), XR_OK, "%s", err.text);
	return d;
}

static struct store_reply reply;

static enum xr_status
ask(struct driver *d, struct store_request q, int64_t ns)
{
	store_value_unref(reply.value);
	q.id = 7;
	d->ops->ask(d, &q, now + ns, &reply);
	store_value_unref(q.value);
	return reply.status;
}

static enum xr_status
set(struct driver *d, const char *key, const char *text)
{
	return ask(d,
		(struct store_request){ .op = STORE_SET,
			.key = span_of(key),
			.value = store_value_new(text, strlen(text)) },
		NS_PER_S);
}

static enum xr_status
get(struct driver *d, const char *key, int64_t patience)
{
	return ask(d,
		(struct store_request){ .op = STORE_GET,
			.key = span_of(key),
			.patience = patience },
		NS_PER_S);
}

static void
has(struct driver *d, const char *key, const char *text)
{
	cr_assert_eq(get(d, key, 0), XR_OK, "%s", reply.err.text);
	cr_expect_str_eq(reply.value->data, text);
}

static void
expect_failure(enum xr_status status, const char *fmt)
{
	char text[PATH_MAX + 200];

	snprintf(text, sizeof(text), "store: %s: %s", address.path, fmt);
	cr_expect_eq(reply.status, status);
	cr_expect_eq(reply.err.status, status);
	cr_expect_str_eq(reply.err.text, text);
	cr_expect_null(reply.value);
}

static void
finish(struct driver *d)
{
	store_value_unref(reply.value);
	reply.value = NULL;
	d->ops->free(d);
}

/* --- its lock -------------------------------------------------------------- */

Test(store_file, a_lock_is_tried_in_pauses_that_double_to_20_ms)
{
	struct driver *d = opened();

	cr_expect_str_eq(done, "lock unlock ");
	done[0] = '\0';
	refused = 100;
	cr_expect_eq(ask(d, (struct store_request){ .op = STORE_CHECK },
			     INT64_C(65500) * NS_PER_US),
		XR_E_TIMEOUT);
	expect_failure(XR_E_TIMEOUT, "somebody keeps it locked");
	cr_expect_str_eq(done,
		"100us 200us 400us 800us 1600us 3200us 6400us 12800us 20000us "
		"20000us unlock ");
	cr_expect_eq(now, START + INT64_C(65500) * NS_PER_US);
	/* A signal has interrupted it. */
	done[0] = '\0';
	refused = 1;
	refuse_sys = EINTR;
	cr_expect_eq(set(d, "k", "v"), XR_OK);
	cr_expect_str_eq(done, "100us lock unlock ");
	refused = 1;
	refuse_sys = EIO;
	set(d, "k", "v");
	expect_failure(XR_E_SYS, "its lock: Input/output error");
	finish(d);
}

static struct driver *closes;

static void
close_it(void)
{
	closes->ops->close(closes);
}

Test(store_file, closing_ends_all_waiting)
{
	struct driver *d = closes = opened();

	refused = 2;
	in_sleep = close_it;
	cr_expect_eq(set(d, "k", "v"), XR_E_CLOSED);
	cr_expect_str_eq(reply.err.text, "store: this handle was closed");
	cr_expect_eq(refused, 0);
	finish(d);
	d = closes = opened();
	done[0] = '\0';
	in_poll = close_it;
	cr_expect_eq(get(d, "k", 20 * NS_PER_S), XR_E_CLOSED);
	cr_expect_str_eq(reply.err.text, "store: this handle was closed");
	cr_expect_str_eq(done, "lock unlock poll-1000 ");
	done[0] = '\0';
	cr_expect_eq(get(d, "k", 20 * NS_PER_S), XR_E_CLOSED);
	cr_expect_str_eq(done, "");
	finish(d);
}

Test(store_file, a_file_that_is_removed_while_its_lock_is_awaited_is_made_again)
{
	struct driver *d = opened();

	cr_expect_eq(set(d, "k", "v"), XR_OK);
	cr_assert_eq(unlink(address.path), 0);
	done[0] = '\0';
	cr_expect_eq(get(d, "k", 0), XR_E_NOTFOUND);
	cr_expect_str_eq(done, "lock lock unlock ");
	cr_expect_eq(access(address.path, F_OK), 0);
	finish(d);
}

static struct driver *busy;
static struct store_reply inner;

static void
ask_busy(void)
{
	struct store_request q = { .op = STORE_GET, .key = span_of("k") };

	in_sleep = NULL;
	busy->ops->ask(busy, &q, now, &inner);
}

Test(store_file, a_handle_that_is_busy_for_too_long_is_not_asked)
{
	struct driver *d = busy = opened();
	char text[PATH_MAX];

	refused = 1;
	in_sleep = ask_busy;
	cr_expect_eq(set(d, "k", "v"), XR_OK);
	cr_expect_eq(inner.status, XR_E_TIMEOUT);
	snprintf(text, sizeof(text), "store: %.80s: not in time", address.path);
	cr_expect_str_eq(inner.err.text, text);
	cr_expect_null(inner.value);
	finish(d);
}

/* --- changes --------------------------------------------------------------- */

Test(store_file, a_key_is_awaited_as_long_as_was_said)
{
	struct driver *d = opened();

	done[0] = '\0';
	cr_expect_eq(get(d, "/k", 2500 * NS_PER_MS), XR_E_TIMEOUT);
	cr_expect_eq(reply.err.status, XR_E_TIMEOUT);
	cr_expect_str_eq(reply.err.text,
		"store: nobody has set the key '/k' within 2.5 s");
	cr_expect_str_eq(done,
		"lock unlock poll-1000 lock unlock poll-1000 lock unlock "
		"poll-500 lock unlock ");
	/* In whole milliseconds, and at least one. */
	done[0] = '\0';
	cr_expect_eq(get(d, "/k", NS_PER_MS + 1), XR_E_TIMEOUT);
	cr_expect_str_eq(done, "lock unlock poll-2 lock unlock ");
	done[0] = '\0';
	cr_expect_eq(get(d, "/k", 0), XR_E_NOTFOUND);
	cr_expect_str_eq(reply.err.text, "store: nobody has set the key '/k'");
	cr_expect_str_eq(done, "lock unlock ");
	finish(d);
}

Test(store_file, where_nothing_tells_of_changes_they_are_looked_for)
{
	struct driver *d;

	no_inotify = true;
	d = opened();
	done[0] = '\0';
	cr_expect_eq(get(d, "/k", 120 * NS_PER_MS), XR_E_TIMEOUT);
	cr_expect_str_eq(done,
		"lock unlock poll-50 lock unlock poll-50 lock unlock poll-20 "
		"lock unlock ");
	finish(d);
}

static struct driver *another;
static int polls;

static void
set_twice(void)
{
	if (polls++ == 1)
		set(another, "other", "x");
	else if (polls == 4)
		set(another, "k", "v");
	done[0] = '\0';
}

static int seens[8];

static void
note_seen(void)
{
	if (polls > 0 && polls < 8)
		seens[polls - 1] = seen;
	set_twice();
}

/* Each poll looks when the hook has run: the second and the fourth see a change. */
Test(store_file, changes_are_told_once)
{
	struct driver *d = opened();

	another = opened();
	in_poll = note_seen;
	cr_expect_eq(get(d, "k", 20 * NS_PER_S), XR_OK, "%s", reply.err.text);
	cr_expect_str_eq(reply.value->data, "v");
	cr_expect_eq(polls, 4);
	cr_expect_eq(seens[0], 0);
	cr_expect_eq(seens[1], POLLIN);
	cr_expect_eq(seens[2], 0);
	cr_expect_eq(seen, POLLIN);
	in_poll = NULL;
	finish(another);
	finish(d);
}

/* --- its owner ------------------------------------------------------------- */

static bool is_lost;
static unsigned looks;

static bool
look(struct file_owner *owner)
{
	(void)owner;
	looks++;
	return is_lost;
}

static void
lose(void)
{
	is_lost = true;
}

Test(store_file, a_store_ends_with_its_owner)
{
	struct file_owner owner = { look };
	struct driver *d;

	cr_assert_eq(try_open(NS_PER_S, &owner, &d), XR_OK);
	cr_expect_eq(looks, 0);
	cr_expect_eq(set(d, "k", "v"), XR_OK);
	cr_expect_eq(looks, 1);
	in_poll = lose;
	cr_expect_eq(get(d, "none", 20 * NS_PER_S), XR_E_PEER_LOST);
	cr_expect_str_eq(reply.err.text,
		"store: rank 0, which this store ends with, has ended");
	cr_expect_eq(looks, 3);
	finish(d);
}

/* --- what fails ------------------------------------------------------------ */

Test(store_file, what_cannot_be_written_is_told_and_is_not_there)
{
	struct driver *d = opened(), *b = opened();

	cr_expect_eq(set(d, "k", "old"), XR_OK);
	write_sys = ENOSPC;
	set(d, "k", "new");
	expect_failure(XR_E_SYS, "not written: No space left on device");
	has(d, "k", "old");
	truncate_sys = EROFS;
	set(d, "k", "new");
	expect_failure(XR_E_SYS, "not written: Read-only file system");
	has(d, "k", "old");
	read_sys = EIO;
	set(b, "k", "new");
	expect_failure(XR_E_SYS, "Input/output error");
	has(b, "k", "old");
	cr_expect_eq(set(d, "k", "new"), XR_OK);
	read_sys = EIO;
	get(b, "k", 0);
	expect_failure(XR_E_SYS, "Input/output error");
	has(b, "k", "new");
	finish(d);
	finish(b);
}

/* A byte at a time. */
Test(store_file, what_is_written_in_parts_is_whole)
{
	struct driver *d, *b;

	write_most = 1;
	d = opened();
	b = opened();
	cr_expect_eq(set(d, "key", "value"), XR_OK);
	cr_expect_eq(set(d, "empty", ""), XR_OK);
	has(b, "key", "value");
	has(b, "empty", "");
	write_most = 0;
	has(d, "key", "value");
	finish(d);
	finish(b);
}

Test(store_file, a_log_that_cannot_be_replaced_stays)
{
	static char value[9 << 20];
	struct driver *d = opened();
	struct stat st;
	char tmp[PATH_MAX + 16];

	snprintf(tmp, sizeof(tmp), "%s.new", address.path);
	memset(value, 'x', sizeof(value) - 1);
	cr_expect_eq(set(d, "k", value), XR_OK);
	cr_assert_eq(stat(address.path, &st), 0);
	cr_expect_gt(st.st_size, 9 << 20);
	rename_sys = EACCES;
	cr_expect_eq(set(d, "k", "small"), XR_OK);
	cr_expect_eq(set(d, "k", value), XR_OK);
	cr_expect_eq(rename_sys, EACCES, "most of it is current");
	cr_expect_eq(set(d, "k", "small"), XR_OK);
	cr_expect_eq(rename_sys, 0);
	cr_expect_eq(access(tmp, F_OK), -1);
	has(d, "k", "small");
	cr_assert_eq(stat(address.path, &st), 0);
	cr_expect_lt(st.st_size, 1 << 10);
	/* What a killed process has left is in nobody's way. */
	cr_expect_eq(set(d, "k", value), XR_OK);
	cr_expect_eq(set(d, "k", value), XR_OK);
	folder_write("s.new", "rest", 0600);
	cr_expect_eq(set(d, "k", "last"), XR_OK);
	cr_expect_eq(access(tmp, F_OK), -1);
	cr_assert_eq(stat(address.path, &st), 0);
	cr_expect_lt(st.st_size, 1 << 10);
	cr_expect_eq(st.st_mode & 0777, 0600);
	has(d, "k", "last");
	finish(d);
}

Test(store_file, a_handle_without_a_bell_or_memory_is_not_made)
{
	struct driver *d;
	enum xr_status status;
	unsigned n = 0;

	no_eventfd = true;
	cr_expect_eq(try_open(NS_PER_S, NULL, &d), XR_E_SYS);
	cr_expect_not_null(strstr(err.text, "/s: Too many open files"));
	cr_expect_eq(access(address.path, F_OK), -1);
	no_eventfd = false;
	do {
		was_short = false;
		until_short = ++n;
		status = try_open(NS_PER_S, NULL, &d);
		until_short = 0;
		cr_expect_eq(status, was_short ? XR_E_NOMEM : XR_OK, "%u: %s",
			n, err.text);
		if (was_short)
			cr_expect_str_eq(err.text, "store: out of memory");
		if (d != NULL)
			finish(d);
	} while (was_short);
	cr_expect_gt(n, 3);
}

/* One of each request; after what failed the file and the handle agree. */
Test(store_file, a_request_without_memory_changes_nothing)
{
	struct driver *d = opened(), *b = opened();
	enum xr_status status;
	unsigned n = 0;

	cr_expect_eq(set(d, "k", "old"), XR_OK);
	do {
		struct store_request q = { .op = STORE_COMPARE_SET,
			.key = span_of("k"),
			.expected = span_of("old"),
			.value = store_value_new("new", 3) };

		was_short = false;
		until_short = ++n;
		status = ask(d, q, NS_PER_S);
		until_short = 0;
		cr_expect_eq(status, was_short ? XR_E_NOMEM : XR_OK, "%u: %s",
			n, reply.err.text);
		if (!was_short)
			break;
		cr_expect_str_eq(reply.err.text, "store: out of memory");
		get(b, "k", 0);
		cr_assert_not_null(reply.value);
		/* It is written, but there is no memory to answer. */
		if (strcmp(reply.value->data, "new") == 0)
			cr_expect_eq(set(b, "k", "old"), XR_OK);
		has(d, "k", "old");
	} while (n < 50);
	cr_expect_gt(n, 3);
	has(b, "k", "new");
	has(d, "k", "new");
	finish(d);
	finish(b);
}

Test(store_file, a_reply_that_is_a_failure_has_words)
{
	struct store_reply r = { .id = 3 };

	reply_fail(&r, XR_E_RANGE, "no %d", 7);
	cr_expect_eq(r.id, 3);
	cr_expect_eq(r.status, XR_E_RANGE);
	cr_expect_eq(r.err.status, XR_E_RANGE);
	cr_expect_str_eq(r.err.text, "no 7");
}
