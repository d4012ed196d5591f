/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb.h - the table of verbs: xrun VERB [ARG...]. All that follows from a
 * verb's row: the dispatch, its line in the help, its word in completion.
 *
 * A word is a verb only right behind `xrun`; everywhere else it is a program.
 */
#ifndef LAUNCHER_CMD_VERB_H
#define LAUNCHER_CMD_VERB_H

#include <stdbool.h>
#include <stddef.h>

struct opt;

struct verb {
	const char *name;          /* NULL ends the table */
	const char *operands;      /* "[TOPIC]", as shown */
	const char *help;          /* one line, no full stop; of a verb that is
				    * not built: what to try instead, or NULL */
	const struct opt *options; /* its own; NULL: it has none */
	/* argv[0] is the verb; gives xrun's exit status. NULL: comes later. */
	int (*run)(int argc, char **argv);
	bool steers; /* a job that runs, and no other */
	bool jobs;   /* it is about jobs: lost ones are ended first */
};

extern const struct verb verbs[];

/* verb_find() - the verb called @word, built or not; NULL. */
const struct verb *verb_find(const char *word);

/*
 * verb_run() - do it; answers -h, and "comes with a later version" (125).
 *
 * @argv: argv[0] is the verb
 */
int verb_run(const struct verb *verb, int argc, char **argv);

/* verb_suggest() - the verb that @word, no program, may have meant; NULL.
 * Only verbs that are built. */
const char *verb_suggest(const char *word);

#endif /* LAUNCHER_CMD_VERB_H */
