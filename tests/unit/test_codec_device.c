/* SPDX-License-Identifier: Apache-2.0 */
/* test_codec_device.c - tensors of devices in messages: by way of the host. */
#include "tests/unit/at_end.h"
#include "tests/unit/codec_rig.h"
#include "tests/unit/value_device.h"

static void
begin_device(void)
{
	begin();
	device_set_ops(XR_DEVICE_FAKE, &device_ops);
}

static void
end_device(void)
{
	end();
	AT_END(device_blocks == 0);
}

TestSuite(codec_device, .init = begin_device, .fini = end_device);

static const struct xr_enc_opts by_share = {
	.size = sizeof(struct xr_enc_opts),
	.mode = XR_ENC_SHARE,
};

/* A tensor of fake:0, the element i of which is i; as bytes it is longer. */
static struct xr_value *
on_fake(int64_t count)
{
	struct xr_tensor_desc d = {
		.size = sizeof(d),
		.dtype = XR_DT_F32,
		.ndim = 1,
		.device_kind = XR_DEVICE_FAKE,
		.shape = { count },
	};
	struct xr_value *v = NULL;
	float *data;

	cr_assert_eq(xr_tensor_new(&d, &v, &err), XR_OK, "%s", err.text);
	data = near(xr_tensor_data(v, NULL));
	for (int64_t i = 0; i < count; i++)
		data[i] = (float)i;
	return v;
}

static struct xr_tensor_desc
desc_of(const struct xr_value *v)
{
	struct xr_tensor_desc d = { .size = sizeof(d) };

	cr_assert_eq(xr_tensor_desc(v, &d), XR_OK);
	return d;
}

Test(codec_device, a_tensor_of_a_device_arrives_on_one)
{
	struct xr_value *v = on_fake(10), *got = again(v);

	cr_expect(eq(int, device_copies, 2));
	cr_expect_eq(desc_of(got).device_kind, XR_DEVICE_FAKE);
	cr_expect_neq(xr_tensor_data(v, NULL), xr_tensor_data(got, NULL));
	cr_expect(xr_value_equal(v, got));
	xr_value_unref(v);
	xr_value_unref(got);
	v = on_fake(0);
	got = again(v);
	cr_expect(xr_value_equal(v, got));
	xr_value_unref(v);
	xr_value_unref(got);
}

Test(codec_device, only_what_is_needed_is_read_from_a_device)
{
	for (int64_t stride = 1; stride < 100; stride += 98) {
		struct xr_value *of = on_fake(10000), *v = NULL, *got;
		struct xr_tensor_desc d = desc_of(of);
		struct message m;

		d.shape[0] = 10;
		d.strides[0] = stride;
		d.offset = 2000;
		cr_assert_eq(xr_tensor_view(of, &d, &v, &err), XR_OK);
		m = message_of(v, NULL);
		cr_expect(lt(sz, m.len, 1024));
		cr_assert_eq(read_message(m, &got), XR_OK, "%s", err.text);
		cr_expect(xr_value_equal(v, got));
		cr_expect_eq(((float *)near(xr_tensor_data(got,
				     NULL)))[desc_of(got).offset / 4],
			500);
		free(m.data);
		xr_value_unref(of);
		xr_value_unref(v);
		xr_value_unref(got);
	}
}

/* From the CPU to fake:1, from fake:0 to the CPU, and from nowhere else. */
static enum xr_status
map_device(void *ctx, struct xr_tensor_desc *desc, struct xr_error *e)
{
	++*(int *)ctx;
	if (desc->device_kind == XR_DEVICE_CPU) {
		desc->device_kind = XR_DEVICE_FAKE;
		desc->device_index = 1;
		return XR_OK;
	}
	if (desc->device_index != 0)
		return fail(e, XR_E_INVAL, "no device for fake:%d there",
			desc->device_index);
	desc->device_kind = XR_DEVICE_CPU;
	return XR_OK;
}

Test(codec_device, tensors_arrive_where_their_device_is_mapped_to)
{
	int asked = 0;
	const struct value_codec_ctx ctx = { .ctx = &asked,
		.device = map_device };
	const struct value_encoding how = { .mode = VALUE_HANDOVER,
		.ctx = &ctx };
	struct xr_value *items[] = { numbers(64, 64), on_fake(5), NULL };
	struct xr_value *v, *got = NULL, *elsewhere;
	struct xr_encoded *e = NULL;
	struct message m;

	items[2] = view(items[0], PAIR(1, 1), PAIR(1, 1), 4);
	v = xr_value_new_list_of(items, 3);
	m = message_of(v, &how);
	cr_expect(eq(int, asked, 2), "once for a storage");
	cr_assert_eq(read_message(m, &got), XR_OK, "%s", err.text);
	cr_expect(xr_value_equal(v, got));
	cr_expect_eq(desc_of(xr_value_at(got, 0)).device_index, 1);
	cr_expect_eq(desc_of(xr_value_at(got, 1)).device_kind, XR_DEVICE_CPU);
	cr_expect_eq(desc_of(xr_value_at(got, 2)).device_kind, XR_DEVICE_FAKE);
	free(m.data);
	elsewhere = xr_value_ref(xr_value_at(got, 0));
	cr_expect_eq(value_encode(elsewhere, &how, &e, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "no device for fake:1 there");
	cr_expect_null(e);
	xr_value_unref(elsewhere);
	xr_value_unref(v);
	xr_value_unref(got);
}

Test(codec_device, what_a_device_says_is_passed_on)
{
	struct xr_value *v = on_fake(10), *got = NULL;
	struct message m = message_of(v, NULL);
	struct xr_encoded *e = NULL;

	device_broken = true;
	cr_expect_eq(xr_encode(v, NULL, &e, &err), XR_E_DEVICE);
	cr_expect_str_eq(err.text, "fake:0 fell off");
	cr_expect_eq(read_message(m, &got), XR_E_DEVICE);
	device_broken = false;
	m.data[FORMAT_HEADER + 4] = 2;
	cr_expect_eq(read_message(m, &got), XR_E_NODEV);
	m.data[FORMAT_HEADER + 2] = XR_DEVICE_TPU;
	cr_expect_eq(read_message(m, &got), XR_E_NODEV);
	cr_expect_str_eq(err.text, "value: no platform for tpu here");
	cr_expect_eq(xr_encode(v, &by_share, &e, &err), XR_E_ENCODE,
		"it is in nobody's shared memory");
	cr_expect_null(e);
	cr_expect_null(got);
	free(m.data);
	xr_value_unref(v);
}

Test(codec_device, devices_lose_nothing_when_memory_is_short)
{
	struct xr_value *v = on_fake(10), *got;
	struct message m = message_of(v, NULL);
	enum xr_status status;
	unsigned n = 0;

	do {
		got = NULL;
		was_short = false;
		until_short = ++n;
		status = read_message(m, &got);
		until_short = 0;
		cr_assert_eq(status, was_short ? XR_E_NOMEM : XR_OK);
		xr_value_unref(got);
		cr_assert_eq(device_blocks, 1);
	} while (was_short);
	free(m.data);
	xr_value_unref(v);
}
