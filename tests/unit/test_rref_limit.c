/* SPDX-License-Identifier: Apache-2.0 */
/* test_rref_limit.c - when remote calls to oneself that have a limit are over; the tables
 * of references. */
#include <criterion/criterion.h>

#include "worker/rpc/future.h"
#include "worker/rpc/rref_inner.h"

TestSuite(rref_limit, .timeout = 60);

#define COUNT 4

static struct owned all[COUNT];
static struct xr_future *future[COUNT];

/* Value @i of this process, of a call with a limit. */
static void
add(int i, int64_t due)
{
	all[i].node.id = (struct rref_gid){ .worker = (uint32_t)i };
	gid_add(&rref.owned, &all[i].node);
	future[i] = xr_future_new(NULL);
	owned_limit(&all[i], future[i], due);
	cr_expect_eq(all[i].asked, future[i]);
	cr_expect_eq(all[i].due, due);
	cr_expect_eq(rref.births, (uint32_t)i + 1);
}

static void
end(void)
{
	struct gid_node *n;

	while ((n = gid_first(&rref.owned)) != NULL)
		gid_remove(&rref.owned, n);
	for (int i = 0; i < COUNT; i++) {
		xr_future_unref(all[i].asked);
		xr_future_unref(future[i]);
	}
	gid_free(&rref.owned);
}

/* The first @count of futures have ended, because they are late. */
static void
expect_late(int count)
{
	struct xr_error err = { 0 };

	for (int i = 0; i < COUNT; i++) {
		cr_expect_eq(xr_future_wait(future[i], 0, NULL, &err),
			XR_E_TIMEOUT);
		if (i < count)
			cr_expect_str_eq(err.text,
				"a remote call to oneself has not begun in time");
		cr_expect_eq(xr_future_done(future[i]), i < count, "%d", i);
		cr_expect_eq(all[i].asked == NULL, i < count, "%d", i);
	}
	cr_expect_eq(rref.births, (uint32_t)(COUNT - count));
}

Test(rref_limit, a_call_is_late_when_it_is_due_and_the_next_one_is_told,
	.fini = end)
{
	cr_expect_eq(births_expire(1000), INT64_MAX);
	add(0, 100);
	add(1, 200);
	add(2, 300);
	add(3, 300);
	cr_expect_eq(births_expire(99), 100);
	expect_late(0);
	cr_expect_eq(births_expire(100), 200);
	expect_late(1);
	cr_expect_eq(births_expire(200), 300);
	expect_late(2);
	cr_expect_eq(births_expire(299), 300);
	expect_late(2);
	cr_expect_eq(births_expire(300), INT64_MAX);
	expect_late(4);
}

Test(rref_limit, a_call_that_has_begun_or_ended_needs_no_limit, .fini = end)
{
	for (int i = 0; i < COUNT; i++)
		add(i, 100);
	all[0].ready = true;
	all[1].begun = true;
	all[2].begun = all[2].is_late = true;
	cr_expect_eq(births_expire(50), 100);
	cr_expect(all[0].asked == NULL && all[1].asked == NULL);
	cr_expect_eq(all[2].asked, future[2]);
	cr_expect_eq(all[3].asked, future[3]);
	cr_expect_eq(rref.births, 2);
	/* Neither has ended by it, and neither gets another limit. */
	for (int i = 0; i < 2; i++) {
		cr_expect_not(xr_future_done(future[i]));
		owned_limit(&all[i], future[i], 70);
		cr_expect_null(all[i].asked);
	}
	owned_limit(&all[2], future[2], 70);
	cr_expect_eq(all[2].due, 100);
	/* One that is confirmed late gets one yet, even if it has begun. */
	xr_future_unref(all[2].asked);
	all[2].asked = NULL;
	rref.births--;
	owned_limit(&all[2], future[2], 90);
	cr_expect_eq(all[2].asked, future[2]);
	cr_expect_eq(all[2].due, 90);
	cr_expect_eq(rref.births, 2);
	cr_expect_eq(births_expire(100), INT64_MAX);
	cr_expect(xr_future_done(future[2]) && xr_future_done(future[3]));
}

/* --- tables ---------------------------------------------------------------------- */

#define WORKERS 4
#define EACH    256

static struct gid_map map;
static struct gid_node node[WORKERS][EACH];

static uint32_t
longest_chain(void)
{
	uint32_t longest = 0, length;

	for (uint32_t i = 0; i < map.buckets; i++) {
		length = 0;
		for (struct gid_node *n = map.bucket[i]; n != NULL; n = n->next)
			length++;
		longest = length > longest ? length : longest;
	}
	return longest;
}

TestSuite(rref_table, .timeout = 60);

/* Numbers follow each other, for several workers. */
Test(rref_table, ids_are_spread)
{
	uint32_t count = 0;

	for (uint32_t w = 0; w < WORKERS; w++)
		for (uint32_t i = 0; i < EACH; i++) {
			node[w][i].id = (struct rref_gid){ .worker = w,
				.incarnation = UINT64_C(0x123456789abcdef),
				.local = i };
			gid_add(&map, &node[w][i]);
		}
	cr_expect_eq(map.count, WORKERS * EACH);
	cr_expect_eq(map.buckets, 512);
	cr_expect_leq(longest_chain(), 8);
	for (struct gid_node *n = gid_first(&map); n != NULL;
		n = gid_next(&map, n))
		count++;
	cr_expect_eq(count, WORKERS * EACH);
	for (uint32_t w = 0; w < WORKERS; w++)
		for (uint32_t i = 0; i < EACH; i++) {
			cr_expect_eq(gid_find(&map, &node[w][i].id),
				&node[w][i]);
			gid_remove(&map, &node[w][i]);
			cr_expect_null(gid_find(&map, &node[w][i].id));
		}
	cr_expect_eq(map.count, 0);
	cr_expect_null(gid_first(&map));
	gid_free(&map);
	cr_expect_eq(map.buckets, 0);
}

/* Each part of an id tells two apart. */
Test(rref_table, ids_that_differ_in_one_part_are_two)
{
	static const struct rref_gid id = { .worker = 1,
		.incarnation = 2,
		.local = 3 };
	struct rref_gid other[3] = { id, id, id };

	other[0].worker++;
	other[1].incarnation++;
	other[2].local++;
	cr_expect_null(gid_first(&map));
	node[0][0].id = id;
	gid_add(&map, &node[0][0]);
	cr_expect_eq(gid_find(&map, &id), &node[0][0]);
	for (int i = 0; i < 3; i++)
		cr_expect_null(gid_find(&map, &other[i]));
	cr_expect_eq(gid_first(&map), &node[0][0]);
	cr_expect_null(gid_next(&map, &node[0][0]));
	gid_remove(&map, &node[0][0]);
	cr_expect_null(gid_first(&map));
}
