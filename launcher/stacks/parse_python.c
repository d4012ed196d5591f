/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_python.c - who tells of Python alone. py-spy dump:
 *
 *   Thread 18463 (idle): "MainThread"
 *       wait_in_python (slow.py:4)
 *       <module> (slow.py:7)
 *
 * faulthandler.register(all_threads=False):
 *
 *   Stack (most recent call first):
 *     File "slow.py", line 4 in wait_in_python
 *     File "slow.py", line 7 in <module>
 */
#include "launcher/stacks/parse.h"

/* "name (file.py:4)"; a name holds no blank, but a file's may. */
static void
read_frame(struct span line, struct thread *t)
{
	struct span function, file, none, number = line;
	int64_t at;

	if (!parse_split(&line, " (", &function) || line.len == 0 ||
		line.at[line.len - 1] != ')')
		return;
	line.len--;
	number = line;
	while (parse_split(&number, ":", &none))
		file = (struct span){ line.at,
			(size_t)(number.at - 1 - line.at) };
	if (number.at == line.at || !parse_number(&number, &at) ||
		number.len > 0)
		return;
	parse_add(&t->python, function, file, at);
}

bool
parse_py_spy(struct span text, struct process *p)
{
	struct span line;
	struct thread *t = NULL;
	bool some = false;
	int64_t number;

	while (parse_line(&text, &line)) {
		if (parse_skip(&line, "Thread ")) {
			t = parse_number(&line, &number) ?
				stacks_thread(p, (pid_t)number) :
				NULL;
		} else if (t != NULL && parse_skip(&line, "    ")) {
			read_frame(line, t);
			some = some || t->python.count > 0;
		}
	}
	return some;
}

bool
parse_faulthandler(struct span text, struct process *p)
{
	struct thread *t = stacks_thread(p, p->pid);
	struct span line, file;
	int64_t at;

	while (t != NULL && parse_line(&text, &line))
		if (parse_skip(&line, "  File \"") &&
			parse_split(&line, "\", line ", &file) &&
			parse_number(&line, &at) && parse_skip(&line, " in ") &&
			line.len > 0)
			parse_add(&t->python, line, file, at);
	return t != NULL && t->python.count > 0;
}
