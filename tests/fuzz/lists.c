/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lists.c - fuzz target: lists of ranks, devices, processors and profiles,
 * and globs, as people and other launchers write them.
 *
 * Input: first line, how many ranks and devices there are (two numbers); then
 * one text for all of these; a glob is parted from what it may fit by a comma.
 *
 * Claims: a refusal has words and changes nothing; what was accepted, printed
 * and read again, is the same; no device comes twice; a chosen device is one
 * of those that were found.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/ranks.h"
#include "base/span.h"
#include "place/bind.h"
#include "place/mask.h"
#include "place/profile.h"
#include "tests/fuzz/fuzz.h"

#define DEVICES_MAX 8

static const char *const uuids[] = { "GPU-1b5c", "GPU-1b5d-77", "MIG-00/1/2",
	"", "GPU-ffff", "MIG-aa", "", "GPU-1" };

static void
check_ranks(uint32_t size, const char *text)
{
	struct ranks set, again;
	struct xr_error err = { 0 };
	struct buf out = { 0 };
	enum xr_status status;

	HOLDS(ranks_init(&set, size) == XR_OK);
	HOLDS(ranks_init(&again, size) == XR_OK);
	status = ranks_parse(&set, text, &err);
	fuzz_error(status, &err);
	HOLDS((status == XR_OK) == (ranks_count(&set) > 0));
	ranks_put(&set, &out);
	if (status == XR_OK) {
		HOLDS(ranks_parse(&again, buf_text(&out), NULL) == XR_OK);
		RANKS_EACH(r, &set)
			HOLDS(ranks_has(&again, r));
		HOLDS(ranks_count(&set) == ranks_count(&again));
	} else {
		HOLDS(strcmp(buf_text(&out), "none") == 0);
	}
	buf_fini(&out);
	ranks_fini(&set);
	ranks_fini(&again);
}

static bool
is_one_of(const struct xr_device *device, const struct mask_from *from)
{
	for (uint32_t i = 0; i < from->count; i++)
		if (from->devices[i].index == device->index)
			return true;
	return false;
}

/* No two are the same one; @known: and each was there before. */
static void
check_devices(const struct mask_from *from, const struct xr_device *devices,
	uint32_t count, bool known)
{
	for (uint32_t i = 0; i < count; i++) {
		HOLDS(memchr(devices[i].id, '\0', sizeof(devices[i].id)));
		HOLDS(devices[i].index == UINT32_MAX ?
				!known :
				is_one_of(&devices[i], from));
		for (uint32_t j = 0; j < i; j++)
			HOLDS(devices[i].index == UINT32_MAX ||
				devices[i].index != devices[j].index);
	}
}

typedef enum xr_status mask_fn(const struct mask_from *from, const char *text,
	struct xr_device **out, uint32_t *count, struct xr_error *err);

/* The ids of what was chosen choose the same again. */
static void
choose_again(mask_fn *fn, const struct mask_from *from,
	const struct xr_device *devices, uint32_t count)
{
	struct xr_device *again = NULL;
	struct xr_error err = { 0 };
	struct buf text = { 0 };
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++)
		buf_fmt(&text, "%s%s", i == 0 ? "" : ",", devices[i].id);
	HOLDS(fn(from, buf_text(&text), &again, &n, &err) == XR_OK);
	HOLDS(n == count);
	for (uint32_t i = 0; i < n; i++)
		HOLDS(again[i].index == devices[i].index);
	free(again);
	buf_fini(&text);
}

static void
check_mask(mask_fn *fn, const struct mask_from *from, const char *text,
	bool known)
{
	struct xr_device *devices = NULL;
	struct xr_error err = { 0 };
	uint32_t count = 0;
	enum xr_status status = fn(from, text, &devices, &count, &err);

	fuzz_error(status, &err);
	HOLDS(status == XR_OK || (devices == NULL && count == 0));
	check_devices(from, devices, count, known);
	if (status == XR_OK && count > 0)
		choose_again(fn, from, devices, count);
	free(devices);
}

static void
check_profiles(const char *text, bool list)
{
	struct profile_facts facts = { .worker_list = list, .tpu = !list };
	struct xr_error err = { 0 };
	unsigned bits = 0;
	enum xr_status status = profiles_parse(text, &facts, &bits, &err);

	fuzz_error(status, &err);
	HOLDS((status == XR_OK) == ((bits & 1u << ENV_XRUN) != 0));
	HOLDS(list || (bits & 1u << ENV_XRT) == 0);
}

/* What --bind says of a machine with eight processors on four cores. */
static void
check_bind(const char *text, uint32_t ranks)
{
	struct topology_cpu cpus[8];
	struct topology machine = { .cpus = cpus, .count = 8, .cores = 4 };
	struct xr_error err = { 0 };
	struct bind bind = { 0 };
	enum xr_status status;
	uint32_t all = 0, shared = 0;

	for (uint32_t i = 0; i < 8; i++)
		cpus[i] = (struct topology_cpu){ .cpu = i, .core = i / 2 };
	status = bind_list(&bind, &machine, text, ranks, &err);
	fuzz_error(status, &err);
	HOLDS((status == XR_OK) == (bind.count > 0));
	for (uint32_t i = 0; i < bind.count; i++) {
		const struct bind_set *set = &bind.sets[i];

		HOLDS(ranks_count(&set->cpus) >= 1 && set->text != NULL);
		HOLDS(set->cores >= 1 && set->cores <= 4);
		RANKS_EACH(cpu, &set->cpus) {
			HOLDS(cpu < 8);
			shared += (all & 1u << cpu) != 0;
			all |= 1u << cpu;
		}
		HOLDS(bind_of(&bind, i) == set);
	}
	HOLDS(shared == 0); /* each CPU is of one share */
	HOLDS(bind.count <= ranks);
	bind_fini(&bind);
}

/* A glob, a comma, a text: as fnmatch(3) has it, but for what we do not know. */
static void
check_glob(const char *text)
{
	struct span rest = span_of(text);
	struct span pattern = span_next(&rest, ',');
	char *glob;

	if (rest.at == NULL || strchr(text, '[') != NULL)
		return;
	glob = xasprintf("%.*s", (int)pattern.len, pattern.at);
	for (const char *p = text; *p != '\0'; p++)
		if ((unsigned char)*p >= 0x80)
			goto out; /* a letter of several bytes is one to fnmatch */
	HOLDS(span_fits(pattern, rest) ==
		(fnmatch(glob, rest.at, FNM_NOESCAPE) == 0));
out:
	free(glob);
}

static struct mask_from
make_devices(struct xr_device devices[DEVICES_MAX], uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct xr_device *d = &devices[i];

		*d = (struct xr_device){ .size = sizeof(*d), .index = i };
		snprintf(d->id, sizeof(d->id), "%u", i);
		snprintf(d->uuid, sizeof(d->uuid), "%s", uuids[i]);
		snprintf(d->platform, sizeof(d->platform), "cuda");
	}
	return (struct mask_from){ .name = "V",
		.devices = devices,
		.count = count };
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_lines lines = fuzz_lines(data, size, 2);
	struct xr_device devices[DEVICES_MAX];
	unsigned ranks = 0, count = 0;
	struct mask_from from;
	const char *text = lines.n == 2 ? lines.at[1] : "";

	if (lines.n > 0)
		sscanf(lines.at[0], "%4u %2u", &ranks, &count);
	from = make_devices(devices, count % (DEVICES_MAX + 1));
	check_ranks(ranks % 1000, text);
	check_mask(mask_apply, &from, text, false);
	check_mask(mask_select, &from, text, true);
	check_profiles(text, ranks % 2 == 0);
	check_bind(text, ranks % 20 + 1);
	check_glob(text);
	HOLDS(!mask_needs_driver("auto") && !mask_needs_driver("none"));
	mask_needs_driver(text);
	fuzz_lines_free(&lines);
	return 0;
}
