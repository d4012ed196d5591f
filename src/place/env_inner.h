/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_inner.h - what env.c (who wins) and env_rank.c (rows and ranks) share.
 *
 * Entries stand in the order in which they first appeared; entry.kind says
 * where the text of one comes from. Fixed texts come first in vars[], those of
 * a rank behind them.
 */
#ifndef PLACE_ENV_INNER_H
#define PLACE_ENV_INNER_H

#include "place/env.h"

#define ENV_PIECES 5  /* of one row: text, field, text, ... */
#define ENV_DIGITS 12 /* room for a u32, its zeros, and a NUL */

enum entry_kind {
	ENTRY_FIXED, /* text is the same for all ranks */
	ENTRY_ROW,   /* slot.text is written for each rank */
	ENTRY_DEAL,  /* one of by_deal, which may be NULL */
};

struct entry {
	enum entry_kind kind;
	enum env_origin origin;
	uint32_t name_len;
	bool owned;        /* text was allocated here */
	char *text;        /* NAME=VALUE; others NAME=, a row with its room */
	const char *hides; /* inherited value, or NULL */
	const struct env_row *row; /* ENTRY_ROW */
	char **by_deal;            /* NAME=VALUE of each deal, ENTRY_DEAL */
};

/* A literal, or the value of a field where text is NULL. */
struct piece {
	const char *text;
	uint32_t len;
	enum env_field field;
};

/* A row that changes from rank to rank, taken apart. */
struct slot {
	struct piece pieces[ENV_PIECES];
	uint32_t count;
	uint32_t entry;
};

struct field_text {
	const char *at; /* NULL: nothing to say */
	uint32_t len;
};

struct env {
	struct env_facts facts;
	struct entry *entries;
	uint32_t count;
	uint32_t *index; /* open addressing by name: entry + 1, or 0 */
	uint32_t index_mask;

	struct env_removed *removed;
	uint32_t removed_count;

	struct field_text fields[FIELD_COUNT];
	bool never[FIELD_COUNT]; /* has nothing to say to any rank */
	char digits[FIELD_COUNT][ENV_DIGITS];
	char *local_worker; /* name:ordinal of the first worker */
	const char *tpu_config;
	char *platform_source; /* "platform cuda" */

	struct slot *slots;
	uint32_t slot_count;
	char **vars; /* fixed_count texts, then the rank's, then NULL */
	uint32_t fixed_count;
};

/* env_fields_init() - the fields that are the same for all ranks. */
void env_fields_init(struct env *env);

/*
 * env_row_text() - NAME=VALUE of a row, allocated.
 *
 * NULL: a field has nothing to say, and the row is left out. @per_rank: the
 * text is NAME= with room for every rank's value.
 */
char *env_row_text(struct env *env, const struct env_row *row, bool *per_rank);

/* env_slots_init() - once all entries stand: slots and vars. */
void env_slots_init(struct env *env);

#endif /* PLACE_ENV_INNER_H */
