/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt_inner.h - what the files opt*.c share. No other file includes it.
 */
#ifndef BASE_OPT_INNER_H
#define BASE_OPT_INNER_H

#include "base/opt.h"

struct suggest;

/* Who said what: the name as the person wrote it, "-n", "XRUN_RANKS". */
struct opt_said {
	enum opt_source who;
	const char *what;
	const char *text; /* the value */
};

static inline struct span
opt_span(const char *at, size_t len)
{
	return (struct span){ .at = at, .len = len };
}

/* opt_negatable() - is there a --no- form? */
bool opt_negatable(const struct opt *o);

/* opt_alone() - may its name stand without a value? */
bool opt_alone(const struct opt *o);

/* opt_set_no() - what its --no- form, called @what, means. */
enum xr_status opt_set_no(struct opts *opts, const struct opt *o,
	enum opt_source who, const char *what, struct xr_error *err);

/* opt_alias_dashes() - "-" or "--", as the alias is shown. The row has an alias. */
const char *opt_alias_dashes(const struct opt *o);

/* opt_find_negated() - "no-logs" finds logs; NULL if it is no no- form. */
const struct opt *opt_find_negated(const struct opt *table, struct span name);

bool opt_is_later(const struct opts *opts, struct span name);

/* opt_offer_all() - every name of the table, and the no- forms. */
void opt_offer_all(struct suggest *near, const struct opt *table);

/* opt_set() - opt_parse(), and remember who; a list begins anew if weaker. */
enum xr_status opt_set(struct opts *opts, const struct opt *o,
	const struct opt_said *said, struct xr_error *err);

/* opt_begin_list() - a list that a weaker source than @who filled is empty. */
void opt_begin_list(struct opts *opts, const struct opt *o,
	enum opt_source who);

/* opt_set_given() - a flag, or whether a value that may go without was given */
void opt_set_given(struct opts *opts, const struct opt *o, enum opt_source who,
	bool yes);

/*
 * opt_parse() - check the text and store it in the field of row @o.
 *
 * @base: the settings
 *
 * Returns  XR_OK, XR_E_INVAL, XR_E_RANGE, XR_E_NOMEM; only XR_OK changes
 *          anything
 */
enum xr_status opt_parse(const struct opt *o, void *base,
	const struct opt_said *said, struct xr_error *err);

/* opt_refuse() - "NAME: 'TEXT' is not ...": XR_E_INVAL. */
enum xr_status opt_refuse(const struct opt *o, const struct opt_said *said,
	struct xr_error *err);

/* opt_takes_pairs() - is it a list of NAME=VALUE? */
bool opt_takes_pairs(const struct opt *o);

/* opt_amount() - @v of a number, size or time as typed: "64k", "1500ms". */
void opt_amount(const struct opt *o, int64_t v, char *out, size_t cap);

/* opt_parse_bool() - 1 true yes on, 0 false no off; false: neither. */
bool opt_parse_bool(const char *text, bool *out);

/* opt_want() - what would be right: "a number; 1 to 8"; 128 is enough. */
const char *opt_want(const struct opt *o, char *out, size_t cap);

/* opt_arg() - the value as shown: "FILE", "line|full|none"; "" for a flag. */
const char *opt_arg(const struct opt *o, char *out, size_t cap);

/* opt_shown() - @text in one short line of printable characters. */
#define OPT_SHOWN_MAX 64
const char *opt_shown(const char *text, char out[OPT_SHOWN_MAX]);

#endif /* BASE_OPT_INNER_H */
