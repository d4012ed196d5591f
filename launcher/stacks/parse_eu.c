/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_eu.c - eu-stack -m of elfutils (src/stack.c there):
 *
 *   PID 8931 - process
 *   TID 8931:
 *   #0  0x00007fdee652012b __GI___lll_lock_wait - /usr/lib/libc.so.6
 *   #1  0x00005581b266217f - 1 wait_for_the_lock - /tmp/block
 *   #2  0x00005581b2662189 - /tmp/block
 *
 * A function's name may be missing, and so may its module; "- 1" stands there
 * with -v only. Names of C++ hold blanks; no name holds " - ".
 */
#include "launcher/stacks/parse.h"

/* Behind "#N ". */
static void
read_frame(struct span line, struct thread *t)
{
	struct span function = { "", 0 }, file = { "", 0 };
	struct span address;

	while (parse_skip(&line, " "))
		continue;
	if (!parse_skip(&line, "0x"))
		return;
	if (!parse_split(&line, " ", &address)) { /* nothing else is known */
		parse_add(&t->native, function, file, 0);
		return;
	}
	while (parse_skip(&line, " "))
		continue;
	if (parse_skip(&line, "- 1"))
		while (parse_skip(&line, " "))
			continue;
	if (parse_skip(&line, "- ")) {
		file = line;
	} else if (parse_split(&line, " - ", &function)) {
		file = line;
	} else {
		function = line;
	}
	parse_add(&t->native, function, file, 0);
}

bool
parse_eu(struct span text, struct process *p)
{
	struct span line;
	struct thread *t = NULL;
	bool some = false;
	int64_t number;

	while (parse_line(&text, &line)) {
		if (parse_skip(&line, "TID ")) {
			t = parse_number(&line, &number) ?
				stacks_thread(p, (pid_t)number) :
				NULL;
		} else if (t != NULL && parse_skip(&line, "#") &&
			parse_number(&line, &number)) {
			read_frame(line, t);
			some = some || t->native.count > 0;
		}
	}
	return some;
}
