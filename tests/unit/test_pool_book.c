/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_book.c - the functions and the tasks of a pool, as its workers read them. */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <xrun/func.h>

#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"
#include "tests/unit/short_memory.h"
#include "worker/pool/book.h"
#include "worker/pool/ledger.h"
#include "worker/pool/page.h"

TestSuite(pool_book, .timeout = 60);

#define ALLOCATIONS 100 /* there are less */
#define COUNT(a)    (sizeof(a) / sizeof((a)[0]))

static struct xr_error error;

static int
lowest_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

/* --- the ledger ------------------------------------------------------------------------- */

#define MAGIC UINT64_C(0x316c6f6f706e7278) /* "xrnpool1" */

static int
file_of(uint64_t magic, uint32_t places, uint32_t tasks, uint64_t size)
{
	const struct ledger_head h = { .magic = magic,
		.places = places,
		.tasks = tasks };
	int fd = memfd_create("ledger", MFD_CLOEXEC);

	NEED(fd != -1 && write(fd, &h, sizeof(h)) == (ssize_t)sizeof(h));
	NEED(ftruncate(fd, (off_t)size) == 0);
	return fd;
}

#define SIZE(places, tasks) (64 + 64 * ((uint64_t)(places) + (tasks)))

FORKED_TEST(pool_book, a_file_that_is_no_ledger_is_not_opened)
{
	const struct {
		uint64_t magic;
		uint32_t places, tasks;
		uint64_t size;
		enum xr_status status;
	} row[] = {
		{ MAGIC, 2, 3, SIZE(2, 3), XR_OK },
		{ MAGIC + 1, 2, 3, SIZE(2, 3), XR_E_PROTO },
		{ MAGIC, 2, 3, SIZE(2, 3) - 1, XR_E_PROTO },
		{ MAGIC, 2, 3, SIZE(2, 3) + 1, XR_E_PROTO },
		{ MAGIC, 2, 3, sizeof(struct ledger_head) - 1, XR_E_PROTO },
		{ MAGIC, 2, 3, 0, XR_E_PROTO },
		{ MAGIC, 1000, 1, SIZE(1000, 1), XR_OK },
		{ MAGIC, 1001, 1, SIZE(1001, 1), XR_E_PROTO },
		{ MAGIC, 1, 65536, SIZE(1, 65536), XR_OK },
		{ MAGIC, 1, 65537, SIZE(1, 65537), XR_E_PROTO },
	};
	struct ledger b;
	int lowest = lowest_fd();

	for (size_t i = 0; i < COUNT(row); i++) {
		int fd = file_of(row[i].magic, row[i].places, row[i].tasks,
			row[i].size);
		enum xr_status status = ledger_open(&b, fd, &error);

		if (status != row[i].status)
			forked_note(__LINE__, "row %zu: %s", i,
				xr_status_name(status));
		EXPECT_EQ(b.fd != -1, status == XR_OK);
		EXPECT_EQ(b.places, status == XR_OK ? row[i].places : 0);
		EXPECT_EQ(b.tasks, status == XR_OK ? row[i].tasks : 0);
		ledger_fini(&b);
		EXPECT(b.fd == -1 && b.head == NULL);
		close(fd);
	}
	EXPECT_EQ(lowest_fd(), lowest);
	EXPECT_EQ(ledger_open(&b, lowest, &error), XR_E_PROTO);
	EXPECT(strstr(error.text, "is no pool's") != NULL);
}

enum what {
	MEMFD,
	SIZE_LIMIT,
	SEALS,
	MAPPING,
	DESCRIPTORS,
};

static void
refuse(enum what what)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct rlimit none = { 0, 0 };

	switch (what) {
	case MEMFD:
		NEED(seccomp_refuse(SYS_memfd_create, EMFILE) == 0);
		break;
	case SIZE_LIMIT:
		sigaction(SIGXFSZ, &ignore, NULL);
		NEED(setrlimit(RLIMIT_FSIZE, &none) == 0);
		break;
	case SEALS:
		NEED(seccomp_refuse(SYS_fcntl, EPERM) == 0);
		break;
	case MAPPING:
		NEED(seccomp_refuse_shared_maps(ENOMEM) == 0);
		break;
	case DESCRIPTORS:
		none.rlim_cur = none.rlim_max = (rlim_t)lowest_fd();
		NEED(setrlimit(RLIMIT_NOFILE, &none) == 0);
		break;
	}
}

/* In a process of its own, whose limits stay. */
static void
without(enum what what, bool opens, const char *text)
{
	int fd = file_of(MAGIC, 1, 1, SIZE(1, 1)), lowest = lowest_fd(), how;
	pid_t pid = fork();
	struct ledger b;

	NEED(pid != -1);
	if (pid == 0) {
		refuse(what);
		EXPECT_EQ(opens ? ledger_open(&b, fd, &error) :
				  ledger_new(&b, 1, 1, &error),
			XR_E_SYS);
		EXPECT(b.head == NULL);
		EXPECT_STR(error.text, text);
		ledger_fini(&b);
		if (what != DESCRIPTORS)
			EXPECT_EQ(lowest_fd(), lowest);
		_exit(forked_wrong > 0);
	}
	NEED(waitpid(pid, &how, 0) == pid);
	EXPECT_EQ(how, 0);
	close(fd);
}

FORKED_TEST(pool_book, a_ledger_is_not_made_of_what_fails)
{
	without(MEMFD, false, "memfd_create: Too many open files");
	without(SIZE_LIMIT, false, "ftruncate: File too large");
	without(SEALS, false, "ftruncate: Operation not permitted");
	without(MAPPING, false, "mmap: Cannot allocate memory");
	without(MAPPING, true, "mmap: Cannot allocate memory");
	without(DESCRIPTORS, true, "dup: Too many open files");
}

static enum ledger_phase
phase(const struct ledger *b, uint32_t index)
{
	return ledger_phase(atomic_load(&b->task[index].word));
}

FORKED_TEST(pool_book, a_ledger_changes_a_task_only_from_the_state_it_is_in)
{
	const struct ledger_who us = { 1, 7 }, other = { 0, 7 },
				later = { 1, 8 };
	uint32_t gen = 0, last = LEDGER_GEN_MASK;
	struct ledger b;

	NEED(ledger_new(&b, 2, 3, NULL) == XR_OK);
	EXPECT(!ledger_take(&b, 2, 5, us));
	ledger_post(&b, 2, 5);
	EXPECT(!ledger_take(&b, 3, 5, us));
	EXPECT(!ledger_take(&b, 2, 6, us));
	EXPECT(!ledger_end(&b, 2, 5));
	EXPECT(!ledger_bury(&b, 2, us, &gen));
	EXPECT(!ledger_drop(&b, 2, 6));
	EXPECT(ledger_take(&b, 2, 5, us));
	EXPECT(!ledger_drop(&b, 2, 5));
	EXPECT(!ledger_end(&b, 3, 5));
	EXPECT(!ledger_end(&b, 2, 6));
	EXPECT(!ledger_bury(&b, 2, other, &gen));
	EXPECT(!ledger_bury(&b, 2, later, &gen));
	EXPECT_EQ(phase(&b, 2), LEDGER_RUNNING);
	EXPECT(ledger_bury(&b, 2, us, &gen));
	EXPECT_EQ(gen, 5);
	EXPECT_EQ(phase(&b, 2), LEDGER_FREE);
	EXPECT(!ledger_end(&b, 2, 5));
	for (int lent = 0; lent < 2; lent++) {
		ledger_post(&b, 0, last);
		EXPECT(ledger_take(&b, 0, last, us));
		ledger_answer(&b, 0, last, other, lent);
		EXPECT_EQ(phase(&b, 0), LEDGER_RUNNING);
		ledger_answer(&b, 0, last, us, lent);
		EXPECT_EQ(phase(&b, 0), lent ? LEDGER_LENT : LEDGER_ANSWERED);
		EXPECT(!ledger_bury(&b, 0, us, &gen));
		EXPECT(ledger_end(&b, 0, last));
		EXPECT_EQ(phase(&b, 0), LEDGER_FREE);
	}
	ledger_post(&b, 0, 1);
	EXPECT(ledger_drop(&b, 0, 1));
	EXPECT_EQ(phase(&b, 0), LEDGER_FREE);
	ledger_fini(&b);
}

FORKED_TEST(pool_book, a_ledger_has_times_of_its_places_only)
{
	struct ledger b;

	NEED(ledger_new(&b, 2, 1, NULL) == XR_OK);
	EXPECT_EQ(ledger_since(&b, 1, 9), 0);
	EXPECT(ledger_has(&b, 1));
	EXPECT_EQ(ledger_since(&b, 1, 0), 9);
	EXPECT(!ledger_has(&b, 1));
	EXPECT_EQ(ledger_since(&b, 2, 9), 0);
	EXPECT_EQ(ledger_since(&b, 2, 9), 0);
	EXPECT_EQ(atomic_load(&b.task[0].word), 0);
	ledger_fini(&b);
}

/* --- the book --------------------------------------------------------------------------- */

static struct entry *
find(struct book *b, const char *name)
{
	struct entry *e = NULL;

	EXPECT_EQ(book_find(b, name, NULL, &e, &error), XR_OK);
	if (e != NULL)
		book_release(e);
	return e;
}

FORKED_TEST(pool_book, a_name_has_1_to_255_bytes)
{
	char name[257];
	struct entry *e = NULL;
	struct book b;

	NEED(book_init(&b, NULL) == XR_OK);
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	EXPECT_EQ(book_find(&b, "", NULL, &e, &error), XR_E_INVAL);
	EXPECT_EQ(book_find(&b, name, NULL, &e, &error), XR_E_INVAL);
	EXPECT_STR(error.text, "that is no function's name: 1 to 255 bytes");
	EXPECT(e == NULL);
	name[255] = '\0';
	e = find(&b, name);
	EXPECT(e != NULL && strcmp(e->name, name) == 0);
	EXPECT_EQ(b.count, 1);
	book_fini(&b);
}

FORKED_TEST(pool_book, a_book_without_a_file_or_without_memory_has_no_entry)
{
	struct rlimit none, before;
	unsigned n = 0, failed = 0;
	struct entry *e = NULL;
	enum xr_status status;
	struct book b;

	NEED(getrlimit(RLIMIT_NOFILE, &before) == 0);
	none = (struct rlimit){ 0, before.rlim_max };
	NEED(setrlimit(RLIMIT_NOFILE, &none) == 0);
	EXPECT_EQ(book_init(&b, &error), XR_E_SYS);
	EXPECT_STR(error.text, "memfd_create: Too many open files");
	NEED(setrlimit(RLIMIT_NOFILE, &before) == 0);
	NEED(book_init(&b, NULL) == XR_OK);
	do {
		was_short = false;
		until_short = ++n;
		status = book_find(&b, "name", NULL, &e, &error);
		until_short = 0;
		failed += was_short;
		EXPECT_EQ(status, was_short ? XR_E_NOMEM : XR_OK);
		EXPECT_EQ(b.uses, !was_short);
	} while (was_short && n < ALLOCATIONS);
	EXPECT(failed >= 3);
	EXPECT_EQ(b.count, 1);
	EXPECT(find(&b, "name") == e);
	book_release(e);
	book_fini(&b);
}

FORKED_TEST(pool_book, an_entry_that_cannot_be_written_is_used_again)
{
	struct entry *e = NULL;
	struct book b;
	int fd;

	NEED(book_init(&b, NULL) == XR_OK);
	fd = b.fd;
	b.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	EXPECT_EQ(book_find(&b, "name", NULL, &e, &error), XR_E_SYS);
	EXPECT_STR(error.text, "pwrite: Bad file descriptor");
	EXPECT(e == NULL);
	close(b.fd);
	b.fd = fd;
	e = find(&b, "other");
	EXPECT_EQ(e->index, 0);
	EXPECT_EQ(e->at, 0);
	EXPECT(find(&b, "name") != e);
	EXPECT_EQ(b.count, 2);
	book_fini(&b);
}

/* Those that were used last are there yet, as they were. */
FORKED_TEST(pool_book, of_short_entries_the_last_1024_are_kept)
{
	struct entry *kept[BOOK_SHORT], *e, *held = NULL;
	struct book b;
	char name[32];

	NEED(book_init(&b, NULL) == XR_OK);
	EXPECT_EQ(book_find(&b, "held", NULL, &held, NULL), XR_OK);
	for (int i = 0; i < 1100; i++) {
		snprintf(name, sizeof(name), "name-%d", i);
		e = find(&b, name);
		if (i >= 1100 - BOOK_SHORT)
			kept[i - (1100 - BOOK_SHORT)] = e;
	}
	EXPECT_EQ(b.count, BOOK_SHORT + 2);
	for (int i = 1100 - BOOK_SHORT; i < 1100; i++) {
		snprintf(name, sizeof(name), "name-%d", i);
		e = find(&b, name);
		EXPECT(e == kept[i - (1100 - BOOK_SHORT)]);
		EXPECT_STR(e->name, name);
	}
	EXPECT(find(&b, "held") == held);
	EXPECT_EQ(b.serials, 1101);
	find(&b, "name-0");
	EXPECT_EQ(b.serials, 1102);
	EXPECT_EQ(b.count, BOOK_SHORT + 2);
	book_release(held);
	book_fini(&b);
}

static blkcnt_t
blocks(int fd)
{
	struct stat st;

	NEED(fstat(fd, &st) == 0);
	return st.st_blocks;
}

#define LARGE (5 * 4096)

FORKED_TEST(pool_book,
	of_large_entries_the_last_64_are_kept_and_pages_given_back)
{
	static char data[LARGE];
	blkcnt_t most = 0;
	struct book b;

	NEED(book_init(&b, NULL) == XR_OK);
	for (int i = 0; i < BOOK_KEPT + 20; i++) {
		struct xr_value *func = xr_fn_bind("large",
			xr_value_new_bytes(data, sizeof(data)));
		struct entry *e = NULL;

		NEED(func != NULL);
		EXPECT_EQ(book_find(&b, NULL, func, &e, &error), XR_OK);
		EXPECT_EQ(e->index, i <= BOOK_KEPT ? i : (i - BOOK_KEPT - 1));
		book_release(e);
		xr_value_unref(func);
		if (i == BOOK_KEPT)
			most = blocks(b.fd);
	}
	EXPECT_EQ(b.count, BOOK_KEPT + 1);
	/* Of each, its first and last page may be its neighbour's, too. */
	EXPECT(blocks(b.fd) <= most + 19 * 2 * 8);
	book_fini(&b);
}

/* --- what a worker reads ---------------------------------------------------------------- */

static enum xr_status
nothing(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply(call, xr_value_new_nil());
}

/* A task whose function is @value. */
static struct task_head
write_value(int fd, struct xr_value *value, uint32_t serial)
{
	struct xr_encoded *encoded = NULL;
	const struct xr_part *parts;
	struct task_head head = { .serial = serial };
	size_t count;

	NEED(xr_encode(value, NULL, &encoded, NULL) == XR_OK);
	parts = xr_encoded_parts(encoded, &count);
	for (size_t i = 0; i < count; i++) {
		NEED(pwrite(fd, parts[i].data, parts[i].len, head.len) ==
			(ssize_t)parts[i].len);
		head.len += (uint32_t)parts[i].len;
	}
	xr_encoded_free(encoded);
	return head;
}

FORKED_TEST(pool_book, a_page_is_of_a_registered_function)
{
	const struct xr_func func = { .size = sizeof(func),
		.name = "nothing",
		.fn = nothing };
	struct xr_value *value[] = { xr_value_new_i64(1),
		xr_fn_bind("unknown", NULL), xr_fn_bind("nothing", NULL) };
	const enum xr_status want[] = { XR_E_PROTO, XR_E_NO_FUNCTION, XR_OK };
	struct pages pages = { .book = memfd_create("book", MFD_CLOEXEC) };
	const struct page *page = NULL;
	struct task_head head;

	NEED(xr_fn_register(&func, NULL) == XR_OK);
	for (uint32_t i = 0; i < COUNT(value); i++) {
		head = write_value(pages.book, value[i], i + 1);
		page = pages_find(&pages, &head);
		NEED(page != NULL);
		EXPECT_EQ(page->status, want[i]);
		EXPECT_EQ(page->func != NULL, want[i] == XR_OK);
		if (i == 0)
			EXPECT_STR(page->err.text, "that is no function");
		xr_value_unref(value[i]);
	}
	EXPECT_EQ(ftruncate(pages.book, 0), 0);
	EXPECT(pages_find(&pages, &head) == page);
	EXPECT_EQ(page->status, XR_OK);
	head.entry = 1u << 20;
	EXPECT(pages_find(&pages, &head) == NULL);
	EXPECT_EQ(pages.count, 16);
	head.entry = 16;
	page = pages_find(&pages, &head);
	EXPECT(page != NULL && page->status == XR_E_PROTO);
	EXPECT_EQ(pages.count, 32);
	close(pages.book);
	pages_fini(&pages);
}
