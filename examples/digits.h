/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits.h - pictures of handwritten digits, made by a rule.
 *
 * They are of the kind of the UCI set of optical digits: a pen draws on a
 * bitmap of 32 x 32, and each of 8 x 8 pixels holds how many points of its
 * square are inked, 0 to 16. Every picture is turned, slanted, scaled, moved
 * and smudged by its own random numbers, so nobody can learn them by heart;
 * picture number i is the same wherever it is made.
 */
#ifndef EXAMPLES_DIGITS_H
#define EXAMPLES_DIGITS_H

#include <stdint.h>

enum { DIGITS_SIDE = 8, DIGITS_PIXELS = 64, DIGITS_INK = 16 };

/* A set of pictures; its memory ends where the last picture ends. */
struct digits {
	uint8_t (*image)[DIGITS_PIXELS];
	uint8_t *label; /* 0..9 */
	int count;
};

/* digits_random() - the next number of a sequence, 0 <= x < 1. */
float digits_random(uint64_t *state);

/* digits_make() - pictures number @first and so on. Returns 0, or -1. */
int digits_make(struct digits *set, int first, int count);

/* digits_smudge() - @image as another scanner would have seen it. */
void digits_smudge(const uint8_t *image, uint64_t *random, uint8_t *smudged);

#endif /* EXAMPLES_DIGITS_H */
