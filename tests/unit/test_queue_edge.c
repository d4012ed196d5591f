/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_queue_edge.c - limits of a queue; texts and descriptors that are none of a queue.
 */

#include <poll.h>

#include <sys/mman.h>

#include "tests/kit/entries.h"
#include "tests/unit/big_files.h"
#include "tests/unit/queue_rig.h"
#include "worker/queue/wake.h"

TestSuite(queue_edge, .timeout = 60);

/* --- options ---------------------------------------------------------------------------- */

FORKED_TEST(queue_edge, an_option_beyond_its_limit_is_rejected)
{
	static const struct {
		struct xr_queue_opts opts;
		enum xr_status status;
	} rows[] = {
		{ { .size = sizeof(struct xr_queue_opts) - 1 }, XR_E_INVAL },
		{ OPTS(.kind = XR_QUEUE_P2P), XR_OK },
		{ OPTS(.kind = XR_QUEUE_P2P + 1), XR_E_INVAL },
		{ OPTS(.mode = XR_ENC_SHARE), XR_OK },
		{ OPTS(.mode = XR_ENC_SHARE + 1), XR_E_INVAL },
		{ OPTS(.redeliver = true), XR_OK },
		{ OPTS(.redeliver = true, .kind = XR_QUEUE_P2P), XR_E_INVAL },
		{ OPTS(.items = XR_QUEUE_ITEMS_MAX), XR_OK },
		{ OPTS(.items = XR_QUEUE_ITEMS_MAX + 1), XR_E_RANGE },
		{ OPTS(.bytes = XR_QUEUE_BYTES_MAX), XR_OK },
		{ OPTS(.bytes = XR_QUEUE_BYTES_MAX + 1), XR_E_RANGE },
		{ OPTS(.lanes = XR_QUEUE_LANES_MAX), XR_OK },
		{ OPTS(.lanes = XR_QUEUE_LANES_MAX + 1), XR_E_RANGE },
	};
	unsigned fds = entries("/proc/self/fd");

	NEED(allow_big_files());
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct xr_queue *q = NULL;
		enum xr_status status = xr_queue_new(&rows[i].opts, &q, &err);

		if (status != rows[i].status)
			forked_note(__LINE__, "row %zu: %d", i, status);
		EXPECT((q != NULL) == (status == XR_OK));
		if (status == XR_E_INVAL)
			EXPECT_STR(err.text, "no such queue");
		if (status == XR_E_RANGE)
			EXPECT_STR(err.text, "no queue is that large");
		xr_queue_free(q);
	}
	EXPECT_EQ(entries("/proc/self/fd"), fds);
}

/* --- texts ------------------------------------------------------------------------------ */

/* The numbers of a text. */
struct said {
	unsigned pid;
	unsigned long long start;
	int memory, pipe;
	unsigned long long inode, space;
	int worker;
};

static struct said
said_of(const struct xr_queue *q)
{
	char text[XR_QUEUE_TEXT_MAX];
	struct said s = { 0 };

	NEED(xr_queue_text(q, text, sizeof(text), &err) == XR_OK);
	NEED(sscanf(text, "%u:%llu:%d:%d:%llu:%llu:%d", &s.pid, &s.start,
		     &s.memory, &s.pipe, &s.inode, &s.space, &s.worker) == 7);
	return s;
}

static void
write_said(const struct said *s, char text[XR_QUEUE_TEXT_MAX])
{
	snprintf(text, XR_QUEUE_TEXT_MAX, "%u:%llu:%d:%d:%llu:%llu:%d", s->pid,
		s->start, s->memory, s->pipe, s->inode, s->space, s->worker);
}

FORKED_TEST(queue_edge, a_text_that_is_none_of_a_queue_is_rejected)
{
	struct xr_queue *q = QUEUE(0), *other = NULL;
	char text[XR_QUEUE_TEXT_MAX], padded[2 * XR_QUEUE_TEXT_MAX];
	size_t len;

	EXPECT_EQ(xr_queue_text(q, text, sizeof(text), &err), XR_OK);
	len = strlen(text);
	EXPECT_EQ(xr_queue_open(NULL, &other, &err), XR_E_INVAL);
	EXPECT_STR(err.text, "that is no queue's text");
	EXPECT_EQ(xr_queue_open("", &other, NULL), XR_E_INVAL);
	snprintf(padded, sizeof(padded), "%s ", text);
	EXPECT_EQ(xr_queue_open(padded, &other, NULL), XR_E_INVAL);
	*strrchr(padded, ':') = '\0';
	EXPECT_EQ(xr_queue_open(padded, &other, NULL), XR_E_INVAL);
	/* sscanf() skips spaces before a number. */
	snprintf(padded, sizeof(padded), "%*s%s",
		(int)(XR_QUEUE_TEXT_MAX - len), "", text);
	EXPECT_EQ(xr_queue_open(padded, &other, NULL), XR_E_INVAL);
	EXPECT(other == NULL);
	EXPECT_EQ(xr_queue_open(padded + 1, &other, NULL), XR_OK);
	xr_queue_free(other);
	xr_queue_free(q);
}

FORKED_TEST(queue_edge, a_text_needs_room_for_its_nul)
{
	struct xr_queue *q = QUEUE(0);
	char text[XR_QUEUE_TEXT_MAX], again[XR_QUEUE_TEXT_MAX];
	size_t len;

	EXPECT_EQ(xr_queue_text(q, text, sizeof(text), &err), XR_OK);
	len = strlen(text);
	EXPECT_EQ(xr_queue_text(q, again, len, &err), XR_E_RANGE);
	EXPECT_STR(err.text, "no room for a queue's text");
	EXPECT_EQ(xr_queue_text(q, again, len + 1, &err), XR_OK);
	EXPECT_STR(again, text);
	xr_queue_free(q);
}

static void
expect_gone(const struct said *s, bool own, int line)
{
	unsigned fds = entries("/proc/self/fd");
	char text[XR_QUEUE_TEXT_MAX];
	struct xr_queue *q = NULL;
	enum xr_status status;

	write_said(s, text);
	err.text[0] = '\0';
	status = own ? queue_open_own(text, &q, &err) :
		       xr_queue_open(text, &q, &err);
	if (status != XR_E_NOTFOUND || q != NULL ||
		strcmp(err.text, "who had the queue is gone") != 0)
		forked_note(line, "%s: %d, '%s'", text, status, err.text);
	EXPECT_EQ(entries("/proc/self/fd"), fds);
}

/* Each number but one is right. */
FORKED_TEST(queue_edge,
	a_text_whose_process_or_descriptor_is_another_opens_nothing)
{
	struct xr_queue *q = QUEUE(0), *other = NULL;
	struct said was = said_of(q), s;
	char text[XR_QUEUE_TEXT_MAX];
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);

	EXPECT_EQ(was.pid, getpid());
	EXPECT_EQ(was.worker, -1);
#define GONE(own, field, value) \
	(s = was, s.field = (value), expect_gone(&s, own, __LINE__))
	GONE(false, pid, (unsigned)getppid());
	GONE(false, start, was.start + 1);
	GONE(false, memory, 299);
	GONE(false, memory, file);
	GONE(false, inode, was.inode + 1);
	GONE(false, pipe, 299);
	GONE(true, pid, (unsigned)getppid());
	GONE(true, space, was.space + 1);
	GONE(true, memory, 299);
	GONE(true, memory, -1);
	GONE(true, inode, was.inode + 1);
#undef GONE
	write_said(&was, text);
	EXPECT_EQ(queue_open_own("x", &other, &err), XR_E_INVAL);
	EXPECT(other == NULL);
	EXPECT_EQ(queue_open_own(text, &other, &err), XR_OK);
	EXPECT(other != NULL && other->hall != q->hall);
	xr_queue_free(other);
	xr_queue_free(q);
	close(file);
}

FORKED_TEST(queue_edge, a_key_that_is_too_long_reaches_no_store)
{
	struct xr_queue *q = QUEUE(0), *other = NULL;
	char name[251];

	memset(name, 'n', 250);
	name[250] = '\0';
	EXPECT_EQ(xr_queue_share(q, NULL, name, &err), XR_E_RANGE);
	EXPECT_STR(err.text, "a queue's name is too long");
	EXPECT_EQ(xr_queue_find(NULL, name, 0, &other, &err), XR_E_RANGE);
	EXPECT(other == NULL);
	xr_queue_free(q);
}

/* --- descriptors ------------------------------------------------------------------------ */

/* @size bytes, which begin with @head, and are sealed as @seals says. */
static int
memory_of(const struct hall_head *head, size_t len, uint64_t size, int seals)
{
	int fd = memfd_create("edge", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	NEED(fd != -1 && pwrite(fd, head, len, 0) == (ssize_t)len);
	NEED(ftruncate(fd, (off_t)size) == 0);
	NEED(fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

static void
expect_adopt(const struct xr_queue *q, int fd, enum xr_status want,
	const char *text, int line)
{
	unsigned fds = entries("/proc/self/fd");
	struct xr_queue *other = NULL;
	enum xr_status status;

	err.text[0] = '\0';
	status = xr_queue_adopt((int[]){ fd, q->hall->ear }, &other, &err);
	if (status != want || strcmp(err.text, text) != 0)
		forked_note(line, "%d, '%s'", status, err.text);
	EXPECT((other != NULL) == (want == XR_OK));
	xr_queue_free(other);
	EXPECT_EQ(entries("/proc/self/fd"), fds);
	close(fd);
}

FORKED_TEST(queue_edge, memory_that_can_shrink_or_is_short_is_no_queue)
{
	struct xr_queue *q = QUEUE(0);
	const struct hall_plan *p = &q->hall->plan;
	struct hall_head head;
	const size_t len = sizeof(head);

	memcpy(&head, q->hall->head, len);
	expect_adopt(q, memory_of(&head, len, p->size, F_SEAL_SHRINK), XR_OK,
		"", __LINE__);
	expect_adopt(q, memory_of(&head, len, p->size, F_SEAL_GROW), XR_E_INVAL,
		"it is no queue", __LINE__);
	expect_adopt(q, memory_of(&head, len, p->size - 1, F_SEAL_SHRINK),
		XR_E_INVAL, "it is no whole queue", __LINE__);
	expect_adopt(q, memory_of(&head, len - 1, len - 1, F_SEAL_SHRINK),
		XR_E_INVAL, "it is no queue", __LINE__);
	expect_adopt(q, open("/dev/null", O_RDWR | O_CLOEXEC), XR_E_INVAL,
		"it is no queue", __LINE__);
	head.magic++;
	expect_adopt(q, memory_of(&head, len, p->size, F_SEAL_SHRINK),
		XR_E_INVAL, "it is no queue", __LINE__);
	xr_queue_free(q);
}

/* One field of the head at a time; one that is at its limit is fine. */
FORKED_TEST(queue_edge, a_head_beyond_a_limit_is_no_whole_queue)
{
	struct xr_queue *q = QUEUE(0);
	struct hall_head was, head;
	uint64_t size = UINT64_C(1) << 43;

	NEED(allow_big_files());
	memcpy(&was, q->hall->head, sizeof(was));
#define HEAD(field, value, want, text) \
	(head = was, head.field = (value), \
		expect_adopt(q, \
			memory_of(&head, sizeof(head), size, F_SEAL_SHRINK), \
			want, text, __LINE__))
#define GOOD(field, value) HEAD(field, value, XR_OK, "")
#define BAD(field, value)  HEAD(field, value, XR_E_INVAL, "it is no whole queue")
	GOOD(kind, XR_QUEUE_P2P);
	BAD(kind, XR_QUEUE_P2P + 1);
	GOOD(mode, XR_ENC_SHARE);
	BAD(mode, XR_ENC_SHARE + 1);
	GOOD(lot, HALL_LOT);
	BAD(lot, HALL_LOT + HALL_PAGE);
	BAD(lot, HALL_PAGE + 1);
	BAD(items, 0);
	GOOD(items, 1);
	BAD(items, XR_QUEUE_ITEMS_MAX + 1);
	BAD(lanes, 0);
	GOOD(lanes, 2);
	BAD(lanes, XR_QUEUE_LANES_MAX + 1);
	BAD(blocks, 0);
	GOOD(blocks, HALL_BLOCKS);
	BAD(blocks, HALL_BLOCKS + 1);
	GOOD(block, HALL_BLOCK);
	BAD(block, HALL_BLOCK - 64);
	BAD(block, HALL_BLOCK + 1);
#undef HEAD
	xr_queue_free(q);
}

FORKED_TEST(queue_edge, a_descriptor_that_is_no_pipe_is_refused)
{
	struct xr_queue *q = QUEUE(0), *other = NULL;
	const int pipes[] = { -1, 299, q->hall->fd };

	for (size_t i = 0; i < ROWS(pipes); i++) {
		unsigned fds = entries("/proc/self/fd");

		EXPECT_EQ(xr_queue_adopt((int[]){ q->hall->fd, pipes[i] },
				  &other, &err),
			XR_E_INVAL);
		EXPECT_STR(err.text, "it is no pipe of a queue");
		EXPECT_EQ(entries("/proc/self/fd"), fds);
	}
	xr_queue_free(q);
}

/* --- who is woken ----------------------------------------------------------------------- */

static const struct wake *rung; /* by the last call */
static unsigned rings;
static uint32_t woken;

void __wrap_wake_slow(struct wake *w, uint32_t count);
void __real_wake_slow(struct wake *w, uint32_t count);

void
__wrap_wake_slow(struct wake *w, uint32_t count)
{
	rung = w;
	woken = count;
	rings++;
	__real_wake_slow(w, count);
}

/* What is got of a new queue of @lanes is settled twice, while others sleep. */
static void
settle_twice(uint32_t lanes, bool is_back)
{
	struct xr_queue *q = QUEUE(.lanes = lanes, .redeliver = true);
	struct hall_head *head = q->hall->head;
	struct xr_queue_buf buf = { 0 };
	struct hall_hand hand;
	struct pollfd poller = { .events = POLLIN };

	EXPECT_EQ(xr_queue_fd(q, &poller.fd, &err), XR_OK);
	EXPECT_EQ(xr_queue_put_bytes(q, "a", 1, 0, &err), XR_OK);
	EXPECT_EQ(xr_queue_get_bytes(q, &buf, 0, &err), XR_OK);
	free(buf.data);
	EXPECT_EQ(xr_queue_get_bytes(q, &buf, 0, &err), XR_E_TIMEOUT);
	EXPECT_EQ(poll(&poller, 1, 0), 0);
	NEED(q->hall->hand_count == 1);
	hand = q->hall->hand[0];
	wake_arm(&head->items_wake);
	wake_arm(&head->space_wake);
	rings = 0;
	hall_settle(q->hall, &hand, is_back);
	EXPECT_EQ(rings, 1);
	EXPECT(rung == (is_back ? &head->items_wake : &head->space_wake));
	EXPECT_EQ(q->hall->hand_count, 0);
	EXPECT_EQ(xr_queue_count(q), is_back ? 1 : 0);
	EXPECT_EQ(poll(&poller, 1, 0), is_back ? 1 : 0);
	wake_arm(&head->items_wake);
	wake_arm(&head->space_wake);
	hall_settle(q->hall, &hand, is_back);
	EXPECT_EQ(rings, 1);
	xr_queue_free(q);
}

/* Of several lanes, whoever is woken may sleep for another one. */
FORKED_TEST(queue_edge, who_may_want_what_is_settled_is_woken)
{
	for (int is_back = 0; is_back < 2; is_back++) {
		settle_twice(1, is_back);
		EXPECT_EQ(woken, 1);
		settle_twice(2, is_back);
		EXPECT_EQ(woken, UINT32_MAX);
		settle_twice(3, is_back);
		EXPECT_EQ(woken, UINT32_MAX);
	}
}

FORKED_TEST(queue_edge, who_adopts_a_queue_has_it_as_it_was_made)
{
	const struct xr_queue_opts row[] = {
		OPTS(.items = 5, .lanes = 3, .kind = XR_QUEUE_P2P,
			.mode = XR_ENC_SHARE),
		OPTS(.items = 8, .redeliver = true),
		OPTS(.items = 1),
	};

	for (size_t i = 0; i < ROWS(row); i++) {
		struct xr_queue *q = queue_of(&row[i]), *its = NULL;
		const struct hall_plan *a = &q->hall->plan, *b;
		int fds[XR_QUEUE_FDS];

		xr_queue_fds(q, fds);
		NEED(xr_queue_adopt(fds, &its, &err) == XR_OK);
		b = &its->hall->plan;
		EXPECT(b->kind == row[i].kind && b->mode == row[i].mode);
		EXPECT_EQ(b->redeliver, row[i].redeliver);
		EXPECT_EQ(its->hall->keeps, row[i].redeliver);
		EXPECT_EQ(b->items, row[i].items);
		EXPECT_EQ(b->lanes, row[i].lanes > 0 ? row[i].lanes : 1);
		EXPECT(a->blocks == b->blocks && a->block == b->block);
		EXPECT(a->lot == b->lot && a->size == b->size);
		EXPECT(a->cells_at == b->cells_at && a->next_at == b->next_at);
		EXPECT(a->owners_at == b->owners_at &&
			a->data_at == b->data_at);
		EXPECT(a->lane_size == b->lane_size && a->mapped == b->mapped);
		EXPECT_EQ(its->hall->shift, q->hall->shift);
		EXPECT_EQ(its->hall->shift, i == 1 ? 3 : 0);
		xr_queue_free(its);
		xr_queue_free(q);
	}
}
