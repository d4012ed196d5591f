/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.c - NVIDIA GPUs.
 *
 * Counted by their device files, which takes microseconds and leaves the
 * driver alone. Only list() loads NVML, whose start takes up to seconds on a
 * machine without persistence mode, and lets go of it again.
 *
 * Source   NVML API reference, versions of the functions as of driver 418
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/plugin.h>

#define NVML_FILE "libnvidia-ml.so.1"

/* The ABI of NVML: what a driver's library takes and gives. */
struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char bus_id[32];
};

struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned *count);
	int (*handle)(unsigned index, void **device);
	int (*uuid)(void *device, char *out, unsigned len);
	int (*memory)(void *device, struct nvml_memory *out);
	int (*pci)(void *device, struct nvml_pci *out);
	const char *(*text)(int result);
};

static const struct xr_setting settings[] = {
	{ "root", "/", "folder in which dev/nvidia0 and so on are looked for" },
	{ NULL, NULL, NULL },
};

static const struct xr_host *host;

/* A plug-in links to nothing of xrun, so it fills the error itself. */
static enum xr_status refuse(struct xr_error *err, enum xr_status status,
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static enum xr_status
refuse(struct xr_error *err, enum xr_status status, const char *fmt, ...)
{
	va_list ap;

	if (err == NULL)
		return status;
	err->status = status;
	err->sys = status == XR_E_SYS ? errno : 0;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return status;
}

static enum xr_status
probe(const struct xr_host *h, struct xr_error *err)
{
	host = h;
	return XR_OK;
}

static bool
is_gpu(const char *name)
{
	if (strncmp(name, "nvidia", 6) != 0)
		return false;
	name += 6;
	return *name != '\0' && name[strspn(name, "0123456789")] == '\0';
}

/* The driver makes its control file first, and nothing works without it: most
 * machines need not have the whole of /dev looked through. */
static bool
has_driver(const char *dev)
{
	char path[4096];

	return snprintf(path, sizeof(path), "%s/nvidiactl", dev) >=
		(int)sizeof(path) ||
		access(path, F_OK) == 0;
}

/* Files are counted, not their numbers believed: a container that was given
 * /dev/nvidia3 alone has one GPU, which CUDA and NVML call 0. */
static enum xr_status
count_files(uint32_t *count, struct xr_error *err)
{
	char path[3072];
	struct dirent *entry = NULL;
	DIR *dir = NULL;

	*count = 0;
	snprintf(path, sizeof(path), "%s/dev",
		host->setting(host, "cuda", "root"));
	if (!has_driver(path) && access(path, F_OK) == 0)
		return XR_OK;
	dir = opendir(path);
	if (dir == NULL)
		return refuse(err, XR_E_SYS, "cuda: open %s: %s", path,
			strerror(errno));
	for (entry = readdir(dir); entry != NULL; entry = readdir(dir))
		*count += is_gpu(entry->d_name);
	closedir(dir);
	return XR_OK;
}

static void
name_device(struct xr_device *device, uint32_t index)
{
	*device = (struct xr_device){
		.size = sizeof(*device),
		.index = index,
		.platform = "cuda",
	};
	snprintf(device->id, sizeof(device->id), "%u", index);
}

static enum xr_status
find(xr_add_device_fn *add, void *arg, struct xr_error *err)
{
	struct xr_device device;
	uint32_t count = 0;
	enum xr_status status = count_files(&count, err);

	for (uint32_t i = 0; status == XR_OK && i < count; i++) {
		name_device(&device, i);
		add(arg, &device);
	}
	return status;
}

static enum xr_status
fail_nvml(const struct nvml *nvml, const char *what, int result,
	struct xr_error *err)
{
	return refuse(err, XR_E_NODEV, "cuda: %s: %s: %s", NVML_FILE, what,
		nvml->text(result));
}

static enum xr_status
load(struct nvml *nvml, struct xr_error *err)
{
	const struct {
		const char *name;
		void *at;
	} symbols[] = {
		{ "nvmlInit_v2", &nvml->init },
		{ "nvmlShutdown", &nvml->shutdown },
		{ "nvmlDeviceGetCount_v2", &nvml->count },
		{ "nvmlDeviceGetHandleByIndex_v2", &nvml->handle },
		{ "nvmlDeviceGetUUID", &nvml->uuid },
		{ "nvmlDeviceGetMemoryInfo", &nvml->memory },
		{ "nvmlDeviceGetPciInfo_v3", &nvml->pci },
		{ "nvmlErrorString", &nvml->text },
	};

	nvml->library = dlopen(NVML_FILE, RTLD_NOW | RTLD_LOCAL);
	if (nvml->library == NULL)
		return refuse(err, XR_E_NODEV,
			"cuda: no %s here: is the NVIDIA driver installed?",
			NVML_FILE);
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *at = dlsym(nvml->library, symbols[i].name);

		memcpy(symbols[i].at, &at, sizeof(at));
		if (at != NULL)
			continue;
		return refuse(err, XR_E_ABI,
			"cuda: %s has no %s: the driver is too old", NVML_FILE,
			symbols[i].name);
	}
	return XR_OK;
}

static enum xr_status
describe(const struct nvml *nvml, uint32_t index, struct xr_device *device,
	struct xr_error *err)
{
	struct nvml_memory memory = { 0 };
	struct nvml_pci pci = { 0 };
	void *handle = NULL;
	int result = nvml->handle(index, &handle);

	name_device(device, index);
	if (result == 0)
		result = nvml->uuid(handle, device->uuid, sizeof(device->uuid));
	if (result == 0)
		result = nvml->memory(handle, &memory);
	if (result == 0)
		result = nvml->pci(handle, &pci);
	if (result != 0)
		return fail_nvml(nvml, "asking for a GPU", result, err);
	device->memory = memory.total;
	snprintf(device->address, sizeof(device->address), "%.23s", pci.bus_id);
	return XR_OK;
}

static enum xr_status
list_loaded(const struct nvml *nvml, xr_add_device_fn *add, void *arg,
	struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct xr_device device;
	unsigned count = 0;
	int result = nvml->init();

	if (result != 0)
		return fail_nvml(nvml, "start", result, err);
	result = nvml->count(&count);
	if (result != 0)
		status = fail_nvml(nvml, "counting GPUs", result, err);
	for (unsigned i = 0; status == XR_OK && i < count; i++) {
		status = describe(nvml, i, &device, err);
		if (status == XR_OK)
			add(arg, &device);
	}
	nvml->shutdown();
	return status;
}

static enum xr_status
list(xr_add_device_fn *add, void *arg, struct xr_error *err)
{
	struct nvml nvml = { 0 };
	enum xr_status status = load(&nvml, err);

	if (status == XR_OK)
		status = list_loaded(&nvml, add, arg, err);
	if (nvml.library != NULL)
		dlclose(nvml.library);
	return status;
}

/* PCI order makes CUDA count as NVML and the device files do; its own puts
 * the fastest first. -1 hides all: some programs take "" for unset. */
static enum xr_status
give(const struct xr_device *const *devices, uint32_t count, xr_set_env_fn *set,
	void *arg, struct xr_error *err)
{
	size_t room = sizeof(devices[0]->id) + 1, len = 0;
	char *mask = malloc(3 + count * room);

	if (mask == NULL)
		return refuse(err, XR_E_NOMEM, "cuda: out of memory");
	memcpy(mask, "-1", 3);
	for (uint32_t i = 0; i < count; i++)
		len += (size_t)snprintf(mask + len, room + 1, "%s%s",
			i == 0 ? "" : ",", devices[i]->id);
	set(arg, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
	set(arg, "CUDA_VISIBLE_DEVICES", mask);
	free(mask);
	return XR_OK;
}

static const struct xr_platform_ops ops = {
	.size = sizeof(ops),
	.mask = "CUDA_VISIBLE_DEVICES",
	.find = find,
	.list = list,
	.give = give,
};

XR_PLUGIN(cuda) = {
	.size = sizeof(struct xr_plugin),
	.abi = XR_PLUGIN_ABI,
	.kind = XR_PLATFORM,
	.preference = 20,
	.name = "cuda",
	.summary = "NVIDIA GPUs",
	.settings = settings,
	.probe = probe,
	{ .platform = &ops },
};
