/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.h - texts with {rank} and the like in them, taken apart.
 *
 * "{name}" is a field, "{{" a brace, and "}" by itself a letter as any other.
 * Pure; nothing is allocated, and nothing is known here of what a field is for
 * some rank: args.h is where they meet.
 */
#ifndef PLACE_TEMPLATE_H
#define PLACE_TEMPLATE_H

#include <stddef.h>

#include <xrun/error.h>

/* F(field) */
#define TEMPLATE_FIELDS(F) \
	F(rank) \
	F(local_rank) \
	F(size) \
	F(node) \
	F(host) \
	F(job) \
	F(attempt) \
	F(part) \
	F(part_rank) \
	F(part_size)

enum template_field {
#define F(name) TEMPLATE_##name,
	TEMPLATE_FIELDS(F)
#undef F
		TEMPLATE_FIELD_COUNT,
	TEMPLATE_TEXT = TEMPLATE_FIELD_COUNT, /* the bytes themselves */
	TEMPLATE_END,
};

struct template_piece {
	enum template_field field;
	const char *at; /* of TEMPLATE_TEXT, into the text */
	size_t len;     /* of TEMPLATE_TEXT, at least 1 */
};

/*
 * template_next() - the piece at *@text, which moves behind it.
 *
 * After the last one the field is TEMPLATE_END, for ever.
 *
 * Returns  XR_OK; XR_E_INVAL: a field of no such name, with all names there
 *          are, or a brace that nothing closes; a tab in @err's text parts what
 *          is wrong from what to try
 */
enum xr_status template_next(const char **text, struct template_piece *piece,
	struct xr_error *err);

#endif /* PLACE_TEMPLATE_H */
