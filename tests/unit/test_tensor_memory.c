/* SPDX-License-Identifier: Apache-2.0 */
/* test_tensor_memory.c - the memory of tensors that were freed goes back to the
 * system. */
#include <stdio.h>
#include <string.h>

#include <xrun/tensor.h>

#include "base/clock.h"
#include "tests/unit/agent_rig.h"

#define MIB   (1L << 20)
#define BYTES (48 * MIB)

/* Resident memory of this process, with what it shares. */
static long
resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long all, pages = -1;

	cr_assert_not_null(f);
	cr_assert_eq(fscanf(f, "%ld %ld", &all, &pages), 2);
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static struct xr_value *
tensor_of(size_t bytes)
{
	struct xr_tensor_desc desc = {
		.size = sizeof(desc),
		.dtype = XR_DT_U8,
		.ndim = 1,
		.shape = { (int64_t)bytes },
		.strides = { 1 },
	};
	struct xr_value *tensor = NULL;
	struct xr_error err = { 0 };

	cr_assert_eq(xr_tensor_new(&desc, &tensor, &err), XR_OK, "%s",
		err.text);
	memset(xr_tensor_data(tensor, NULL), 1, bytes);
	return tensor;
}

static long
after_two(void)
{
	struct xr_value *one = tensor_of(BYTES), *two = tensor_of(BYTES);
	long most = resident();

	xr_value_unref(one);
	xr_value_unref(two);
	return most;
}

TestSuite(tensor_memory, .timeout = 90);

Test(tensor_memory, goes_back_while_the_agent_is_idle)
{
	long before, most;

	join(0);
	before = resident();
	most = after_two();
	cr_assert_gt(most - before, 2 * BYTES - 8 * MIB);
	while (resident() - before > 16 * MIB)
		usleep(20000);
}

Test(tensor_memory, goes_back_at_once_without_an_agent)
{
	long before;

	join(0);
	before = resident();
	leave();
	after_two();
	cr_expect_lt(resident() - before, 16 * MIB);
}
