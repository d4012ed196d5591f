/* SPDX-License-Identifier: Apache-2.0 */
/* test_screen.c - what a person sees of a job that runs. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/host/platform.h"
#include "launcher/host/processors.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/screen.h"
#include "place/env.h"
#include "place/plan.h"
#include "proc/descend.h"
#include "tests/unit/noted.h"

#define NOW  (100000 * NS_PER_S)
#define MOST 40 /* ranks */

static struct rank ranks[MOST];
static struct part parts[2];
static struct sup sup;
static struct plan_deal deal = { .text = (char *)"tpu:4" };
static struct job job;
static char *vars[] = { NULL, NULL };
static uint32_t cpus;
static bool by_list;
static int64_t last[2 * MOST];
static uint64_t bytes[2 * MOST];
static char state[MOST]; /* of its process; 0: gone */

void __wrap_logs_put(struct logs *logs, const char *text, size_t len);
void __wrap_logs_say(struct logs *logs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int64_t __wrap_logs_last(const struct logs *logs, uint32_t stream);
uint64_t __wrap_logs_bytes(const struct logs *logs, uint32_t stream);
bool __wrap_proc_stat_read(pid_t pid, struct proc_stat *out);
uint32_t __wrap_processors_count(void);
char *const *__wrap_env_of_rank(struct env *env, const struct env_rank *rank);
const char *__wrap_state_tilde(const char *path, char *out, size_t cap);
void __wrap_platform_put(struct buf *out, const struct xr_device *devices,
	uint32_t count);
bool __wrap_plan_by_list(const struct plan *plan);
const struct plan_deal *__wrap_plan_deal(const struct plan *plan, uint32_t r);
int64_t __wrap_clock_wall(void);

void
__wrap_logs_put(struct logs *logs, const char *text, size_t len)
{
	(void)logs;
	cr_expect_eq(strlen(text), len);
	note("%s", text);
}

void
__wrap_logs_say(struct logs *logs, const char *fmt, ...)
{
	char text[500];
	va_list ap;

	(void)logs;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("[%s]", text);
}

int64_t
__wrap_logs_last(const struct logs *logs, uint32_t stream)
{
	(void)logs;
	return last[stream];
}

uint64_t
__wrap_logs_bytes(const struct logs *logs, uint32_t stream)
{
	(void)logs;
	return bytes[stream];
}

bool
__wrap_proc_stat_read(pid_t pid, struct proc_stat *out)
{
	out->state = state[pid - 100];
	return out->state != '\0';
}

uint32_t
__wrap_processors_count(void)
{
	return cpus;
}

char *const *
__wrap_env_of_rank(struct env *env, const struct env_rank *rank)
{
	cr_expect_eq(env, (struct env *)&job);
	cr_expect_eq(rank->local_rank, 0);
	return vars;
}

const char *
__wrap_state_tilde(const char *path, char *out, size_t cap)
{
	snprintf(out, cap, "~%s", path);
	return out;
}

void
__wrap_platform_put(struct buf *out, const struct xr_device *devices,
	uint32_t count)
{
	(void)devices;
	buf_fmt(out, "cuda:%u", count);
}

bool
__wrap_plan_by_list(const struct plan *plan)
{
	cr_expect_eq(plan, &job.plan);
	return by_list;
}

const struct plan_deal *
__wrap_plan_deal(const struct plan *plan, uint32_t r)
{
	cr_expect_eq(plan, &job.plan);
	cr_expect_eq(r, 0);
	return &deal;
}

int64_t
__wrap_clock_wall(void)
{
	return NOW;
}

static void
begin(void)
{
	static char *one[] = { (char *)"one", NULL },
		    *two[] = { (char *)"two", NULL };

	for (int i = 0; i < MOST; i++) {
		ranks[i] = (struct rank){ .pid = 100 + i,
			.pidfd = 9,
			.state = RANK_RUNNING };
		state[i] = 'S';
	}
	parts[0] = (struct part){ .argv = one,
		.first = 0,
		.size = 2,
		.env = (struct env *)&job };
	parts[1] = (struct part){ .argv = two, .first = 2, .size = 38 };
	cpus = 64;
	job = (struct job){
		.sup = &sup,
		.rank = ranks,
		.parts = parts,
		.part_count = 1,
		.plan = { .size = 4, .local_size = 4 },
		.errors_are_tty = true,
	};
	snprintf(job.state.id, sizeof(job.state.id), "k7m2");
}

TestSuite(screen, .init = begin);

static const char *
header(void)
{
	done[0] = '\0';
	screen_header(&job);
	return done;
}

Test(screen, the_header_names_the_job)
{
	cr_expect_str_eq(header(), "xrun: job k7m2: 4 ranks, cpu, no logs\n");
	job.plan.local_size = 1;
	job.state.dir = (char *)"/logs/k7m2";
	cr_expect_str_eq(header(),
		"xrun: job k7m2: 1 rank, cpu, logs ~/logs/k7m2\n");
	job.part_count = 2;
	job.plan.local_size = 40;
	job.route.reduced = true;
	cr_expect_str_eq(header(),
		"xrun: job k7m2: 40 ranks of 2 programs, cpu, logs "
		"~/logs/k7m2\nxrun: 40 ranks: showing rank 0's stdout and "
		"everybody's stderr; --show all shows the rest\n");
	job.opt.quiet = true;
	cr_expect_str_eq(header(), "");
	job.opt.quiet = false;
	job.errors_are_tty = false;
	cr_expect_str_eq(header(), "");
}

Test(screen, the_header_names_devices)
{
	job.plan.device_count = 3;
	job.plan.reason = PLAN_ACCELERATORS;
	cr_expect_str_eq(header(),
		"xrun: job k7m2: 4 ranks (one an accelerator), cuda:3, no logs\n");
	by_list = true;
	job.plan.reason = PLAN_WORKER_LIST;
	job.plan.first = 4;
	cr_expect_str_eq(header(),
		"xrun: job k7m2: 4 ranks (from the TPU worker list), tpu:4-7, "
		"no logs\n");
	job.plan.local_size = 1;
	cr_expect_str_eq(header(),
		"xrun: job k7m2: 1 rank (from the TPU worker list), tpu:4, no "
		"logs\n");
	job.plan.local_size = 2;
	cr_expect_not_null(strstr(header(), " tpu:4-5,"));
}

Test(screen, the_header_tells_of_a_crowd)
{
	cpus = 4;
	cr_expect_not_null(strstr(header(), "4 ranks, cpu"));
	cpus = 3;
	cr_expect_not_null(strstr(header(), "4 ranks on 3 CPUs, cpu"));
	cpus = 1;
	cr_expect_not_null(strstr(header(), "4 ranks on 1 CPU, cpu"));
	vars[0] = (char *)"OMP_NUM_THREADS=2";
	cpus = 8;
	cr_expect_not_null(strstr(header(), "4 ranks, cpu"));
	cpus = 7;
	cr_expect_not_null(strstr(header(),
		"4 ranks on 7 CPUs (OMP_NUM_THREADS=2), cpu"));
	vars[0] = (char *)"OMP_NUM_THREADS=0";
	cr_expect_not_null(strstr(header(), "4 ranks, cpu"));
	cpus = 3;
	cr_expect_not_null(strstr(header(),
		"4 ranks on 3 CPUs (OMP_NUM_THREADS=0), cpu"));
}

Test(screen, processors_that_others_have_are_told_of)
{
	job.opt.quiet = true;
	job.processors.taken = true;
	cr_expect_str_eq(header(), "");
	job.opt.quiet = false;
	job.errors_are_tty = false;
	cr_expect_str_eq(header(),
		"[xrun: other jobs of xrun have all the processors: ranks "
		"share them]");
	job.processors.unasked = true;
	cr_expect_str_eq(header(), "");
	job.errors_are_tty = true;
	cr_expect_str_eq(header(),
		"[xrun: other jobs of xrun have all the processors: ranks are "
		"not bound]xrun: job k7m2: 4 ranks, cpu, no logs\n");
	job.processors.taken = false;
	cr_expect_str_eq(header(), "xrun: job k7m2: 4 ranks, cpu, no logs\n");
}

/* What the first Ctrl-C shows. */
static const char *
shown(void)
{
	done[0] = '\0';
	screen_interrupt(&job);
	return done;
}

Test(screen, the_first_interrupt_shows_what_ranks_are_at)
{
	job.opt.interrupt = INTERRUPT_ASK;
	cr_expect_str_eq(shown(),
		"\r  ranks 0-3   running   no output yet\n"
		"xrun: 4 ranks running; Ctrl-C again: stop\n");
	job.errors_are_tty = false;
	job.opt.interrupt = INTERRUPT_ASK + 1;
	job.interactive = true;
	ranks[1].pidfd = -1;
	state[2] = 'T';
	state[3] = 'R';
	bytes[6] = 1;
	cr_expect_str_eq(shown(),
		"  rank 0     running   no output yet\n"
		"  rank 2     stopped   no output yet\n"
		"  rank 3     running   has written output\n"
		"xrun: stopping 3 ranks; Ctrl-] three times again: terminate "
		"now\n");
	job.interactive = false;
	last[0] = NOW - 5 * NS_PER_S;
	last[1] = NOW - 3 * NS_PER_S;
	last[5] = NOW - 3 * NS_PER_S - 5;
	bytes[6] = 0;
	state[2] = 't';
	cr_expect_str_eq(shown(),
		"  rank 0     running   last output 3 s ago\n"
		"  rank 2     stopped   last output 3 s ago\n"
		"  rank 3     running   no output yet\n"
		"xrun: stopping 3 ranks; Ctrl-C again: terminate now\n");
	state[2] = 0; /* it is gone */
	cr_expect_str_eq(shown(),
		"  ranks 0,2   running   last output 3 s ago\n"
		"  rank 3     running   no output yet\n"
		"xrun: stopping 3 ranks; Ctrl-C again: terminate now\n");
	ranks[0].pidfd = ranks[2].pidfd = -1;
	cr_expect_str_eq(shown(),
		"  rank 3     running   no output yet\n"
		"xrun: stopping 1 rank; Ctrl-C again: terminate now\n");
}

Test(screen, a_rank_that_is_not_running_is_not_stopped)
{
	state[0] = 'T';
	ranks[0].state = RANK_STOPPING;
	job.plan.local_size = 1;
	cr_expect_str_eq(shown(),
		"\r  rank 0     stopping  no output yet\n"
		"xrun: stopping 1 rank; Ctrl-C again: terminate now\n");
	/* If nobody lives, all are shown. */
	ranks[0].pidfd = -1;
	ranks[0].state = RANK_DONE;
	cr_expect_str_eq(shown(),
		"\r  rank 0     done      no output yet\n"
		"xrun: stopping 0 ranks; Ctrl-C again: terminate now\n");
}

Test(screen, ranks_of_each_program_are_shown)
{
	job.part_count = 2;
	cr_expect_str_eq(shown(),
		"\r  ranks 0-1   running   no output yet, one\n"
		"  ranks 2-3   running   no output yet, two\n"
		"xrun: stopping 4 ranks; Ctrl-C again: terminate now\n");
}

/* Lines of @text. */
static unsigned
lines(const char *text)
{
	unsigned n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

Test(screen, there_are_no_more_than_16_rows)
{
	for (int i = 0; i < MOST; i++)
		last[2 * i] = NOW - (i + 1) * NS_PER_S;
	job.plan.size = job.plan.local_size = 16;
	cr_expect_eq(lines(shown()), 17);
	cr_expect_null(strstr(done, "more"));
	job.plan.size = job.plan.local_size = 17;
	cr_expect_eq(lines(shown()), 18);
	cr_expect_not_null(strstr(done, "  ... and 1 more\n"));
	last[2 * 39] = last[0]; /* in the first row */
	job.plan.size = job.plan.local_size = 40;
	cr_expect_eq(lines(shown()), 18);
	cr_expect_not_null(strstr(done, "  ... and 23 more\n"));
}

static const char *
again(void)
{
	done[0] = '\0';
	screen_interrupt_again(&job);
	return done;
}

Test(screen, a_further_interrupt_says_what_it_does)
{
	job.opt.stop_signal = SIGUSR1;
	job.opt.grace = 5 * NS_PER_S;
	job.ending = ENDING_STOPPING;
	cr_expect_str_eq(again(),
		"[\rxrun: USR1 to all ranks, KILL after 5.0 s; Ctrl-C again: "
		"kill now]");
	job.ending = ENDING_STOPPING + 1;
	job.errors_are_tty = false;
	cr_expect_str_eq(again(), "[xrun: killing all ranks]");
}
