/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tpu.c - Google TPUs, one process a chip.
 *
 * Chips are found on the PCI bus, without libtpu, which would take them. What
 * a process is told about them is the profile pjrt of xrun itself, since it is
 * more than a mask: the shape of the whole slice.
 *
 * Source   PCI ids: torch_xla/_internal/tpu.py, 41398bf; 0x0062 and 0x0076
 *          also jax/_src/hardware_utils.py (v5p, 7x)
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/plugin.h>

#define VENDOR    "1ae0"
#define CHIPS_MAX 1024

static const struct xr_setting settings[] = {
	{ "root", "/", "folder in which sys/bus/pci/devices is looked for" },
	{ NULL, NULL, NULL },
};

static const struct xr_host *host;

static enum xr_status
probe(const struct xr_host *h, struct xr_error *err)
{
	host = h;
	return XR_OK;
}

/*
 * Is a Google device among all there are, in one file? A machine may have
 * hundreds, and looking at each in sysfs takes ten microseconds. True where
 * the file is missing, too: then sysfs has to say.
 *
 * A line is "0020\t1ae0005e\t...": slot, then vendor and device.
 */
#define AWAY SIZE_MAX /* past the column that matters */

static bool
names_vendor(const char *text, size_t len, size_t *column)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n')
			*column = 0;
		else if (*column < 5 ||
			(*column != AWAY && text[i] == VENDOR[*column - 5]))
			++*column;
		else
			*column = AWAY;
		if (*column == 5 + strlen(VENDOR))
			return true;
	}
	return false;
}

static bool
may_have_chip(const char *root)
{
	char path[4096], text[2048];
	bool found = false;
	size_t column = 0;
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/proc/bus/pci/devices", root) >=
		(int)sizeof(path))
		return true;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return true;
	while (!found && (n = read(fd, text, sizeof(text))) > 0)
		found = names_vendor(text, (size_t)n, &column);
	close(fd);
	return found;
}

/* One word of a small file of sysfs; "" if there is none. */
static void
read_word(const char *bus, const char *device, const char *file, char word[16])
{
	char path[4096];
	ssize_t len = -1;
	int fd = -1;

	word[0] = '\0';
	if (snprintf(path, sizeof(path), "%s/%s/%s", bus, device, file) >=
		(int)sizeof(path))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return;
	len = read(fd, word, 15);
	close(fd);
	word[len < 0 ? 0 : len] = '\0';
	word[strcspn(word, " \n")] = '\0';
}

static bool
is_chip(const char *bus, const char *device)
{
	static const char *const ids[] = { "0x0027", "0x005e", "0x0062",
		"0x0063", "0x006f", "0x0076" };
	char word[16];

	read_word(bus, device, "vendor", word);
	if (strcmp(word, "0x" VENDOR) != 0)
		return false;
	read_word(bus, device, "device", word);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (strcmp(word, ids[i]) == 0)
			return true;
	return false;
}

static void
add_chip(xr_add_device_fn *add, void *arg, uint32_t index, const char *address)
{
	struct xr_device device = {
		.size = sizeof(device),
		.index = index,
		.platform = "tpu",
	};

	snprintf(device.id, sizeof(device.id), "%u", index);
	snprintf(device.address, sizeof(device.address), "%.23s", address);
	add(arg, &device);
}

/* Chips by TPU_CHIPS_PER_HOST_BOUNDS, "2,2,1", where the bus is hidden. */
static uint32_t
count_by_variable(void)
{
	const char *text = host->env(host, "TPU_CHIPS_PER_HOST_BOUNDS");
	unsigned long count = 1;
	char *end = NULL;

	if (text == NULL || host->env(host, "TPU_ACCELERATOR_TYPE") == NULL)
		return 0;
	for (;; text = end + 1) {
		unsigned long factor = strtoul(text, &end, 10);

		if (end == text || factor == 0 || factor > CHIPS_MAX)
			return 0;
		count *= factor;
		if (count > CHIPS_MAX)
			return 0;
		if (*end == '\0')
			return (uint32_t)count;
		if (*end != ',')
			return 0;
	}
}

/* By the bus; returns how many. In the order of their addresses. */
static uint32_t
find_on_bus(xr_add_device_fn *add, void *arg, const char *root)
{
	struct dirent **entries = NULL;
	char bus[4096 - 300];
	uint32_t chips = 0;
	int count = 0;

	snprintf(bus, sizeof(bus), "%s/sys/bus/pci/devices", root);
	count = scandir(bus, &entries, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		if (is_chip(bus, entries[i]->d_name))
			add_chip(add, arg, chips++, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return chips;
}

static enum xr_status
find(xr_add_device_fn *add, void *arg, struct xr_error *err)
{
	const char *root = host->setting(host, "tpu", "root");
	uint32_t chips = 0;

	if (may_have_chip(root))
		chips = find_on_bus(add, arg, root);
	if (chips > 0)
		return XR_OK;
	chips = count_by_variable();
	for (uint32_t i = 0; i < chips; i++)
		add_chip(add, arg, i, "");
	return XR_OK;
}

static const struct xr_platform_ops ops = {
	.size = sizeof(ops),
	.mask = "TPU_VISIBLE_CHIPS",
	.find = find,
	.list = find,
	.most = 1,
};

XR_PLUGIN(tpu) = {
	.size = sizeof(struct xr_plugin),
	.abi = XR_PLUGIN_ABI,
	.kind = XR_PLATFORM,
	.preference = 30,
	.name = "tpu",
	.summary = "Google TPUs, one process a chip",
	.settings = settings,
	.probe = probe,
	{ .platform = &ops },
};
