/* SPDX-License-Identifier: Apache-2.0 */
/* brace.c - see brace.h. */
#include <string.h>

#include "base/brace.h"
#include "base/status.h"
#include "base/suggest.h"

#define SHOWN 40 /* bytes of a name that is not known */

struct brace
brace_of(struct span text, const char *const *names)
{
	return (struct brace){ .all = text, .names = names };
}

static enum xr_status
unknown(const struct brace *b, struct span name, struct xr_error *err)
{
	struct buf all = { 0 };
	struct suggest near;
	enum xr_status status;
	const char *best;

	suggest_init(&near, name.at, name.len);
	for (int i = 0; b->names[i] != NULL; i++) {
		suggest_offer(&near, b->names[i]);
		buf_fmt(&all, " {%s}", b->names[i]);
	}
	best = suggest_best(&near);
	status = fail(err, XR_E_INVAL,
		"byte %zu: '{%.*s}' is not one of%s%s%s%s", b->at,
		(int)(name.len < SHOWN ? name.len : SHOWN), name.at,
		buf_text(&all), best == NULL ? "" : " (did you mean {",
		best == NULL ? "" : best,
		best == NULL ? "; a brace of the text is doubled" : "}?)");
	buf_fini(&all);
	return status;
}

/* One half of a doubled brace is at b->at, or a name, or a brace alone. */
static enum xr_status
next_brace(struct brace *b, struct brace_piece *piece, struct xr_error *err)
{
	const char *at = b->all.at + b->at, *end;
	size_t left = b->all.len - b->at;
	struct span name;

	piece->text = (struct span){ at, 1 };
	b->at += 2;
	if (left > 1 && at[1] == at[0])
		return XR_OK;
	b->at -= 2;
	if (*at == '}')
		return fail(err, XR_E_INVAL,
			"byte %zu: a '}' alone; one of the text is }}", b->at);
	end = memchr(at, '}', left);
	if (end == NULL)
		return fail(err, XR_E_INVAL,
			"byte %zu: '{' without its '}'; one of the text is {{",
			b->at);
	name = (struct span){ at + 1, (size_t)(end - at) - 1 };
	for (int i = 0; b->names[i] != NULL; i++)
		if (strlen(b->names[i]) == name.len &&
			memcmp(b->names[i], name.at, name.len) == 0)
			piece->name = i;
	if (piece->name == BRACE_TEXT)
		return unknown(b, name, err);
	b->at += name.len + 2;
	return XR_OK;
}

enum xr_status
brace_next(struct brace *b, struct brace_piece *piece, struct xr_error *err)
{
	const char *all = b->all.at;
	size_t from = b->at;

	*piece = (struct brace_piece){ .name = BRACE_TEXT, .at = from };
	while (b->at < b->all.len && all[b->at] != '{' && all[b->at] != '}')
		b->at++;
	if (b->at == b->all.len && b->at == from)
		piece->name = BRACE_END;
	else if (b->at == from)
		return next_brace(b, piece, err);
	else
		piece->text = (struct span){ all + from, b->at - from };
	return XR_OK;
}

enum xr_status
brace_check(struct span text, const char *const *names, struct xr_error *err)
{
	struct brace b = brace_of(text, names);
	struct brace_piece piece;
	enum xr_status status;

	do
		status = brace_next(&b, &piece, err);
	while (status == XR_OK && piece.name != BRACE_END);
	return status;
}

bool
brace_has(struct span text, const char *const *names, int name)
{
	struct brace b = brace_of(text, names);
	struct brace_piece piece;

	while (brace_next(&b, &piece, NULL) == XR_OK && piece.name != BRACE_END)
		if (piece.name == name)
			return true;
	return false;
}
