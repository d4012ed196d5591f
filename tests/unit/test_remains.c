/* SPDX-License-Identifier: Apache-2.0 */
/* test_remains.c - what jobs left that are over, put together from all that tells of it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "launcher/ctl/place.h"
#include "launcher/keeper/lost.h"
#include "launcher/keeper/orphan.h"
#include "launcher/keeper/remains.h"
#include "launcher/state/jobs.h"
#include "proc/lineage.h"
#include "proc/stray.h"
#include "tests/unit/noted.h"

static struct {
	struct lost_facts lost[3], held[3];
	struct orphan_facts orphan[3];
	const char *dead[3], *living[3];
	struct stray stray[8];
	const char *running, *unlocked; /* folders of jobs */
	bool no_root;
	const char *root; /* NULL: "/r" */
} played;

void __wrap_lost_each(lost_fn *fn, void *ctx);
void __wrap_lost_each_held(lost_fn *fn, void *ctx);
void __wrap_orphan_each(const char *root, orphan_fn *fn, void *ctx);
void __wrap_ctl_place_each_dead(ctl_dead_fn *fn, void *ctx);
void __wrap_ctl_place_each(ctl_place_fn *fn, void *ctx);
void __wrap_stray_each(stray_fn *fn, void *ctx);
bool __wrap_stray_fits(const struct stray_job *job, pid_t pid);
bool __wrap_jobs_is(const char *dir, bool *running);
char *__wrap_state_home(void);
void __wrap_orphan_run(void *path);
void __wrap_ctl_place_sweep(void);

void
__wrap_lost_each(lost_fn *fn, void *ctx)
{
	for (unsigned i = 0; i < 3 && played.lost[i].id != NULL; i++)
		fn(ctx, &played.lost[i]);
}

void
__wrap_lost_each_held(lost_fn *fn, void *ctx)
{
	for (unsigned i = 0; i < 3 && played.held[i].id != NULL; i++)
		fn(ctx, &played.held[i]);
}

void
__wrap_orphan_each(const char *root, orphan_fn *fn, void *ctx)
{
	cr_expect_str_eq(root, played.root != NULL ? played.root : "/r");
	for (unsigned i = 0; i < 3 && played.orphan[i].id != NULL; i++)
		fn(ctx, &played.orphan[i]);
}

void
__wrap_ctl_place_each_dead(ctl_dead_fn *fn, void *ctx)
{
	for (unsigned i = 0; i < 3 && played.dead[i] != NULL; i++)
		fn(ctx, played.dead[i]);
}

/* Until @fn has enough. */
void
__wrap_ctl_place_each(ctl_place_fn *fn, void *ctx)
{
	bool more = true;

	for (unsigned i = 0; i < 3 && played.living[i] != NULL && more; i++) {
		note("%s ", played.living[i]);
		more = fn(ctx, played.living[i]);
	}
}

void
__wrap_stray_each(stray_fn *fn, void *ctx)
{
	for (unsigned i = 0; i < 8 && played.stray[i].pid != 0; i++)
		fn(ctx, &played.stray[i]);
}

/* The hundreds of a pid are the mark. */
bool
__wrap_stray_fits(const struct stray_job *job, pid_t pid)
{
	return job->lineage == (uint64_t)pid / 100;
}

bool
__wrap_jobs_is(const char *dir, bool *running)
{
	*running = played.running != NULL && strcmp(dir, played.running) == 0;
	return *running ||
		(played.unlocked != NULL && strcmp(dir, played.unlocked) == 0);
}

char *
__wrap_state_home(void)
{
	return played.no_root       ? NULL :
		played.root != NULL ? strdup(played.root) :
				      strdup("/r");
}

void
__wrap_orphan_run(void *path)
{
	note("orphans:%s ", (char *)path);
	free(path);
}

void
__wrap_ctl_place_sweep(void)
{
	note("places ");
}

static struct remains r;

Test(remains, all_that_is_known_of_a_job_is_in_one_place)
{
	const struct remain *a, *b, *c;

	played.lost[0] = (struct lost_facts){ .id = "a", .job = { 5, 50 } };
	played.lost[1] = (struct lost_facts){ .id = "b" };
	played.orphan[0] = (struct orphan_facts){ .id = "a",
		.job = { 6, 60 },
		.groups = true };
	played.orphan[1] = (struct orphan_facts){ .id = "b", .job = { 7, 70 } };
	played.dead[0] = "c";
	played.dead[1] = "b";
	remains_look(&r);
	cr_assert_eq(r.count, 3);
	a = remains_find(&r, "a", true);
	b = remains_find(&r, "b", true);
	c = remains_find(&r, "c", true);
	cr_assert(a == &r.remain[0] && b == &r.remain[1] && c == &r.remain[2]);
	cr_expect_null(remains_find(&r, "a", false));
	cr_expect_null(remains_find(&r, "d", true));
	cr_expect_str_eq(a->id, "a");
	cr_expect_str_eq(c->id, "c");
	cr_expect(a->known && a->unclosed && a->groups && !a->socket);
	cr_expect(a->job.lineage == 5 && a->job.ticks == 50);
	cr_expect(b->known && b->unclosed && !b->groups && b->socket);
	cr_expect(b->job.lineage == 7 && b->job.ticks == 70);
	cr_expect(c->known && !c->unclosed && !c->groups && c->socket);
	cr_expect_eq(c->job.lineage, LINEAGE_NONE);
	cr_expect(a->count == 0 && a->process == NULL);
	remains_fini(&r);
	cr_expect(r.count == 0 && r.remain == NULL);
}

Test(remains, without_a_root_there_are_no_folders)
{
	played.no_root = true;
	played.orphan[0] = (struct orphan_facts){ .id = "a" };
	played.dead[0] = "c";
	remains_look(&r);
	cr_assert_eq(r.count, 1);
	cr_expect_str_eq(r.remain[0].id, "c");
	remains_fini(&r);
}

Test(remains, processes_are_known_by_their_mark_or_say_whose_they_are)
{
	const struct remain *one;

	played.lost[0] = (struct lost_facts){ .id = "a", .job = { 5, 0 } };
	played.lost[1] = (struct lost_facts){ .id = "b", .job = { 6, 0 } };
	played.stray[0] = (struct stray){ 601, "a", "x", false };
	played.stray[1] = (struct stray){ 602, NULL, "y", true };
	played.stray[2] = (struct stray){ 700, "a", "z", false };
	played.stray[3] = (struct stray){ 701, "a", "0123456789abcdef", false };
	played.stray[4] = (struct stray){ 501, NULL, "w", false };
	played.stray[5] = (struct stray){ 702, NULL, "v", false };
	played.stray[6] = (struct stray){ 703, "c", "u", true };
	played.stray[7] = (struct stray){ 704, "a/b", "t", false };
	remains_look(&r);
	cr_assert_eq(r.count, 3);
	one = remains_find(&r, "b", true);
	cr_assert(one != NULL && one->count == 2);
	cr_expect_eq(one->process[0].pid, 601);
	cr_expect_str_eq(one->process[0].name, "x");
	cr_expect_eq(one->process[1].pid, 602);
	cr_expect_str_eq(one->process[1].name, "y");
	one = remains_find(&r, "a", true);
	cr_assert(one != NULL && one->count == 1);
	cr_expect_eq(one->process[0].pid, 501);
	/* What only says so, beside that. */
	one = remains_find(&r, "a", false);
	cr_assert(one != NULL && one->count == 2);
	cr_expect(!one->known && !one->unclosed && !one->socket);
	cr_expect_eq(one->process[0].pid, 700);
	cr_expect_eq(one->process[1].pid, 701);
	cr_expect_str_eq(one->process[1].name, "0123456789abcdef");
	remains_fini(&r);
}

/* Not those of a job that is not known: their mark is no proof of anything. */
Test(remains, a_job_that_is_not_known_has_no_mark)
{
	played.stray[0] = (struct stray){ 30, "a", "x", false };
	played.stray[1] = (struct stray){ 31, NULL, "y", false };
	remains_look(&r);
	cr_assert_eq(r.count, 1);
	cr_expect_eq(r.remain[0].count, 1);
	remains_fini(&r);
}

/* How many of "a", "b" and "c" are listed. */
static size_t
listed(void)
{
	size_t count;

	done[0] = '\0';
	played.stray[0] = (struct stray){ 701, "a", "x", false };
	played.stray[1] = (struct stray){ 702, "b", "x", false };
	played.stray[2] = (struct stray){ 703, "c", "x", false };
	remains_look(&r);
	count = r.count;
	remains_fini(&r);
	return count;
}

Test(remains, processes_of_a_job_that_runs_are_not_listed)
{
	static char deep[4096];

	cr_expect_eq(listed(), 3);
	played.running = "/r/b";
	cr_expect_eq(listed(), 2);
	played.unlocked = "/r/a";
	cr_expect_eq(listed(), 2);
	played.no_root = true;
	cr_expect_eq(listed(), 3);
	played.no_root = false;
	played.running = NULL;
	played.held[0].id = "a";
	played.held[1].id = "x";
	cr_expect_eq(listed(), 2);
	played.held[1].id = "c";
	cr_expect_eq(listed(), 1);
	played.living[0] = "x";
	played.living[1] = "b";
	played.living[2] = "y";
	cr_expect_eq(listed(), 0);
	/* Who has found it looks no further. */
	cr_expect_str_eq(done, "x x b x ");
	memset(&played, 0, sizeof(played));
	/* A path that is too long is cut, and of no job. */
	memset(deep, 'd', 4093);
	played.root = deep;
	cr_expect_eq(listed(), 3);
	played.running = deep;
	cr_expect_eq(listed(), 3);
}

Test(remains, what_is_known_is_ended)
{
	remains_end();
	cr_expect_str_eq(done, "orphans:/r places ");
}
