/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.h - what tools print of a process, read into its threads. Pure.
 *
 * A tool may be killed in the midst of a word, and its text may be anything: a
 * line without its end is passed over, and so is what is not known. Frames are
 * added to threads by their number; threads that are not there yet are made.
 */
#ifndef LAUNCHER_STACKS_PARSE_H
#define LAUNCHER_STACKS_PARSE_H

#include "base/span.h"
#include "launcher/stacks/stacks.h"

/* parse_eu() - of eu-stack -m (elfutils). True if there was a frame. */
bool parse_eu(struct span text, struct process *p);

/* parse_gdb() - of gdb's "thread apply all bt", and of py-bt behind it. True if
 * there was a frame of bt. */
bool parse_gdb(struct span text, struct process *p);

/* parse_py_spy() - of py-spy dump. True if there was a frame. */
bool parse_py_spy(struct span text, struct process *p);

/* parse_faulthandler() - of Python's module of that name, of the main thread. True
 * if there was a frame. */
bool parse_faulthandler(struct span text, struct process *p);

/* parse_line() - the next line of @rest, without its newline; false: there is
 * none that is whole. */
bool parse_line(struct span *rest, struct span *line);

/* parse_number() - digits at the beginning of @text, which are cut off; false if
 * there are none, or too many. */
bool parse_number(struct span *text, int64_t *number);

/* parse_skip() - @prefix is cut off the front; false if it does not stand there. */
bool parse_skip(struct span *text, const char *prefix);

/* parse_split() - what stands before @mark is cut off with it into @head; false,
 * and nothing is cut, if there is none. */
bool parse_split(struct span *text, const char *mark, struct span *head);

/* parse_add() - a frame by its names as they were printed. */
void parse_add(struct frames *to, struct span function, struct span file,
	int64_t line);

#endif /* LAUNCHER_STACKS_PARSE_H */
