/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c - see ranks.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/ranks.h"
#include "base/status.h"

#define WORD_BITS 64u

static size_t
words(const struct ranks *set)
{
	return (set->size + (size_t)WORD_BITS - 1) / WORD_BITS;
}

enum xr_status
ranks_init(struct ranks *set, uint32_t size)
{
	struct ranks fresh = { .size = size };

	fresh.word = calloc(words(&fresh) + 1, sizeof(*fresh.word));
	if (fresh.word == NULL)
		return XR_E_NOMEM;
	*set = fresh;
	return XR_OK;
}

void
ranks_fini(struct ranks *set)
{
	free(set->word);
	*set = (struct ranks){ 0 };
}

void
ranks_add(struct ranks *set, uint32_t rank)
{
	XR_ASSERT(rank < set->size);
	set->word[rank / WORD_BITS] |= UINT64_C(1) << rank % WORD_BITS;
}

bool
ranks_has(const struct ranks *set, uint32_t rank)
{
	return rank < set->size &&
		(set->word[rank / WORD_BITS] >> rank % WORD_BITS & 1) != 0;
}

uint32_t
ranks_count(const struct ranks *set)
{
	uint32_t n = 0;

	for (size_t i = 0; i < words(set); i++)
		n += (uint32_t)__builtin_popcountll(set->word[i]);
	return n;
}

uint32_t
ranks_next(const struct ranks *set, uint32_t from)
{
	uint64_t left;

	if (from >= set->size)
		return set->size;
	left = set->word[from / WORD_BITS] >> from % WORD_BITS;
	if (left != 0)
		return from + (uint32_t)__builtin_ctzll(left);
	for (size_t i = from / WORD_BITS + 1; i < words(set); i++)
		if (set->word[i] != 0)
			return (uint32_t)(i * WORD_BITS) +
				(uint32_t)__builtin_ctzll(set->word[i]);
	return set->size;
}

/* "12" or "-1"; NULL if there is no number, else what follows it. */
static const char *
scan(const char *text, int64_t *out)
{
	bool minus = *text == '-';
	int64_t v = 0;

	text += minus;
	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++)
		if (v <= UINT32_MAX) /* larger ones are no rank anyway */
			v = v * 10 + (*text - '0');
	if (minus && v == 0)
		return NULL;
	*out = minus ? -v : v;
	return text;
}

/* -1 becomes the last rank; false if there is no such rank. */
static bool
resolve(const struct ranks *set, int64_t *rank)
{
	if (*rank < 0)
		*rank += set->size;
	return *rank >= 0 && *rank < set->size;
}

static int
shown_of(struct span piece)
{
	return piece.len < 40 ? (int)piece.len : 40;
}

static enum xr_status
backwards(struct span piece, struct xr_error *err)
{
	return fail(err, XR_E_INVAL, "'%.*s' runs backwards", shown_of(piece),
		piece.at);
}

/* A number or a range as it is written. */
static enum xr_status
scan_form(struct span piece, int64_t range[2], struct xr_error *err)
{
	const char *end = scan(piece.at, &range[0]);

	range[1] = range[0];
	if (end != NULL && *end == '-')
		end = scan(end + 1, &range[1]);
	if (end != piece.at + piece.len)
		return fail(err, XR_E_INVAL,
			"'%.*s' is not a rank or a range such as 0,3-7,-1",
			shown_of(piece), piece.at);
	return XR_OK;
}

/* One piece, a number or a range of ranks that there are. */
static enum xr_status
scan_piece(const struct ranks *set, struct span piece, int64_t range[2],
	struct xr_error *err)
{
	int shown = shown_of(piece);
	enum xr_status status = scan_form(piece, range, err);

	if (status != XR_OK)
		return status;
	if (!resolve(set, &range[0]) || !resolve(set, &range[1])) {
		if (set->size == 0)
			return fail(err, XR_E_RANGE,
				"'%.*s': there are no ranks", shown, piece.at);
		if (set->size == 1)
			return fail(err, XR_E_RANGE,
				"'%.*s': the only rank is 0", shown, piece.at);
		return fail(err, XR_E_RANGE,
			"'%.*s': the ranks are 0 to %" PRIu32, shown, piece.at,
			set->size - 1);
	}
	return range[0] > range[1] ? backwards(piece, err) : XR_OK;
}

static struct span
first_piece(const char *text)
{
	return (struct span){ .at = text, .len = strcspn(text, ",") };
}

enum xr_status
ranks_check(const char *text, struct xr_error *err)
{
	struct span piece = first_piece(text);
	int64_t range[2] = { 0, 0 };
	enum xr_status status;

	for (;; piece = first_piece(piece.at + piece.len + 1)) {
		status = scan_form(piece, range, err);
		/* From the end and from the beginning: as many as there are */
		if (status == XR_OK && range[0] > range[1] &&
			(range[0] < 0) == (range[1] < 0))
			status = backwards(piece, err);
		if (status != XR_OK || piece.at[piece.len] == '\0')
			return status;
	}
}

/* Every piece of @text; added to @set only if @add. */
static enum xr_status
scan_list(struct ranks *set, const char *text, bool add, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct span piece = first_piece(text);
	int64_t range[2] = { 0, 0 };

	for (;; piece = first_piece(piece.at + piece.len + 1)) {
		status = scan_piece(set, piece, range, err);
		if (status != XR_OK)
			return status;
		for (int64_t r = range[0]; add && r <= range[1]; r++)
			ranks_add(set, (uint32_t)r);
		if (piece.at[piece.len] == '\0')
			return XR_OK;
	}
}

enum xr_status
ranks_parse(struct ranks *set, const char *text, struct xr_error *err)
{
	enum xr_status status = scan_list(set, text, false, err);

	return status == XR_OK ? scan_list(set, text, true, err) : status;
}

void
ranks_put(const struct ranks *set, struct buf *out)
{
	const char *comma = "";
	uint32_t first, last;

	for (first = ranks_next(set, 0); first < set->size;
		first = ranks_next(set, last + 1)) {
		last = first;
		while (ranks_has(set, last + 1))
			last++;
		buf_fmt(out, "%s%" PRIu32, comma, first);
		if (last > first)
			buf_fmt(out, "-%" PRIu32, last);
		comma = ",";
	}
	if (*comma == '\0')
		buf_put_text(out, "none");
}
