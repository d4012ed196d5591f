/* SPDX-License-Identifier: Apache-2.0 */
/* tpu_facts.c - see tpu_facts.h. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "place/environ.h"
#include "place/tpu_facts.h"

#define FACTOR_MAX 65536

/* What the facts are called, in the order in which they are believed. */
struct names {
	const char *type, *process[2], *chips[2], *worker[2];
};

static const struct names of_vars = {
	.type = "TPU_ACCELERATOR_TYPE",
	.process = { "TPU_PROCESS_BOUNDS", "TPU_HOST_BOUNDS" },
	.chips = { "TPU_CHIPS_PER_PROCESS_BOUNDS",
		"TPU_CHIPS_PER_HOST_BOUNDS" },
	.worker = { "CLOUD_TPU_TASK_ID", "TPU_WORKER_ID" },
};

static const struct names of_tpu_env = {
	.type = "ACCELERATOR_TYPE",
	.process = { "TPU_PROCESS_BOUNDS", "HOST_BOUNDS" },
	.chips = { "TPU_CHIPS_PER_PROCESS_BOUNDS", "CHIPS_PER_HOST_BOUNDS" },
	.worker = { "WORKER_ID", "WORKER_ID" },
};

/* Hosts of the slices whose metadata does not tell; 2,2,1 chips each. */
static const struct {
	const char *type;
	struct tpu_bounds process;
} old_types[] = {
	{ "v2-8", { { 1, 1, 1 }, "v2-8" } },
	{ "v2-32", { { 2, 2, 1 }, "v2-32" } },
	{ "v2-128", { { 4, 4, 1 }, "v2-128" } },
	{ "v2-256", { { 4, 8, 1 }, "v2-256" } },
	{ "v2-512", { { 8, 8, 1 }, "v2-512" } },
	{ "v3-8", { { 1, 1, 1 }, "v3-8" } },
	{ "v3-32", { { 2, 2, 1 }, "v3-32" } },
	{ "v3-64", { { 2, 4, 1 }, "v3-64" } },
	{ "v3-128", { { 4, 4, 1 }, "v3-128" } },
	{ "v3-256", { { 4, 8, 1 }, "v3-256" } },
	{ "v3-512", { { 8, 8, 1 }, "v3-512" } },
	{ "v3-1024", { { 8, 16, 1 }, "v3-1024" } },
	{ "v3-2048", { { 16, 16, 1 }, "v3-2048" } },
};

/* The first of two names that is set and not empty. */
static const char *
first_of(char *const *vars, const char *const names[2], const char **name)
{
	for (int i = 0; i < 2; i++) {
		const char *value = environ_get(vars, names[i]);

		if (value == NULL || *value == '\0')
			continue;
		*name = names[i];
		return value;
	}
	return NULL;
}

static enum xr_status
read_bounds(struct tpu_bounds *bounds, char *const *vars,
	const char *const names[2], struct xr_error *err)
{
	const char *text = first_of(vars, names, &bounds->name);
	struct span rest = span_of(text);

	if (text == NULL)
		return XR_OK;
	if (span_count(span_of(text), ',') != 3)
		return fail(err, XR_E_INVAL,
			"%s: '%.*s' has %zu factor%s, not x,y,z", bounds->name,
			QUOTED(rest), span_count(span_of(text), ','),
			span_count(span_of(text), ',') == 1 ? "" : "s");
	for (int i = 0; i < 3; i++) {
		struct span piece = span_next(&rest, ',');

		if (!number_parse(piece, FACTOR_MAX, &bounds->at[i]) ||
			bounds->at[i] == 0)
			return fail(err, XR_E_INVAL,
				"%s: '%.*s' has factor '%.*s', not a number from 1",
				bounds->name, QUOTED(span_of(text)),
				QUOTED(piece));
	}
	return XR_OK;
}

/* "v4-16" and "tpu7x-8" begin with their version. */
static enum xr_status
read_type(struct tpu_facts *facts, char *const *vars, const struct names *names,
	struct xr_error *err)
{
	const char *type = environ_get(vars, names->type);
	const char *digit = type;

	if (type == NULL || *type == '\0')
		return XR_OK;
	if (strncmp(type, "tpu", 3) == 0)
		digit += 3;
	else if (*type == 'v')
		digit += 1;
	if (digit == type || *digit < '1' || *digit > '9')
		return fail(err, XR_E_INVAL,
			"%s: '%.*s' is no accelerator type like v4-16",
			names->type, QUOTED(span_of(type)));
	facts->type = type;
	facts->version = (uint32_t)(*digit - '0');
	return XR_OK;
}

static enum xr_status
look_up_old_type(struct tpu_facts *facts, struct xr_error *err)
{
	size_t count = sizeof(old_types) / sizeof(old_types[0]);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(old_types[i].type, facts->type) != 0)
			continue;
		facts->process = old_types[i].process;
		facts->chips = (struct tpu_bounds){ { 2, 2, 1 }, "2,2,1" };
		return XR_OK;
	}
	return fail(err, XR_E_INVAL,
		"accelerator type '%.*s' is none of the v2 and v3 types, v2-8 to v3-2048",
		QUOTED(span_of(facts->type)));
}

static enum xr_status
read_worker(struct tpu_facts *facts, char *const *vars,
	const struct names *names, struct xr_error *err)
{
	const char *name = NULL;
	const char *text = first_of(vars, names->worker, &name);

	if (text == NULL)
		return XR_OK;
	if (!number_parse(span_of(text), TPU_WORKERS_MAX, &facts->worker))
		return fail(err, XR_E_INVAL, "%s: '%.*s' is not a number", name,
			QUOTED(span_of(text)));
	facts->worker_known = true;
	return XR_OK;
}

static enum xr_status
read_facts(struct tpu_facts *facts, char *const *vars,
	const struct names *names, struct xr_error *err)
{
	enum xr_status status = read_type(facts, vars, names, err);

	if (status != XR_OK || facts->type == NULL)
		return status;
	status = read_worker(facts, vars, names, err);
	if (status == XR_OK && facts->version <= 3)
		return look_up_old_type(facts, err);
	if (status == XR_OK)
		status =
			read_bounds(&facts->process, vars, names->process, err);
	if (status == XR_OK)
		status = read_bounds(&facts->chips, vars, names->chips, err);
	return status;
}

enum xr_status
tpu_facts_of_vars(struct tpu_facts *facts, char *const *vars,
	struct xr_error *err)
{
	struct tpu_facts out = { 0 };
	enum xr_status status = read_facts(&out, vars, &of_vars, err);

	if (status != XR_OK)
		return status;
	out.workers = environ_get(vars, "TPU_WORKER_HOSTNAMES");
	out.addresses = environ_get(vars, "TPU_PROCESS_ADDRESSES");
	*facts = out;
	return XR_OK;
}

/* Takes one pair of quotes off, in place; '' within '...' is a quote. */
static char *
unquote(char *value, char *end)
{
	char quote = *value, *to = value, *from = value + 1;

	if (quote != '\'' && quote != '"')
		return value;
	if (end - value < 2 || end[-1] != quote)
		return NULL;
	while (from < end - 1) {
		if (quote == '\'' && from[0] == '\'' && from[1] == '\'')
			from++;
		*to++ = *from++;
	}
	*to = '\0';
	return value;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/*
 * One line KEY: 'value' becomes KEY=value, in place. NULL for a line that is
 * none; the caller has put a NUL at its end.
 */
static enum xr_status
line_to_entry(char *line, char **entry, struct xr_error *err)
{
	char *colon = strchr(line, ':');
	char *end = line + strlen(line);
	char *value = NULL, *clean = NULL;
	size_t key = 0;

	*entry = NULL;
	while (is_blank(*line))
		line++;
	if (colon == NULL || *line == '#' || colon <= line)
		return XR_OK;
	for (value = colon + 1; is_blank(*value); value++)
		;
	while (end > value && is_blank(end[-1]))
		*--end = '\0';
	clean = unquote(value, end);
	if (clean == NULL)
		return fail(err, XR_E_INVAL,
			"tpu-env: '%.*s' has no closing quote",
			QUOTED(span_of(line)));
	for (key = (size_t)(colon - line); is_blank(line[key - 1]); key--)
		;
	memmove(clean - 1 - key, line, key);
	clean[-1] = '=';
	*entry = clean - 1 - key;
	return XR_OK;
}

/* tpu-env as an environment: pointers first, then the text, in one block. */
static enum xr_status
text_to_vars(const char *text, char **owned, char ***vars, struct xr_error *err)
{
	size_t lines = 1, count = 0, len = strlen(text);
	enum xr_status status = XR_OK;
	char **out = NULL;
	char *at = NULL;

	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	*owned = xcalloc(1, (lines + 1) * sizeof(char *) + len + 1);
	out = (char **)(void *)*owned;
	at = memcpy(&out[lines + 1], text, len + 1);
	while (at != NULL && status == XR_OK) {
		char *next = strchr(at, '\n');

		if (next != NULL)
			*next++ = '\0';
		status = line_to_entry(at, &out[count], err);
		count += out[count] != NULL;
		at = next;
	}
	*vars = out;
	return status;
}

enum xr_status
tpu_facts_of_metadata(struct tpu_facts *facts, const char *tpu_env,
	const char *endpoints, const char *worker, struct xr_error *err)
{
	struct tpu_facts out = { .workers = endpoints, .endpoints = true };
	enum xr_status status = XR_OK;
	char **vars = NULL;

	status = text_to_vars(tpu_env, &out.owned, &vars, err);
	if (status == XR_OK)
		status = read_facts(&out, vars, &of_tpu_env, err);
	if (status == XR_OK && !out.worker_known && worker != NULL) {
		if (number_parse(span_of(worker), TPU_WORKERS_MAX, &out.worker))
			out.worker_known = true;
		else
			status = fail(err, XR_E_INVAL,
				"agent-worker-number: '%.*s' is not a number",
				QUOTED(span_of(worker)));
	}
	if (status == XR_OK)
		*facts = out;
	else
		tpu_facts_fini(&out);
	return status;
}

void
tpu_facts_fini(struct tpu_facts *facts)
{
	free(facts->owned);
	*facts = (struct tpu_facts){ 0 };
}
