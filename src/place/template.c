/* SPDX-License-Identifier: Apache-2.0 */
/* template.c - see template.h. */
#include <string.h>

#include "base/status.h"
#include "place/environ.h"
#include "place/template.h"

static const char *const names[] = {
#define F(name) #name,
	TEMPLATE_FIELDS(F)
#undef F
};

#define F(name) " {" #name "}"
static const char all_names[] = TEMPLATE_FIELDS(F);
#undef F

static enum template_field
find(struct span name)
{
	enum template_field field = 0;

	while (field < TEMPLATE_FIELD_COUNT && !span_is(name, names[field]))
		field++;
	return field;
}

/* The field that begins at the brace *@text. */
static enum xr_status
next_field(const char **text, struct template_piece *piece,
	struct xr_error *err)
{
	const char *at = *text + 1;
	struct span name = { .at = at, .len = strcspn(at, "{}") };

	if (at[name.len] != '}')
		return fail(err, XR_E_INVAL,
			"nothing closes '{%.*s'\t{{ for a brace", QUOTED(name));
	piece->field = find(name);
	if (piece->field == TEMPLATE_FIELD_COUNT)
		return fail(err, XR_E_INVAL,
			"{%.*s} is not one of%s\t{{ for a brace",
			name.len < 20 ? (int)name.len : 20, name.at, all_names);
	*text = at + name.len + 1;
	return XR_OK;
}

enum xr_status
template_next(const char **text, struct template_piece *piece,
	struct xr_error *err)
{
	const char *at = *text;

	*piece = (struct template_piece){ .field = TEMPLATE_END, .at = at };
	if (*at == '\0')
		return XR_OK;
	if (*at == '{' && at[1] != '{')
		return next_field(text, piece, err);
	piece->field = TEMPLATE_TEXT;
	piece->at = at + (*at == '{');
	piece->len = *at == '{' ? 1 : strcspn(at, "{");
	*text = piece->at + piece->len;
	return XR_OK;
}
