/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type.c - see xrun/value.h: types of the program's own.
 *
 * A row is one block: the type, its methods, then all their texts. Rows are
 * never changed, and never taken away.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/value.h>

#include "base/span.h"
#include "base/status.h"
#include "wire/value/node.h"
#include "wire/value/value_hooks.h"

#define TYPE_NAME_MAX 127 /* bytes */
#define METHODS_MAX   4096

struct row {
	struct row *next;
	struct xr_type type;
	struct xr_method methods[];
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct row *rows; /* under @lock */

bool
type_name_valid(struct span name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz"
				      "0123456789_.:-";

	if (name.len < 1 || name.len > TYPE_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (name.at[i] == '\0' || strchr(letters, name.at[i]) == NULL)
			return false;
	return true;
}

/* --- registering ----------------------------------------------------------- */

/* Those of a newer program may be longer. */
static const struct xr_method *
method_at(const struct xr_type *type, uint32_t i)
{
	const char *first = (const char *)type->methods;

	return (const struct xr_method *)(first + i * type->methods->size);
}

static enum xr_status
check_method(const struct xr_type *type, uint32_t i, struct xr_error *err)
{
	const struct xr_method *m = method_at(type, i);

	if (m->size < sizeof(*m) || m->size != type->methods->size)
		return fail(err, XR_E_INVAL,
			"type %s: method %u has not its size", type->name, i);
	if (m->fn == NULL || !func_name_valid(span_of(m->name)))
		return fail(err, XR_E_INVAL,
			"type %s: method %u has no name, or no function",
			type->name, i);
	for (uint32_t k = 0; k < i; k++)
		if (strcmp(method_at(type, k)->name, m->name) == 0)
			return fail(err, XR_E_INVAL,
				"type %s: two methods are called %s",
				type->name, m->name);
	return XR_OK;
}

static enum xr_status
check(const struct xr_type *type, struct xr_error *err)
{
	enum xr_status status = XR_OK;

	if (type == NULL || type->size < sizeof(*type))
		return fail(err, XR_E_INVAL, "type: without its size");
	if (!type_name_valid(span_of(type->name)))
		return fail(err, XR_E_INVAL,
			"type: '%.60s' is no name: 1 to %d of A-Z a-z 0-9 _ . : -",
			type->name == NULL ? "" : type->name, TYPE_NAME_MAX);
	if (type->method_count > METHODS_MAX ||
		(type->method_count > 0 && type->methods == NULL))
		return fail(err, XR_E_INVAL, "type %s: %u methods", type->name,
			type->method_count);
	for (uint32_t i = 0; i < type->method_count && status == XR_OK; i++)
		status = check_method(type, i, err);
	return status;
}

/* The bytes of a text with its NUL; none for no text. */
static size_t
room_of(const char *text)
{
	return text == NULL ? 0 : strlen(text) + 1;
}

/* A copy at *@room, which is moved behind it. */
static const char *
put_text(char **room, const char *text)
{
	size_t len = room_of(text);
	char *copy = *room;

	if (text == NULL)
		return NULL;
	memcpy(copy, text, len);
	*room += len;
	return copy;
}

static struct row *
copy_of(const struct xr_type *type)
{
	size_t size = sizeof(struct row) +
		type->method_count * sizeof(struct xr_method) +
		room_of(type->name);
	struct row *row;
	char *room;

	for (uint32_t i = 0; i < type->method_count; i++)
		size += room_of(method_at(type, i)->name) +
			room_of(method_at(type, i)->schema);
	row = malloc(size);
	if (row == NULL)
		return NULL;
	room = (char *)&row->methods[type->method_count];
	row->type = *type;
	row->type.size = sizeof(row->type);
	row->type.name = put_text(&room, type->name);
	row->type.methods = type->method_count > 0 ? row->methods : NULL;
	for (uint32_t i = 0; i < type->method_count; i++) {
		struct xr_method *m = &row->methods[i];

		*m = *method_at(type, i);
		m->size = sizeof(*m);
		m->name = put_text(&room, m->name);
		m->schema = put_text(&room, m->schema);
	}
	return row;
}

/* Under the lock. */
static const struct xr_type *
find(struct span name)
{
	for (struct row *row = rows; row != NULL; row = row->next)
		if (span_is(name, row->type.name))
			return &row->type;
	return NULL;
}

XR_EXPORT enum xr_status
xr_type_register(const struct xr_type *type, struct xr_error *err)
{
	enum xr_status status = check(type, err);
	struct row *row;

	if (status != XR_OK)
		return status;
	row = copy_of(type);
	if (row == NULL)
		return fail(err, XR_E_NOMEM, "type %s: out of memory",
			type->name);
	pthread_rwlock_wrlock(&lock);
	if (find(span_of(type->name)) == NULL) {
		row->next = rows;
		rows = row;
		row = NULL;
	}
	pthread_rwlock_unlock(&lock);
	if (row == NULL)
		return XR_OK;
	free(row);
	return fail(err, XR_E_EXISTS, "type %s: registered already",
		type->name);
}

/* --- looking up ------------------------------------------------------------ */

const struct xr_type *
value_type_find(const char *name, size_t len)
{
	const struct xr_type *type;

	pthread_rwlock_rdlock(&lock);
	type = find((struct span){ name, len });
	pthread_rwlock_unlock(&lock);
	return type;
}

const struct xr_method *
value_method_find(const struct xr_type *type, const char *name)
{
	for (uint32_t i = 0; i < type->method_count; i++)
		if (strcmp(type->methods[i].name, name) == 0)
			return &type->methods[i];
	return NULL;
}

/* --- objects --------------------------------------------------------------- */

static const struct value_opaque *
opaque_of(const struct xr_value *value)
{
	return node_is(value, XR_OPAQUE) ? (const struct value_opaque *)value :
					   NULL;
}

struct xr_value *
opaque_new(const struct xr_type *type, void *object)
{
	struct value_opaque *o = node_new(XR_OPAQUE, sizeof(*o));

	if (o == NULL) {
		if (type->free != NULL)
			type->free(object, type->ctx);
		return NULL;
	}
	o->type = type;
	o->object = object;
	return &o->head;
}

void
opaque_fini(struct xr_value *value)
{
	const struct value_opaque *o = opaque_of(value);

	if (o->type->free != NULL)
		o->type->free(o->object, o->type->ctx);
}

struct xr_value *
opaque_bytes(const struct xr_value *value, struct xr_error *err)
{
	const struct value_opaque *o = opaque_of(value);
	struct xr_value *bytes = NULL;

	if (o->type->encode == NULL) {
		fail(err, XR_E_ENCODE, "value: type %s has no encoder",
			o->type->name);
		return NULL;
	}
	bytes = o->type->encode(o->object, o->type->ctx);
	if (node_is(bytes, XR_BYTES))
		return bytes;
	xr_value_unref(bytes);
	fail(err, XR_E_ENCODE, "value: the encoder of type %s failed",
		o->type->name);
	return NULL;
}

XR_EXPORT struct xr_value *
xr_value_new_opaque(const char *type, void *object)
{
	const struct xr_type *known =
		type == NULL ? NULL : value_type_find(type, strlen(type));

	return known == NULL ? NULL : opaque_new(known, object);
}

XR_EXPORT void *
xr_value_object(const struct xr_value *value, const char *type)
{
	const struct value_opaque *o = opaque_of(value);

	if (o == NULL || (type != NULL && strcmp(type, o->type->name) != 0))
		return NULL;
	return o->object;
}

XR_EXPORT const char *
xr_value_type(const struct xr_value *value)
{
	const struct value_opaque *o = opaque_of(value);

	return o == NULL ? NULL : o->type->name;
}
