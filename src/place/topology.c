/* SPDX-License-Identifier: Apache-2.0 */
/* topology.c - see topology.h. */
#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "place/topology.h"

#define LIST_MAX (48 * 1024) /* every other one of 8192 CPUs */

/* A number below TOPOLOGY_CPUS; NULL if there is none, else what follows. */
static const char *
scan_cpu(const char *text, uint32_t *cpu)
{
	uint32_t n = 0;

	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++) {
		n = n * 10 + (uint32_t)(*text - '0');
		if (n >= TOPOLOGY_CPUS)
			return NULL;
	}
	*cpu = n;
	return text;
}

bool
cpulist_next(const char **at, uint32_t range[2])
{
	uint32_t from = 0, to = 0;
	const char *end = scan_cpu(*at, &from);

	to = from;
	if (end != NULL && *end == '-')
		end = scan_cpu(end + 1, &to);
	if (end == NULL || to < from ||
		(*end != ',' && *end != '\0' && *end != '\n'))
		return false;
	*at = *end == ',' ? end + 1 : NULL;
	range[0] = from;
	range[1] = to;
	return true;
}

bool
cpulist_read(const char *text, struct ranks *set)
{
	uint32_t range[2];

	if (*text == '\0' || *text == '\n')
		return true;
	while (text != NULL) {
		if (!cpulist_next(&text, range))
			return false;
		for (uint32_t cpu = range[0]; cpu <= range[1]; cpu++)
			ranks_add(set, cpu);
	}
	return true;
}

static struct ranks
no_cpus(void)
{
	struct ranks set;

	XR_ASSERT(ranks_init(&set, TOPOLOGY_CPUS) == XR_OK);
	return set;
}

/* A small file of sysfs as text; false if it is not there. */
static bool __attribute__((format(printf, 3, 4)))
read_text(char *text, size_t cap, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return fd_read_small(path, text, cap) > 0;
}

/* The lowest CPU that shares the core of @cpu; it names the core. */
static uint32_t
first_sibling(const char *root, uint32_t cpu)
{
	uint32_t range[2];
	char text[256];
	const char *at = text;

	if (!read_text(text, sizeof(text),
		    "%s/devices/system/cpu/cpu%u/topology/thread_siblings_list",
		    root, cpu) ||
		!cpulist_next(&at, range))
		return cpu;
	return range[0];
}

static uint32_t
package_of(const char *root, uint32_t cpu)
{
	char text[32];

	if (!read_text(text, sizeof(text),
		    "%s/devices/system/cpu/cpu%u/topology/physical_package_id",
		    root, cpu) ||
		text[0] < '0' || text[0] > '9')
		return 0; /* -1 where the firmware does not say */
	return (uint32_t)strtoul(text, NULL, 10);
}

/* Tells each CPU of @t which node it belongs to. */
static void
read_node(struct topology *t, const char *root, const char *name, char *text)
{
	struct ranks here = no_cpus();

	if (read_text(text, LIST_MAX, "%s/devices/system/node/%s/cpulist", root,
		    name))
		cpulist_read(text, &here);
	for (uint32_t i = 0; i < t->count; i++)
		if (ranks_has(&here, t->cpus[i].cpu))
			t->cpus[i].node = (uint32_t)strtoul(name + 4, NULL, 10);
	ranks_fini(&here);
}

static void
read_nodes(struct topology *t, const char *root, char *text)
{
	const struct dirent *d;
	char path[PATH_MAX];
	DIR *dir;

	snprintf(path, sizeof(path), "%s/devices/system/node", root);
	dir = opendir(path);
	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (strncmp(d->d_name, "node", 4) == 0 && d->d_name[4] >= '0' &&
			d->d_name[4] <= '9')
			read_node(t, root, d->d_name, text);
	if (dir != NULL)
		closedir(dir);
}

static int
by_place(const void *pa, const void *pb)
{
	const struct topology_cpu *a = pa, *b = pb;

	if (a->package != b->package)
		return a->package < b->package ? -1 : 1;
	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->core != b->core)
		return a->core < b->core ? -1 : 1;
	return (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

/* Cores were named after their first CPU; now they are counted. */
static void
number_cores(struct topology *t)
{
	uint32_t name = 0;

	for (uint32_t i = 0; i < t->count; i++) {
		if (i == 0 || t->cpus[i].core != name) {
			name = t->cpus[i].core;
			t->cores++;
		}
		t->cpus[i].core = t->cores - 1;
	}
}

/* Without the list, as in a sandbox, the mask alone says what is there. */
static bool
is_online(const struct ranks *online, uint32_t cpu)
{
	return online->size == 0 || ranks_has(online, cpu);
}

static void
read_cpus(struct topology *t, const char *root, const struct ranks *allowed,
	const struct ranks *online)
{
	t->cpus = xcalloc(ranks_count(allowed), sizeof(*t->cpus));
	RANKS_EACH(cpu, allowed) {
		if (is_online(online, cpu))
			t->cpus[t->count++] = (struct topology_cpu){
				.cpu = cpu,
				.core = first_sibling(root, cpu),
				.package = package_of(root, cpu),
			};
	}
}

void
topology_read(struct topology *t, const char *root, const struct ranks *allowed)
{
	struct ranks online = { 0 };
	char *text = xcalloc(1, LIST_MAX);

	*t = (struct topology){ 0 };
	if (read_text(text, LIST_MAX, "%s/devices/system/cpu/online", root)) {
		online = no_cpus();
		cpulist_read(text, &online);
	}
	read_cpus(t, root, allowed, &online);
	read_nodes(t, root, text);
	qsort(t->cpus, t->count, sizeof(*t->cpus), by_place);
	number_cores(t);
	ranks_fini(&online);
	free(text);
}

void
topology_fini(struct topology *t)
{
	free(t->cpus);
	*t = (struct topology){ 0 };
}
