/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - see report.h. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/host.h"
#include "base/json.h"
#include "base/signo.h"
#include "launcher/job/outcome.h"
#include "launcher/job/sup.h"
#include "launcher/job/words.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/orphan.h"
#include "launcher/keeper/report_file.h"
#include "launcher/state/retain.h"
#include "launcher/tell/attempts.h"
#include "launcher/tell/bus.h"
#include "launcher/tell/figures.h"
#include "launcher/tell/gauges.h"
#include "launcher/tell/hook.h"
#include "launcher/tell/http.h"
#include "launcher/tell/hung.h"
#include "launcher/tell/metrics_file.h"
#include "launcher/tell/report.h"
#include "launcher/tell/slots.h"
#include "launcher/tell/slow.h"
#include "launcher/tell/stacks.h"
#include "proc/cgroup.h"

#define MUCH (64 << 20) /* bytes: room may be short soon */
/* With a frozen file system; the less if it has been waited for already. */
#define PATIENCE       (5 * NS_PER_S)
#define PATIENCE_AGAIN NS_PER_S

struct parcel {
	struct job *job;
	bool state;  /* write job.json */
	bool report; /* write the file of --report */
	bool latest;
	bool end;        /* of the job: there is no other time */
	int exit_status; /* with @end */
	struct buf text;
};

static void
put_time(struct json *j, const char *key, int64_t wall_ns)
{
	char stamp[40];

	json_text(j, key, clock_stamp(wall_ns, stamp, sizeof(stamp)));
}

static void
put_boot(struct json *j)
{
	char id[64];

	if (host_boot(id, sizeof(id))[0] != '\0')
		json_text(j, "boot", id);
}

/* For whoever has to end what is left of this job. */
static void
put_cgroup(struct json *j, const struct job *job)
{
	char *path = cgroup_path(0), id[LEAF_ID_MAX], lineage[24];

	if (path != NULL)
		json_text(j, "cgroup", path);
	if (job->page->record.lineage != 0) {
		snprintf(lineage, sizeof(lineage), "%016llx",
			(unsigned long long)job->page->record.lineage);
		json_text(j, "lineage", lineage);
		json_int(j, "ticks", (int64_t)job->page->record.ticks);
	}
	if (job->page->leaves.on)
		json_text(j, "rank_cgroups", leaf_id(&job->page->leaves, id));
	free(path);
}

/* What keeps the job from going on, if xrun knows it. */
static void
report_put_waiting(struct json *j, const struct job *job)
{
	bool disk = false;

	for (uint32_t r = 0; r < job_size(job) && !disk; r++)
		disk = job->rank[r].full != 0;
	if (disk)
		json_text(j, "waiting", "disk");
}

static void
put_beginning(struct json *j, const struct job *job, pid_t pid)
{
	char cwd[PATH_MAX];

	json_int(j, "v", 1);
	bus_put_job(j, job, pid);
	put_boot(j);
	put_time(j, "start", job->begun_wall);
	if (job->part_count == 1 && job->parts[0].dir != NULL)
		json_text(j, "cwd", job->parts[0].dir);
	else
		json_text(j, "cwd", getcwd(cwd, sizeof(cwd)));
}

static void
put_ending_of(struct json *j, const struct rank *r)
{
	char name[16];

	if (r->failed_step != SPAWN_OK) {
		json_text(j, "step", spawn_step_name(r->failed_step));
		json_text(j, "error", strerror(r->failed_sys));
	} else if (r->death == 0) {
		json_bool(j, "started", r->pid != 0);
	} else if (WIFSIGNALED(r->status)) {
		json_text(j, "signal",
			signo_name(WTERMSIG(r->status), name, sizeof(name)));
		json_bool(j, "core", WCOREDUMP(r->status));
	}
}

/* What is not in the files, or was not shown; most jobs have none of it. */
static void
put_gap(struct json *j, const char *key, uint64_t bytes)
{
	if (bytes > 0)
		json_int(j, key, (int64_t)bytes);
}

/* What its end told, of itself and its children. */
static void
put_usage(struct json *j, const struct rank *rank)
{
	json_real(j, "cpu_user", clock_seconds(rank->usage.ru_utime));
	json_real(j, "cpu_system", clock_seconds(rank->usage.ru_stime));
	json_int(j, "rss_peak_bytes", rank->usage.ru_maxrss * 1024);
}

/* Of a rank that has ended its last word is so long before its end. */
static void
put_progress(struct json *j, const struct job *job, uint32_t r,
	const struct slow *slow)
{
	const struct rank *rank = &job->rank[r];
	int64_t until = rank->ended_ns != 0 ? rank->ended_ns : clock_now();

	if (until < rank->told_ns)
		until = rank->told_ns;
	json_open_object(j, "progress");
	if (rank->step != -1)
		json_int(j, "step", rank->step);
	if (rank->total != -1)
		json_int(j, "total", rank->total);
	if (slow != NULL && !isnan(slow->median[r])) {
		json_real(j, "step_seconds", slow->median[r]);
		json_bool(j, "slow", slow->is[r]);
	}
	if (rank->metrics != NULL)
		json_raw(j, "metrics",
			(struct span){ rank->metrics, strlen(rank->metrics) });
	if (rank->unheard > 0)
		json_int(j, "unheard", rank->unheard);
	json_real(j, "seconds_ago", (double)(until - rank->told_ns) / NS_PER_S);
	json_close_object(j);
}

static void
put_rank(struct json *j, const struct job *job, uint32_t r,
	const struct slow *slow)
{
	const struct rank *rank = &job->rank[r];

	json_open_object(j, NULL);
	json_int(j, "rank", job_rank(job, r));
	if (job->part_count > 1)
		json_int(j, "part", job_part_index(job, job_part(job, r)));
	json_int(j, "pid", rank->pid);
	json_text(j, "device", plan_deal(&job->plan, r)->text);
	if (bind_of(&job->processors.bind, r) != NULL)
		json_text(j, "cpus", bind_of(&job->processors.bind, r)->text);
	if (outcome_is_unborn(rank))
		json_text(j, "exit", NULL);
	else
		json_int(j, "exit", outcome_rank_status(rank));
	put_ending_of(j, rank);
	if (rank->oom != OOM_NO)
		json_text(j, "oom", oom_kind_name(rank->oom));
	json_bool(j, "stopped", rank->after_stop);
	json_int(j, "death", rank->death);
	if (rank->ended_ns != 0)
		json_real(j, "seconds",
			(double)(rank->ended_ns - rank->started_ns) / NS_PER_S);
	put_usage(j, rank);
	if (rank->told_ns != 0)
		put_progress(j, job, r, slow);
	figures_put(j, rank);
	gauges_put(j, rank);
	json_int(j, "stdout_bytes",
		(int64_t)logs_bytes(job->sup->logs, r * RAW_STREAMS));
	json_int(j, "stderr_bytes",
		(int64_t)logs_bytes(job->sup->logs, r * RAW_STREAMS + 1));
	put_gap(j, "dropped_bytes",
		logs_dropped(job->sup->logs, r * RAW_STREAMS) +
			logs_dropped(job->sup->logs, r * RAW_STREAMS + 1));
	put_gap(j, "unseen_bytes",
		logs_unseen(job->sup->logs, r * RAW_STREAMS) +
			logs_unseen(job->sup->logs, r * RAW_STREAMS + 1));
	json_close_object(j);
}

static void
put_rank_now(struct json *j, const struct job *job, uint32_t r,
	const struct slow *slow)
{
	const struct rank *rank = &job->rank[r];
	int64_t until = rank->ended_ns != 0 ? rank->ended_ns : clock_now();

	json_open_object(j, NULL);
	json_int(j, "rank", job_rank(job, r));
	if (job->part_count > 1)
		json_int(j, "part", job_part_index(job, job_part(job, r)));
	json_int(j, "pid", rank->pid);
	json_text(j, "state", rank_state_name(rank->state));
	if (rank->full != 0)
		json_text(j, "waiting", "disk");
	json_text(j, "device", plan_deal(&job->plan, r)->text);
	if (rank->pid != 0)
		json_real(j, "seconds",
			(double)(until - rank->started_ns) / NS_PER_S);
	if (rank->ended_ns != 0)
		json_int(j, "exit", outcome_rank_status(rank));
	if (rank->ended_ns != 0 || rank->failed_step != SPAWN_OK)
		put_ending_of(j, rank);
	if (rank->ended_ns != 0)
		put_usage(j, rank);
	json_int(j, "stdout_bytes",
		(int64_t)logs_bytes(job->sup->logs, r * RAW_STREAMS));
	json_int(j, "stderr_bytes",
		(int64_t)logs_bytes(job->sup->logs, r * RAW_STREAMS + 1));
	json_bool(j, "ready", rank->ready);
	if (rank->told_ns != 0)
		put_progress(j, job, r, slow);
	figures_put(j, rank);
	gauges_put(j, rank);
	json_close_object(j);
}

typedef void put_rank_fn(struct json *j, const struct job *job, uint32_t r,
	const struct slow *slow);

static void
put_ranks(struct json *j, const struct job *job, put_rank_fn *put)
{
	struct slow slow;
	bool any = slow_look(job, &slow);

	json_open_array(j, "rank");
	for (uint32_t i = 0; i < job_size(job); i++)
		put(j, job, i, any ? &slow : NULL);
	json_close_array(j);
	if (any)
		slow_fini(&slow);
}

static const char *
phase_name(const struct job *job)
{
	if (job->sup->phase >= PHASE_WRITE && !again_is_due(&job->page->again))
		return "ended";
	if (job->sup->phase != PHASE_RUN)
		return "ending";
	if (job->stop_ns == 0 && job->started == 0)
		return "waiting";
	return job->stop_ns != 0 ? "stopping" : "running";
}

void
report_put_now(struct job *job, struct buf *out)
{
	struct json j;

	for (uint32_t r = 0; r < job_size(job); r++)
		if (job->rank[r].ended_ns == 0)
			slots_look(job, r);
	json_init(&j, out);
	json_open_object(&j, NULL);
	put_beginning(&j, job, getppid());
	json_text(&j, "phase", phase_name(job));
	report_put_waiting(&j, job);
	json_int(&j, "restarts", job->page->again.restarts);
	if (job->sup->phase >= PHASE_WRITE &&
		!again_is_due(&job->page->again)) {
		json_int(&j, "exit", outcome_of(job).exit_status);
		json_text(&j, "reason", outcome_of(job).reason);
	}
	if (job->state.attempt != NULL)
		json_text(&j, "output", job->state.attempt);
	http_put(&j, job);
	put_ranks(&j, job, put_rank_now);
	json_close_object(&j);
}

static void
put_cause(struct json *j, const struct job *job, const struct outcome *o)
{
	char name[16];

	if (job->cause == CAUSE_SIGNAL)
		json_text(j, "signal",
			signo_name(job->cause_signal, name, sizeof(name)));
	if (job->cause == CAUSE_HANG)
		hung_put(j, job);
	if (job->cause == CAUSE_XRUN)
		json_text(j, "error", job->cause_text);
	else if (job->unwritten[0] != '\0' && strcmp(o->reason, "xrun") == 0)
		json_text(j, "error", job->unwritten);
}

static void
put_end(struct json *j, const struct job *job)
{
	struct outcome o = outcome_of(job);

	put_time(j, "end", job->begun_wall + (job->ended_ns - job->begun_ns));
	json_int(j, "exit", o.exit_status);
	json_text(j, "reason", o.reason);
	put_cause(j, job, &o);
	if (o.culprit != OUTCOME_NOBODY)
		json_int(j, "culprit", job_rank(job, o.culprit));
	json_int(j, "failed", o.failed);
	json_int(j, "left_behind", job->left);
	json_int(j, "bytes", (int64_t)logs_total(job->sup->logs));
	put_gap(j, "lost_bytes", outcome_lost(job));
	if (stacks_path(job) != NULL)
		json_text(j, "stacks", stacks_path(job));
	put_gap(j, "bytes_before", (uint64_t)job->state.bytes_before);
	attempts_put_past(j, job);
	put_ranks(j, job, put_rank);
}

/* From now on the job has ended so, should xrun-super not live to say it. */
static void
tell(const struct job *job, int exit_status)
{
	__atomic_store_n(&job->page->told,
		KEEPER_VERDICT | (exit_status & 0xff), __ATOMIC_RELEASE);
}

/* Without a copy of the text only what is written is told. */
static int
write_report(const struct parcel *p, bool prepared)
{
	int sys = prepared ? report_file_write(p->job) :
			     report_file_put(p->job->report_fd, &p->text);

	if (sys == 0)
		tell(p->job, p->exit_status);
	fault(FAULT_REPORT_AFTER, FAULT_ANY);
	return sys;
}

static void
deliver(void *ctx)
{
	struct parcel *p = ctx;
	struct job *job = p->job;
	bool prepared = p->report && report_file_prepare(job, &p->text);

	if (p->end && (!p->report || prepared))
		tell(job, p->exit_status);
	/* That of the beginning is replaced by that of the end. */
	if (p->state &&
		state_write(&job->state, "job.json", p->text.data,
			p->text.len) == -1 &&
		p->end)
		bus_lose(&job->state_sys, errno);
	if (p->latest)
		state_latest(&job->state);
	if (p->state && p->end) {
		state_close(&job->state);
		__atomic_test_and_set(&job->sup->writing.done,
			__ATOMIC_RELEASE);
	}
	if (p->report)
		__atomic_store_n(&job->report_sys, write_report(p, prepared),
			__ATOMIC_SEQ_CST);
	buf_fini(&p->text);
	free(p);
}

/* False if there is no memory for it. */
static bool
post(struct job *job, const struct parcel *parcel, bool end)
{
	struct parcel *p = malloc(sizeof(*p));
	struct json j;

	if (p == NULL)
		return false;
	*p = *parcel;
	p->job = job;
	p->end = end;
	json_init(&j, &p->text);
	json_open_object(&j, NULL);
	put_beginning(&j, job, getppid());
	if (end) {
		p->exit_status = outcome_of(job).exit_status;
		put_end(&j, job);
	} else {
		put_cgroup(&j, job);
		report_put_waiting(&j, job);
	}
	json_close_object(&j);
	buf_put_char(&p->text, '\n');
	if (p->text.bad == XR_OK && work_post(job->sup->work, deliver, p))
		return true;
	buf_fini(&p->text);
	free(p);
	return false;
}

static void
tidy(struct job *job, work_fn *fn)
{
	char *root = job->state.root == NULL ? NULL : strdup(job->state.root);

	if ((root == NULL && job->state.root != NULL) ||
		!work_post(job->sup->work, fn, root))
		free(root);
}

/* The helper thread ends what others left and removes old folders. A short job
 * looks for lost jobs only if there are others at all. */
static void
retain_once(struct job *job, bool lasting)
{
	if (job->sup->retained || job->page->again.restarts > 0)
		return;
	job->sup->retained = true;
	if (lasting)
		work_post(job->sup->work, record_complete, job);
	if (lasting || job->state.others)
		tidy(job, orphan_run);
	if (job->state.root != NULL)
		tidy(job, retain_run);
}

static void
point_to(void *job)
{
	state_latest(&((struct job *)job)->state);
}

void
report_latest(struct job *job)
{
	if (!job->sup->latest)
		job->sup->latest = work_post(job->sup->work, point_to, job);
}

void
report_job(struct job *job)
{
	if (!post(job, &(struct parcel){ .state = true }, false))
		bus_lose(&job->state_sys, ENOMEM);
}

void
report_begin(void *ctx)
{
	struct job *job = ctx;

	if (job->sup->phase != PHASE_RUN)
		return;
	if (job->state.dir_fd == -1) {
		retain_once(job, true);
		return;
	}
	/* With -d, and of a further attempt, it is there, or is to come. */
	if (job->detach == NULL && job->page->again.restarts == 0)
		report_job(job);
	logs_tell_first(job->sup->logs);
	if (logs_total(job->sup->logs) > 0)
		report_latest(job);
	retain_once(job, true);
}

const char *
report_lost_text(const struct job *job, int sys)
{
	if (sys == ETIMEDOUT && job->sup->until_ns != 0)
		return "not written in time";
	return sys == ETIMEDOUT ? "not written within 5 s" : strerror(sys);
}

/* Said once. What it means for the job is outcome.c's. */
static void
say_lost(struct job *job, const char *option, const char *path, int sys)
{
	if (sys == 0)
		return;
	if (words_have_room())
		words_line("%s: %s: %s; it is not complete", option, path,
			report_lost_text(job, sys));
	if (job->unwritten[0] == '\0')
		snprintf(job->unwritten, sizeof(job->unwritten), "%s: %s: %s",
			option, path, report_lost_text(job, sys));
}

static int
lost_events(const struct job *job)
{
	return job->events_fd == -1 ?
		0 :
		__atomic_load_n(&job->events_sys, __ATOMIC_SEQ_CST);
}

void
report_written(void *ctx)
{
	struct job *job = ctx;

	notes_send(logs_notes(job->sup->logs), NOTE_WRITTEN, PHASE_WRITE, 0);
}

bool
report_wait(struct job *job)
{
	struct sup *sup = job->sup;
	int64_t most = sup->output_dropped ? PATIENCE_AGAIN : PATIENCE;

	if (sup->writing.late || work_idle(sup->work))
		return false;
	work_post_own(sup->work, &sup->writing.written, report_written, job);
	if (!sup->writing.waits &&
		(sup->until_ns == 0 || timer_left(sup->patience) > most))
		timer_arm(sup->patience, most);
	sup->writing.waits = true;
	work_push(sup->work);
	return true;
}

/* All that was told goes to the files; true if that is to be waited for. */
static bool
send_events(struct job *job, bool (*flush)(struct bus *, bool))
{
	if (!flush(job->sup->bus, job->sup->writing.keep))
		bus_lose(&job->events_sys, ENOMEM);
	return job->events_fd != -1 && lost_events(job) == 0 &&
		report_wait(job);
}

static void
note_late(struct job *job)
{
	if (job->sup->writing.late && job->events_fd != -1)
		bus_lose(&job->events_sys, ETIMEDOUT);
}

/* The last event and the report say how it ended, a lost file included. */
static bool
send_last_event(struct job *job)
{
	int lost;

	note_late(job);
	lost = lost_events(job);
	say_lost(job, "--events", job->opt.events, lost);
	job->sup->writing.told = lost != 0;
	bus_tell(job->sup->bus,
		again_is_due(&job->page->again) ? BUS_JOB_RESTART : BUS_JOB_END,
		0);
	return send_events(job, bus_flush_last);
}

static bool
send_report(struct job *job)
{
	bool keep = job->sup->writing.keep;
	bool over = !again_is_due(&job->page->again);
	struct parcel p = {
		.state = keep && over,
		.latest = keep && !job->sup->latest,
		.report = job->report_fd != -1 && over,
	};

	note_late(job);
	if (!job->sup->writing.told)
		say_lost(job, "--events", job->opt.events, lost_events(job));
	job->report_sys = p.report ? ETIMEDOUT : 0; /* until it is there */
	if ((p.state || p.report) && !post(job, &p, true)) {
		job->report_sys = p.report ? ENOMEM : 0;
		bus_lose(&job->state_sys, ENOMEM);
	}
	metrics_file_last(job);
	if (keep)
		retain_once(job, false);
	else if (job->state.others && !job->sup->retained)
		tidy(job, orphan_run);
	if (job->state.root != NULL && logs_total(job->sup->logs) > MUCH)
		retain_soon(job->state.root);
	return report_wait(job);
}

static void
say_state_lost(const struct job *job)
{
	int sys = __atomic_load_n(&job->state_sys, __ATOMIC_SEQ_CST);

	if (sys != 0 && words_have_room())
		words_line("%s: job.json or events.jsonl: %s; not complete",
			job->state.dir, report_lost_text(job, sys));
}

static void
say_rest(struct job *job)
{
	say_lost(job, "--report", job->opt.report,
		__atomic_load_n(&job->report_sys, __ATOMIC_SEQ_CST));
	if (!again_is_due(&job->page->again)) {
		tell(job, outcome_of(job).exit_status);
		job->page->closed = 1;
	}
	if (!job->sup->writing.keep)
		return;
	if (job->sup->writing.late &&
		!__atomic_load_n(&job->sup->writing.done, __ATOMIC_ACQUIRE))
		bus_lose(&job->state_sys, ETIMEDOUT);
	say_state_lost(job);
}

bool
report_next(struct job *job)
{
	struct writing *w = &job->sup->writing;
	bool waits = false;

	while (!waits && w->stage != WRITE_OVER)
		switch (w->stage) {
		case WRITE_EVENTS:
			w->stage = WRITE_LAST_EVENT;
			waits = send_events(job, bus_flush);
			break;
		case WRITE_LAST_EVENT:
			w->stage = WRITE_REPORT;
			waits = send_last_event(job);
			break;
		case WRITE_REPORT:
			w->stage = WRITE_REST;
			waits = send_report(job);
			break;
		case WRITE_REST:
			w->stage = WRITE_HOOKS;
			say_rest(job);
			break;
		case WRITE_HOOKS:
			waits = hook_wait(job);
			w->stage = waits ? WRITE_HOOKS : WRITE_OVER;
			break;
		case WRITE_OVER:
			break;
		}
	return !waits;
}

void
report_refused(const struct job *job, int exit_status, const char *why)
{
	struct buf text = { 0 };
	struct json j;
	int sys;

	json_init(&j, &text);
	json_open_object(&j, NULL);
	put_beginning(&j, job, getpid());
	put_time(&j, "end", clock_wall());
	json_int(&j, "exit", exit_status);
	json_text(&j, "reason", "refused");
	json_bytes(&j, "error", (struct span){ why, strcspn(why, "\t") });
	json_close_object(&j);
	buf_put_char(&text, '\n');
	sys = text.bad != XR_OK ? ENOMEM :
				  report_file_put(job->report_fd, &text);
	if (sys != 0)
		words_line("--report: %s: %s", job->opt.report, strerror(sys));
	buf_fini(&text);
}
