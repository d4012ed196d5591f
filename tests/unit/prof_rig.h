/* SPDX-License-Identifier: Apache-2.0 */
/* prof_rig.h - profiles by the test's clock, what they hold, and events as they are sent. */
#ifndef TESTS_UNIT_PROF_RIG_H
#define TESTS_UNIT_PROF_RIG_H

#include <xrun/error.h>
#include <xrun/prof.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/prof_number.h"
#include "tests/unit/short_memory.h"

#include "tests/unit/wire_rig.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/func.h"
#include "worker/rpc/method.h"
#include "worker/rpc/prof.h"
#include "worker/rpc/serve_inner.h"

int64_t __real_clock_now(void);
int64_t __wrap_clock_now(void);

static _Atomic int64_t now; /* 0: as it is */

int64_t
__wrap_clock_now(void)
{
	int64_t n = atomic_load(&now);

	return n != 0 ? n : __real_clock_now();
}

static struct xr_error err;

static inline void
begin(void)
{
	wire_begin();
	atomic_store(&now, 1000);
}

static inline void
end(void)
{
	atomic_store(&now, 0);
	wire_end();
}

static inline struct xr_value *
end_of(uint32_t flags, size_t count)
{
	struct xr_value *events = NULL;

	cr_assert_eq(xr_prof_end(flags, &events, &err), XR_OK, "%s", err.text);
	cr_expect_eq(xr_value_count(events), count);
	return events;
}

static inline void
is_key(const struct xr_value *events, size_t i, const char *want)
{
	size_t len = 0;
	const char *key =
		xr_value_data(xr_value_find(xr_value_at(events, i), "key", 3),
			&len);

	cr_assert_not_null(key, "event %zu", i);
	cr_expect_str_eq(key, want);
}

struct sent {
	uint8_t data[16384];
	size_t len;
};

static inline void
put(struct sent *s, const void *data, size_t len)
{
	memcpy(s->data + s->len, data, len);
	s->len += len;
}

static inline void
put_event(struct sent *s, int64_t start, const char *key, uint16_t len)
{
	const int64_t times[2] = { start, start + 5 };
	const uint32_t where[2] = { 8, 99 };

	put(s, times, sizeof(times));
	put(s, where, sizeof(where));
	put(s, &len, sizeof(len));
	put(s, key, len);
}

#endif /* TESTS_UNIT_PROF_RIG_H */
