/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - see plan.h. */
#include <stdio.h>
#include <string.h>

#include <xrun/tensor.h>

#include "wire/value/storage.h"
#include "worker/coll/kernel.h"
#include "worker/coll/op.h"
#include "worker/coll/plan.h"

static const struct xr_part nothing = { NULL, PLAN_NONE }, word = { NULL, 0 };

static uint32_t
me(const struct op *op)
{
	return (uint32_t)op->team->me;
}

static struct xr_part
own_data(const struct op *op)
{
	return (struct xr_part){ op->call.data, op->bytes };
}

static void
copy(void *to, const void *from, size_t len)
{
	if (len > 0 && to != from)
		memcpy(to, from, len);
}

static uint32_t
one_stage(const struct op *op)
{
	(void)op;
	return 1;
}

/* --- nothing but the word --------------------------------------------------- */

static struct xr_part
give_word(const struct op *op, uint32_t stage, uint32_t to)
{
	(void)op;
	(void)stage;
	(void)to;
	return word;
}

static size_t
want_word(const struct op *op, uint32_t stage, uint32_t from)
{
	(void)op;
	(void)stage;
	(void)from;
	return 0;
}

static enum xr_status
no_work(struct op *op, uint32_t stage)
{
	(void)op;
	(void)stage;
	return XR_OK;
}

/* --- to all, to one, from one ------------------------------------------------ */

static struct xr_part
root_gives(const struct op *op, uint32_t stage, uint32_t to)
{
	(void)stage;
	(void)to;
	return me(op) == op->root ? own_data(op) : word;
}

static size_t
want_of_root(const struct op *op, uint32_t stage, uint32_t from)
{
	(void)stage;
	return from == op->root ? op->bytes : 0;
}

static enum xr_status
take_of_root(struct op *op, uint32_t stage)
{
	const struct part *p = op_part(op, stage, op->root);

	if (me(op) != op->root)
		copy(op->call.data, p->data, p->len);
	return XR_OK;
}

static struct xr_part
give_share(const struct op *op, uint32_t stage, uint32_t to)
{
	(void)stage;
	return me(op) == op->root ?
		(struct xr_part){ op->call.list[to], op->bytes } :
		word;
}

static enum xr_status
take_share(struct op *op, uint32_t stage)
{
	if (me(op) != op->root)
		return take_of_root(op, stage);
	copy(op->call.data, op->call.list[me(op)], op->bytes);
	return XR_OK;
}

static struct xr_part
give_to_root(const struct op *op, uint32_t stage, uint32_t to)
{
	(void)stage;
	return to == op->root ? own_data(op) : word;
}

static size_t
root_wants(const struct op *op, uint32_t stage, uint32_t from)
{
	(void)stage;
	(void)from;
	return me(op) == op->root ? op->bytes : 0;
}

static struct xr_part
give_all(const struct op *op, uint32_t stage, uint32_t to)
{
	(void)stage;
	(void)to;
	return own_data(op);
}

static size_t
want_all(const struct op *op, uint32_t stage, uint32_t from)
{
	(void)stage;
	(void)from;
	return op->bytes;
}

static enum xr_status
take_list(struct op *op, uint32_t stage)
{
	const struct part *p;

	for (uint32_t i = 0; i < op->team->count; i++) {
		p = op_part(op, stage, i);
		copy(op->call.list[i], i == me(op) ? op->call.data : p->data,
			op->bytes);
	}
	return XR_OK;
}

static enum xr_status
root_takes_list(struct op *op, uint32_t stage)
{
	return me(op) == op->root ? take_list(op, stage) : XR_OK;
}

/* --- reducing ---------------------------------------------------------------- */

#define SLICE_ALIGN 64 /* bytes: a slice can be handed over where it lies */

struct slice
plan_slice(size_t count, size_t one, uint32_t members, uint32_t place)
{
	size_t unit = one < SLICE_ALIGN ? SLICE_ALIGN / one : 1;
	size_t per = (count / members / unit + 1) * unit;
	struct slice s = { .first = per * place };

	if (s.first > count)
		s.first = count;
	s.count = count - s.first;
	if (s.count > per)
		s.count = per;
	s.at = s.first * one;
	s.len = s.count * one;
	return s;
}

static struct slice
slice_of(const struct op *op, uint32_t place)
{
	return plan_slice(op->call.count, xr_dtype_size(op->call.dtype),
		op->team->count, place);
}

size_t
plan_whole(const struct xr_coll *team)
{
	return team->count == 2 ? PLAN_WHOLE : PLAN_WHOLE / 2;
}

bool
plan_is_whole(const struct op *op)
{
	return op->bytes <= plan_whole(op->team);
}

static uint32_t
reduce_stages(const struct op *op)
{
	return plan_is_whole(op) ? 1 : 2;
}

/* Who has the result in the end. */
static bool
has_result(const struct op *op, uint32_t place)
{
	return !op->plan->has_root || place == op->root;
}

static struct xr_part
slice_part(const struct op *op, const void *data, uint32_t place)
{
	struct slice s = slice_of(op, place);

	return (struct xr_part){ (const char *)data + s.at, s.len };
}

static struct xr_part
reduce_gives(const struct op *op, uint32_t stage, uint32_t to)
{
	if (stage == 1)
		return has_result(op, to) ? (struct xr_part){ op->made->data,
			slice_of(op, me(op)).len } :
					    nothing;
	if (plan_is_whole(op))
		return has_result(op, to) ? own_data(op) : word;
	return slice_part(op, op->call.data, to);
}

static size_t
reduce_wants(const struct op *op, uint32_t stage, uint32_t from)
{
	if (stage == 1)
		return has_result(op, me(op)) ? slice_of(op, from).len :
						PLAN_NONE;
	if (plan_is_whole(op))
		return has_result(op, me(op)) ? op->bytes : 0;
	return slice_of(op, me(op)).len;
}

/* What came of all, and @own in its place, in the order of ranks. */
static void
combine(struct op *op, const void *own, void *to, size_t count)
{
	for (uint32_t i = 0; i < op->team->count; i++)
		op->src[i] = i == me(op) ? own : op_part(op, 0, i)->data;
	kernel_reduce(&(struct kernel_job){
		.dst = to,
		.src = op->src,
		.count = op->team->count,
		.n = count,
		.dtype = op->call.dtype,
		.op = op->call.op,
	});
}

static enum xr_status
reduce_slice(struct op *op)
{
	struct slice s = slice_of(op, me(op));

	op->made = storage_new(s.len);
	if (op->made == NULL)
		return XR_E_NOMEM;
	combine(op, (const char *)op->call.data + s.at, op->made->data,
		s.count);
	return XR_OK;
}

static void
take_slices(struct op *op)
{
	struct slice s;

	for (uint32_t i = 0; i < op->team->count; i++) {
		s = slice_of(op, i);
		copy((char *)op->call.data + s.at,
			i == me(op) ? op->made->data : op_part(op, 1, i)->data,
			s.len);
	}
}

static enum xr_status
reduce_work(struct op *op, uint32_t stage)
{
	if (stage == 0 && !plan_is_whole(op))
		return reduce_slice(op);
	if (!has_result(op, me(op)))
		return XR_OK;
	if (stage == 1)
		take_slices(op);
	else if (op->bytes > 0)
		combine(op, op->call.data, op->call.data, op->call.count);
	return XR_OK;
}

/* --- the table ---------------------------------------------------------------- */

const struct plan plan_barrier = { "barrier", 1, false, false, SHOWS_NOTHING,
	one_stage, give_word, want_word, no_work, NULL };
const struct plan plan_bcast = { "broadcast", 2, false, true, SHOWS_ROOT,
	one_stage, root_gives, want_of_root, take_of_root, NULL };
const struct plan plan_allreduce = { "all_reduce", 3, true, false, SHOWS_ALL,
	reduce_stages, reduce_gives, reduce_wants, reduce_work, NULL };
const struct plan plan_reduce = { "reduce", 4, true, true, SHOWS_OTHERS,
	reduce_stages, reduce_gives, reduce_wants, reduce_work, NULL };
const struct plan plan_allgather = { "all_gather", 5, false, false, SHOWS_ALL,
	one_stage, give_all, want_all, take_list, NULL };
const struct plan plan_gather = { "gather", 6, false, true, SHOWS_OTHERS,
	one_stage, give_to_root, root_wants, root_takes_list, NULL };
const struct plan plan_scatter = { "scatter", 7, false, true, SHOWS_SHARES,
	one_stage, give_share, want_of_root, take_share, NULL };

const struct plan *
plan_find(uint64_t code)
{
	static const struct plan *const all[] = { &plan_barrier, &plan_bcast,
		&plan_allreduce, &plan_reduce, &plan_allgather, &plan_gather,
		&plan_scatter };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i]->code == code)
			return all[i];
	return NULL;
}

/* --- shown to all at once ------------------------------------------------------ */

size_t
plan_line(const struct op *op)
{
	size_t all;

	if (op->plan->shows != SHOWS_SHARES)
		return op->bytes;
	return __builtin_mul_overflow(op->bytes, (size_t)op->team->count,
		       &all) ?
		SIZE_MAX :
		all;
}

static void
show_shares(const struct op *op, char *line)
{
	for (uint32_t i = 0; i < op->team->count; i++)
		if (i != me(op))
			copy(line + i * op->bytes, op->call.list[i], op->bytes);
}

void
plan_show(const struct op *op, void *line)
{
	bool root = me(op) == op->root;

	switch (op->plan->shows) {
	case SHOWS_NOTHING:
		return;
	case SHOWS_SHARES:
		if (root)
			show_shares(op, line);
		return;
	case SHOWS_ROOT:
	case SHOWS_OTHERS:
		if (root != (op->plan->shows == SHOWS_ROOT))
			return;
		break;
	case SHOWS_ALL:
		break;
	}
	copy(line, op->call.data, op->bytes);
}

void
plan_see(struct op *op, uint32_t from, const void *line)
{
	struct part *p = op_part(op, 0, from);

	p->len = op->bytes;
	p->data = op->plan->shows == SHOWS_SHARES ?
		(const char *)line + me(op) * op->bytes :
		line;
}

const char *
plan_redop_name(enum xr_redop op)
{
	static const char *const names[] = {
		[XR_SUM] = "sum",
		[XR_PROD] = "product",
		[XR_MIN] = "min",
		[XR_MAX] = "max",
		[XR_BAND] = "band",
		[XR_BOR] = "bor",
		[XR_BXOR] = "bxor",
		[XR_AVG] = "average",
	};

	return op > 0 && (size_t)op < sizeof(names) / sizeof(names[0]) ?
		names[op] :
		"?";
}

void
plan_text(const struct plan *plan, const struct xr_coll_op *call, char *text,
	size_t cap)
{
	size_t n = (size_t)snprintf(text, cap, "%s", plan->name);

	if ((plan->code & PLAN_TOLD) != 0)
		return;
	if (plan != &plan_barrier && n < cap)
		n += (size_t)snprintf(text + n, cap - n, " of %zu %s",
			call->count, xr_dtype_name(call->dtype));
	if (plan->reduces && n < cap)
		n += (size_t)snprintf(text + n, cap - n, ", %s",
			plan_redop_name(call->op));
	if (plan->has_root && n < cap)
		snprintf(text + n, cap - n, ", rank %lld",
			(long long)call->rank);
}
