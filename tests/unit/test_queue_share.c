/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_queue_share.c - values that are put by reference.
 */

#include <xrun/tensor.h>

#include "tests/unit/queue_rig.h"
#include "tests/unit/short_memory.h"

TestSuite(queue_share, .timeout = 60);

/* As value.c lays it out. */
struct shared_head {
	uint64_t start;
	uint32_t pid, count;
	uint64_t inode;
	int32_t fd;
};

static struct xr_value *
tensor_of(int64_t elements)
{
	const struct xr_tensor_desc desc = { .size = sizeof(desc),
		.dtype = XR_DT_F32,
		.ndim = 1,
		.shape = { elements } };
	struct xr_value *v = NULL;

	NEED(xr_tensor_new(&desc, &v, NULL) == XR_OK);
	*(float *)xr_tensor_data(v, NULL) = 7;
	return v;
}

static struct shared_head *
put_shared(struct xr_queue *q, struct xr_value *v)
{
	struct lane *lane = q->hall->lane;
	uint64_t lap, at = atomic_load(&lane->ends->tail);
	struct cell *cell = lane_cell(q->hall, lane, at, &lap);
	void *data;

	EXPECT_EQ(xr_queue_put(q, v, 0, &err), XR_OK);
	NEED(cell->kind == CELL_SHARED);
	data = atomic_load(&cell->owner) == 0 ? cell->body :
						lane->data +
			atomic_load(&cell->first) * (size_t)q->hall->plan.block;
	return data;
}

static void
set_len(struct xr_queue *q, uint64_t len)
{
	uint64_t lap, at = atomic_load(&q->hall->lane->ends->head);

	atomic_store(&lane_cell(q->hall, q->hall->lane, at, &lap)->len, len);
}

/* With it, bytes that the most descriptors of an item would need. */
static struct xr_value *
list_of(struct xr_value *tensor)
{
	static const char bytes[1025 * 16];
	struct xr_value *list = xr_value_new_list();

	NEED(xr_value_append(list, tensor) == XR_OK);
	NEED(xr_value_append(list, xr_value_new_bytes(bytes, sizeof(bytes))) ==
		XR_OK);
	return list;
}

enum damage {
	OTHER_START,
	OTHER_INODE,
	NO_FD,
	TWO_FDS, /* the second one is nonsense */
	MOST_FDS,
	LAST_LOST = MOST_FDS,
	MANY_FDS, /* more than the item has room for */
	TOO_MANY_FDS,
	NO_HEAD,
	DAMAGES,
};

static void
damage(struct xr_queue *q, struct shared_head *s, enum damage d)
{
	switch (d) {
	case OTHER_START:
		s->start++;
		break;
	case OTHER_INODE:
		s->inode++;
		break;
	case NO_FD:
		s->fd = 299;
		break;
	case TWO_FDS:
		s->count = 2;
		break;
	case MANY_FDS:
		s->count = 5000;
		break;
	case MOST_FDS:
		s->count = 1024;
		break;
	case TOO_MANY_FDS:
		s->count = 1025;
		break;
	case NO_HEAD:
		set_len(q, 15);
		break;
	case DAMAGES:
		break;
	}
}

FORKED_TEST(queue_share, a_damaged_item_by_reference_opens_nothing)
{
	struct xr_queue *q = QUEUE(.mode = XR_ENC_SHARE);
	struct xr_value *v = list_of(tensor_of(4096)), *got = NULL;
	static const char lost[] = "who put the item by reference is gone";
	static const char bad[] = "an item cannot be read";
	struct shared_head *s;
	int fd;

	s = put_shared(q, v);
	EXPECT_EQ(s->count, 1);
	EXPECT_EQ(s->pid, getpid());
	EXPECT_EQ(xr_queue_get(q, &got, 0, &err), XR_OK);
	EXPECT_EQ(*(float *)xr_tensor_data(xr_value_at(got, 0), NULL), 7);
	xr_value_unref(got);
	EXPECT(xr_queue_empty(q)); /* and nothing is kept */
	fd = lowest_fd();
	for (enum damage d = 0; d < DAMAGES; d++) {
		bool is_lost = d <= LAST_LOST;

		got = NULL;
		damage(q, put_shared(q, v), d);
		if (xr_queue_get(q, &got, 0, &err) !=
				(is_lost ? XR_E_PEER_LOST : XR_E_DECODE) ||
			got != NULL)
			forked_note(__LINE__, "damage %d: '%s'", (int)d,
				err.text);
		EXPECT_STR(err.text, is_lost ? lost : bad);
		EXPECT(xr_queue_empty(q));
		EXPECT_EQ(lowest_fd(), fd);
	}
	EXPECT_EQ(xr_queue_put(q, v, 0, &err), XR_OK);
	EXPECT_EQ(xr_queue_get(q, &got, 0, &err), XR_OK);
	xr_value_unref(got);
	EXPECT(xr_queue_empty(q));
	EXPECT_EQ(lowest_fd(), fd);
	xr_value_unref(v);
	xr_queue_free(q);
}

static enum xr_status
pass_shared(struct xr_queue *q, struct xr_value *v)
{
	struct xr_value *got = NULL;
	size_t count = 1;
	enum xr_status status = xr_queue_put_many(q, &v, &count, 0, &err);

	EXPECT_EQ(count, status == XR_OK);
	if (status == XR_OK)
		status = xr_queue_get(q, &got, 0, &err);
	EXPECT((got != NULL) == (status == XR_OK));
	xr_value_unref(got);
	return status;
}

/* If memory is short when it is opened, it is gone. */
FORKED_TEST(queue_share, each_allocation_for_an_item_by_reference_may_fail)
{
	struct xr_queue *q = QUEUE(.mode = XR_ENC_SHARE);
	struct xr_value *v = tensor_of(4096);
	int fd = -1;

	was_short = true;
	for (unsigned n = 1; was_short; n++) {
		enum xr_status status;

		was_short = false;
		until_short = n;
		status = pass_shared(q, v);
		until_short = 0;
		EXPECT_EQ(status, was_short ? XR_E_NOMEM : XR_OK);
		while (xr_queue_count(q) > 0) {
			struct xr_value *got = NULL;

			EXPECT_EQ(xr_queue_get(q, &got, 0, &err), XR_OK);
			xr_value_unref(got);
		}
		EXPECT(xr_queue_empty(q));
		if (fd == -1)
			fd = lowest_fd();
		EXPECT_EQ(lowest_fd(), fd);
		EXPECT(n < 100);
	}
	xr_value_unref(v);
	xr_queue_free(q);
}

FORKED_TEST(queue_share, descriptors_that_are_short_are_named)
{
	static const char why[] =
		"an item that was put by reference: Too many open files";
	struct xr_queue *q = QUEUE(.mode = XR_ENC_SHARE);
	struct xr_value *v = list_of(tensor_of(4096)), *got = NULL;
	enum xr_status status = XR_E_SYS;
	int fd, left = -1;

	NEED(xr_value_append(v, tensor_of(4096)) == XR_OK);
	EXPECT_EQ(put_shared(q, v)->count, 2);
	EXPECT_EQ(xr_queue_get(q, &got, 0, &err), XR_OK);
	xr_value_unref(got);
	fd = lowest_fd();
	while (status != XR_OK && left < 9) {
		EXPECT_EQ(xr_queue_put(q, v, 0, &err), XR_OK);
		got = NULL;
		limit_descriptors((rlim_t)(fd + ++left));
		status = xr_queue_get(q, &got, 0, &err);
		limit_descriptors(1000);
		if (left < 2) {
			EXPECT_EQ(status, XR_E_SYS);
			EXPECT_STR(err.text, why);
		}
		EXPECT_EQ(lowest_fd(), fd);
		EXPECT(xr_queue_empty(q));
	}
	EXPECT_EQ(status, XR_OK);
	EXPECT_EQ(left, 2);
	xr_value_unref(got);
	EXPECT_EQ(lowest_fd(), fd);
	xr_value_unref(v);
	xr_queue_free(q);
}

/* --- what is kept ------------------------------------------------------------------------ */

static bool
lent_by(const struct xr_queue *q)
{
	return !LIST_EMPTY(&q->hall->lent);
}

/* Until it was got, by somebody who is done with it. */
FORKED_TEST(queue_share, what_is_lent_is_kept_until_it_was_got)
{
	struct xr_queue *q = QUEUE(.mode = XR_ENC_SHARE, .redeliver = true);
	struct xr_value *v = tensor_of(4096), *got = NULL;

	EXPECT(!lent_is_any(q->hall));
	EXPECT_EQ(xr_queue_put(q, v, 0, &err), XR_OK);
	EXPECT(lent_is_any(q->hall));
	EXPECT_EQ(xr_queue_get(q, &got, 0, &err), XR_OK);
	EXPECT(lent_is_any(q->hall));
	xr_queue_done(q);
	EXPECT(lent_by(q));
	EXPECT(!lent_is_any(q->hall));
	EXPECT(!lent_by(q));
	xr_value_unref(got);
	EXPECT_EQ(xr_queue_put(q, v, 0, &err), XR_OK);
	EXPECT(lent_is_any(q->hall));
	lent_reap(q->hall, true);
	EXPECT(!lent_by(q));
	xr_value_unref(v);
	xr_queue_free(q);
}

/* Only what it allocates the first time stays. */
FORKED_TEST(queue_share, an_item_by_reference_leaves_no_memory)
{
	struct xr_queue *q = QUEUE(.mode = XR_ENC_SHARE);
	struct xr_value *v = tensor_of(4096), *got = NULL;
	long before = 0;

	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(pass_shared(q, v), XR_OK);
		EXPECT_EQ(xr_queue_put(q, v, 0, &err), XR_OK);
		EXPECT_EQ(xr_queue_get(q, &got, 0, &err), XR_OK);
		xr_value_unref(got);
		EXPECT(!lent_is_any(q->hall));
		if (i == 0)
			before = short_memory_blocks();
		EXPECT_EQ(short_memory_blocks(), before);
	}
	xr_value_unref(v);
	xr_queue_free(q);
}
