/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help.h - what xrun says about itself.
 *
 *   xrun                  help_alone()      what to type first
 *   xrun -h               help_short()      a screen
 *   xrun help             cmd_help()        all of it
 *   xrun help exit        one topic; xrun help grace: one option
 *   xrun help exit --man  the same for the manual; also --bash, --dot
 *
 * A new topic is a row of help_topics.
 */
#ifndef LAUNCHER_CMD_HELP_H
#define LAUNCHER_CMD_HELP_H

#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"

enum help_form {
	HELP_TEXT, /* for people */
	HELP_MAN,  /* --man: scdoc(5) */
	HELP_BASH, /* --bash: a script */
	HELP_DOT,  /* --dot: a drawing for graphviz */
	HELP_FORMS,
};

struct help_topic {
	const char *name;                         /* NULL ends the table */
	const char *help;                         /* one line, no full stop */
	void (*put[HELP_FORMS])(struct buf *out); /* NULL: no such form */
};

extern const struct help_topic help_topics[];

int cmd_help(int argc, char **argv);

/* help_short() - at most 24 lines of 80 columns; examples first. */
void help_short(FILE *out);

/* What the last line of `xrun` alone tells. */
struct help_here {
	uint32_t accelerators;
	const char *devices; /* "cuda:0-1"; NULL or "" if there are none */
	uint32_t jobs;       /* of this user that run */
	const char *running; /* which; NULL: nobody asked */
};

/* help_alone() - the screen of `xrun` without a program, for stderr. */
void help_alone(struct buf *out, const struct help_here *here);

#endif /* LAUNCHER_CMD_HELP_H */
