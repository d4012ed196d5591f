/* SPDX-License-Identifier: Apache-2.0 */
/* digits.c - see digits.h. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include "digits.h"

#define SHEET 32 /* side of the bitmap that is drawn on */
#define STEPS 48 /* points of a stroke */

/* A line from a to b, or an arc of the ellipse around a with the radii b,
 * in a box of 1 x 1, y downwards, angles in degrees clockwise. */
struct stroke {
	int digit;
	bool arc;
	float ax, ay, bx, by, from, to;
};

static const struct stroke strokes[] = {
	{ 0, true, .50f, .50f, .27f, .40f, 0, 360 },
	{ 1, false, .52f, .10f, .52f, .90f, 0, 0 },
	{ 1, false, .36f, .26f, .52f, .10f, 0, 0 },
	{ 2, true, .50f, .33f, .25f, .23f, 185, 390 },
	{ 2, false, .71f, .44f, .27f, .90f, 0, 0 },
	{ 2, false, .27f, .90f, .75f, .90f, 0, 0 },
	{ 3, true, .47f, .30f, .24f, .20f, 200, 450 },
	{ 3, true, .47f, .70f, .27f, .20f, 270, 515 },
	{ 4, false, .62f, .10f, .25f, .62f, 0, 0 },
	{ 4, false, .25f, .62f, .80f, .62f, 0, 0 },
	{ 4, false, .62f, .10f, .62f, .90f, 0, 0 },
	{ 5, false, .72f, .10f, .34f, .10f, 0, 0 },
	{ 5, false, .34f, .10f, .30f, .46f, 0, 0 },
	{ 5, true, .47f, .66f, .26f, .24f, 230, 500 },
	{ 6, false, .62f, .10f, .37f, .38f, 0, 0 },
	{ 6, false, .37f, .38f, .27f, .66f, 0, 0 },
	{ 6, true, .50f, .68f, .23f, .22f, 0, 360 },
	{ 7, false, .25f, .12f, .75f, .12f, 0, 0 },
	{ 7, false, .75f, .12f, .42f, .90f, 0, 0 },
	{ 8, true, .50f, .30f, .21f, .20f, 0, 360 },
	{ 8, true, .50f, .70f, .25f, .20f, 0, 360 },
	{ 9, true, .50f, .32f, .23f, .22f, 0, 360 },
	{ 9, false, .73f, .34f, .67f, .62f, 0, 0 },
	{ 9, false, .67f, .62f, .48f, .90f, 0, 0 },
};

/* How one writer holds the sheet and the pen. */
struct hand {
	float xx, xy, yx, yy; /* turning, slanting, scaling about the middle */
	float dx, dy;
	float radius; /* of the pen, in points of the sheet */
	uint64_t *random;
};

float
digits_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	/* splitmix64: Steele, Lea and Flood 2014. */
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	z ^= z >> 31;
	return (float)(z >> 40) / (float)(1 << 24);
}

static float
between(uint64_t *random, float low, float high)
{
	return low + (high - low) * digits_random(random);
}

static struct hand
take_hand(uint64_t *random)
{
	float turn = between(random, -.17f, .17f);
	float slant = between(random, -.20f, .20f);
	float width = between(random, .75f, 1.05f);
	float height = between(random, .75f, 1.05f);

	return (struct hand){
		.xx = width * cosf(turn),
		.xy = height * (slant * cosf(turn) - sinf(turn)),
		.yx = width * sinf(turn),
		.yy = height * (slant * sinf(turn) + cosf(turn)),
		.dx = between(random, -.08f, .08f),
		.dy = between(random, -.06f, .06f),
		.radius = between(random, 1.1f, 2.6f),
		.random = random,
	};
}

/* One touch of the pen at a place of the box. */
static void
touch(uint8_t sheet[SHEET][SHEET], const struct hand *hand, float x, float y)
{
	float px =
		(.5f + hand->dx + hand->xx * (x - .5f) + hand->xy * (y - .5f)) *
		SHEET;
	float py =
		(.5f + hand->dy + hand->yx * (x - .5f) + hand->yy * (y - .5f)) *
		SHEET;
	float r = hand->radius;
	int row, column;

	for (row = (int)(py - r); row <= (int)(py + r); row++) {
		for (column = (int)(px - r); column <= (int)(px + r);
			column++) {
			float ex = (float)column + .5f - px;
			float ey = (float)row + .5f - py;

			if (row >= 0 && row < SHEET && column >= 0 &&
				column < SHEET && ex * ex + ey * ey <= r * r)
				sheet[row][column] = 1;
		}
	}
}

static void
draw(uint8_t sheet[SHEET][SHEET], const struct hand *hand,
	const struct stroke *s)
{
	float wobble_a = between(hand->random, -.06f, .06f);
	float wobble_b = between(hand->random, -.06f, .06f);
	int i;

	for (i = 0; i <= STEPS; i++) {
		float t = (float)i / STEPS;
		float angle =
			(s->from + (s->to - s->from) * t) * (float)(M_PI / 180);

		if (s->arc)
			touch(sheet, hand,
				s->ax + (s->bx + wobble_a) * cosf(angle),
				s->ay + (s->by + wobble_b) * sinf(angle));
		else
			touch(sheet, hand,
				s->ax + wobble_a + (s->bx - s->ax) * t,
				s->ay + wobble_b + (s->by - s->ay) * t);
	}
}

/* How much of each square is inked; a few points are wrong, as scanned. */
static void
scan(uint8_t sheet[SHEET][SHEET], uint8_t *image, uint64_t *random)
{
	const int square = SHEET / DIGITS_SIDE;
	int row, column;

	memset(image, 0, DIGITS_PIXELS);
	for (row = 0; row < SHEET; row++)
		for (column = 0; column < SHEET; column++)
			image[row / square * DIGITS_SIDE + column / square] +=
				digits_random(random) < .05f ?
				!sheet[row][column] :
				sheet[row][column];
}

static int
make_one(int number, uint8_t *image)
{
	uint8_t sheet[SHEET][SHEET] = { 0 };
	uint64_t random = (uint64_t)number * 0x2545f4914f6cdd1d + 8;
	int digit = (int)(digits_random(&random) * 10);
	struct hand hand = take_hand(&random);
	size_t i;

	for (i = 0; i < sizeof(strokes) / sizeof(strokes[0]); i++)
		if (strokes[i].digit == digit)
			draw(sheet, &hand, &strokes[i]);
	scan(sheet, image, &random);
	return digit;
}

/* Memory of @len bytes whose end is the end of a page, with none behind. */
static void *
map_to_the_end(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t whole = (len + page - 1) / page * page;
	char *p = mmap(NULL, whole + page, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + whole, page, PROT_NONE) != 0)
		return NULL;
	return p + whole - len;
}

int
digits_make(struct digits *set, int first, int count)
{
	int i;

	set->count = count;
	set->image = map_to_the_end((size_t)count * DIGITS_PIXELS);
	set->label = calloc((size_t)count, 1);
	if (set->image == NULL || set->label == NULL)
		return -1;
	for (i = 0; i < count; i++)
		set->label[i] = (uint8_t)make_one(first + i, set->image[i]);
	return 0;
}

void
digits_smudge(const uint8_t *image, uint64_t *random, uint8_t *smudged)
{
	int i, ink;

	for (i = 0; i < DIGITS_PIXELS; i++) {
		ink = image[i] + (int)(digits_random(random) * 7) - 3;
		smudged[i] = (uint8_t)(ink < 0 ? 0 : ink);
		if (ink > DIGITS_INK)
			smudged[i] = DIGITS_INK;
	}
}
