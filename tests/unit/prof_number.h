/* SPDX-License-Identifier: Apache-2.0 */
/* prof_number.h - numbers in the events of a profile. */
#ifndef TESTS_UNIT_PROF_NUMBER_H
#define TESTS_UNIT_PROF_NUMBER_H

#include <stdint.h>
#include <string.h>

#include <xrun/value.h>

/* prof_number() - returns member @key of event @i; -1 if the event has no such member. */
static inline int64_t
prof_number(const struct xr_value *events, size_t i, const char *key)
{
	int64_t n = -1;

	xr_value_get_i64(xr_value_find(xr_value_at(events, i), key,
				 strlen(key)),
		&n);
	return n;
}

#endif /* TESTS_UNIT_PROF_NUMBER_H */
