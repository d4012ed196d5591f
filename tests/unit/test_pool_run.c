/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_run.c - the calls of a task: which arguments each of them has, and that nothing of
 * them is left. */
#include "base/status.h"
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "wire/value/node.h"
#include "worker/pool/run.h"
#include "worker/rpc/future.h"

TestSuite(pool_run, .timeout = 60);

#define ALLOCATIONS 50 /* there are less */
#define MOST        4

static struct xr_error error;
static struct hand h;
static struct func func;
static struct xr_value *answer, *result;
static bool is_well, is_kept;

/* --- what is run -------------------------------------------------------------------------- */

static struct {
	struct xr_value *args, *at[MOST], *named;
	size_t count, lent;
} got;

static unsigned calls;

bool __wrap_hand_run(struct hand *hand, const struct func *f,
	struct xr_value *args, struct xr_value *named, struct xr_value **out);

bool
__wrap_hand_run(struct hand *hand, const struct func *f, struct xr_value *args,
	struct xr_value *named, struct xr_value **out)
{
	EXPECT(hand == &h && f == &func);
	calls++;
	got.args = args;
	got.named = named;
	got.count = xr_value_count(args);
	got.lent = h.lent;
	for (size_t i = 0; i < MOST; i++)
		got.at[i] = xr_value_at(args, i);
	if (got.lent > 0)
		EXPECT_EQ(xr_value_append(args, xr_value_new_nil()),
			XR_E_STATE);
	if (is_kept)
		xr_value_ref(args);
	*out = answer;
	return is_well;
}

/* --- a task ------------------------------------------------------------------------------- */

static struct xr_value *context, *bound, *named, *list, *item[2];
static struct run_plan plan;

static void
begin(bool with_context, bool with_bound, enum item_form form)
{
	context = xr_value_new_text("context", 7);
	bound = xr_value_new_text("bound", 5);
	named = xr_value_new_dict();
	list = xr_value_new_list();
	for (int i = 0; i < 2; i++) {
		item[i] = xr_value_new_text("item", 4);
		NEED(xr_value_append(list, xr_value_ref(item[i])) == XR_OK);
	}
	plan = (struct run_plan){ .func = &func,
		.form = form,
		.context = with_context ? context : NULL,
		.bound = with_bound ? bound : NULL,
		.named = named };
	memset(&h, 0, sizeof(h));
	is_well = true;
	is_kept = false;
	calls = 0;
}

/* Nobody but us has what it was made of. */
static void
end(void)
{
	run_end(&plan);
	EXPECT(plan.spare == NULL);
	EXPECT_EQ(h.lent, 0);
	EXPECT(!node_several(list));
	xr_value_unref(list);
	EXPECT(!node_several(context) && !node_several(bound));
	EXPECT(!node_several(named));
	for (int i = 0; i < 2; i++) {
		EXPECT(!node_several(item[i]));
		xr_value_unref(item[i]);
	}
	xr_value_unref(context);
	xr_value_unref(bound);
	xr_value_unref(named);
}

static void
expect_args(size_t count, const struct xr_value *a, const struct xr_value *b,
	const struct xr_value *c, const struct xr_value *d)
{
	const struct xr_value *want[MOST] = { a, b, c, d };

	EXPECT_EQ(got.count, count);
	for (size_t i = 0; i < MOST; i++)
		EXPECT(got.at[i] == want[i]);
}

/* --- one call ------------------------------------------------------------------------------- */

static void
apply(bool well)
{
	is_well = well;
	result = NULL;
	EXPECT_EQ(run_apply(&h, &plan, list, &result), well);
	EXPECT(result == answer);
	EXPECT(got.named == named && got.lent == 0);
}

FORKED_TEST(pool_run, a_call_has_the_context_what_is_bound_and_its_arguments)
{
	answer = (struct xr_value *)&func;
	begin(false, false, ITEM_APPLY);
	apply(true);
	EXPECT(got.args == list);
	expect_args(2, item[0], item[1], NULL, NULL);
	end();
	begin(true, false, ITEM_APPLY);
	apply(false);
	expect_args(3, context, item[0], item[1], NULL);
	end();
	begin(false, true, ITEM_APPLY);
	apply(true);
	expect_args(3, bound, item[0], item[1], NULL);
	end();
	begin(true, true, ITEM_APPLY);
	apply(true);
	expect_args(4, context, bound, item[0], item[1]);
	end();
}

/* --- maps ------------------------------------------------------------------------------------- */

static void
map(int i, bool well)
{
	is_well = well;
	result = NULL;
	EXPECT_EQ(run_item(&h, &plan, item[i], &result), well);
	EXPECT(result == answer);
	EXPECT_EQ(h.lent, 0);
}

/* They stand in the same list, which has no reference of the item. */
FORKED_TEST(pool_run, the_calls_of_a_map_use_one_list)
{
	struct xr_value *args;

	begin(true, true, ITEM_MAP);
	map(0, true);
	args = got.args;
	expect_args(3, context, bound, item[0], NULL);
	EXPECT(got.named == NULL && got.lent == 3);
	EXPECT(plan.spare == args);
	map(1, false);
	EXPECT(got.args == args);
	expect_args(3, context, bound, item[1], NULL);
	end();
	begin(false, false, ITEM_MAP);
	map(1, true);
	expect_args(1, item[1], NULL, NULL, NULL);
	EXPECT_EQ(got.lent, 1);
	end();
}

FORKED_TEST(pool_run, arguments_that_somebody_has_kept_stay_his)
{
	struct xr_value *args;

	begin(false, true, ITEM_MAP);
	is_kept = true;
	map(0, true);
	args = got.args;
	EXPECT(plan.spare == NULL);
	is_kept = false;
	map(1, true);
	EXPECT(got.args != args);
	expect_args(2, bound, item[1], NULL, NULL);
	EXPECT(xr_value_at(args, 1) == item[0] && node_several(item[0]));
	xr_value_unref(args);
	end();
}

FORKED_TEST(pool_run, an_item_of_a_starmap_is_a_list_of_arguments)
{
	begin(true, false, ITEM_STARMAP);
	EXPECT(run_item(&h, &plan, list, &result));
	expect_args(3, context, item[0], item[1], NULL);
	EXPECT(got.named == named && got.lent == 0);
	EXPECT(plan.spare == NULL);
	end();
	begin(false, false, ITEM_STARMAP);
	EXPECT(run_item(&h, &plan, list, &result));
	EXPECT(got.args == list);
	end();
}

/* --- without memory ------------------------------------------------------------------------- */

static void
fail_each(enum item_form form)
{
	unsigned n = 0;
	bool ok;

	do {
		begin(true, true, form);
		was_short = false;
		until_short = ++n;
		ok = form == ITEM_APPLY ? run_apply(&h, &plan, list, &result) :
					  run_item(&h, &plan, item[0], &result);
		until_short = 0;
		EXPECT_EQ(ok, !was_short);
		EXPECT_EQ(calls, !was_short);
		if (was_short) {
			EXPECT_EQ(failure_status(result, &error), XR_E_NOMEM);
			xr_value_unref(result);
		}
		end();
	} while (was_short && n < ALLOCATIONS);
	EXPECT(n > 1 && n < ALLOCATIONS);
}

FORKED_TEST(pool_run, without_memory_nothing_is_called)
{
	answer = NULL;
	fail_each(ITEM_APPLY);
	fail_each(ITEM_MAP);
}
