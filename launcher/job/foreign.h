/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.h - options of other launchers, for those who come from there: a
 * table of their names and of what to write instead. Looked at only when an
 * option is unknown.
 */
#ifndef LAUNCHER_JOB_FOREIGN_H
#define LAUNCHER_JOB_FOREIGN_H

struct foreign {
	const char *name;    /* without dashes, '-' for '_'; NULL ends */
	const char *whose;   /* "torchrun" */
	const char *instead; /* what to try */
};

extern const struct foreign foreign_options[];

/* A verb of another tool. */
struct foreign_verb {
	const char *name;    /* NULL ends */
	const char *instead; /* what to try */
};

extern const struct foreign_verb foreign_verbs[];

/* foreign_find_verb() - returns what to try instead of the verb @word of another
 * tool, or NULL. */
const char *foreign_find_verb(const char *word);

/* foreign_find() - @word as typed, "--nproc_per_node=8"; NULL: unknown. */
const struct foreign *foreign_find(const char *word);

#endif /* LAUNCHER_JOB_FOREIGN_H */
