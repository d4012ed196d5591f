/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - see trace.h. */
#include <errno.h>
#include <execinfo.h>
#include <stdio.h>
#include <string.h>

#include "worker/job/place.h"
#include "worker/job/trace.h"

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
	trace->count = (uint32_t)(n - first);
	memmove(trace->at, trace->at + first,
		trace->count * sizeof(trace->at[0]));
	errno = saved;
}

static int
put_place(char *out, size_t cap, uint32_t number, const struct place *p)
{
	unsigned long long at = p->base != 0 ? p->in_file : p->address;

	if (p->symbol.name[0] == '\0')
		return snprintf(out, cap, "  #%-2u ? (%.63s 0x%llx)\n", number,
			place_file(p), at);
	return snprintf(out, cap, "  #%-2u %s+0x%llx (%.63s 0x%llx)\n", number,
		p->symbol.name, (unsigned long long)p->symbol.offset,
		place_file(p), at);
}

/* A return address stands behind the call: the byte before belongs to it. */
size_t
trace_text(const struct trace *trace, uint32_t skip, char *out, size_t cap)
{
	struct place places[TRACE_FRAMES] = { 0 };
	uint32_t count = 0;
	size_t len = 0;
	int n;

	while (count < TRACE_FRAMES && skip + count < trace->count) {
		places[count].address = (uintptr_t)trace->at[skip + count] - 1;
		count++;
	}
	place_find(places, count);
	for (uint32_t i = 0; i < count; i++) {
		n = put_place(out + len, cap - len, i, &places[i]);
		if ((size_t)n >= cap - len)
			break;
		len += (size_t)n;
	}
	out[len] = '\0';
	return len;
}
