/* SPDX-License-Identifier: Apache-2.0 */
/* test_crew.c - threads of the agent, from the first one to the end of all; see
 * worker/rpc/crew.h. */
#include <criterion/criterion.h>
#include <stdatomic.h>

#include "worker/rpc/crew.h"
#include "worker/rpc/lead.h"

TestSuite(crew, .timeout = 60);

static _Atomic uint32_t begun, ended, ran;

static void
count_begin(void)
{
	atomic_fetch_add(&begun, 1);
}

static void
count_end(void)
{
	atomic_fetch_add(&ended, 1);
}

static int64_t
expire(void *ctx, int64_t now)
{
	(void)ctx;
	(void)now;
	return INT64_MAX;
}

static void
open_crew(void)
{
	static const struct crew_first first = { count_begin, count_end };
	const struct lead_place place = { .expire = expire,
		.work = crew_has_work };

	lead_open(&place);
	cr_assert_eq(crew_open(2, &first), 0);
}

static void
close_crew(void)
{
	crew_close(0, NULL);
	lead_close();
}

static void
count_run(struct work *work)
{
	(void)work;
	cr_expect(crew_is_member());
	atomic_fetch_add(&ran, 1);
}

/* The sanitizers find memory that is not given back. */
Test(crew, its_end_runs_what_was_posted_and_gives_back_its_memory)
{
	static struct work work[20];

	for (uint32_t turn = 1; turn <= 2; turn++) {
		open_crew();
		cr_expect_eq(atomic_load(&begun), turn);
		for (size_t i = 0; i < 20; i++) {
			work[i] = (struct work){ .run = count_run };
			cr_expect(crew_post(&work[i]));
		}
		close_crew();
		cr_expect_eq(atomic_load(&ran), 20 * turn);
		cr_expect_eq(atomic_load(&ended), turn);
		cr_expect_not(crew_post(&work[0]));
	}
}
