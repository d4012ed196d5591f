/* SPDX-License-Identifier: Apache-2.0 */
/* args.c - see args.h. */
#include <stdlib.h>
#include <string.h>

#include "base/brace.h"
#include "base/mem.h"
#include "base/span.h"
#include "base/status.h"
#include "place/args.h"
#include "place/template.h"

#define DIGITS 10 /* of a u32 */
#define BRACES "{}"

struct args {
	struct args_facts facts;
	size_t count;
	char *room;   /* for the texts of one rank, behind the array */
	char *argv[]; /* count and NULL */
};

const char *const template_names[] = {
#define F(name) #name,
	TEMPLATE_FIELDS(F)
#undef F
		NULL,
};

static const char *
text_of(const struct args_facts *facts, enum template_field field)
{
	if (field == TEMPLATE_job)
		return facts->job;
	return field == TEMPLATE_host ? facts->plan->host : NULL;
}

static uint32_t
number_of(const struct args_facts *facts, enum template_field field,
	uint32_t local_rank, uint32_t attempt)
{
	const struct env_part *part = &facts->part;
	const struct plan *plan = facts->plan;

	switch (field) {
	case TEMPLATE_rank:
		return plan->first + local_rank;
	case TEMPLATE_local_rank:
		return local_rank;
	case TEMPLATE_size:
		return plan->size;
	case TEMPLATE_node:
		return plan->node;
	case TEMPLATE_attempt:
		return attempt;
	case TEMPLATE_part:
		return part->index;
	case TEMPLATE_part_rank:
		return plan->node * part->size + local_rank - part->first;
	case TEMPLATE_part_size:
		return plan->nodes * part->size;
	case TEMPLATE_host:
	case TEMPLATE_job:
		break;
	}
	return 0;
}

static char *
put_number(char *at, uint32_t number)
{
	char digits[DIGITS], *first = digits + sizeof(digits);

	do {
		*--first = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	memcpy(at, first, (size_t)(digits + sizeof(digits) - first));
	return at + (digits + sizeof(digits) - first);
}

/* Bytes that @text can become at most, its NUL among them. */
static enum xr_status
widest(const struct args_facts *facts, const char *text, size_t *room,
	struct xr_error *err)
{
	struct brace b = brace_of(span_of(text), template_names);
	struct brace_piece piece;
	enum xr_status status;
	const char *value;

	for (;;) {
		status = brace_next(&b, &piece, err);
		if (status != XR_OK)
			return status;
		if (piece.name == BRACE_END)
			break;
		value = piece.name < 0 ?
			NULL :
			text_of(facts, (enum template_field)piece.name);
		if (piece.name == BRACE_TEXT)
			*room += piece.text.len;
		else
			*room += value != NULL ? strlen(value) : DIGITS;
	}
	*room += 1;
	return XR_OK;
}

static enum xr_status
measure(const struct args_facts *facts, size_t *count, size_t *room,
	struct xr_error *err)
{
	struct xr_error why = { 0 };
	enum xr_status status;

	*room = 0;
	for (*count = 1; facts->argv[*count] != NULL; ++*count) {
		const char *text = facts->argv[*count];

		if (strpbrk(text, BRACES) == NULL)
			continue;
		status = widest(facts, text, room, &why);
		if (status != XR_OK)
			return fail(err, status, "--template: argument %zu: %s",
				*count, why.text);
	}
	return XR_OK;
}

enum xr_status
args_new(struct args **args, const struct args_facts *facts,
	struct xr_error *err)
{
	size_t count = 0, room = 0, array;
	struct args *out = NULL;
	enum xr_status status;

	status = measure(facts, &count, &room, err);
	if (status != XR_OK)
		return status;
	array = (count + 1) * sizeof(out->argv[0]);
	out = xcalloc(1, sizeof(*out) + array + room);
	out->facts = *facts;
	out->count = count;
	out->room = (char *)out->argv + array;
	memcpy(out->argv, facts->argv, array);
	*args = out;
	return XR_OK;
}

void
args_free(struct args *args)
{
	free(args);
}

/* @text for a rank at @at; gives what is behind its NUL. */
static char *
put_text(const struct args *args, const char *text, uint32_t local_rank,
	uint32_t attempt, char *at)
{
	struct brace b = brace_of(span_of(text), template_names);
	struct brace_piece piece;
	enum template_field field;
	struct span value;

	while (brace_next(&b, &piece, NULL) == XR_OK &&
		piece.name != BRACE_END) {
		field = (enum template_field)piece.name;
		value = piece.text;
		if (piece.name != BRACE_TEXT)
			value = span_of(text_of(&args->facts, field));
		if (value.at != NULL) {
			memcpy(at, value.at, value.len);
			at += value.len;
		} else {
			at = put_number(at,
				number_of(&args->facts, field, local_rank,
					attempt));
		}
	}
	*at = '\0';
	return at + 1;
}

char *const *
args_of_rank(struct args *args, uint32_t local_rank, uint32_t attempt)
{
	char *at = args->room;

	for (size_t i = 1; i < args->count; i++) {
		const char *text = args->facts.argv[i];

		if (strpbrk(text, BRACES) == NULL)
			continue;
		args->argv[i] = at;
		at = put_text(args, text, local_rank, attempt, at);
	}
	return args->argv;
}
