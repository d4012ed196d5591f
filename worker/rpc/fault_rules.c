/* SPDX-License-Identifier: Apache-2.0 */
/* fault_rules.c - what is said to fail; see fault.h. */
#include <stdio.h>
#include <string.h>

#include "base/opt.h"
#include "base/status.h"
#include "worker/rpc/fault.h"
#include "worker/rpc/message.h"

struct kind {
	const char *name;
	uint8_t kind, flags, flags_are;
};

/* A row of message.h. */
static const struct kind ours[] = {
#define M(name, number, handler, text) { #name, number, 0, 0 },
	MESSAGE_TABLE(M)
#undef M
};

/* As torch's faulty agent calls them. Of what has no row here nothing is sent. */
static const struct {
	const char *name, *means;
	uint8_t flags, flags_are;
} theirs[] = {
	{ "CALL", "REQUEST", 0, 0 },
	{ "PYTHON_CALL", "REQUEST", MESSAGE_REMOTE, 0 },
	{ "SCRIPT_CALL", "REQUEST", MESSAGE_REMOTE, 0 },
	{ "PYTHON_REMOTE_CALL", "REQUEST", MESSAGE_REMOTE, MESSAGE_REMOTE },
	{ "SCRIPT_REMOTE_CALL", "REQUEST", MESSAGE_REMOTE, MESSAGE_REMOTE },
	{ "PYTHON_RREF_FETCH_CALL", "RREF_FETCH", 0, 0 },
	{ "SCRIPT_RREF_FETCH_CALL", "RREF_FETCH", 0, 0 },
	{ "RREF_FORK_REQUEST", "RREF_FORK_REQUEST", 0, 0 },
	{ "RREF_CHILD_ACCEPT", "RREF_CHILD_ACCEPT", 0, 0 },
	{ "RREF_USER_DELETE", "RREF_USER_DELETE", 0, 0 },
	{ "CLEANUP_AUTOGRAD_CONTEXT_REQ", "", 0, 0 },
};

static uint8_t
number_of(struct span name)
{
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (span_is(name, ours[i].name))
			return ours[i].kind;
	return 0;
}

static bool
find_kind(struct span name, struct fault_rule *rule)
{
	rule->kind = number_of(name);
	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++) {
		if (rule->kind != 0 || !span_is(name, theirs[i].name))
			continue;
		rule->kind = number_of(span_of(theirs[i].means));
		rule->flags = theirs[i].flags;
		rule->flags_are = theirs[i].flags_are;
		return true;
	}
	return rule->kind != 0;
}

bool
fault_is_kind(struct span name)
{
	struct fault_rule unused = { .kind = 0 };

	return find_kind(name, &unused);
}

/* "1.5", "1.5s", "20ms". */
static bool
read_time(struct span text, int64_t *ns)
{
	char s[32];

	if (text.len == 0 || text.len > sizeof(s) - 2)
		return false;
	memcpy(s, text.at, text.len);
	s[text.len] = '\0';
	if (opt_time(s, ns))
		return true;
	memcpy(s + text.len, "s", 2);
	return opt_time(s, ns);
}

static enum xr_status
add(struct fault_rules *rules, const struct fault_rule *rule,
	struct xr_error *err)
{
	if (rules->count == FAULT_RULES)
		return fail(err, XR_E_RANGE, "more than %d faults",
			FAULT_RULES);
	rules->rule[rules->count++] = *rule;
	return XR_OK;
}

static enum fault_what
what_of(struct span word)
{
	static const struct {
		const char *word;
		enum fault_what what;
	} words[] = {
		{ "fail", FAULT_FAIL },
		{ "drop", FAULT_DROP },
		{ "dup", FAULT_DUP },
		{ "reorder", FAULT_REORDER },
		{ "delay", FAULT_DELAY },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (span_is(word, words[i].word))
			return words[i].what;
	return FAULT_NONE;
}

/* "fail:REQUEST:3" */
static enum xr_status
read_one(struct fault_rules *rules, struct span one, struct xr_error *err)
{
	struct fault_rule rule = { .count = FAULT_ALWAYS };
	struct span rest = one, kind;
	bool right;

	rule.what = what_of(span_next(&rest, ':'));
	if (rule.what == FAULT_NONE || rest.at == NULL)
		return fail(err, XR_E_INVAL,
			"fault '%.*s': it is fail, drop, dup, reorder or delay, as in fail:REQUEST:3",
			QUOTED(one));
	kind = span_next(&rest, ':');
	if (!find_kind(kind, &rule))
		return fail(err, XR_E_INVAL,
			"fault '%.*s': no message is of kind '%.*s'",
			QUOTED(one), QUOTED(kind));
	if (rule.what == FAULT_DELAY)
		right = rest.at != NULL && read_time(rest, &rule.delay);
	else
		right = rest.at == NULL ||
			number_parse(rest, FAULT_ALWAYS - 1, &rule.count);
	if (!right)
		return fail(err, XR_E_INVAL, "fault '%.*s': '%.*s' is not %s",
			QUOTED(one), QUOTED(rest),
			rule.what == FAULT_DELAY ?
				"a time of 0 and more, as 1.5 or 20ms" :
				"a number");
	return add(rules, &rule, err);
}

enum xr_status
fault_read(struct fault_rules *rules, const char *text, struct xr_error *err)
{
	struct span rest = span_of(text);
	enum xr_status status = XR_OK;

	while (rest.at != NULL && status == XR_OK)
		status = read_one(rules, span_next(&rest, ','), err);
	return status;
}

/* --- options -------------------------------------------------------------- */

/* The last one counts. */
static struct span
option_of(const struct xr_rpc_opts *opts, const char *key)
{
	struct span found = { NULL, 0 }, value;

	for (uint32_t i = 0; i < opts->extra_count; i++) {
		value = span_of(opts->extra[i]);
		if (span_is(span_next(&value, '='), key))
			found = value;
	}
	return found;
}

enum xr_status
fault_read_opts(struct fault_rules *rules, const struct xr_rpc_opts *opts,
	struct xr_error *err)
{
	struct span kinds = option_of(opts, "messages_to_fail");
	struct span delays = option_of(opts, "messages_to_delay");
	struct span count = option_of(opts, "num_fail_sends"), one;
	enum xr_status status = XR_OK;
	char text[160];
	uint32_t n = 0;

	/* As in torch, none fail where nobody says how many. */
	if (count.at != NULL && !number_parse(count, FAULT_ALWAYS - 1, &n))
		return fail(err, XR_E_INVAL, "num_fail_sends: '%.*s'",
			QUOTED(count));
	while (kinds.at != NULL && n > 0 && status == XR_OK) {
		one = span_next(&kinds, ',');
		snprintf(text, sizeof(text), "fail:%.*s:%u", QUOTED(one), n);
		status = fault_read(rules, text, err);
	}
	while (delays.at != NULL && status == XR_OK) {
		one = span_next(&delays, ',');
		snprintf(text, sizeof(text), "delay:%.*s", QUOTED(one));
		status = fault_read(rules, text, err);
	}
	return status;
}
