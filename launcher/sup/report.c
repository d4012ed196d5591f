/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - see report.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/signo.h"
#include "launcher/job/outcome.h"
#include "launcher/state/retain.h"
#include "launcher/sup/report.h"
#include "launcher/sup/sup.h"

struct parcel {
	const struct state *state; /* write job.json there; NULL: do not */
	int report;                /* write there; -1: do not */
	bool latest;
	struct buf text;
};

static double
seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void
put_time(struct json *j, const char *key, int64_t wall_ns)
{
	char stamp[40];

	json_text(j, key, clock_stamp(wall_ns, stamp, sizeof(stamp)));
}

static void
put_boot(struct json *j)
{
	char id[64] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd != -1 && fd_read_some(fd, id, 36) == 36)
		json_text(j, "boot", id);
	fd_close(fd);
}

static void
put_beginning(struct json *j, const struct job *job)
{
	char host[256] = "", cwd[PATH_MAX];

	gethostname(host, sizeof(host) - 1);
	json_int(j, "v", 1);
	json_text(j, "job", job->state.id);
	json_text(j, "host", host);
	put_boot(j);
	json_int(j, "pid", getppid());
	put_time(j, "start", job->begun_wall);
	json_text(j, "cwd", getcwd(cwd, sizeof(cwd)));
	json_open_array(j, "argv");
	for (char *const *a = job->argv; *a != NULL; a++)
		json_bytes(j, NULL, (struct span){ *a, strlen(*a) });
	json_close_array(j);
	json_int(j, "ranks", job_size(job));
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

static void
put_rank(struct json *j, const struct job *job, uint32_t r)
{
	const struct rank *rank = &job->rank[r];

	json_open_object(j, NULL);
	json_int(j, "rank", job_rank(job, r));
	json_int(j, "pid", rank->pid);
	json_text(j, "device", plan_deal(&job->plan, r)->text);
	json_int(j, "exit", outcome_rank_status(rank));
	put_ending_of(j, rank);
	json_bool(j, "stopped", rank->after_stop);
	json_int(j, "death", rank->death);
	if (rank->ended_ns != 0)
		json_real(j, "seconds",
			(double)(rank->ended_ns - rank->started_ns) / NS_PER_S);
	json_real(j, "cpu_user", seconds(rank->usage.ru_utime));
	json_real(j, "cpu_system", seconds(rank->usage.ru_stime));
	json_int(j, "rss_peak_bytes", rank->usage.ru_maxrss * 1024);
	json_int(j, "stdout_bytes",
		(int64_t)logs_bytes(job->sup->logs, r * RAW_STREAMS));
	json_int(j, "stderr_bytes",
		(int64_t)logs_bytes(job->sup->logs, r * RAW_STREAMS + 1));
	json_close_object(j);
}

static void
put_cause(struct json *j, const struct job *job)
{
	char name[16];

	if (job->cause == CAUSE_SIGNAL)
		json_text(j, "signal",
			signo_name(job->cause_signal, name, sizeof(name)));
	if (job->cause == CAUSE_XRUN)
		json_text(j, "error", job->cause_text);
}

static void
put_end(struct json *j, const struct job *job)
{
	struct outcome o = outcome_of(job);

	put_time(j, "end", job->begun_wall + (job->ended_ns - job->begun_ns));
	json_int(j, "exit", o.exit_status);
	json_text(j, "reason", o.reason);
	put_cause(j, job);
	if (o.culprit != OUTCOME_NOBODY)
		json_int(j, "culprit", job_rank(job, o.culprit));
	json_int(j, "failed", o.failed);
	json_int(j, "left_behind", job->left);
	json_int(j, "bytes", (int64_t)logs_total(job->sup->logs));
	json_open_array(j, "rank");
	for (uint32_t i = 0; i < job_size(job); i++)
		put_rank(j, job, i);
	json_close_array(j);
}

/* What stood in the file goes only now that there is something new. */
static void
write_report(int fd, const struct buf *text)
{
	if (ftruncate(fd, 0) == -1 && errno != EINVAL)
		dprintf(STDERR_FILENO, "xrun: --report: %s\n", strerror(errno));
	if (fd_write_all(fd, text->data, text->len) == -1)
		dprintf(STDERR_FILENO, "xrun: --report: %s\n", strerror(errno));
}

static void
deliver(void *ctx)
{
	struct parcel *p = ctx;

	if (p->state != NULL)
		state_write(p->state, "job.json", p->text.data, p->text.len);
	if (p->latest)
		state_latest(p->state);
	if (p->report != -1)
		write_report(p->report, &p->text);
	buf_fini(&p->text);
	free(p);
}

static void
post(struct job *job, const struct parcel *parcel, bool end)
{
	struct parcel *p = malloc(sizeof(*p));
	struct json j;

	if (p == NULL)
		return;
	*p = *parcel;
	json_init(&j, &p->text);
	json_open_object(&j, NULL);
	put_beginning(&j, job);
	if (end)
		put_end(&j, job);
	json_close_object(&j);
	buf_put_char(&p->text, '\n');
	if (p->text.bad != XR_OK || !work_post(job->sup->work, deliver, p)) {
		buf_fini(&p->text);
		free(p);
	}
}

/* Old folders go while the helper thread has nothing better to do. */
static void
retain_once(struct job *job)
{
	char *root;

	if (job->sup->retained || job->state.root == NULL)
		return;
	job->sup->retained = true;
	root = strdup(job->state.root);
	if (root == NULL || !work_post(job->sup->work, retain_run, root))
		free(root);
}

void
report_begin(void *ctx)
{
	struct job *job = ctx;

	if (job->state.dir_fd == -1 || job->sup->phase != PHASE_RUN)
		return;
	post(job, &(struct parcel){ .state = &job->state, .report = -1 },
		false);
	retain_once(job);
}

void
report_end(struct job *job, bool keep)
{
	struct parcel p = {
		.state = keep ? &job->state : NULL,
		.latest = keep,
		.report = job->report_fd,
	};

	if (p.state != NULL || p.report != -1)
		post(job, &p, true);
	if (keep)
		retain_once(job);
}
