/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml.c - a pretended libnvidia-ml.so.1, for machines without a GPU.
 *
 *	FAKE_NVML_DEVICES   how many GPUs it tells of; 2
 *	FAKE_NVML_INIT      what nvmlInit_v2() returns; 0
 *	FAKE_NVML_RECORD    file that gets a line for load, init, shutdown, unload
 *
 * GPU i has the UUID GPU-0000000i-..., 80 GiB, and PCI bus i + 1.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char bus_id[32];
};

SHOWN int nvmlInit_v2(void);
SHOWN int nvmlShutdown(void);
SHOWN int nvmlDeviceGetCount_v2(unsigned *count);
SHOWN int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
SHOWN int nvmlDeviceGetUUID(void *device, char *out, unsigned len);
SHOWN int nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *out);
SHOWN int nvmlDeviceGetPciInfo_v3(void *device, struct nvml_pci *out);
SHOWN const char *nvmlErrorString(int result);

static int
number(const char *name, int dflt)
{
	const char *text = getenv(name);

	return text == NULL ? dflt : (int)strtol(text, NULL, 10);
}

static void
record(const char *line)
{
	const char *path = getenv("FAKE_NVML_RECORD");
	int fd = -1;

	if (path == NULL)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd == -1 || write(fd, line, strlen(line)) < 0)
		abort();
	close(fd);
}

__attribute__((constructor)) static void
on_load(void)
{
	record("load\n");
}

__attribute__((destructor)) static void
on_unload(void)
{
	record("unload\n");
}

int
nvmlInit_v2(void)
{
	record("init\n");
	return number("FAKE_NVML_INIT", 0);
}

int
nvmlShutdown(void)
{
	record("shutdown\n");
	return 0;
}

int
nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = (unsigned)number("FAKE_NVML_DEVICES", 2);
	return 0;
}

int
nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	if (index >= (unsigned)number("FAKE_NVML_DEVICES", 2))
		return 2; /* NVML_ERROR_INVALID_ARGUMENT */
	*device = (void *)(uintptr_t)(index + 1);
	return 0;
}

int
nvmlDeviceGetUUID(void *device, char *out, unsigned len)
{
	int need = snprintf(out, len, "GPU-%08x-0000-4000-8000-00000000cafe",
		(unsigned)(uintptr_t)device - 1);

	return need < (int)len ? 0 : 7; /* NVML_ERROR_INSUFFICIENT_SIZE */
}

int
nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *out)
{
	*out = (struct nvml_memory){ .total = 80ull << 30 };
	return 0;
}

int
nvmlDeviceGetPciInfo_v3(void *device, struct nvml_pci *out)
{
	*out = (struct nvml_pci){ .bus = (unsigned)(uintptr_t)device };
	snprintf(out->bus_id, sizeof(out->bus_id), "00000000:%02X:00.0",
		out->bus);
	return 0;
}

const char *
nvmlErrorString(int result)
{
	if (result == 9)
		return "Driver Not Loaded";
	return result == 0 ? "Success" : "Unknown Error";
}
