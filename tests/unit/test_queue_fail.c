/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_queue_fail.c - files that may not grow, and system calls that fail.
 */

#include <sys/mman.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "tests/unit/queue_rig.h"
#include "tests/unit/seccomp.h"
#include "tests/unit/short_memory.h"
#include "worker/queue/user.h"

TestSuite(queue_fail, .timeout = 60);

/* --- limits of files -------------------------------------------------------------------- */

static void
limit_files(rlim_t most)
{
	struct rlimit limit;

	NEED(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	limit.rlim_cur = most;
	NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* A file that would exceed the limit ends its process: SIGXFSZ. */
FORKED_TEST(queue_fail, long_items_have_what_the_limit_of_files_leaves)
{
	const struct xr_queue_opts opts = OPTS(.bytes = 4096);
	struct xr_queue *q = QUEUE(.bytes = 4096);
	uint64_t mapped = q->hall->plan.mapped;
	const struct {
		uint64_t most, lot;
	} rows[] = {
		{ RLIM_INFINITY, HALL_LOT },
		{ mapped + HALL_LOTS * HALL_LOT, HALL_LOT },
		{ mapped + HALL_LOTS * HALL_LOT - 1, HALL_LOT - HALL_PAGE },
		{ mapped + HALL_LOTS * HALL_PAGE, HALL_PAGE },
		{ mapped + HALL_LOTS * HALL_PAGE - 1, 0 },
		{ mapped, 0 },
	};

	xr_queue_free(q);
	for (size_t i = 0; i < ROWS(rows); i++) {
		q = NULL;
		limit_files(rows[i].most);
		EXPECT_EQ(xr_queue_new(&opts, &q, &err), XR_OK);
		if (q == NULL || q->hall->plan.lot != rows[i].lot ||
			q->hall->plan.size != mapped + HALL_LOTS * rows[i].lot)
			forked_note(__LINE__, "row %zu", i);
		xr_queue_free(q);
	}
	q = NULL;
	limit_files(mapped - 1);
	EXPECT_EQ(xr_queue_new(&opts, &q, &err), XR_E_SYS);
	EXPECT_STR(err.text, "memory of a queue: File too large");
	EXPECT(q == NULL);
}

static unsigned
lots_in_use(const struct hall *h)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < HALL_LOTS; i++)
		n += atomic_load(&h->head->lots[i]) != 0;
	return n;
}

static void
get_zeros(struct xr_queue *q, size_t len, int line)
{
	struct xr_queue_buf buf = { 0 };

	if (xr_queue_get_bytes(q, &buf, 0, &err) != XR_OK || buf.len != len)
		forked_note(line, "%zu bytes, not %zu", buf.len, len);
	for (size_t i = 0; i < buf.len; i++)
		if (((char *)buf.data)[i] != 0) {
			forked_note(line, "byte %zu", i);
			break;
		}
	free(buf.data);
}

FORKED_TEST(queue_fail, a_long_item_beyond_the_limit_of_files_is_refused)
{
	struct xr_queue *q = QUEUE(.bytes = 4096);
	static const char data[5000];
	uint64_t lots_at = q->hall->plan.lots_at;

	limit_files(lots_at + sizeof(data) - 1);
	EXPECT_EQ(xr_queue_put_bytes(q, data, sizeof(data), 0, &err), XR_E_SYS);
	EXPECT_STR(err.text, "an item of a queue: File too large");
	EXPECT_EQ(lots_in_use(q->hall), 0);
	EXPECT_EQ(xr_queue_count(q), 0);
	limit_files(lots_at + sizeof(data));
	EXPECT_EQ(xr_queue_put_bytes(q, data, sizeof(data), 0, &err), XR_OK);
	get_zeros(q, sizeof(data), __LINE__);
	EXPECT_EQ(lots_in_use(q->hall), 0);
	xr_queue_free(q);
}

FORKED_TEST(queue_fail, an_item_longer_than_a_lot_is_out_of_range)
{
	struct xr_queue *q = QUEUE(.bytes = 4096);
	static const char data[2 * HALL_PAGE];
	uint64_t mapped = q->hall->plan.mapped;

	xr_queue_free(q);
	limit_files(mapped + HALL_LOTS * HALL_PAGE);
	q = QUEUE(.bytes = 4096);
	EXPECT_EQ(xr_queue_put_bytes(q, data, HALL_PAGE + 1, 0, &err),
		XR_E_RANGE);
	EXPECT_STR(err.text, "4097 bytes are too long for a queue");
	EXPECT_EQ(lots_in_use(q->hall), 0);
	EXPECT_EQ(xr_queue_put_bytes(q, data, HALL_PAGE, 0, &err), XR_OK);
	get_zeros(q, HALL_PAGE, __LINE__);
	xr_queue_free(q);
}

/* --- reads and writes ------------------------------------------------------------------- */

/* What the next calls do: errno; 0: one byte; -1: nothing, which is the end of a file. */
static const int *script;
static size_t script_len;
static unsigned writes;

ssize_t __real_pwrite64(int fd, const void *data, size_t len, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t len, off_t at);
ssize_t __real_pread64(int fd, void *data, size_t len, off_t at);
ssize_t __wrap_pread64(int fd, void *data, size_t len, off_t at);

/* Returns true if the script determines the call's result. */
static bool
is_scripted(size_t *len, ssize_t *result)
{
	int what;

	if (script_len == 0)
		return false;
	what = *script++;
	script_len--;
	if (what == 0) {
		*len = 1;
		return false;
	}
	*result = what > 0 ? -1 : 0;
	errno = what > 0 ? what : 0;
	return true;
}

ssize_t
__wrap_pwrite64(int fd, const void *data, size_t len, off_t at)
{
	ssize_t n;

	writes++;
	return is_scripted(&len, &n) ? n : __real_pwrite64(fd, data, len, at);
}

ssize_t
__wrap_pread64(int fd, void *data, size_t len, off_t at)
{
	ssize_t n;

	return is_scripted(&len, &n) ? n : __real_pread64(fd, data, len, at);
}

#define SCRIPT(...) \
	(script = (const int[]){ __VA_ARGS__ }, \
		script_len = sizeof((int[]){ __VA_ARGS__ }) / sizeof(int))

FORKED_TEST(queue_fail, an_interrupted_or_short_access_continues)
{
	struct xr_queue *q = QUEUE(.bytes = 4096);
	struct xr_queue_buf buf = { 0 };
	char data[2000];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7);
	SCRIPT(EINTR, 0, 0, EINTR);
	EXPECT_EQ(xr_queue_put_bytes(q, data, sizeof(data), 0, &err), XR_OK);
	EXPECT_EQ(script_len, 0);
	SCRIPT(0, EINTR, EINTR, 0);
	EXPECT_EQ(xr_queue_get_bytes(q, &buf, 0, &err), XR_OK);
	EXPECT_EQ(script_len, 0);
	EXPECT(buf.len == sizeof(data) &&
		memcmp(buf.data, data, sizeof(data)) == 0);
	free(buf.data);
	xr_queue_free(q);
}

FORKED_TEST(queue_fail, a_failed_write_of_a_long_item_ends_it)
{
	struct xr_queue *q = QUEUE(.bytes = 4096);
	static const char data[2000];
	const struct xr_part parts[] = { { data, 1000 }, { data, 1000 } };
	const struct crate_load load = { parts, 2, 2000 };
	const int fails[] = { ENOSPC, EIO, -1 };
	struct crate crate;

	for (size_t i = 0; i < ROWS(fails); i++) {
		SCRIPT(fails[i]);
		EXPECT_EQ(xr_queue_put_bytes(q, data, 2000, 0, &err), XR_E_SYS);
		EXPECT_EQ(lots_in_use(q->hall), 0);
		EXPECT_EQ(xr_queue_count(q), 0);
		/* The second part is not written. */
		writes = 0;
		SCRIPT(fails[i]);
		EXPECT_EQ(crate_pack(q->hall, q->hall->lane, 1, &load, &crate),
			XR_E_SYS);
		EXPECT_EQ(writes, 1);
		EXPECT_EQ(lots_in_use(q->hall), 0);
	}
	EXPECT_EQ(xr_queue_put_bytes(q, data, 2000, 0, &err), XR_OK);
	get_zeros(q, 2000, __LINE__);
	xr_queue_free(q);
}

/* The item is gone, and its memory is free. */
FORKED_TEST(queue_fail, a_failed_read_of_a_long_item_drops_it)
{
	struct xr_queue *q = QUEUE(.bytes = 4096);
	static const char data[2000];
	static const struct {
		int what;
		enum xr_status status;
	} rows[] = { { EIO, XR_E_SYS }, { -1, XR_E_PROTO } };

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct xr_queue_buf buf = { 0 };

		EXPECT_EQ(xr_queue_put_bytes(q, data, 2000, 0, &err), XR_OK);
		script = &rows[i].what;
		script_len = 1;
		EXPECT_EQ(xr_queue_get_bytes(q, &buf, 0, &err), rows[i].status);
		EXPECT(buf.data == NULL);
		EXPECT_EQ(lots_in_use(q->hall), 0);
		EXPECT_EQ(xr_queue_count(q), 0);
	}
	EXPECT_STR(err.text, "a queue that somebody has damaged");
	xr_queue_free(q);
}

/* --- many items ------------------------------------------------------------------------- */

#define MANY 33 /* more than need no memory of their own */

FORKED_TEST(queue_fail, many_items_need_memory_and_are_put_and_got_in_order)
{
	struct xr_queue *q = QUEUE(0);
	struct xr_queue_buf bufs[MANY] = { { 0 } };
	struct xr_part parts[MANY];
	char data[MANY];
	size_t count = MANY;

	for (int i = 0; i < MANY; i++) {
		data[i] = (char)i;
		parts[i] = (struct xr_part){ &data[i], 1 };
	}
	until_short = 1;
	EXPECT_EQ(xr_queue_put_many_bytes(q, parts, &count, 0, &err),
		XR_E_NOMEM);
	EXPECT_STR(err.text, "out of memory");
	EXPECT_EQ(count, 0);
	count = MANY - 1;
	until_short = 1;
	EXPECT_EQ(xr_queue_put_many_bytes(q, parts, &count, 0, &err), XR_OK);
	EXPECT_EQ(until_short, 1);
	until_short = 0;
	count = MANY;
	EXPECT_EQ(xr_queue_get_many_bytes(q, bufs, &count, 0, &err), XR_OK);
	EXPECT_EQ(count, MANY - 1);
	EXPECT(bufs[MANY - 1].data == NULL);
	for (size_t i = 0; i < count; i++)
		free(bufs[i].data);
	count = MANY - 1;
	until_short = 1;
	EXPECT_EQ(xr_queue_get_many_bytes(q, bufs, &count, 0, &err),
		XR_E_TIMEOUT);
	EXPECT_EQ(until_short, 1);
	until_short = 0;
	memset(bufs, 0, sizeof(bufs));
	count = MANY;
	EXPECT_EQ(xr_queue_put_many_bytes(q, parts, &count, 0, &err), XR_OK);
	EXPECT_EQ(count, MANY);
	until_short = 1;
	EXPECT_EQ(xr_queue_get_many_bytes(q, bufs, &count, 0, &err),
		XR_E_NOMEM);
	until_short = 0;
	EXPECT_EQ(count, 0);
	EXPECT_EQ(xr_queue_count(q), MANY);
	count = MANY;
	EXPECT_EQ(xr_queue_get_many_bytes(q, bufs, &count, 0, &err), XR_OK);
	EXPECT_EQ(count, MANY);
	for (size_t i = 0; i < count; i++) {
		EXPECT(bufs[i].len == 1 && *(char *)bufs[i].data == (char)i);
		free(bufs[i].data);
	}
	xr_queue_free(q);
}

/* --- system calls ----------------------------------------------------------------------- */

static void
refuse(int nr, int sys)
{
	NEED(seccomp_refuse(nr, sys) == 0);
}

static enum xr_status
make_one(void)
{
	struct xr_queue *q = NULL;
	enum xr_status status = xr_queue_new(NULL, &q, &err);

	EXPECT((q != NULL) == (status == XR_OK));
	xr_queue_free(q);
	return status;
}

static struct xr_queue *had;

static enum xr_status
adopt_one(void)
{
	struct xr_queue *q = NULL;
	enum xr_status status =
		xr_queue_adopt((int[]){ had->hall->fd, had->hall->ear }, &q,
			&err);

	EXPECT((q != NULL) == (status == XR_OK));
	xr_queue_free(q);
	return status;
}

static enum xr_status
wait_for_one(void)
{
	struct xr_queue_buf buf = { 0 };

	return xr_queue_get_bytes(had, &buf, 60 * NS_PER_S, &err);
}

static enum xr_status
poll_one(void)
{
	int fd = -1;
	enum xr_status status = xr_queue_fd(had, &fd, &err);

	EXPECT((fd != -1) == (status == XR_OK));
	return status;
}

static enum xr_status
text_one(void)
{
	char text[XR_QUEUE_TEXT_MAX];

	return xr_queue_text(had, text, sizeof(text), &err);
}

/* Another user, who lives: its parent. */
static void
add_user(struct hall *h)
{
	atomic_store(&h->users[7].start, user_start((uint32_t)getppid()));
	atomic_store(&h->users[7].word,
		(uint64_t)USER_THERE << 60 | (uint32_t)getppid());
	atomic_fetch_add(&h->head->roll, 1);
}

#define WATCHES "who watches the users of queues: "

static const struct refusal {
	enum xr_status (*call)(void);
	int nr;
	int also;       /* 0: none */
	bool has_other; /* there is another user */
	enum xr_status status;
	const char *text;
} refusals[] = {
	{ make_one, SYS_memfd_create, 0, false, XR_E_SYS,
		"memory of a queue: " },
	{ make_one, SYS_ftruncate, 0, false, XR_E_SYS, "memory of a queue: " },
	{ make_one, SYS_fcntl, 0, false, XR_E_SYS, "memory of a queue: " },
	{ make_one, SYS_mmap, 0, false, XR_E_NOMEM, "mmap of a queue: " },
	{ make_one, SYS_pipe2, 0, false, XR_E_SYS, "pipe of a queue: " },
	{ adopt_one, SYS_fcntl, 0, false, XR_E_INVAL, "it is no queue" },
	{ adopt_one, SYS_pread64, 0, false, XR_E_INVAL, "it is no queue" },
	{ adopt_one, SYS_mmap, 0, false, XR_E_NOMEM, "mmap of a queue: " },
	{ text_one, SYS_newfstatat, SYS_fstat, false, XR_E_SYS,
		"a queue's text: " },
	{ wait_for_one, SYS_epoll_create1, 0, false, XR_E_SYS, WATCHES },
	{ wait_for_one, SYS_eventfd2, 0, false, XR_E_SYS, WATCHES },
	{ wait_for_one, SYS_epoll_ctl, 0, false, XR_E_SYS, WATCHES },
	{ wait_for_one, SYS_clone3, SYS_clone, false, XR_E_SYS, WATCHES },
	{ wait_for_one, SYS_pidfd_open, 0, true, XR_E_SYS,
		"a user of a queue: " },
	{ poll_one, SYS_epoll_create1, 0, false, XR_E_SYS, WATCHES },
	{ poll_one, SYS_eventfd2, 0, false, XR_E_SYS, WATCHES },
	{ poll_one, SYS_epoll_ctl, 0, false, XR_E_SYS, WATCHES },
	{ poll_one, SYS_clone3, SYS_clone, false, XR_E_SYS, WATCHES },
	{ poll_one, SYS_pidfd_open, 0, true, XR_E_SYS, "a user of a queue: " },
};

static void
refuse_one(const struct refusal *r)
{
	enum xr_status status;
	int fd;

	had = QUEUE(0);
	if (r->has_other)
		add_user(had->hall);
	fd = lowest_fd();
	if (r->nr == SYS_mmap)
		NEED(seccomp_refuse_shared_maps(EAGAIN) == 0);
	else
		refuse(r->nr, EAGAIN);
	if (r->also != 0)
		refuse(r->also, EAGAIN);
	status = r->call();
	EXPECT_EQ(status, r->status);
	if (strncmp(err.text, r->text, strlen(r->text)) != 0)
		forked_note(__LINE__, "'%s', not '%s'", err.text, r->text);
	else if (strchr(r->text, ':') != NULL)
		EXPECT_STR(err.text + strlen(r->text), strerror(EAGAIN));
	if (!r->has_other) /* else the thread that watches has some */
		EXPECT_EQ(lowest_fd(), fd);
	EXPECT_EQ(xr_queue_put_bytes(had, "x", 1, 0, &err), XR_OK);
	EXPECT_EQ(xr_queue_count(had), 1);
	xr_queue_free(had);
}

FORKED_TEST(queue_fail,
	a_refused_system_call_is_reported_and_leaves_nothing_open)
{
	for (size_t i = 0; i < ROWS(refusals); i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			forked_wrong = 0;
			refuse_one(&refusals[i]);
			_exit(forked_wrong > 0);
		}
		NEED(pid > 0 && waitpid(pid, &status, 0) == pid);
		if (status != 0)
			forked_note(__LINE__, "row %zu: %x", i, status);
	}
}

/* No number below @most is free afterwards. */
static void
fill_descriptors(int most)
{
	int fd;

	do {
		fd = dup(STDERR_FILENO);
		NEED(fd != -1);
	} while (fd < most);
}

#define BOOT "the machine's boot_id: "

static char where[XR_QUEUE_TEXT_MAX];

static enum xr_status
open_one(void)
{
	struct xr_queue *q = NULL;
	enum xr_status status = xr_queue_open(where, &q, &err);

	xr_queue_free(q);
	return status;
}

/* One more at a time, until it succeeds. */
FORKED_TEST(queue_fail, each_descriptor_may_be_missing)
{
	static const struct {
		enum xr_status (*call)(void);
		int needs;
		const char *text[5];
	} rows[] = {
		{ make_one, 3,
			{ BOOT, "pipe of a queue: ", "pipe of a queue: " } },
		{ adopt_one, 3,
			{ BOOT, "pipe of a queue: ", "pipe of a queue: " } },
		{ text_one, 1, { "a queue's text: " } },
		{ open_one, 5,
			{ "the queue of process ", "the queue of process ",
				BOOT,
				"pipe of a queue: ", "pipe of a queue: " } },
		{ poll_one, 2, { WATCHES, WATCHES } },
	};

	/* The caller may have left some open above the first free one. */
	limit_descriptors(300);
	fill_descriptors(200);
	had = QUEUE(0);
	NEED(xr_queue_text(had, where, sizeof(where), &err) == XR_OK);
	for (size_t i = 0; i < ROWS(rows); i++) {
		int fd = lowest_fd(), n = 0;

		for (; n < rows[i].needs; n++) {
			limit_descriptors((rlim_t)(fd + n));
			EXPECT_EQ(rows[i].call(), XR_E_SYS);
			EXPECT(strstr(err.text, strerror(EMFILE)) != NULL);
			if (strncmp(err.text, rows[i].text[n],
				    strlen(rows[i].text[n])) != 0)
				forked_note(__LINE__, "row %zu, %d: '%s'", i, n,
					err.text);
			limit_descriptors(300);
			EXPECT_EQ(lowest_fd(), fd);
		}
		limit_descriptors((rlim_t)(fd + n));
		EXPECT_EQ(rows[i].call(), XR_OK);
		limit_descriptors(300);
	}
	xr_queue_free(had);
}
