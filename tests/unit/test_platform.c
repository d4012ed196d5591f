/* SPDX-License-Identifier: Apache-2.0 */
/* test_platform.c - which accelerators are found, and who is given which. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/span.h"
#include "launcher/host/platform.h"
#include "place/mask.h"

#define VARS(...) \
	(char *const[]) \
	{ \
		cuda_root, tpu_root, __VA_ARGS__, NULL \
	}

static char root[] = "/tmp/xrun-test-XXXXXX";
static char cuda_root[64], tpu_root[64];
static struct platform_choice choice;
static struct xr_error err;

/* A file below root, with its folders. */
static void
put(const char *path, const char *text)
{
	char full[256];
	FILE *out = NULL;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		cr_assert(mkdir(full, 0700) == 0 || errno == EEXIST);
		*p = '/';
	}
	out = fopen(full, "we");
	cr_assert(out != NULL);
	fputs(text, out);
	fclose(out);
}

static void
put_gpus(int count)
{
	char path[64];

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "dev/nvidia%d", i);
		put(path, "");
	}
	put("dev/nvidia", "");
	put("dev/nvidiactl", "");
	put("dev/nvidia-uvm", "");
	put("dev/nvidia-caps/nvidia-cap1", "");
}

static void
put_pci(const char *address, const char *vendor, const char *device)
{
	char path[128];

	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/vendor", address);
	put(path, vendor);
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/device", address);
	put(path, device);
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static void
setup(void)
{
	cr_assert(mkdtemp(root) != NULL);
	snprintf(cuda_root, sizeof(cuda_root), "XRUN_CUDA_ROOT=%s", root);
	snprintf(tpu_root, sizeof(tpu_root), "XRUN_TPU_ROOT=%s", root);
	put("dev/null", "");
}

static void
finish(void)
{
	platform_fini(&choice);
	unsetenv("FAKE_NVML_RECORD"); /* its folder goes before the library */
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(platform, .init = setup, .fini = finish);

/* The variables are kept, for a choice looks at them till it is given up. */
static enum xr_status
choose(const char *name, char *const *vars)
{
	static char *kept[8];
	int count = 0;

	platform_fini(&choice);
	for (; vars[count] != NULL && count < 7; count++)
		kept[count] = vars[count];
	kept[count] = NULL;
	err = (struct xr_error){ 0 };
	return platform_choose(name, kept, &choice, &err);
}

static char *
chosen(void)
{
	static char text[512];

	snprintf(text, sizeof(text), "%s", choice.plugin->name);
	for (uint32_t i = 0; i < choice.count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			" %s", choice.devices[i].id);
	return text;
}

Test(platform, without_accelerators_it_is_cpu)
{
	cr_assert(choose("auto", VARS("A=b")) == XR_OK);
	cr_assert(eq(str, chosen(), "cpu"));
	cr_assert(choose("cpu", VARS("A=b")) == XR_OK);
	cr_assert(eq(str, chosen(), "cpu"));
}

Test(platform, gpus_are_counted_by_their_files)
{
	put_gpus(3);
	cr_assert(choose("auto", VARS("A=b")) == XR_OK);
	cr_assert(eq(str, chosen(), "cuda 0 1 2"));
	cr_assert(choose("cpu", VARS("A=b")) == XR_OK);
	cr_assert(eq(str, chosen(), "cpu"));
}

Test(platform, a_container_with_one_file_has_gpu_0)
{
	put("dev/nvidia3", "");
	cr_expect(choose("cuda", VARS("A=b")) == XR_E_NODEV);
	put("dev/nvidiactl", "");
	cr_assert(choose("cuda", VARS("A=b")) == XR_OK);
	cr_assert(eq(str, chosen(), "cuda 0"));
}

Test(platform, an_inherited_mask_counts)
{
	put_gpus(3);
	cr_assert(choose("auto", VARS("CUDA_VISIBLE_DEVICES=2,0")) == XR_OK);
	cr_assert(eq(str, chosen(), "cuda 2 0"));
	cr_assert(choose("auto", VARS("CUDA_VISIBLE_DEVICES=")) == XR_OK);
	cr_assert(eq(str, chosen(), "cpu"));
	cr_assert(choose("auto", VARS("CUDA_VISIBLE_DEVICES=GPU-1,MIG-2")) ==
		XR_OK);
	cr_assert(eq(str, chosen(), "cuda GPU-1 MIG-2"));
	cr_assert(choose("auto", VARS("CUDA_VISIBLE_DEVICES=0,3")) ==
		XR_E_RANGE);
	cr_assert(eq(str, err.text,
		"CUDA_VISIBLE_DEVICES: '3' (byte 2) is out of range, the 3 devices here are 0 to 2"));
	cr_assert(choose("auto", VARS("CUDA_VISIBLE_DEVICES=0,0")) ==
		XR_E_EXISTS);
}

Test(platform, a_mask_on_a_machine_without_gpus_is_nobodys_business)
{
	cr_assert(choose("auto", VARS("CUDA_VISIBLE_DEVICES=0,0,x")) == XR_OK);
	cr_assert(eq(str, chosen(), "cpu"));
}

Test(platform, one_that_is_named_must_work)
{
	cr_assert(choose("cuda", VARS("A=b")) == XR_E_NODEV);
	cr_assert(eq(str, err.text, "--platform cuda: no device here"));
	put_gpus(1);
	cr_assert(choose("cuda", VARS("CUDA_VISIBLE_DEVICES=-1")) ==
		XR_E_NODEV);
	cr_assert(eq(str, err.text,
		"--platform cuda: no device here, or none that is visible in CUDA_VISIBLE_DEVICES"));
	cr_assert(choose("tpu", VARS("A=b")) == XR_E_NODEV);
	cr_assert(choose("rocm", VARS("A=b")) == XR_E_NOTFOUND);
	cr_assert(eq(str, err.text,
		"--platform: 'rocm' is not one of auto|cpu|cuda|tpu"));
	snprintf(cuda_root, sizeof(cuda_root), "XRUN_CUDA_ROOT=/nonexistent");
	cr_assert(choose("cuda", VARS("A=b")) == XR_E_SYS);
	cr_assert(eq(str, err.text,
		"cuda: open /nonexistent/dev: No such file or directory"));
}

Test(platform, tpus_are_counted_on_the_bus)
{
	put_pci("0000:00:05.0", "0x1ae0\n", "0x005e\n");
	put_pci("0000:00:04.0", "0x1ae0\n", "0x0063\n");
	put_pci("0000:00:06.0", "0x1ae0\n", "0x0042\n"); /* gVNIC */
	put_pci("0000:00:07.0", "0x8086\n", "0x005e\n");
	put_gpus(1);
	cr_assert(choose("auto", VARS("A=b")) == XR_OK);
	cr_assert(eq(str, chosen(), "tpu 0 1"));
	cr_assert(eq(str, choice.devices[0].address, "0000:00:04.0"));
	cr_assert(eq(u32, choice.most, 1));
	cr_assert(choose("tpu", VARS("TPU_VISIBLE_CHIPS=1")) == XR_OK);
	cr_assert(eq(str, chosen(), "tpu 1"));
}

Test(platform, one_look_tells_that_there_is_no_tpu)
{
	put_pci("0000:00:04.0", "0x1ae0\n", "0x0063\n");
	put("proc/bus/pci/devices",
		"0018\t1af41042\t0\n0020\t8086005e\t1ae00063\n");
	cr_assert(choose("auto", VARS("A=b")) == XR_OK);
	cr_assert(eq(str, chosen(), "cpu"));
	put("proc/bus/pci/devices", "0018\t1af41042\t0\n0020\t1ae00063\t0\n");
	cr_assert(choose("auto", VARS("A=b")) == XR_OK);
	cr_assert(eq(str, chosen(), "tpu 0"));
}

Test(platform, tpus_are_counted_by_variables_where_the_bus_is_hidden)
{
	cr_assert(choose("auto",
			  VARS("TPU_ACCELERATOR_TYPE=v4-8",
				  "TPU_CHIPS_PER_HOST_BOUNDS=2,2,1")) == XR_OK);
	cr_assert(eq(str, chosen(), "tpu 0 1 2 3"));
	cr_assert(choose("auto", VARS("TPU_CHIPS_PER_HOST_BOUNDS=2,2,1")) ==
		XR_OK);
	cr_assert(eq(str, chosen(), "cpu"));
	cr_assert(choose("auto",
			  VARS("TPU_ACCELERATOR_TYPE=v4-8",
				  "TPU_CHIPS_PER_HOST_BOUNDS=2,x")) == XR_OK);
	cr_assert(eq(str, chosen(), "cpu"));
	cr_assert(choose("auto",
			  VARS("TPU_ACCELERATOR_TYPE=v4-8",
				  "TPU_CHIPS_PER_HOST_BOUNDS=2;2,1")) == XR_OK);
	cr_assert(eq(str, chosen(), "cpu"));
}

/* The variables of each deal, "NAME=VALUE ..." with a bar between deals. */
static char *
given_to(int64_t ranks, const char *devices)
{
	struct plan plan = { 0 };
	struct env_given *given = NULL;
	static char text[512];

	text[0] = '\0';
	cr_assert(plan_make(&plan,
			  &(struct plan_facts){
				  .ranks = ranks,
				  .devices = devices,
				  .found = choice.devices,
				  .found_count = choice.count,
				  .most = choice.most,
			  },
			  &err) == XR_OK,
		"%s", err.text);
	cr_assert(platform_give(&choice, &plan, &given, &err) == XR_OK);
	for (uint32_t d = 0; given != NULL && d < plan.deal_count; d++) {
		for (uint32_t i = 0; i < given[d].count; i++)
			snprintf(text + strlen(text),
				sizeof(text) - strlen(text), "%s=%s ",
				given[d].vars[i].name, given[d].vars[i].value);
		strncat(text, "|", sizeof(text) - strlen(text) - 1);
	}
	platform_given_free(given, plan.deal_count);
	plan_fini(&plan);
	return text;
}

Test(platform, a_rank_is_given_its_entry_of_the_mask)
{
#define ORDER "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="
	put_gpus(4);
	cr_assert(choose("auto", VARS("CUDA_VISIBLE_DEVICES=3,GPU-77")) ==
		XR_OK);
	cr_assert(eq(str, given_to(0, NULL), ORDER "3 |" ORDER "GPU-77 |"));
	cr_assert(eq(str, given_to(1, NULL), ORDER "3,GPU-77 |"));
	cr_assert(eq(str, given_to(7, "3"), ORDER "3 |"));
	cr_assert(eq(str, given_to(2, "none"), ORDER "-1 |"));
	cr_assert(choose("cpu", VARS("A=b")) == XR_OK);
	cr_assert(eq(str, given_to(2, NULL), ""));
}

static char *
recorded(const char *path)
{
	static char text[256];
	FILE *in = fopen(path, "re");
	size_t len = 0;

	if (in != NULL) {
		len = fread(text, 1, sizeof(text) - 1, in);
		fclose(in);
	}
	text[len] = '\0';
	return text;
}

/* The plug-in opens it by its name; a library of that name is there already. */
static void
load_fake(char *record, size_t cap)
{
	snprintf(record, cap, "%s/nvml", root);
	cr_assert(dlopen(FAKE_NVML, RTLD_NOW) != NULL, "%s", dlerror());
	setenv("FAKE_NVML_RECORD", record, 1);
	setenv("FAKE_NVML_DEVICES", "3", 1);
}

Test(platform, only_listing_asks_the_driver)
{
	char record[64];

	load_fake(record, sizeof(record));
	put_gpus(3);
	cr_assert(choose("auto", VARS("CUDA_VISIBLE_DEVICES=2,0")) == XR_OK);
	cr_assert(eq(str, given_to(0, NULL), ORDER "2 |" ORDER "0 |"));
	cr_assert(eq(str, recorded(record), ""));
	cr_assert(eq(str, choice.devices[0].uuid, ""));
	cr_assert(platform_list(&choice, &err) == XR_OK, "%s", err.text);
	cr_assert(eq(str, recorded(record), "init\nshutdown\n"));
	cr_assert(eq(str, chosen(), "cuda 2 0"));
	cr_assert(eq(str, choice.devices[0].uuid,
		"GPU-00000002-0000-4000-8000-00000000cafe"));
	cr_assert(eq(u64, choice.devices[0].memory, 80ull << 30));
	cr_assert(eq(str, choice.devices[0].address, "00000000:03:00.0"));
}

Test(platform, devices_are_chosen_by_uuid_once_listed)
{
	char record[64];

	load_fake(record, sizeof(record));
	put_gpus(3);
	cr_assert(choose("auto", VARS("A=b")) == XR_OK);
	cr_assert(mask_needs_driver("GPU-00000001"));
	cr_assert(platform_list(&choice, &err) == XR_OK);
	cr_assert(eq(str, given_to(0, "GPU-00000001,0"),
		ORDER "1 |" ORDER "0 |"));
}

Test(platform, a_driver_that_does_not_answer_is_said_so)
{
	char record[64];

	put_gpus(3);
	cr_assert(choose("auto", VARS("A=b")) == XR_OK);
	cr_assert(platform_list(&choice, &err) == XR_E_NODEV);
	cr_assert(eq(str, err.text,
		"cuda: no libnvidia-ml.so.1 here: is the NVIDIA driver installed?"));
	cr_assert(eq(u32, choice.count, 3));
	load_fake(record, sizeof(record));
	setenv("FAKE_NVML_INIT", "9", 1);
	cr_assert(platform_list(&choice, &err) == XR_E_NODEV);
	cr_assert(eq(str, err.text,
		"cuda: libnvidia-ml.so.1: start: Driver Not Loaded"));
	cr_assert(eq(str, chosen(), "cuda 0 1 2"));
}

Test(platform, settings_are_named_after_their_plug_in)
{
	struct span root_of_cuda = { "XRUN_CUDA_ROOT", 14 };
	struct span none = { "XRUN_CUDA_ROO", 13 };

	cr_assert(platform_is_setting(root_of_cuda));
	cr_assert(not(platform_is_setting(none)));
}

Test(platform, the_contract_of_the_built_in_ones)
{
	const struct xr_plugin *p = NULL;
	int count = 0;

	while ((p = platform_next(p)) != NULL) {
		count++;
		cr_expect(eq(u32, p->abi, XR_PLUGIN_ABI));
		cr_expect(eq(u32, p->size, sizeof(*p)));
		cr_expect(eq(i32, p->kind, XR_PLATFORM));
		cr_expect(eq(i32, XR_HAS(p, probe), 1));
		cr_expect(eq(i32, XR_HAS(p->platform, find), 1));
		cr_expect(eq(sz, strspn(p->name, "abcdefghijklmnopqrstuvwxyz"),
			strlen(p->name)));
	}
	cr_assert(eq(i32, count, 3));
}

static void
put_is(const struct xr_device *devices, uint32_t count, const char *want)
{
	struct buf out = { 0 };

	buf_put_text(&out, "<");
	platform_put(&out, devices, count);
	cr_assert(eq(str, (char *)buf_text(&out) + 1, (char *)want));
	buf_fini(&out);
}

Test(platform, devices_in_a_row_are_put_as_a_range)
{
	struct xr_device d[] = {
		{ .index = 2, .id = "2", .platform = "cuda" },
		{ .index = 3, .id = "3", .platform = "cuda" },
		{ .index = 4, .id = "4", .platform = "cuda" },
	};

	put_is(d, 0, "");
	put_is(d, 1, "cuda:2");
	put_is(d, 2, "cuda:2-3");
	put_is(d, 3, "cuda:2-4");
	d[2].index = 5;
	put_is(d, 3, "cuda:2,3,4");
	d[1].index = 1;
	put_is(d, 2, "cuda:2,3");
	/* Without numbers there is no range. */
	d[0].index = d[1].index = d[2].index = UINT32_MAX;
	put_is(d, 1, "cuda:2");
	put_is(d, 3, "cuda:2,3,4");
	d[0].index = UINT32_MAX - 1;
	put_is(d, 2, "cuda:2,3");
}

Test(platform, a_plug_in_that_cannot_look_is_passed_over)
{
	char none[80];

	put("dev/accel0", "");
	put_pci("0000:00:04.0", "0x1ae0\n", "0x0027\n");
	snprintf(none, sizeof(none), "XRUN_CUDA_ROOT=%s/none", root);
	cr_assert(choose("auto", (char *const[]){ none, tpu_root, NULL }) ==
		XR_OK);
	cr_expect(eq(str, (char *)choice.plugin->name, "tpu"));
	cr_assert(choose("cuda", (char *const[]){ none, tpu_root, NULL }) ==
		XR_E_SYS);
	cr_expect(strstr(err.text, "/none/dev: No such file") != NULL, "%s",
		err.text);
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	cr_assert(choose("auto", (char *const[]){ none, tpu_root, NULL }) ==
		XR_OK);
	cr_expect(eq(str, chosen(), "cpu"));
}

Test(platform, an_older_struct_lacks_what_was_appended)
{
	struct xr_platform_ops old = {
		.size = offsetof(struct xr_platform_ops, most),
		.mask = "M",
		.most = 7,
	};

	cr_assert(eq(i32, XR_HAS(&old, mask), 1));
	cr_assert(eq(i32, XR_HAS(&old, most), 0));
	cr_assert(eq(i32, XR_HAS(&old, give), 0));
}
