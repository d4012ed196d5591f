/* SPDX-License-Identifier: Apache-2.0 */
/* hang.c - see hang.h. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/job/hang.h"
#include "launcher/sup/hang.h"
#include "launcher/sup/hang_differ.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/slots.h"
#include "launcher/tell/stacks.h"
#include "launcher/tell/who.h"
#include "proc/usage.h"

#define LATE_NS NS_PER_S /* more is no scheduling any more */
/* Who waits burns a little: PyTorch's watchdog of a process group looks ten
 * times a second (ProcessGroupNCCL.cpp, kWatchdogThreadSleepMillis). */
#define IDLE_SHARE 100              /* a hundredth of a processor */
#define GRAIN_NS   (10 * NS_PER_MS) /* in which the kernel counts */
#define HELD_BYTES (32 << 10)       /* in its pipe: it waits for room */
#define ROWS       16               /* of the table */
#define ASKED      1024             /* threads in one look: some milliseconds */
#define ASK_AGAIN  (10 * NS_PER_MS) /* for others, when there were more */

/* What was seen of a rank. */
struct seen {
	uint64_t bytes, tick;
	uint64_t told;         /* messages and stores, in number */
	int64_t cpu_ns, at_ns; /* when it showed its last sign of life */
	int64_t last_cpu_ns;   /* at the last look that asked */
	int64_t bytes_ns;      /* the last byte */
	double share;          /* of a processor, since the look before */
	int64_t looked_ns;
	/* What other threads started, asked once it is silent; 0: not yet. */
	int64_t asked_ns, asked_cpu_ns;
	bool sure; /* it was asked again, at the end */
};

struct hang_watch {
	struct job *job;
	struct timer *timer;
	int64_t beat_ns;
	struct hung *hung; /* the verdict */
	struct seen *seen;
	struct hang_rank *rank;
	int64_t verdict_ns;
	bool *differs;    /* [ranks]: of a verdict that names all, the few .. */
	bool any_differs; /* .. that are not where most are */
	bool unread;      /* the output, in this look */
	uint32_t asked;   /* threads, in this look */
	bool more;        /* and there are more */
};

/* --- looking -------------------------------------------------------------- */

static uint64_t
bytes_of(const struct job *job, uint32_t r)
{
	return logs_bytes(job->sup->logs, r * RAW_STREAMS) +
		logs_bytes(job->sup->logs, r * RAW_STREAMS + 1);
}

static void
show_life(struct hang_watch *w, uint32_t r, int64_t now)
{
	w->rank[r].sign_ns = now;
	w->seen[r].at_ns = now;
	w->seen[r].cpu_ns = w->seen[r].last_cpu_ns;
	w->seen[r].asked_ns = 0;
	w->seen[r].sure = false;
}

/* What needs no question: what it wrote, and what it told. */
static void
look_at_words(struct hang_watch *w, uint32_t r, int64_t now)
{
	struct rank *rank = &w->job->rank[r];
	uint64_t bytes = bytes_of(w->job, r), tick = slots_tick(w->job, r);
	struct seen *s = &w->seen[r];
	bool told = tick != s->tick || rank->told != s->told;

	slots_look(w->job, r);
	if (bytes != s->bytes)
		s->bytes_ns = now;
	w->rank[r].told = rank->told + tick;
	if (told || bytes != s->bytes) {
		w->rank[r].told_ns = now;
		show_life(w, r, now);
	}
	s->bytes = bytes;
	s->tick = tick;
	s->told = rank->told;
}

/* More than who waits burns in that time. */
static bool
works(int64_t cpu_ns, int64_t ns)
{
	return cpu_ns > GRAIN_NS + ns / IDLE_SHARE;
}

/* Without files a reader of the output that does not read holds all ranks that
 * write. */
static bool
is_unread(const struct job *job)
{
	struct pollfd p[] = { { .fd = STDOUT_FILENO, .events = POLLOUT },
		{ .fd = STDERR_FILENO, .events = POLLOUT } };

	return job->state.dir_fd == -1 && poll(p, 2, 0) != -1 &&
		(p[0].revents == 0 || p[1].revents == 0);
}

static bool
is_held(const struct hang_watch *w, uint32_t r)
{
	const struct job *job = w->job;
	const struct raw_slot *slot = &job->share->slot[r * RAW_STREAMS];

	if (job->rank[r].full != 0)
		return true;
	for (int i = 0; i < RAW_STREAMS; i++)
		if (slot[i].pipe != -1 &&
			raw_waiting(slot[i].pipe) >= HELD_BYTES)
			return true;
	return w->unread;
}

/* All that descends from it. */
static void
ask(struct hang_watch *w, uint32_t r, int64_t now)
{
	struct seen *s = &w->seen[r];
	struct usage u = { 0 };

	if (!usage_tree(w->job->rank[r].pid, &u))
		return;
	w->asked += u.asked;
	if (u.running ||
		(s->asked_ns != 0 &&
			works(u.cpu_ns - s->asked_cpu_ns, now - s->asked_ns))) {
		show_life(w, r, now);
		return;
	}
	s->sure = s->asked_ns != 0;
	s->asked_ns = now;
	s->asked_cpu_ns = u.cpu_ns;
}

/* What other threads than the first of a process started takes three calls a
 * thread to find. So a rank that is silent is asked twice: in the middle of
 * --hang-timeout, and at its end, before it is said to hang. */
static void
look_further(struct hang_watch *w, uint32_t r, int64_t now)
{
	int64_t time = w->job->opt.hang_timeout;
	struct seen *s = &w->seen[r];
	int64_t due = w->rank[r].sign_ns + (s->asked_ns == 0 ? time / 2 : time);

	if (due < s->asked_ns + time / 4)
		due = s->asked_ns + time / 4;
	if (s->sure)
		return;
	if (now >= due && w->asked >= ASKED) {
		w->more = true;
	} else if (now >= due) {
		ask(w, r, now);
		due = s->asked_ns + time / 4;
	}
	if (!s->sure)
		w->rank[r].sure_ns = due > now ? due : now + ASK_AGAIN;
}

static void
look_at_processes(struct hang_watch *w, uint32_t r, int64_t now)
{
	struct seen *s = &w->seen[r];
	struct usage u = { 0 };

	if (!usage_near(w->job->rank[r].pid, &u))
		return;
	if (now > s->looked_ns && s->looked_ns != 0)
		s->share = (double)(u.cpu_ns - s->last_cpu_ns) /
			(double)(now - s->looked_ns);
	s->last_cpu_ns = u.cpu_ns;
	s->looked_ns = now;
	w->rank[r].excused = u.stopped || is_held(w, r);
	if (w->rank[r].excused || u.running ||
		works(u.cpu_ns - s->cpu_ns, now - s->at_ns))
		show_life(w, r, now);
	else if (u.others > 0)
		look_further(w, r, now);
}

/* Where all say at which step they are, that tells who is behind. */
static void
prefer_steps(struct hang_watch *w)
{
	const struct rank *rank = w->job->rank;

	for (uint32_t r = 0; r < job_size(w->job); r++)
		if (w->rank[r].lives && rank[r].step == -1)
			return;
	for (uint32_t r = 0; r < job_size(w->job); r++)
		w->rank[r].told = (uint64_t)rank[r].step + 1;
}

/* Who waits for one that is held up is not to blame. */
static void
excuse_all(struct hang_watch *w, int64_t now)
{
	for (uint32_t r = 0; r < job_size(w->job); r++) {
		show_life(w, r, now);
		w->rank[r].told_ns = now;
	}
}

static bool
any_excused(const struct hang_watch *w)
{
	for (uint32_t r = 0; r < job_size(w->job); r++)
		if (w->rank[r].lives && w->rank[r].excused)
			return true;
	return false;
}

static void
look(struct hang_watch *w, int64_t now)
{
	struct job *job = w->job;

	w->unread = is_unread(job);
	w->asked = 0;
	w->more = false;
	for (uint32_t r = 0; r < job_size(job); r++) {
		w->rank[r].lives = job->rank[r].pidfd != -1;
		if (!w->rank[r].lives)
			continue;
		w->rank[r].excused = false;
		w->rank[r].sure_ns = 0;
		look_at_words(w, r, now);
		look_at_processes(w, r, now);
	}
	prefer_steps(w);
	if (any_excused(w))
		excuse_all(w, now);
}

/* A debugger, or strace, that lets it run. */
static bool
is_traced(pid_t pid)
{
	char path[64], text[2048], *at;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd_read_small(path, text, sizeof(text));
	at = strstr(text, "\nTracerPid:");
	return at != NULL && strtol(at + strlen("\nTracerPid:"), NULL, 10) != 0;
}

/* True if somebody looks at one of them: all clocks begin anew. */
static bool
excuse_traced(struct hang_watch *w, int64_t now)
{
	for (uint32_t r = 0; r < job_size(w->job); r++)
		if (w->rank[r].lives && is_traced(w->job->rank[r].pid)) {
			excuse_all(w, now);
			return true;
		}
	return false;
}

/* --- the words ------------------------------------------------------------ */

static bool
hangs(const struct job *job, uint32_t r, uint32_t arg)
{
	(void)arg;
	return job->sup->hang->rank[r].hangs;
}

static void
say_which(struct hang_watch *w)
{
	struct job *job = w->job;
	struct buf who = { 0 };
	uint32_t n = who_put(job, hangs, 0, &who);
	char time[32];

	clock_text(w->hung->silent_ns, time, sizeof(time));
	if (w->hung->rule == HANG_SILENT)
		logs_say(job->sup->logs,
			"xrun: %s hang%s: no output, no progress and no processor time for %s",
			buf_text(&who), n == 1 ? "s" : "", time);
	else if (w->hung->rule == HANG_UNEVEN)
		logs_say(job->sup->logs,
			"xrun: %s hang%s: behind the others, and told of no progress for %s",
			buf_text(&who), n == 1 ? "s" : "", time);
	else
		logs_say(job->sup->logs,
			"xrun: %s hang%s: nobody told of progress for %s",
			buf_text(&who), n == 1 ? "s" : "", time);
	buf_fini(&who);
}

/* Where rank @r sleeps in the kernel. */
static void
find_place(const struct job *job, uint32_t r, char place[HANG_PLACE])
{
	struct usage u = { 0 };
	char path[64];

	usage_tree(job->rank[r].pid, &u);
	snprintf(path, sizeof(path), "/proc/%d/wchan", (int)u.leaf);
	if (fd_read_small(path, place, HANG_PLACE) == 0 ||
		strcmp(place, "0") == 0)
		snprintf(place, HANG_PLACE, "%s", u.running ? "runs" : "-");
}

static void
put_age(struct buf *out, int64_t since, int64_t now)
{
	char time[32];

	buf_fmt(out, "  %8s",
		since == 0 ? "-" : clock_text(now - since, time, sizeof(time)));
}

static bool
all_hang(const struct hang_watch *w)
{
	for (uint32_t r = 0; r < job_size(w->job); r++)
		if (w->rank[r].lives && !w->rank[r].hangs)
			return false;
	return true;
}

/* If all ranks hang, those that differ by their stacks, or, without stacks, by their place
 * in the kernel, are marked. */
static void
mark_differing(struct hang_watch *w, const char *summary)
{
	uint32_t count = job_size(w->job);
	char(*place)[HANG_PLACE];

	w->any_differs = false;
	if (!all_hang(w))
		return;
	w->any_differs = hang_differ_by_stacks(w->job, summary, w->differs);
	place = calloc(count, sizeof(*place));
	if (w->any_differs || summary[0] != '\0' || place == NULL) {
		free(place);
		return;
	}
	for (uint32_t r = 0; r < count; r++)
		if (w->rank[r].lives)
			find_place(w->job, r, place[r]);
	w->any_differs = hang_differ_by_place(place, count, w->differs);
	free(place);
}

/* Returns true if the rank has a star, and stands in front. */
static bool
is_first(const struct hang_watch *w, uint32_t r)
{
	return w->any_differs ? w->differs[r] : w->rank[r].hangs;
}

static void
say_row(struct hang_watch *w, uint32_t r, int64_t now)
{
	const struct job *job = w->job;
	struct buf row = { 0 };
	char place[HANG_PLACE];

	buf_fmt(&row, "  %c %4u", is_first(w, r) ? '*' : ' ', job_rank(job, r));
	if (job->rank[r].step == -1)
		buf_put_text(&row, "         -");
	else
		buf_fmt(&row, "  %8lld", (long long)job->rank[r].step);
	put_age(&row, w->seen[r].bytes_ns, now);
	put_age(&row, w->rank[r].sign_ns, now);
	buf_fmt(&row, "  %4.0f%%  ", 100 * w->seen[r].share);
	find_place(job, r, place);
	buf_put_text(&row, place);
	logs_say(job->sup->logs, "%s", buf_text(&row));
	buf_fini(&row);
}

/* The ranks that hang have a star and come first; if all hang, the ranks that differ. */
static void
say_table(struct hang_watch *w, const char *summary)
{
	uint32_t rows = 0, lives = 0;

	mark_differing(w, summary);
	logs_say(w->job->sup->logs,
		"    rank      step  last line      life   CPU  waits in");
	for (int round = 0; round < 2; round++)
		for (uint32_t r = 0; r < job_size(w->job); r++) {
			if (!w->rank[r].lives || is_first(w, r) != (round == 0))
				continue;
			lives++;
			if (rows < ROWS) {
				rows++;
				say_row(w, r, w->verdict_ns);
			}
		}
	if (lives > rows)
		logs_say(w->job->sup->logs, "    and %u ranks more",
			lives - rows);
}

/* --- acting --------------------------------------------------------------- */

/* The stacks, if there are any, are printed before the table. */
static void
end_job(struct job *job, bool taken, const char *path, const char *summary)
{
	(void)taken;
	(void)path;
	if (job->sup->hang != NULL && job->sup->phase == PHASE_RUN &&
		!job->opt.quiet)
		say_table(job->sup->hang, summary);
	if (job->stop_ns == 0 && job->sup->phase == PHASE_RUN)
		stop_job(job, CAUSE_HANG);
}

static void
act(struct hang_watch *w, int64_t now)
{
	struct job *job = w->job;

	for (uint32_t r = 0; r < job_size(job); r++)
		job->rank[r].hung = w->rank[r].hangs;
	w->hung->silent_ns =
		hang_age(w->rank, job_size(job), w->hung->rule, now);
	bus_tell(job->sup->bus, BUS_JOB_HANG, 0);
	w->verdict_ns = now;
	if (!job->opt.quiet)
		say_which(w);
	if (!(options_stacks_on(&job->opt) & STACKS_ON_HANG) ||
		!stacks_begin(job, "--hang-timeout", end_job))
		end_job(job, false, NULL, "");
}

static void
arm(struct hang_watch *w, int64_t now, int64_t due)
{
	int64_t in = due == INT64_MAX ? w->beat_ns : due - now;

	timer_arm(w->timer, in < 0 ? 0 : in < w->beat_ns ? in : w->beat_ns);
}

static void
on_beat(void *ctx)
{
	struct hang_watch *w = ctx;
	struct job *job = w->job;
	int64_t late = timer_late(w->timer), now = clock_now(), due;

	if (job->stop_ns != 0 || job->sup->phase != PHASE_RUN)
		return;
	if (late >= LATE_NS)
		hang_stood(job, late);
	look(w, now);
	w->hung->rule = hang_judge(w->rank, job_size(job),
		job->opt.hang_timeout, now, &due);
	if (w->hung->rule != HANG_NO && excuse_traced(w, now))
		w->hung->rule = HANG_NO;
	if (w->more && due > now + ASK_AGAIN)
		due = now + ASK_AGAIN;
	if (w->hung->rule == HANG_NO) {
		arm(w, now, due);
		return;
	}
	act(w, now);
}

/* --- its life ------------------------------------------------------------- */

/* A rank that was started just now lives. */
static void
begin_clocks(struct hang_watch *w)
{
	int64_t now = clock_now();

	for (uint32_t r = 0; r < job_size(w->job); r++) {
		w->rank[r].sign_ns = w->rank[r].told_ns = now;
		w->seen[r].at_ns = now;
		w->seen[r].bytes = bytes_of(w->job, r);
		w->seen[r].tick = slots_tick(w->job, r);
	}
}

static struct hang_watch *
watch_new(struct job *job)
{
	struct hang_watch *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->job = job;
	w->hung = &job->sup->hung;
	w->seen = calloc(job_size(job), sizeof(*w->seen));
	w->rank = calloc(job_size(job), sizeof(*w->rank));
	w->differs = calloc(job_size(job), sizeof(*w->differs));
	w->timer = timer_open(job->sup->loop, on_beat, w);
	job->sup->hang = w;
	if (w->seen != NULL && w->rank != NULL && w->differs != NULL &&
		w->timer != NULL)
		return w;
	hang_close(job);
	return NULL;
}

void
hang_begin(struct job *job)
{
	struct hang_watch *w;

	if (job->opt.hang_timeout == 0 || job->sup->hang != NULL)
		return;
	w = watch_new(job);
	if (w == NULL) {
		stop_fail(job, "no memory for --hang-timeout");
		return;
	}
	w->beat_ns = job->opt.heartbeat;
	begin_clocks(w);
	timer_arm(w->timer, w->beat_ns);
}

void
hang_stood(struct job *job, int64_t ns)
{
	struct hang_watch *w = job->sup->hang;

	for (uint32_t r = 0; w != NULL && r < job_size(job); r++) {
		w->rank[r].sign_ns += ns;
		w->rank[r].told_ns += ns;
		w->seen[r].at_ns += ns;
		if (w->seen[r].asked_ns != 0)
			w->seen[r].asked_ns += ns;
	}
}

void
hang_close(struct job *job)
{
	struct hang_watch *w = job->sup->hang;

	if (w == NULL)
		return;
	timer_close(w->timer);
	free(w->seen);
	free(w->rank);
	free(w->differs);
	free(w);
	job->sup->hang = NULL;
}
