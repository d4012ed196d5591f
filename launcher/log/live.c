/* SPDX-License-Identifier: Apache-2.0 */
/* live.c - see live.h. */
#include <stdlib.h>
#include <string.h>

#include "launcher/log/live.h"

struct live *
live_of(struct live_list *list, uint32_t stream)
{
	struct live *one = calloc(1, sizeof(*one)), *next;

	if (one == NULL)
		return NULL;
	one->stream = stream;
	next = TAILQ_FIRST(list);
	while (next != NULL && next->stream < stream)
		next = TAILQ_NEXT(next, list);
	if (next != NULL)
		TAILQ_INSERT_BEFORE(next, one, list);
	else
		TAILQ_INSERT_TAIL(list, one, list);
	return one;
}

void
live_drop(struct live_list *list, struct live *live)
{
	if (live == NULL)
		return;
	TAILQ_REMOVE(list, live, list);
	buf_fini(&live->text);
	free(live);
}

struct span
live_seen(struct span line)
{
	const char *from;

	while (line.len > 0 && line.at[line.len - 1] == '\r')
		line.len--;
	from = line.len == 0 ? NULL : memrchr(line.at, '\r', line.len);
	if (from == NULL)
		return line;
	from++;
	return (struct span){ from, line.len - (size_t)(from - line.at) };
}
