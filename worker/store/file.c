/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - a store in a file, which all who use it lock in turn.
 *
 * The file is a log (src/store/record.h). Each handle has all of it in memory,
 * and reads what is new before it does anything. When most of the log is
 * superseded, a new file takes the place of it: who holds the old one sees
 * that it has no name any more. Who waits for a key sleeps until the file
 * changes; where nobody tells of that, as on a server, he looks once a second.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "store/record.h"
#include "worker/store/driver.h"

#define BYTES      (256 << 20) /* of keys and values */
#define KEYS       (1 << 17)
#define LOG_MIN    (16 << 20) /* bytes of a log that is not rewritten */
#define LOG_FACTOR 4          /* times what it holds: then it is */
#define LOCK_FIRST (100 * NS_PER_US)
#define LOCK_MOST  (20 * NS_PER_MS)
#define LOOK_NS    NS_PER_S
#define LOOK_OFTEN (50 * NS_PER_MS) /* where nothing tells of changes */
#define TMP_SUFFIX ".new"

struct file {
	struct driver driver;
	struct file_owner *owner; /* NULL: none */
	char path[STORE_PATH_MAX];
	int bell; /* rung for ever, once it is closed */
	pthread_mutex_t lock;
	pthread_cond_t turn; /* it may be somebody's */
	bool busy;           /* a thread has all that follows */
	_Atomic bool closed;
	bool watching;    /* a thread waits for changes, for all */
	unsigned changes; /* that were seen */
	int fd;
	int changed; /* inotify(7), or -1 */
	struct desk *desk;
	struct desk_guest guest;
	off_t at;   /* up to here @desk is the file */
	bool stale; /* and it is not, after a failure */
};

/* --- memory ---------------------------------------------------------------- */

static bool
forget_all(struct file *f)
{
	const struct desk_setup setup = {
		.limits = { BYTES, STORE_VALUE_MAX, KEYS, 1, 1 },
		/* It is asked by one process, of files that are its user's. */
		.seed = { { (uint64_t)clock_now(), (uintptr_t)f } },
	};
	struct desk *desk = desk_new(&setup);

	if (desk == NULL)
		return false;
	if (f->desk != NULL)
		desk_leave(f->desk, &f->guest);
	desk_free(f->desk);
	f->desk = desk;
	desk_enter(&f->guest, f);
	f->at = 0;
	f->stale = false;
	return true;
}

/* --- reading the log ------------------------------------------------------- */

static enum xr_status
odd(const struct file *f, const char *what, struct xr_error *err)
{
	return fail(err, XR_E_PROTO, "store: %s: %s\tanother path", f->path,
		what);
}

static enum xr_status
fail_sys(const struct file *f, const char *what, struct xr_error *err)
{
	return fail(err, XR_E_SYS, "store: %s: %s%s", f->path, what,
		strerror(errno));
}

static bool
read_at(const struct file *f, void *data, size_t len, off_t at)
{
	ssize_t n;

	for (char *p = data; len > 0; p += n, len -= (size_t)n, at += n) {
		n = pread(f->fd, p, len, at);
		if (n <= 0)
			return false;
	}
	return true;
}

static enum xr_status
apply(struct file *f, const struct record *record, struct span key,
	struct xr_error *err)
{
	struct store_value *v;
	off_t at = f->at + RECORD_HEAD + (off_t)key.len;
	enum xr_status status;

	if (record->op == RECORD_DELETE) {
		store_delete(desk_store(f->desk), key);
		return XR_OK;
	}
	v = store_value_new(NULL, record->value_len);
	if (v == NULL)
		return fail(err, XR_E_NOMEM, "store: out of memory");
	status = read_at(f, v->data, v->len, at) ?
		store_set(desk_store(f->desk), key, v, err) :
		fail_sys(f, "", err);
	store_value_unref(v);
	return status;
}

/* The next record, if all of it is there before @size. */
static enum xr_status
read_record(struct file *f, off_t size, bool *there, struct xr_error *err)
{
	char bytes[RECORD_HEAD + STORE_KEY_MAX];
	size_t left = (size_t)(size - f->at);
	struct record record;
	enum xr_status status;

	*there = false;
	if (left < RECORD_HEAD)
		return XR_OK;
	if (!read_at(f, bytes, left < sizeof(bytes) ? left : sizeof(bytes),
		    f->at))
		return fail_sys(f, "", err);
	status = record_read(bytes, &record, NULL);
	if (status != XR_OK)
		return odd(f, "it is damaged", err);
	if (left < RECORD_HEAD + record.key_len + record.value_len)
		return XR_OK;
	status = apply(f, &record,
		(struct span){ bytes + RECORD_HEAD, record.key_len }, err);
	*there = status == XR_OK;
	if (*there)
		f->at += (off_t)(RECORD_HEAD + record.key_len +
			record.value_len);
	return status;
}

static enum xr_status
read_head(struct file *f, off_t size, struct xr_error *err)
{
	char head[RECORD_FILE_HEAD];
	size_t len = size < RECORD_FILE_HEAD ? (size_t)size : RECORD_FILE_HEAD;

	if (!read_at(f, head, len, 0))
		return fail_sys(f, "", err);
	if (memcmp(head, RECORD_FILE, len) != 0)
		return odd(f, "it is no store, and is left as it is", err);
	if (len == RECORD_FILE_HEAD)
		f->at = RECORD_FILE_HEAD;
	return XR_OK;
}

/* What others have written. */
static enum xr_status
catch_up(struct file *f, struct xr_error *err)
{
	struct stat st;
	bool there = true;
	enum xr_status status = XR_OK;

	if (fstat(f->fd, &st) == -1)
		return fail_sys(f, "", err);
	if ((f->stale || st.st_size < f->at) && !forget_all(f))
		return fail(err, XR_E_NOMEM, "store: out of memory");
	if (f->at == 0)
		status = read_head(f, st.st_size, err);
	while (status == XR_OK && there && f->at > 0)
		status = read_record(f, st.st_size, &there, err);
	if (status != XR_OK)
		f->stale = true;
	return status;
}

/* --- writing it ------------------------------------------------------------ */

static bool
write_at(int fd, const void *data, size_t len, off_t *at)
{
	ssize_t n;

	for (const char *p = data; len > 0; p += n, len -= (size_t)n) {
		n = pwrite(fd, p, len, *at);
		if (n <= 0)
			return false;
		*at += n;
	}
	return true;
}

static bool
write_record(int fd, enum record_op op, struct span key,
	const struct store_value *v, off_t *at)
{
	struct buf head = { 0 };
	bool ok;

	record_put(&head, op, key, v == NULL ? 0 : v->len);
	if (head.bad != XR_OK)
		errno = ENOMEM;
	ok = head.bad == XR_OK && write_at(fd, head.data, head.len, at) &&
		(v == NULL || write_at(fd, v->data, v->len, at));
	buf_fini(&head);
	return ok;
}

/* Over what a killed writer has left, if there is any. */
static enum xr_status
append(struct file *f, enum record_op op, struct span key,
	const struct store_value *v, struct xr_error *err)
{
	off_t at = f->at;

	f->stale = true;
	if (ftruncate(f->fd, at) == -1 ||
		(at == 0 &&
			!write_at(f->fd, RECORD_FILE, RECORD_FILE_HEAD, &at)) ||
		!write_record(f->fd, op, key, v, &at))
		return errno == ENOMEM ?
			fail(err, XR_E_NOMEM, "store: out of memory") :
			fail_sys(f, "not written: ", err);
	f->at = at;
	f->stale = false;
	return XR_OK;
}

struct rewriting {
	int fd;
	off_t at;
};

static bool
rewrite_one(struct span key, const struct store_value *v, void *ctx)
{
	struct rewriting *r = ctx;

	return write_record(r->fd, RECORD_SET, key, v, &r->at);
}

/* A file of what is left in place of the log. If it cannot be, the log stays. */
static void
rewrite(struct file *f)
{
	char path[STORE_PATH_MAX + sizeof(TMP_SUFFIX)];
	struct rewriting r = { .at = 0 };

	if (f->at < LOG_MIN ||
		(size_t)f->at / LOG_FACTOR < store_bytes(desk_store(f->desk)))
		return;
	snprintf(path, sizeof(path), "%s" TMP_SUFFIX, f->path);
	unlink(path); /* of who was killed here; we have the lock */
	r.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		0600);
	if (r.fd == -1)
		return;
	if (!write_at(r.fd, RECORD_FILE, RECORD_FILE_HEAD, &r.at) ||
		!store_each(desk_store(f->desk), rewrite_one, &r) ||
		rename(path, f->path) == -1)
		unlink(path);
	fd_close(r.fd);
}

/* --- one's turn ------------------------------------------------------------ */

static enum xr_status
reopen(struct file *f, struct xr_error *err)
{
	struct stat st;

	fd_close(f->fd);
	f->fd = open(f->path,
		O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
			O_NOCTTY,
		0600);
	if (f->fd == -1 || fstat(f->fd, &st) == -1)
		return fail_sys(f, "", err);
	if (!S_ISREG(st.st_mode))
		return odd(f, "it is no regular file", err);
	if (st.st_uid != geteuid())
		return fail(err, XR_E_AUTH,
			"store: %s is another user's\tanother path", f->path);
	/* The secret of a group may be in it. */
	if ((st.st_mode & 077) != 0)
		return fail(err, XR_E_AUTH,
			"store: %s: other users can read or change it\tchmod 600 of it",
			f->path);
	if (f->changed != -1)
		inotify_add_watch(f->changed, f->path,
			IN_MODIFY | IN_ATTRIB | IN_DONT_FOLLOW);
	f->stale = true;
	return XR_OK;
}

/* The file's lock, if it is to be had before @until. */
static enum xr_status
lock_file(struct file *f, int64_t until, struct xr_error *err)
{
	int64_t pause = LOCK_FIRST;
	struct timespec t = { 0 };

	while (flock(f->fd, LOCK_EX | LOCK_NB) == -1) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return fail_sys(f, "its lock: ", err);
		if (f->closed)
			return fail(err, XR_E_CLOSED,
				"store: this handle was closed");
		if (clock_now() >= until)
			return fail(err, XR_E_TIMEOUT,
				"store: %s: somebody keeps it locked", f->path);
		t.tv_nsec = pause;
		nanosleep(&t, NULL);
		pause = pause * 2 < LOCK_MOST ? pause * 2 : LOCK_MOST;
	}
	return XR_OK;
}

/* The same of the file that has the name now. */
static enum xr_status
lock_current(struct file *f, int64_t until, struct xr_error *err)
{
	struct stat st;
	enum xr_status status = XR_OK;

	while (status == XR_OK) {
		if (f->fd == -1)
			status = reopen(f, err);
		if (status == XR_OK)
			status = lock_file(f, until, err);
		if (status != XR_OK ||
			(fstat(f->fd, &st) == 0 && st.st_nlink > 0))
			break;
		fd_close(f->fd);
		f->fd = -1;
	}
	return status;
}

static enum xr_status
record_it(struct file *f, const struct store_request *q,
	const struct store_reply *r, struct xr_error *err)
{
	char text[32];
	struct store_value sum = { .data = text, .refs = 1 };

	switch (q->op) {
	case STORE_SET:
		return append(f, RECORD_SET, q->key, q->value, err);
	case STORE_ADD:
		sum.len = (size_t)snprintf(text, sizeof(text), "%lld",
			(long long)r->number);
		return append(f, RECORD_SET, q->key, &sum, err);
	case STORE_COMPARE_SET:
		return r->value == q->value ?
			append(f, RECORD_SET, q->key, q->value, err) :
			XR_OK;
	case STORE_DELETE:
		return r->number > 0 ?
			append(f, RECORD_DELETE, q->key, NULL, err) :
			XR_OK;
	default:
		return XR_OK;
	}
}

/* References are counted by one thread: whose turn it is has values of his own,
 * and gives copies. */
static enum xr_status
copy_value(const struct store_value *v, struct store_value **copy,
	struct xr_error *err)
{
	*copy = store_value_new(v->data, v->len);
	return *copy != NULL ? XR_OK :
			       fail(err, XR_E_NOMEM, "store: out of memory");
}

static enum xr_status
give_value(struct store_reply *r, struct xr_error *err)
{
	struct store_value *own = r->value;
	enum xr_status status = copy_value(own, &r->value, err);

	store_value_unref(own);
	return status;
}

static void
do_it(struct file *f, const struct store_request *q, int64_t until,
	struct store_reply *r)
{
	struct xr_error err = { 0 };
	struct store_request now = *q;
	enum xr_status status = lock_current(f, until, &err);

	now.patience = 0;
	if (status == XR_OK)
		status = catch_up(f, &err);
	if (status == XR_OK && q->value != NULL)
		status = copy_value(q->value, &now.value, &err);
	if (status == XR_OK) {
		desk_ask(f->desk, &f->guest, &now, 0, r);
		if (r->status == XR_OK)
			status = record_it(f, &now, r, &err);
	}
	if (now.value != q->value)
		store_value_unref(now.value);
	if (status == XR_OK && r->value != NULL)
		status = give_value(r, &err);
	if (status == XR_OK) {
		rewrite(f);
	} else {
		store_value_unref(r->value);
		*r = (struct store_reply){ .status = status, .err = err };
	}
	if (f->fd != -1)
		flock(f->fd, LOCK_UN);
}

/* --- threads --------------------------------------------------------------- */

static void
await_turn(struct file *f, int64_t until)
{
	struct timespec at = {
		.tv_sec = until / NS_PER_S,
		.tv_nsec = until % NS_PER_S,
	};

	if (until == INT64_MAX)
		pthread_cond_wait(&f->turn, &f->lock);
	else
		pthread_cond_timedwait(&f->turn, &f->lock, &at);
}

/* One waits for all until the file changes. With the lock. */
static void
await_change(struct file *f, unsigned seen, int64_t until)
{
	struct pollfd p[2] = {
		{ .fd = f->bell, .events = POLLIN },
		{ .fd = f->changed, .events = POLLIN },
	};
	int64_t ns = f->changed == -1 ? LOOK_OFTEN : LOOK_NS;
	int64_t left = until - clock_now();
	char events[4096];

	if (f->changes != seen || f->closed)
		return;
	if (f->watching) {
		await_turn(f, until);
		return;
	}
	f->watching = true;
	pthread_mutex_unlock(&f->lock);
	if (left < ns)
		ns = left > 0 ? left : 0;
	poll(p, 2, (int)((ns + NS_PER_MS - 1) / NS_PER_MS));
	while (f->changed != -1 && read(f->changed, events, sizeof(events)) > 0)
		;
	pthread_mutex_lock(&f->lock);
	f->watching = false;
	f->changes++;
	pthread_cond_broadcast(&f->turn);
}

/* Asked once, and answered as things are. With the lock. */
static void
take_turn(struct file *f, const struct store_request *q, int64_t until,
	struct store_reply *r)
{
	while (f->busy && !f->closed && clock_now() < until)
		await_turn(f, until);
	if (f->closed) {
		reply_fail(r, XR_E_CLOSED, "store: this handle was closed");
		return;
	}
	if (f->owner != NULL && f->owner->is_lost(f->owner)) {
		reply_fail(r, XR_E_PEER_LOST,
			"store: rank 0, which this store ends with, has ended");
		return;
	}
	if (f->busy) {
		reply_fail(r, XR_E_TIMEOUT, "store: %.80s: not in time",
			f->path);
		return;
	}
	f->busy = true;
	pthread_mutex_unlock(&f->lock);
	do_it(f, q, until, r);
	pthread_mutex_lock(&f->lock);
	f->busy = false;
	pthread_cond_broadcast(&f->turn);
}

/* What is missing is said by the store, which names it; how long it was waited
 * for is said here. */
static void
say_late(const struct store_request *q, struct store_reply *r)
{
	char time[32];

	r->status = XR_E_TIMEOUT;
	r->err.status = XR_E_TIMEOUT;
	snprintf(r->err.text + strlen(r->err.text),
		sizeof(r->err.text) - strlen(r->err.text), " within %s",
		clock_text(q->patience, time, sizeof(time)));
}

static void
file_ask(struct driver *driver, struct store_request *q, int64_t until,
	struct store_reply *r)
{
	struct file *f = (struct file *)driver;
	int64_t end = INT64_MAX;
	unsigned seen;

	if (__builtin_add_overflow(clock_now(), q->patience, &end))
		end = INT64_MAX;
	pthread_mutex_lock(&f->lock);
	while (true) {
		seen = f->changes;
		*r = (struct store_reply){ .status = XR_OK };
		take_turn(f, q, until, r);
		if (r->status != XR_E_NOTFOUND || q->patience == 0)
			break;
		if (clock_now() >= end) {
			say_late(q, r);
			break;
		}
		await_change(f, seen, end);
	}
	pthread_mutex_unlock(&f->lock);
}

static void
file_close(struct driver *driver)
{
	struct file *f = (struct file *)driver;
	uint64_t one = 1;

	pthread_mutex_lock(&f->lock);
	f->closed = true;
	fd_tell(f->bell, &one, sizeof(one));
	pthread_cond_broadcast(&f->turn);
	pthread_mutex_unlock(&f->lock);
}

static void
file_free(struct driver *driver)
{
	struct file *f = (struct file *)driver;

	if (f->desk != NULL)
		desk_leave(f->desk, &f->guest);
	desk_free(f->desk);
	fd_close(f->fd);
	fd_close(f->bell);
	fd_close(f->changed);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->turn);
	free(f);
}

static const struct driver_ops ops = {
	.ask = file_ask,
	.close = file_close,
	.free = file_free,
};

enum xr_status
file_open(const struct store_address *address, struct file_owner *owner,
	int64_t until, struct driver **driver, struct xr_error *err)
{
	struct file *f = calloc(1, sizeof(*f));
	pthread_condattr_t attr;
	enum xr_status status;

	if (f == NULL)
		return fail(err, XR_E_NOMEM, "store: out of memory");
	f->driver.ops = &ops;
	f->owner = owner;
	memcpy(f->path, address->path, sizeof(f->path));
	f->fd = -1;
	f->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->changed = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->turn, &attr);
	pthread_condattr_destroy(&attr);
	if (f->bell == -1)
		status = fail_sys(f, "", err);
	else if (!forget_all(f))
		status = fail(err, XR_E_NOMEM, "store: out of memory");
	else
		status = lock_current(f, until, err);
	if (status == XR_OK)
		status = catch_up(f, err);
	if (f->fd != -1)
		flock(f->fd, LOCK_UN);
	if (status == XR_OK)
		*driver = &f->driver;
	else
		file_free(&f->driver);
	return status;
}
