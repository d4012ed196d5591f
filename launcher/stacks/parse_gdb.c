/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_gdb.c - gdb's "thread apply all bt", and "thread apply all py-bt":
 *
 *   Thread 1 (Thread 0x7f3ac009e740 (LWP 18067) "block"):
 *   #0  futex_wait (private=0, word=0x55f5 <m>) at ../nptl/futex-internal.h:146
 *   #1  0x00007f3ac012d482 in lll_lock (mutex=0x55f5) at ./nptl/lock.c:48
 *   #2  0x0000000000550c6e in ?? () from /usr/lib/libfoo.so
 *
 *   Thread 1 (Thread 0x7f3ac009e740 (LWP 18067) "python3"):
 *   Traceback (most recent call first):
 *     File "slow.py", line 4, in wait_in_python
 *       lock.acquire()
 */
#include <string.h>

#include "launcher/stacks/parse.h"

/* "file.c:12", which ends the line; or "from library". */
static struct span
read_place(struct span text, int64_t *line)
{
	struct span file, number;
	int64_t found;
	size_t i = text.len;

	while (i > 0 && text.at[i - 1] != ':')
		i--;
	if (i == 0)
		return text;
	file = (struct span){ text.at, i - 1 };
	number = (struct span){ text.at + i, text.len - i };
	if (!parse_number(&number, &found) || number.len > 0)
		return text;
	*line = found;
	return file;
}

/* Behind the last ") at " or ") from ": values of arguments may hold anything. */
static struct span
find_last(struct span text, const char *mark)
{
	struct span rest = text, head, found = { NULL, 0 };

	while (parse_split(&rest, mark, &head))
		found = rest;
	return found;
}

/* Behind "#N ". "<signal handler called>" has no arguments and is no frame. */
static void
read_frame(struct span line, struct thread *t)
{
	struct span function, address, place;
	int64_t at = 0;

	while (parse_skip(&line, " "))
		continue;
	if (parse_skip(&line, "0x") && !parse_split(&line, " in ", &address))
		return;
	place = find_last(line, ") at ");
	if (place.at != NULL)
		place = read_place(place, &at);
	else
		place = find_last(line, ") from ");
	if (place.at == NULL)
		place = (struct span){ "", 0 };
	if (parse_split(&line, " (", &function))
		parse_add(&t->native, function, place, at);
}

/* Behind "  File ". */
static void
read_python(struct span line, struct thread *t)
{
	struct span file;
	int64_t at;

	if (parse_skip(&line, "\"") && parse_split(&line, "\", line ", &file) &&
		parse_number(&line, &at) && parse_skip(&line, ", in ") &&
		line.len > 0)
		parse_add(&t->python, line, file, at);
}

static struct thread *
read_thread(struct span line, struct process *p)
{
	struct span head;
	int64_t number;

	if (!parse_split(&line, "(LWP ", &head) &&
		!parse_split(&line, "(process ", &head))
		return NULL;
	return parse_number(&line, &number) ? stacks_thread(p, (pid_t)number) :
					      NULL;
}

bool
parse_gdb(struct span text, struct process *p)
{
	struct span line;
	struct thread *t = NULL;
	bool some = false;
	int64_t number;

	while (parse_line(&text, &line)) {
		if (parse_skip(&line, "Thread ")) {
			t = read_thread(line, p);
		} else if (t != NULL && parse_skip(&line, "#") &&
			parse_number(&line, &number)) {
			read_frame(line, t);
			some = some || t->native.count > 0;
		} else if (t != NULL && parse_skip(&line, "  File ")) {
			read_python(line, t);
		}
	}
	return some;
}
