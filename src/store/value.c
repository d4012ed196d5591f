/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - see value.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/value.h"

struct store_value *
store_value_new(const void *data, size_t len)
{
	struct store_value *v;
	size_t size;

	if (__builtin_add_overflow(sizeof(*v) + 1, len, &size))
		return NULL;
	v = malloc(size);
	if (v == NULL)
		return NULL;
	*v = (struct store_value){
		.data = (char *)(v + 1),
		.len = len,
		.refs = 1,
	};
	if (data != NULL && len > 0)
		memcpy(v->data, data, len);
	v->data[len] = '\0';
	return v;
}

struct store_value *
store_value_wrap(void *data, size_t len, store_value_free_fn *fn, void *ctx)
{
	struct store_value *v = malloc(sizeof(*v));

	if (v != NULL)
		*v = (struct store_value){ data, len, 1, fn, ctx };
	return v;
}

struct store_value *
store_value_ref(struct store_value *value)
{
	value->refs++;
	return value;
}

void
store_value_unref(struct store_value *value)
{
	int saved = errno;

	if (value == NULL || --value->refs > 0)
		return;
	if (value->free != NULL)
		value->free(value);
	free(value);
	errno = saved;
}
