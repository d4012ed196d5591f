/* SPDX-License-Identifier: Apache-2.0 */
/* options_form.c - see options_form.h. */
#include <string.h>

#include "base/span.h"
#include "base/status.h"
#include "launcher/job/options.h"
#include "launcher/job/options_form.h"
#include "launcher/log/piece.h"
#include "launcher/log/prefix.h"
#include "launcher/log/reserve.h"
#include "launcher/state/state.h"
#include "place/topology.h"

enum xr_status
form_bind(const char *value, struct xr_error *err)
{
	const char *at = value;
	uint32_t range[2];

	while (at != NULL)
		if (!cpulist_next(&at, range) || strchr(value, '\n') != NULL)
			return fail(err, XR_E_INVAL,
				"'%.*s' is not auto, none, core or a list of CPUs such as 0-3,8",
				QUOTED(span_of(value)));
	return XR_OK;
}

enum xr_status
form_job(const char *value, struct xr_error *err)
{
	struct span all = span_of(value);

	if (state_name_valid(value))
		return XR_OK;
	if (strcmp(value, "latest") == 0)
		return fail(err, XR_E_INVAL,
			"'latest' is what xrun calls the newest job; another name");
	if (all.len > STATE_ID_MAX)
		return fail(err, XR_E_RANGE,
			"'%.*s' has %zu characters; %d at most", QUOTED(all),
			all.len, STATE_ID_MAX);
	if (*value == '.' || *value == '-')
		return fail(err, XR_E_INVAL,
			"'%.*s' begins with '%c'; a name begins with a letter, digit or underscore",
			QUOTED(all), *value);
	return fail(err, XR_E_INVAL,
		"'%.*s' has a character that no name has; letters, digits, dots, hyphens and underscores",
		QUOTED(all));
}

enum xr_status
form_log_dir(const char *value, struct xr_error *err)
{
	return state_dir_check(value, err);
}

enum xr_status
form_log_rotate(const char *value, struct xr_error *err)
{
	struct piece_rule rule;

	switch (piece_rule_parse(value, &rule)) {
	case PIECE_RULE_OK:
		return XR_OK;
	case PIECE_RULE_SIZE:
		return fail(err, XR_E_RANGE,
			"'%.*s': the size is too small or too large; 64k to 4194303T",
			QUOTED(span_of(value)));
	case PIECE_RULE_COUNT:
		return fail(err, XR_E_RANGE,
			"'%.*s': the count is too small or too large; 2 to 4294967295 files, the newest included",
			QUOTED(span_of(value)));
	case PIECE_RULE_NONE:
		break;
	}
	return fail(err, XR_E_INVAL,
		"'%.*s' is not a size, or size and count, such as 10M or 10M,5",
		QUOTED(span_of(value)));
}

enum xr_status
form_log_reserve(const char *value, struct xr_error *err)
{
	uint64_t size;

	if (reserve_parse(value, &size))
		return XR_OK;
	return fail(err, XR_E_INVAL,
		"'%.*s' is not a size such as 0, 500M or 2G",
		QUOTED(span_of(value)));
}

enum xr_status
form_prefix(const char *value, struct xr_error *err)
{
	struct prefix parts;

	return prefix_parse(&parts, span_of(value), err);
}

enum xr_status
form_stacks_on(const char *value, struct xr_error *err)
{
	struct span rest = span_of(value), word;

	if (strcmp(value, "none") == 0)
		return XR_OK;
	while (rest.at != NULL) {
		word = span_next(&rest, ',');
		if (!span_is(word, "hang") && !span_is(word, "timeout") &&
			!span_is(word, "crash"))
			return fail(err, XR_E_INVAL,
				"'%.*s' is not one of hang|timeout|crash, or none alone",
				QUOTED(word));
	}
	return XR_OK;
}

enum xr_status
form_stdin(const char *value, struct xr_error *err)
{
	uint32_t rank;

	if (number_parse(span_of(value), OPTIONS_RANK_MAX, &rank))
		return XR_OK;
	return fail(err, XR_E_INVAL, "'%.*s' is not all, none or a rank",
		QUOTED(span_of(value)));
}
