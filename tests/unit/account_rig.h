/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_rig.h - the account of a job whose ranks and output a test makes up.
 *
 * For programs that are linked with own_output (meson.build). The working directory of
 * a test is a folder of its own.
 */
#ifndef TESTS_UNIT_ACCOUNT_RIG_H
#define TESTS_UNIT_ACCOUNT_RIG_H

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "launcher/job/sup.h"
#include "launcher/keeper/keeper.h"
#include "launcher/tell/account.h"
#include "proc/core.h"
#include "tests/unit/folder.h"

#define RANKS     12
#define FIRST     20 /* of the ranks of this node */
#define EXITED(n) ((n) << 8)
#define DUMPED    0x80

static struct rank ranks[RANKS];
static char *argv[] = { (char *)"./fit\n\033[5m.py", NULL };
static char *other[] = { (char *)"other", NULL };
static struct part parts[] = {
	{ .argv = argv, .program = (char *)"./fit" },
	{ .argv = other, .program = (char *)"other", .first = 2 },
};
static struct keeper_page page;
static struct raw_share share;
static struct sup sup;
static struct job job = {
	.rank = ranks,
	.parts = parts,
	.part_count = 1,
	.page = &page,
	.sup = &sup,
	.share = &share,
	.tcpstore_fd = -1,
	.state = { .attempt = (char *)"logs/k7m2", .id = "k7m2" },
	.opt = { .quiet = false, .logs = true, .stop_signal = SIGTERM },
	.plan = { .size = FIRST + RANKS, .first = FIRST, .local_size = 1 },
};

/* --- output that is not there ----------------------------------------------- */

static uint32_t left;
static uint64_t backlog[2], bytes[2 * RANKS], dropped[2 * RANKS],
	unseen[2 * RANKS];
static const char *tails[2 * RANKS];
static uint32_t asked[2 * RANKS]; /* lines, by logs_tail() */
static char words[16384];
static unsigned told; /* times */

uint32_t __wrap_logs_sinks(const struct logs *logs);
uint64_t __wrap_logs_backlog(const struct logs *logs, uint32_t sink);
uint32_t __wrap_logs_left(const struct logs *logs);
uint64_t __wrap_logs_bytes(const struct logs *logs, uint32_t stream);
uint64_t __wrap_logs_total(const struct logs *logs);
uint64_t __wrap_logs_dropped(const struct logs *logs, uint32_t stream);
uint64_t __wrap_logs_unseen(const struct logs *logs, uint32_t stream);
uint32_t __wrap_logs_tail(const struct logs *logs, uint32_t stream,
	uint32_t lines, struct buf *out);
void __wrap_logs_last_words(struct logs *logs, const char *text, size_t len);
enum core_kind __wrap_core_find(const struct core *c, char *out, size_t cap);

uint32_t
__wrap_logs_sinks(const struct logs *logs)
{
	(void)logs;
	return 2;
}

uint64_t
__wrap_logs_backlog(const struct logs *logs, uint32_t sink)
{
	(void)logs;
	return backlog[sink];
}

uint32_t
__wrap_logs_left(const struct logs *logs)
{
	(void)logs;
	return left;
}

uint64_t
__wrap_logs_bytes(const struct logs *logs, uint32_t stream)
{
	(void)logs;
	return bytes[stream];
}

uint64_t
__wrap_logs_total(const struct logs *logs)
{
	uint64_t total = 0;

	(void)logs;
	for (uint32_t i = 0; i < 2 * RANKS; i++)
		total += bytes[i];
	return total;
}

uint64_t
__wrap_logs_dropped(const struct logs *logs, uint32_t stream)
{
	(void)logs;
	return dropped[stream];
}

uint64_t
__wrap_logs_unseen(const struct logs *logs, uint32_t stream)
{
	(void)logs;
	return unseen[stream];
}

uint32_t
__wrap_logs_tail(const struct logs *logs, uint32_t stream, uint32_t lines,
	struct buf *out)
{
	uint32_t got = 0;

	(void)logs;
	asked[stream] = lines;
	if (tails[stream] == NULL)
		return 0;
	buf_put_text(out, tails[stream]);
	for (const char *p = tails[stream]; (p = strchr(p, '\n')) != NULL; p++)
		got++;
	return got;
}

void
__wrap_logs_last_words(struct logs *logs, const char *text, size_t len)
{
	(void)logs;
	told++;
	snprintf(words, sizeof(words), "%.*s", (int)len, text);
}

static enum core_kind core_kind;
static struct core core_asked;
static const char *core_name;

enum core_kind
__wrap_core_find(const struct core *c, char *out, size_t cap)
{
	core_asked = *c;
	if (core_name != NULL)
		snprintf(out, cap, "%s", core_name);
	return core_kind;
}

/* The account of the job is @want, to the letter. */
static inline void
is_account(bool files, const char *want)
{
	sup.account_said = false;
	told = 0;
	job_account(&job, files);
	cr_expect_eq(told, 1);
	cr_expect(sup.account_said);
	cr_expect_str_eq(words, want, "got:  %s\nwant: %s", words, want);
}

/* @n ranks have ended with @status, each after 1.5 s. */
static inline void
make_ranks(uint32_t n, int status)
{
	job.plan.local_size = n;
	for (uint32_t r = 0; r < n; r++)
		ranks[r] = (struct rank){ .pid = 100 + (pid_t)r,
			.pidfd = -1,
			.started_ns = NS_PER_S,
			.ended_ns = NS_PER_S * 5 / 2,
			.death = r + 1,
			.status = status };
	job.started = job.deaths = n;
}

/* Rank @r was stopped by xrun, @ms after it told it to. */
static inline void
be_stopped(uint32_t r, int64_t ms, int status)
{
	job.stop_ns = NS_PER_S * 5 / 2;
	ranks[r].after_stop = true;
	ranks[r].status = status;
	ranks[r].ended_ns = job.stop_ns + ms * NS_PER_MS;
}

#endif /* TESTS_UNIT_ACCOUNT_RIG_H */
