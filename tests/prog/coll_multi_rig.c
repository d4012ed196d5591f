/* SPDX-License-Identifier: Apache-2.0 */
/* coll_multi_rig.c - see coll_multi.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/prog/coll_multi.h"
#include "tests/prog/coll_ref.h"
#include "tests/unit/value_device.h"

struct xr_world *world;
struct xr_coll *all;

struct xr_coll *
new_group(void)
{
	struct xr_coll *coll = NULL;

	EXPECT(xr_coll_new(world,
		       &(struct xr_coll_opts){
			       .size = sizeof(struct xr_coll_opts),
			       .timeout = PATIENCE },
		       &coll, &err) == XR_OK);
	return coll;
}

/* --- a device that breaks -------------------------------------------------------- */

struct breaks breaks;

static bool
is_broken(bool is_broken, int32_t index)
{
	return is_broken && index == breaks.index && breaks.good-- <= 0;
}

static enum xr_status
to_host(void *ctx, void *host, const struct device_memory *from,
	struct xr_error *e)
{
	if (is_broken(breaks.reads, from->index))
		return fail(e, XR_E_DEVICE, "it fell off");
	return device_to_host(ctx, host, from, e);
}

static enum xr_status
from_host(void *ctx, const void *host, const struct device_memory *to,
	struct xr_error *e)
{
	if (is_broken(breaks.writes, to->index))
		return fail(e, XR_E_DEVICE, "it is full of dust");
	return device_from_host(ctx, host, to, e);
}

static const struct device_ops platform = {
	.alloc = device_alloc,
	.free = device_free,
	.copy_to_host = to_host,
	.copy_from_host = from_host,
};

void
devices_begin(void)
{
	EXPECT(device_set_ops(XR_DEVICE_FAKE, &platform) == XR_OK);
}

int
devices_left(void)
{
	return device_blocks;
}

/* --- memory that is short, of one thread ------------------------------------------ */

_Thread_local unsigned until_short;
bool was_short;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);

static bool
is_short(void)
{
	if (until_short == 0 || --until_short > 0)
		return false;
	was_short = true;
	return true;
}

void *
__wrap_malloc(size_t bytes)
{
	return is_short() ? NULL : __real_malloc(bytes);
}

void *
__wrap_calloc(size_t n, size_t bytes)
{
	return is_short() ? NULL : __real_calloc(n, bytes);
}

void *
__wrap_aligned_alloc(size_t align, size_t bytes)
{
	return is_short() ? NULL : __real_aligned_alloc(align, bytes);
}

/* --- tensors ------------------------------------------------------------------------ */

struct xr_value *
tensor(int32_t device, size_t count, enum xr_dtype dtype)
{
	struct xr_tensor_desc d = {
		.size = sizeof(d),
		.dtype = dtype,
		.ndim = 1,
		.device_kind = device == HOST ? XR_DEVICE_CPU : XR_DEVICE_FAKE,
		.device_index = device == HOST ? 0 : device,
		.shape = { (int64_t)count },
	};
	struct xr_value *v = NULL;

	EXPECT(xr_tensor_new(&d, &v, &err) == XR_OK);
	return v;
}

/* Where its numbers can be seen. */
static void *
numbers_of(const struct xr_value *v, size_t *bytes)
{
	struct xr_tensor_desc d = { .size = sizeof(d) };
	void *data = xr_tensor_data(v, NULL);

	EXPECT(xr_tensor_desc(v, &d) == XR_OK);
	*bytes = (size_t)xr_tensor_elements(&d) * xr_dtype_size(d.dtype);
	return d.device_kind == XR_DEVICE_CPU ? data : near(data);
}

void
fill(struct xr_value *v, uint32_t number)
{
	struct xr_tensor_desc d = { .size = sizeof(d) };
	size_t bytes;
	void *data = numbers_of(v, &bytes);

	EXPECT(xr_tensor_desc(v, &d) == XR_OK);
	ref_fill(data, (size_t)d.shape[0], d.dtype, number);
}

bool
has(const struct xr_value *v, const void *want)
{
	size_t bytes;
	void *data = numbers_of(v, &bytes);

	return bytes == 0 || memcmp(data, want, bytes) == 0;
}

bool
has_array(const struct xr_value *v, uint32_t number)
{
	struct xr_tensor_desc d = { .size = sizeof(d) };
	size_t bytes;
	bool good;
	void *want;

	EXPECT(xr_tensor_desc(v, &d) == XR_OK);
	numbers_of(v, &bytes);
	want = malloc(bytes + 1);
	EXPECT(want != NULL);
	ref_fill(want, (size_t)d.shape[0], d.dtype, number);
	good = has(v, want);
	free(want);
	return good;
}

void
make(struct xr_value *list[EACH], size_t count, enum xr_dtype dtype)
{
	for (uint32_t j = 0; j < EACH; j++) {
		list[j] = tensor((int32_t)j, count, dtype);
		fill(list[j], rank * EACH + j);
	}
}

void
drop(struct xr_value **list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		xr_value_unref(list[i]);
}
