/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - what control.def stands for. Nothing here names a message. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/gate.h"
#include "base/json.h"
#include "base/status.h"
#include "wire/control.h"

#define INT_MAX_JSON 9007199254740992.0 /* 2^53, as the gate has it */

/* clang-format off */
#define MUST true
#define MAY  false

#define MSG(NAME, name, by, help) \
	static const struct control_field * \
	fields_of_##name(void) \
	{ \
		typedef struct control_##name here __attribute__((unused)); \
		static const struct control_field fields[] = {
#define F(kind, field, need, help) \
			{ #field, CONTROL_KIND_##kind, need, \
				offsetof(here, field), help },
#define END(name) \
			{ 0 } \
		}; \
		return fields; \
	}
#include "wire/control.def"
#undef MSG
#undef F
#undef END

const struct control_row control_rows[CONTROL_TYPES] = {
#define MSG(NAME, name, by, help) \
	[CONTROL_##NAME] = { #name, CONTROL_BY_##by, help, fields_of_##name },
#define F(kind, field, need, help)
#define END(name)
#include "wire/control.def"
#undef MSG
#undef F
#undef END
};
/* clang-format on */

static void *
place_of(const struct control *m, const struct control_field *f)
{
	return (char *)m + offsetof(struct control, welcome) + f->offset;
}

static void
unset(struct control *m, const struct control_field *f)
{
	void *at = place_of(m, f);

	switch (f->kind) {
	case CONTROL_KIND_text:
		*(const char **)at = NULL;
		break;
	case CONTROL_KIND_int:
		*(CONTROL_C_int *)at = CONTROL_NONE;
		break;
	case CONTROL_KIND_real:
		*(CONTROL_C_real *)at = NAN;
		break;
	case CONTROL_KIND_flag:
		*(CONTROL_C_flag *)at = false;
		break;
	case CONTROL_KIND_json:
		*(CONTROL_C_json *)at = (struct span){ 0 };
		break;
	}
}

struct control
control_new(enum control_type type, int64_t id)
{
	struct control m = { .type = type, .id = id };

	for (const struct control_field *f = control_rows[type].fields();
		f->name != NULL; f++)
		unset(&m, f);
	return m;
}

/* --- reading -------------------------------------------------------------- */

static bool
is_key(struct span key, const char *name)
{
	return key.len == strlen(name) + 2 &&
		memcmp(key.at + 1, name, key.len - 2) == 0;
}

/* In place: what it says is never longer than how it is written. */
static const char *
text_of(struct span value)
{
	char *out = (char *)value.at;

	gate_unescape(value, out);
	return out;
}

/* The line is terminated, and behind a number stands no further digit. */
static bool
read_int(struct span value, int64_t *out)
{
	double number = strtod(value.at, NULL);

	if (gate_kind(value) != GATE_NUMBER || number < -INT_MAX_JSON ||
		number > INT_MAX_JSON || number != (double)(int64_t)number)
		return false;
	*out = (int64_t)number;
	return true;
}

/* False: it is of another kind. null is as if it were not there. */
static bool
read_field(struct control *m, const struct control_field *f, struct span value)
{
	enum gate_kind kind = gate_kind(value);
	void *at = place_of(m, f);

	if (kind == GATE_NULL)
		return true;
	switch (f->kind) {
	case CONTROL_KIND_text:
		if (kind == GATE_TEXT)
			*(const char **)at = text_of(value);
		return kind == GATE_TEXT;
	case CONTROL_KIND_int:
		return read_int(value, at);
	case CONTROL_KIND_real:
		if (kind == GATE_NUMBER)
			*(CONTROL_C_real *)at = strtod(value.at, NULL);
		return kind == GATE_NUMBER;
	case CONTROL_KIND_flag:
		*(CONTROL_C_flag *)at = kind == GATE_TRUE;
		return kind == GATE_TRUE || kind == GATE_FALSE;
	case CONTROL_KIND_json:
		*(CONTROL_C_json *)at = value;
		return true;
	}
	return false;
}

static bool
is_set(const struct control *m, const struct control_field *f)
{
	const void *at = place_of(m, f);

	switch (f->kind) {
	case CONTROL_KIND_text:
		return *(const char *const *)at != NULL;
	case CONTROL_KIND_int:
		return *(const CONTROL_C_int *)at != CONTROL_NONE;
	case CONTROL_KIND_real:
		return !isnan(*(const CONTROL_C_real *)at);
	case CONTROL_KIND_flag:
		return *(const CONTROL_C_flag *)at;
	case CONTROL_KIND_json:
		return ((const CONTROL_C_json *)at)->at != NULL;
	}
	return false;
}

static const char *
kind_name(enum control_kind kind)
{
	static const char *const names[] = {
		[CONTROL_KIND_text] = "a text",
		[CONTROL_KIND_int] = "a whole number",
		[CONTROL_KIND_real] = "a number",
		[CONTROL_KIND_flag] = "true or false",
		[CONTROL_KIND_json] = "a value",
	};

	return names[kind];
}

static const struct control_field *
find_field(const struct control_field *fields, struct span key)
{
	for (const struct control_field *f = fields; f->name != NULL; f++)
		if (is_key(key, f->name))
			return f;
	return NULL;
}

static enum xr_status
read_fields(struct control *m, struct span root, struct xr_error *err)
{
	const struct control_row *row = &control_rows[m->type];
	const struct control_field *f;
	struct gate_walk walk = gate_walk(root);
	struct gate_item item;

	while (gate_next(&walk, &item)) {
		f = find_field(row->fields(), item.key);
		if (f != NULL && !read_field(m, f, item.value))
			return fail(err, XR_E_PROTO, "%s: %s is not %s",
				row->name, f->name, kind_name(f->kind));
	}
	for (f = row->fields(); f->name != NULL; f++)
		if (f->must && !is_set(m, f))
			return fail(err, XR_E_PROTO, "%s: %s is missing",
				row->name, f->name);
	return XR_OK;
}

static bool
find_type(struct span name, enum control_type *type)
{
	for (int i = 0; i < CONTROL_TYPES; i++)
		if (is_key(name, control_rows[i].name)) {
			*type = (enum control_type)i;
			return true;
		}
	return false;
}

/* "type" and "id", wherever they stand. */
static struct span
read_envelope(struct span root, int64_t *id)
{
	struct gate_walk walk = gate_walk(root);
	struct gate_item item;
	struct span type = { 0 };

	*id = CONTROL_NONE;
	while (gate_next(&walk, &item)) {
		if (is_key(item.key, "type") &&
			gate_kind(item.value) == GATE_TEXT)
			type = item.value;
		else if (is_key(item.key, "id"))
			read_int(item.value, id);
	}
	return type;
}

enum xr_status
control_read(struct control *m, char *line, size_t len, enum control_by by,
	struct xr_error *err)
{
	enum xr_status status;
	enum control_type type = CONTROL_TYPES;
	struct span root, name;
	int64_t id;

	m->id = CONTROL_NONE;
	m->type = CONTROL_TYPES;
	status = gate_check("message", line, len,
		by == CONTROL_BY_JOB ? CONTROL_ANSWER_MAX : CONTROL_LINE_MAX,
		err);
	if (status != XR_OK)
		return status;
	root = gate_root(line, len);
	if (gate_kind(root) != GATE_OBJECT)
		return fail(err, XR_E_PROTO, "message: not an object");
	name = read_envelope(root, &id);
	m->id = id;
	if (name.at == NULL)
		return fail(err, XR_E_PROTO, "message: type is missing");
	if (find_type(name, &type))
		m->type = type;
	if (m->type == CONTROL_TYPES || (control_rows[type].by & by) == 0)
		return fail(err, XR_E_NOTFOUND,
			"message: there is no type %.*s here",
			(int)(name.len < 40 ? name.len : 40), name.at);
	*m = control_new(type, id);
	return read_fields(m, root, err);
}

/* --- writing -------------------------------------------------------------- */

static void
put_field(struct json *j, const struct control *m,
	const struct control_field *f)
{
	const void *at = place_of(m, f);

	switch (f->kind) {
	case CONTROL_KIND_text:
		json_text(j, f->name, *(const char *const *)at);
		break;
	case CONTROL_KIND_int:
		json_int(j, f->name, *(const CONTROL_C_int *)at);
		break;
	case CONTROL_KIND_real:
		json_real(j, f->name, *(const CONTROL_C_real *)at);
		break;
	case CONTROL_KIND_flag:
		json_bool(j, f->name, *(const CONTROL_C_flag *)at);
		break;
	case CONTROL_KIND_json:
		json_raw(j, f->name, *(const CONTROL_C_json *)at);
		break;
	}
}

void
control_put(struct buf *out, const struct control *m)
{
	const struct control_row *row = &control_rows[m->type];
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_text(&j, "type", row->name);
	if (m->id != CONTROL_NONE)
		json_int(&j, "id", m->id);
	for (const struct control_field *f = row->fields(); f->name != NULL;
		f++)
		if (is_set(m, f))
			put_field(&j, m, f);
	json_close_object(&j);
	buf_put_char(out, '\n');
}
