/* SPDX-License-Identifier: Apache-2.0 */
/* value_rig.h - what tests of values share: references and objects that count who
 * has them, and a value of every kind. */
#ifndef TESTS_UNIT_VALUE_RIG_H
#define TESTS_UNIT_VALUE_RIG_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <xrun/rref.h>
#include <xrun/tensor.h>
#include <xrun/value.h>

#include "wire/value/value_hooks.h"

#define KINDS 16

/* --- references ------------------------------------------------------------ */

struct xr_rref {
	int id, handles;
};

static struct xr_rref rref_seven = { .id = 7 };

static struct xr_rref *
rref_ref(struct xr_rref *rref)
{
	rref->handles++;
	return rref;
}

static void
rref_unref(struct xr_rref *rref)
{
	rref->handles--;
}

static bool
rref_equal(const struct xr_rref *a, const struct xr_rref *b)
{
	return a->id == b->id;
}

static const struct value_rref_ops rref_ops = {
	.ref = rref_ref,
	.unref = rref_unref,
	.equal = rref_equal,
};

/* --- objects: a point is two numbers --------------------------------------- */

struct point {
	int32_t x, y;
};

static int points; /* that there are */

static inline struct point *
point_new(int32_t x, int32_t y)
{
	struct point *p = malloc(sizeof(*p));

	if (p == NULL)
		return NULL;
	points++;
	*p = (struct point){ x, y };
	return p;
}

static struct xr_value *
point_encode(void *object, void *ctx)
{
	(void)ctx;
	return xr_value_new_bytes(object, sizeof(struct point));
}

static void *
point_decode(const void *data, size_t len, void *ctx)
{
	struct point p;

	(void)ctx;
	if (len != sizeof(p))
		return NULL;
	memcpy(&p, data, sizeof(p));
	return point_new(p.x, p.y);
}

static void
point_free(void *object, void *ctx)
{
	(void)ctx;
	points--;
	free(object);
}

static inline void
register_point(void)
{
	const struct xr_type type = {
		.size = sizeof(type),
		.name = "geo.Point",
		.encode = point_encode,
		.decode = point_decode,
		.free = point_free,
	};

	cr_assert_eq(xr_type_register(&type, NULL), XR_OK);
}

/* --- the beginning and the end of a test ------------------------------------ */

#ifdef SHORT_MEMORY_COUNTS
static long blocks_before; /* the test */
#endif

static inline void
begin(void)
{
	value_set_rref_ops(&rref_ops);
	register_point();
#ifdef SHORT_MEMORY_COUNTS
	blocks_before = blocks;
#endif
}

/* Nobody has anything any more. Criterion does not count what fails in a .fini, but for
 * a crash. */
static inline void
end(void)
{
	long left = 0;

#ifdef SHORT_MEMORY_COUNTS
	left = blocks - blocks_before;
#endif
	if (points == 0 && rref_seven.handles == 0 && left == 0)
		return;
	fprintf(stderr, "%d points, %d handles, %ld blocks are left\n", points,
		rref_seven.handles, left);
	abort();
}

/* --- values ---------------------------------------------------------------- */

static int freed, one = 1;

static void
count_free(void *data, void *ctx)
{
	(void)data;
	freed += *(int *)ctx;
}

/* Bytes that say in @freed when nobody needs them any more. */
static inline struct xr_value *
watched(void)
{
	return xr_value_wrap_bytes("w", 1, count_free, &one);
}

static inline struct xr_value *
text(const char *t)
{
	return xr_value_new_text(t, strlen(t));
}

static inline struct xr_value *
i64(int64_t i)
{
	return xr_value_new_i64(i);
}

/* @depth lists in each other, in the innermost of which is @item. */
static inline struct xr_value *
nested(int depth, struct xr_value *item)
{
	while (item != NULL && depth-- > 0)
		item = xr_value_new_list_of(&item, 1);
	return item;
}

static inline struct xr_value *
numbers(int64_t rows, int64_t columns)
{
	struct xr_tensor_desc desc = {
		.size = sizeof(desc),
		.dtype = XR_DT_F32,
		.ndim = 2,
		.shape = { rows, columns },
	};
	struct xr_value *value = NULL;
	float *data;

	if (xr_tensor_new(&desc, &value, NULL) != XR_OK)
		return NULL;
	data = xr_tensor_data(value, NULL);
	for (int64_t i = 0; i < rows * columns; i++)
		data[i] = (float)i / 4;
	return value;
}

static inline struct xr_value *
some_error(struct xr_value *cause)
{
	return xr_value_new_error(&(struct xr_failure){
		.size = sizeof(struct xr_failure),
		.status = XR_E_RANGE,
		.type = "IndexError",
		.text = "seven is too many",
		.func = "geo.area",
		.worker = "trainer:3",
		.worker_id = 3,
		.cause = cause,
	});
}

static inline struct xr_value *
some_dict(void)
{
	struct xr_value *dict = xr_value_new_dict();

	if (dict == NULL)
		return NULL;
	if (xr_value_put(dict, "b", 1, i64(2)) == XR_OK &&
		xr_value_put(dict, "", 0, text("nothing")) == XR_OK)
		return dict;
	xr_value_unref(dict);
	return NULL;
}

static inline struct xr_value *
some_list(void)
{
	struct xr_value *items[] = { i64(1), text("two"), xr_value_new_nil() };

	return xr_value_new_list_of(items, 3);
}

/* A value of each kind; NULL: no memory. register_point() and the rref_ops go
 * before. */
static inline struct xr_value *
of_kind(enum xr_kind kind)
{
	struct xr_value *value = NULL, *cause;
	struct point *point;

	switch (kind) {
	case XR_NIL:
		return xr_value_new_nil();
	case XR_BOOL:
		return xr_value_new_bool(true);
	case XR_I64:
		return i64(-2);
	case XR_U64:
		return xr_value_new_u64(UINT64_MAX);
	case XR_F64:
		return xr_value_new_f64(0.5);
	case XR_C128:
		return xr_value_new_c128(1, -1);
	case XR_BYTES:
		return xr_value_new_bytes("\0\xff", 2);
	case XR_TEXT:
		return text("gr\xc3\xbc\xc3\x9f");
	case XR_LIST:
		return some_list();
	case XR_DICT:
		return some_dict();
	case XR_TENSOR:
		return numbers(2, 3);
	case XR_RREF:
		return xr_value_new_rref(&rref_seven);
	case XR_WORKER:
		return xr_value_new_worker("trainer:3", 3);
	case XR_ERROR:
		cause = some_error(NULL);
		value = cause == NULL ? NULL : some_error(cause);
		xr_value_unref(cause);
		return value;
	case XR_OPAQUE:
		point = point_new(3, 4);
		return point == NULL ? NULL :
				       xr_value_new_opaque("geo.Point", point);
	case XR_FUNC:
		value = i64(5);
		return value == NULL ? NULL : xr_fn_bind("geo.area", value);
	}
	return NULL;
}

/* A list of one of each; NULL: no memory. */
static inline struct xr_value *
of_every_kind(void)
{
	struct xr_value *items[KINDS];

	for (int k = 0; k < KINDS; k++)
		items[k] = of_kind((enum xr_kind)k);
	return xr_value_new_list_of(items, KINDS);
}

#endif /* TESTS_UNIT_VALUE_RIG_H */
