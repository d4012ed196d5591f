/* SPDX-License-Identifier: Apache-2.0 */
/* test_mask.c - CUDA_VISIBLE_DEVICES and --devices, row 77 of the faults. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place/mask.h"

#define UUID0 "GPU-11111111-aaaa-4000-8000-000000000000"
#define UUID1 "GPU-11112222-aaaa-4000-8000-000000000001"
#define MIG   "MIG-5c89852c-d268-c3f3-1b07-005d5ae1dc3f"

static struct xr_device four[4];
static struct xr_error err;

/* Four devices, as files tell of them: without a UUID. */
static void
bare(void)
{
	for (uint32_t i = 0; i < 4; i++) {
		four[i] = (struct xr_device){
			.size = sizeof(four[i]),
			.index = i,
			.platform = "cuda",
		};
		snprintf(four[i].id, sizeof(four[i].id), "%u", i);
	}
}

/* As the driver tells of them. */
static void
listed(void)
{
	bare();
	strncpy(four[0].uuid, UUID0, sizeof(four[0].uuid) - 1);
	strncpy(four[1].uuid, UUID1, sizeof(four[1].uuid) - 1);
	strncpy(four[2].uuid, "GPU-33333333", sizeof(four[2].uuid) - 1);
	strncpy(four[3].uuid, "GPU-44444444", sizeof(four[3].uuid) - 1);
}

/* The ids a list leaves, as "0 2", or the error. */
static const char *
run(const char *text, bool mask, uint32_t count)
{
	struct mask_from from = { "M", four, count };
	struct xr_device *out = NULL;
	static char ids[1024];
	uint32_t n = 0;
	enum xr_status status = XR_OK;

	err = (struct xr_error){ 0 };
	ids[0] = '\0';
	status = (mask ? mask_apply : mask_select)(&from, text, &out, &n, &err);
	if (status != XR_OK)
		return err.text;
	for (uint32_t i = 0; i < n; i++) {
		cr_expect(eq(str, out[i].platform, "cuda"));
		snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s%s",
			i == 0 ? "" : " ", out[i].id);
	}
	free(out);
	return ids;
}

#define MASK(text)   ((char *)run(text, true, 4))
#define SELECT(text) ((char *)run(text, false, 4))

Test(mask, an_empty_mask_hides_all, .init = bare)
{
	static const char *const none[] = { "", " ", "-1", "-1,0", "none",
		"void", "NoDevFiles" };

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		cr_expect(eq(str, MASK(none[i]), ""), "%s", none[i]);
}

Test(mask, indices_keep_their_order, .init = bare)
{
	cr_assert(eq(str, MASK("0"), "0"));
	cr_assert(eq(str, MASK("3,1"), "3 1"));
	cr_assert(eq(str, MASK(" 3 , 1"), "3 1"));
	cr_assert(eq(str, MASK("2,0,-1,1"), "2 0"));
}

Test(mask, uuids_are_taken_on_trust_without_a_driver, .init = bare)
{
	cr_assert(eq(str, MASK(UUID0), UUID0));
	cr_assert(eq(str, MASK("GPU-33,0"), "GPU-33 0"));
	cr_assert(eq(str, MASK(MIG), MIG));
	cr_assert(eq(str, MASK("MIG-GPU-1111/1/0,MIG-GPU-1111/2/0"),
		"MIG-GPU-1111/1/0 MIG-GPU-1111/2/0"));
}

Test(mask, a_listed_uuid_keeps_the_words_of_the_mask, .init = listed)
{
	struct mask_from from = { "M", four, 4 };
	struct xr_device *out = NULL;
	uint32_t n = 0;

	cr_assert(mask_apply(&from, "GPU-33,0", &out, &n, &err) == XR_OK);
	cr_assert(eq(u32, n, 2));
	cr_assert(eq(str, out[0].id, "GPU-33"));
	cr_assert(eq(u32, out[0].index, 2));
	cr_assert(eq(str, out[0].uuid, "GPU-33333333"));
	free(out);
}

Test(mask, out_of_range_is_named, .init = bare)
{
	cr_assert(eq(str, MASK("0,4"),
		"M: '4' (byte 2) is out of range, the 4 devices here are 0 to 3"));
	cr_assert(eq(str, (char *)run("1", true, 1),
		"M: '1' (byte 0) is out of range, the only device here is 0"));
	cr_assert(eq(i32, err.status, XR_E_RANGE));
}

Test(mask, twice_is_refused, .init = bare)
{
	cr_assert(eq(str, MASK("1,2,1"), "M: '1' (byte 4) is there twice"));
	cr_assert(eq(i32, err.status, XR_E_EXISTS));
	cr_assert(eq(str, MASK("GPU-12,GPU-1"),
		"M: 'GPU-1' (byte 7) is there twice"));
	cr_assert(eq(str, MASK(MIG "," MIG),
		"M: '" MIG "' (byte 41) is there twice"));
	cr_assert(eq(str, SELECT("0-2,1"), "M: '1' (byte 4) is there twice"));
	listed();
	cr_assert(eq(str, MASK("2,GPU-3"),
		"M: 'GPU-3' (byte 2) is there twice"));
}

Test(mask, what_is_no_device_is_named, .init = bare)
{
	static const char *const bad[] = { "x", "all", "0,", ",0", "0,,1",
		"0-1", "+1", "1.0", "GPU-", "GPU 1", "0;1", "99999999999",
		"MIG-" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect(strstr(MASK(bad[i]), "M: '") != NULL, "%s", bad[i]);
}

Test(mask, a_beginning_that_fits_several_is_refused, .init = listed)
{
	cr_assert(eq(str, MASK("GPU-1111"),
		"M: 'GPU-1111' (byte 0) fits " UUID0 " and " UUID1));
	cr_assert(eq(i32, err.status, XR_E_CONFLICT));
	cr_assert(eq(str, SELECT("GPU-11112"), "1"));
}

Test(mask, a_selection_has_ranges, .init = listed)
{
	cr_assert(eq(str, SELECT("0,2-3"), "0 2 3"));
	cr_assert(eq(str, SELECT("3,0-1"), "3 0 1"));
	cr_assert(eq(str, SELECT("GPU-33,0"), "2 0"));
	cr_assert(eq(str, SELECT("2-1"), "M: '2-1' (byte 0) runs backwards"));
	cr_assert(eq(str, SELECT("1-"),
		"M: '1-' (byte 0) is not a range like 0-3"));
	cr_assert(eq(str, SELECT("2-9"),
		"M: '2-9' (byte 0) is out of range, the 4 devices here are 0 to 3"));
	cr_assert(eq(str, SELECT("0,"), "M: '' (byte 2) is not a device"));
	cr_assert(eq(str, SELECT("-1"),
		"M: '-1' (byte 0) is no device, the 4 devices here are 0 to 3"));
	cr_assert(eq(str, SELECT("GPU-9"),
		"M: 'GPU-9' (byte 0) is no device, the 4 devices here are 0 to 3"));
	cr_assert(eq(str, (char *)run("0", false, 0),
		"M: '0' (byte 0) is out of range, there is no device here"));
}

Test(mask, a_selection_goes_through_the_mask, .init = bare)
{
	struct mask_from all = { "M", four, 4 }, visible = { "D", NULL, 0 };
	struct xr_device *seen = NULL, *out = NULL;
	uint32_t n = 0;

	cr_assert(mask_apply(&all, "3,1", &seen, &n, &err) == XR_OK);
	visible.devices = seen;
	visible.count = n;
	cr_assert(mask_select(&visible, "1", &out, &n, &err) == XR_OK);
	cr_assert(eq(str, out[0].id, "1"));
	free(out);
	cr_assert(mask_select(&visible, "0", &out, &n, &err) == XR_E_RANGE);
	free(seen);
}

Test(mask, every_truncation_is_taken_or_refused, .init = listed)
{
	static const char *const whole[] = { "0,2-3,GPU-1111111,GPU-44",
		"3," MIG ",GPU-33,-1", " 1 , 2 " };

	for (size_t i = 0; i < 3; i++) {
		for (size_t len = 0; len <= strlen(whole[i]); len++) {
			char *cut = strndup(whole[i], len);

			run(cut, true, 4);
			cr_expect(eq(i32, err.status == XR_OK,
				err.text[0] == '\0'));
			run(cut, false, 4);
			cr_expect(eq(i32, err.status == XR_OK,
				err.text[0] == '\0'));
			free(cut);
		}
	}
	/* 0,2-3 is a selection only from the 1st, 3rd and 5th byte on. */
	for (size_t len = 1; len <= 5; len++) {
		char *cut = strndup(whole[0], len);

		run(cut, false, 4);
		cr_expect(eq(i32, err.status == XR_OK, len % 2 == 1), "%s",
			cut);
		free(cut);
	}
}

Test(mask, only_names_need_the_driver)
{
	cr_assert(not(mask_needs_driver("0,2-3 ")));
	cr_assert(mask_needs_driver("0,GPU-1"));
	cr_assert(not(mask_needs_driver("auto")));
	cr_assert(not(mask_needs_driver("none")));
}

Test(mask, a_selection_is_checked_whatever_devices_there_are)
{
	static const char *const good[] = { "0", "0, 2-3", "GPU-1,GP",
		"MIG-a" };
	static const char *const bad[] = { "", "x-y", "2-1", "0-", "0,", "-1",
		"GPU 1" };
	struct xr_error why = { 0 };

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_expect(eq(int, mask_check(good[i], &why), XR_OK));
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect(eq(int, mask_check(bad[i], &why), XR_E_INVAL));
	mask_check("0, x-y", &why);
	cr_expect(eq(str, why.text,
		"'x-y' (byte 3) is neither an index nor GPU-... nor MIG-..."));
}
