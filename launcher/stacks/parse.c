/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - see parse.h: what its readers have in common. */
#include <stdlib.h>
#include <string.h>

#include "launcher/stacks/name.h"
#include "launcher/stacks/parse.h"

bool
parse_line(struct span *rest, struct span *line)
{
	const char *end =
		rest->len == 0 ? NULL : memchr(rest->at, '\n', rest->len);

	if (end == NULL)
		return false;
	*line = (struct span){ rest->at, (size_t)(end - rest->at) };
	rest->at = end + 1;
	rest->len -= line->len + 1;
	return true;
}

bool
parse_number(struct span *text, int64_t *number)
{
	size_t i = 0;

	*number = 0;
	for (; i < text->len && text->at[i] >= '0' && text->at[i] <= '9'; i++)
		if (i < 15)
			*number = *number * 10 + (text->at[i] - '0');
	if (i == 0 || i >= 15)
		return false;
	*text = (struct span){ text->at + i, text->len - i };
	return true;
}

bool
parse_skip(struct span *text, const char *prefix)
{
	size_t len = strlen(prefix);

	if (text->len < len || memcmp(text->at, prefix, len) != 0)
		return false;
	*text = (struct span){ text->at + len, text->len - len };
	return true;
}

bool
parse_split(struct span *text, const char *mark, struct span *head)
{
	size_t len = strlen(mark);
	const char *at =
		text->len == 0 ? NULL : memmem(text->at, text->len, mark, len);

	if (at == NULL)
		return false;
	*head = (struct span){ text->at, (size_t)(at - text->at) };
	*text = (struct span){ at + len, text->len - head->len - len };
	return true;
}

void
parse_add(struct frames *to, struct span function, struct span file,
	int64_t line)
{
	struct frame frame = {
		.function = name_function(function),
		.file = name_file(file),
		.line = line,
	};

	stacks_tame(frame.function);
	stacks_tame(frame.file);
	stacks_add_frame(to, &frame);
	free(frame.function);
	free(frame.file);
}
