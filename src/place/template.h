/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.h - the names that --template knows; base/brace.h takes the texts
 * apart, args.h says what a name is for some rank.
 */
#ifndef PLACE_TEMPLATE_H
#define PLACE_TEMPLATE_H

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
};

extern const char *const template_names[]; /* in this order; then NULL */

#endif /* PLACE_TEMPLATE_H */
