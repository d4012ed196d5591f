/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggest.h - "did you mean ...?": the nearest of the names offered.
 *
 * Begin with the word a person wrote, offer every name it could have been, and
 * ask for the best. Near means: at most 1 edit (insert, drop, change, swap two
 * neighbours) in words below 6 letters, 2 in others, a third of the length in
 * words above 8. With several edits the first letters must be equal. In words below
 * 4 letters a change does not count as an edit: "jdb" is not near "job". A name that
 * begins with the word ("restart-w") is near, too: nearer than two edits. The first offered of equals wins. Nothing is allocated; words
 * above 63 bytes have no neighbours.
 */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stddef.h>

#define SUGGEST_MAX 64

struct suggest {
	char word[SUGGEST_MAX]; /* "" if too long to have neighbours */
	char best[SUGGEST_MAX]; /* a copy; "" while there is none */
	size_t score;           /* of the best; lower is nearer */
};

void suggest_init(struct suggest *s, const char *word, size_t len);
void suggest_offer(struct suggest *s, const char *name);

/* suggest_best() - the nearest name offered, or NULL; borrowed from @s. */
const char *suggest_best(const struct suggest *s);

/* suggest_distance() - edits between two words of at most 63 bytes. */
size_t suggest_distance(const char *a, const char *b);

#endif /* BASE_SUGGEST_H */
