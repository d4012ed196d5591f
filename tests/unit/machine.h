/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - a machine made of files, below "sys" in the folder of a test.
 */
#ifndef TESTS_UNIT_MACHINE_H
#define TESTS_UNIT_MACHINE_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <sys/stat.h>

#include "tests/unit/folder.h"

/* machine_fmt() - text in one of a few places, good for a moment. */
static inline const char *__attribute__((format(printf, 1, 2)))
machine_fmt(const char *fmt, ...)
{
	static char text[4][256];
	static unsigned next;
	char *out = text[next++ % 4];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out, sizeof(text[0]), fmt, ap);
	va_end(ap);
	return out;
}

/* machine_file() - sys/PATH holds @text; its folders are made. */
static inline void
machine_file(const char *path, const char *text)
{
	char full[512];

	snprintf(full, sizeof(full), "sys/%s", path);
	for (char *at = full; (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		mkdir(full, 0755);
		*at = '/';
	}
	folder_write(full, text, 0644);
}

static inline void
machine_cpu(unsigned cpu, unsigned package, const char *siblings)
{
	char at[128];

	snprintf(at, sizeof(at), "devices/system/cpu/cpu%u/topology", cpu);
	machine_file(machine_fmt("%s/thread_siblings_list", at),
		machine_fmt("%s\n", siblings));
	machine_file(machine_fmt("%s/physical_package_id", at),
		machine_fmt("%u\n", package));
}

static inline void
machine_online(const char *list)
{
	machine_file("devices/system/cpu/online", machine_fmt("%s\n", list));
}

static inline void
machine_node(unsigned node, const char *list)
{
	machine_file(machine_fmt("devices/system/node/node%u/cpulist", node),
		machine_fmt("%s\n", list));
}

#endif /* TESTS_UNIT_MACHINE_H */
