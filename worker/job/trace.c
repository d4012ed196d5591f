/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - see trace.h. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "worker/job/symbol.h"
#include "worker/job/trace.h"

/* One frame, ready to print. */
struct place {
	struct symbol symbol; /* name "" if unknown */
	char file[64];        /* last part of its path */
	uint64_t address;     /* as the file counts */
};

/* What stands above the caller is found by where this function returns to; a
 * sanitizer's backtrace(3) has a frame more than libc's. */
__attribute__((noinline)) void
trace_take(struct trace *trace)
{
	const void *in_caller = __builtin_return_address(0);
	int saved = errno, first = 0;
	int n = backtrace(trace->at, TRACE_FRAMES + TRACE_SKIPS);

	while (first < n && trace->at[first] != in_caller)
		first++;
	if (first >= n)
		first = 0;
	trace->count = n > 0 ? (uint32_t)(n - first) : 0;
	memmove(trace->at, trace->at + first,
		trace->count * sizeof(trace->at[0]));
	errno = saved;
}

/* The path of a loaded file; the program itself has none in its link map. */
static void
path_of(const struct link_map *map, char *out, size_t cap)
{
	ssize_t n;

	if (map->l_name[0] != '\0') {
		snprintf(out, cap, "%s", map->l_name);
		return;
	}
	n = readlink("/proc/self/exe", out, cap - 1);
	out[n > 0 ? n : 0] = '\0';
}

static void
read_symbol(const struct link_map *map, const char *path, struct place *place)
{
	int fd = open(map->l_name[0] != '\0' ? path : "/proc/self/exe",
		O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd == -1)
		return;
	if (!symbol_find(fd, place->address, &place->symbol))
		place->symbol.name[0] = '\0';
	fd_close(fd);
}

/* A return address stands behind the call: the byte before belongs to it. */
static void
find_place(const char *at, struct place *place)
{
	const char *call = at - 1, *slash;
	struct link_map *map = NULL;
	char path[PATH_MAX];
	Dl_info info;

	*place = (struct place){ .file = "?", .address = (uintptr_t)call };
	if (dladdr1(call, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 ||
		map == NULL)
		return;
	place->address -= map->l_addr;
	path_of(map, path, sizeof(path));
	slash = strrchr(path, '/');
	snprintf(place->file, sizeof(place->file), "%.63s",
		slash == NULL ? path : slash + 1);
	if (info.dli_sname != NULL) {
		snprintf(place->symbol.name, sizeof(place->symbol.name),
			"%.63s", info.dli_sname);
		place->symbol.offset =
			(uint64_t)(call - (const char *)info.dli_saddr);
	} else {
		read_symbol(map, path, place);
	}
}

static int
put_place(char *out, size_t cap, uint32_t number, const struct place *place)
{
	if (place->symbol.name[0] == '\0')
		return snprintf(out, cap, "  #%-2u ? (%s 0x%llx)\n", number,
			place->file, (unsigned long long)place->address);
	return snprintf(out, cap, "  #%-2u %s+0x%llx (%s 0x%llx)\n", number,
		place->symbol.name, (unsigned long long)place->symbol.offset,
		place->file, (unsigned long long)place->address);
}

size_t
trace_text(const struct trace *trace, uint32_t skip, char *out, size_t cap)
{
	struct place place;
	size_t len = 0;
	uint32_t i;
	int n;

	out[0] = '\0';
	for (i = 0; i < TRACE_FRAMES && skip + i < trace->count; i++) {
		find_place(trace->at[skip + i], &place);
		n = put_place(out + len, cap - len, i, &place);
		if (n < 0 || (size_t)n >= cap - len)
			break;
		len += (size_t)n;
	}
	out[len] = '\0';
	return len;
}
