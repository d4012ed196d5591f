/* SPDX-License-Identifier: Apache-2.0 */
/* steer.c - see steer.h. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/gate.h"
#include "base/json.h"
#include "base/ranks.h"
#include "base/signo.h"
#include "base/status.h"
#include "launcher/ctl/server.h"
#include "launcher/host/check.h"
#include "launcher/job/outcome.h"
#include "launcher/keeper/keeper.h"
#include "launcher/log/thread.h"
#include "launcher/sup/counted.h"
#include "launcher/sup/keys.h"
#include "launcher/sup/next.h"
#include "launcher/sup/steer.h"
#include "launcher/sup/sup.h"
#include "launcher/sup/typist.h"
#include "launcher/tell/gauges.h"
#include "launcher/tell/http.h"
#include "launcher/tell/report.h"
#include "launcher/tell/slow.h"

#define MAKE_PATIENCE NS_PER_S
#define CLIENTS_MAX   64
#define METRICS_MAX   (4 << 10) /* bytes a rank */

/* --- making it ------------------------------------------------------------ */

/* On a thread that ends with it: neither loop nor helper thread waits for a
 * runtime folder that is frozen. Who has the folder is told last to the page,
 * for the keeper. */
static void *
make(void *ctx)
{
	struct job *job = ctx;
	struct ctl_place place = CTL_PLACE_NONE;
	struct xr_error err = { 0 };
	int fd = -1;

	ctl_place_sweep();
	if (ctl_place_open(&place, job->state.id, &err) == XR_OK) {
		job->page->ctl = place;
		fd = ctl_place_listen(&place);
		if (fd == -1)
			fail(&err, XR_E_SYS, "%s", strerror(errno));
		else
			http_make(job);
	}
	if (fd == -1)
		snprintf(job->sup->no_ctl, sizeof(job->sup->no_ctl), "%s",
			err.text);
	notes_send(logs_notes(job->sup->logs), NOTE_STEER, (uint32_t)fd, 0);
	return NULL;
}

void
steer_begin(struct job *job)
{
	pthread_t thread;
	int sys;

	if (job->sup->phase != PHASE_RUN || job->sup->has_socket)
		return;
	sys = thread_start(&thread, make, job);
	job->sup->making = sys == 0;
	if (sys == 0)
		return;
	snprintf(job->sup->no_ctl, sizeof(job->sup->no_ctl), "%s",
		strerror(sys));
	steer_made(job, -1);
}

void
steer_resume(struct job *job)
{
	int fd = job->page->listen;

	job->page->listen = -1;
	if (fd == -1)
		return;
	job->sup->has_socket = true;
	steer_made(job, fd);
}

static void *
close_one(void *fd)
{
	fd_close((int)(intptr_t)fd);
	return NULL;
}

void
steer_close(struct job *job, int fd)
{
	struct linger no = { 0 };
	pthread_t thread;

	(void)job;
	/* A socket waits for nobody, then; who sends many costs no thread each. */
	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &no, sizeof(no)) == 0 ||
		thread_start(&thread, close_one, (void *)(intptr_t)fd) != 0)
		fd_close(fd);
}

/* --- what is asked -------------------------------------------------------- */

static void
answer_done(struct ctl_client *from, int64_t id, int64_t count)
{
	struct control m = control_new(CONTROL_DONE, id);

	m.done.count = count;
	ctl_send(from, &m);
}

static void
on_status(struct job *job, struct ctl_client *from, const struct control *m)
{
	struct control answer = control_new(CONTROL_JOB, m->id);
	struct buf text = { 0 };

	report_put_now(job, &text);
	answer.job.status = (struct span){ buf_text(&text), text.len };
	ctl_send(from, &answer);
	buf_fini(&text);
}

static enum xr_status
chosen_ranks(const struct job *job, const char *text, struct ranks *set,
	struct xr_error *err)
{
	enum xr_status status = ranks_init(set, job->plan.size);

	for (uint32_t r = 0; status == XR_OK && text == NULL && r < set->size;
		r++)
		ranks_add(set, r);
	return status == XR_OK && text != NULL ? ranks_parse(set, text, err) :
						 status;
}

static void
on_signal(struct job *job, struct ctl_client *from, const struct control *m)
{
	struct ranks set = { 0 };
	struct xr_error err = { 0 };
	enum xr_status status;
	int sig = signo_parse(m->signal.signal);
	int64_t count = 0;

	status = sig == 0 ? fail(&err, XR_E_INVAL, "signal: '%.20s' is none",
				    m->signal.signal) :
			    chosen_ranks(job, m->signal.ranks, &set, &err);
	for (uint32_t r = 0; status == XR_OK && r < job_size(job); r++) {
		if (!ranks_has(&set, job_rank(job, r)) ||
			job->rank[r].pidfd == -1 || job->rank[r].foreign)
			continue;
		count += kill(-job->rank[r].pid, sig) == 0;
	}
	ranks_fini(&set);
	if (status == XR_OK)
		answer_done(from, m->id, count);
	else
		ctl_refuse(from, m->id, status, &err);
}

static void
on_stop(struct job *job, struct ctl_client *from, const struct control *m)
{
	struct control answer = control_new(CONTROL_DONE, m->id);

	if (job->sup->phase == PHASE_RUN) {
		stop_by_signal(job, SIGTERM);
	} else {
		next_told(job, SIGTERM);
		finish_hurry(job);
		job->sup->told = true;
	}
	answer.done.seconds = stop_seconds(job);
	ctl_send(from, &answer);
}

static void
on_restart(struct job *job, struct ctl_client *from, const struct control *m)
{
	struct xr_error err = { 0 };

	if (next_restart(job))
		answer_done(from, m->id, CONTROL_NONE);
	else
		ctl_refuse(from, m->id,
			fail(&err, XR_E_STATE,
				"restart: the job is being ended"),
			&err);
}

static void
on_wait(struct job *job, struct ctl_client *from, const struct control *m)
{
	struct xr_error err = { 0 };

	(void)job;
	if (!ctl_wait(from, m->id))
		ctl_refuse(from, m->id,
			fail(&err, XR_E_STATE, "wait: it waits already"), &err);
}

typedef void steer_fn(struct job *job, struct ctl_client *from,
	const struct control *m);

static steer_fn *const handlers[CONTROL_TYPES] = {
	[CONTROL_STATUS] = on_status,
	[CONTROL_SIGNAL] = on_signal,
	[CONTROL_STOP] = on_stop,
	[CONTROL_RESTART] = on_restart,
	[CONTROL_WAIT] = on_wait,
	[CONTROL_ATTACH] = typist_asked,
	[CONTROL_RESIZE] = typist_asked,
};

/* --- what ranks tell ------------------------------------------------------ */

/* Numbers by name, and nothing that would have to be nested. */
static bool
are_metrics(struct span value)
{
	struct gate_walk walk = gate_walk(value);
	struct gate_item item;

	while (gate_next(&walk, &item))
		if (gate_kind(item.value) != GATE_NUMBER)
			return false;
	return gate_kind(value) == GATE_OBJECT;
}

static void
on_progress(struct rank *rank, const struct control_progress *p)
{
	char *metrics;

	if (p->step != CONTROL_NONE) {
		rank->step = p->step;
		rank->best = p->step > rank->best ? p->step : rank->best;
		slow_note(rank, p->step, clock_now());
	}
	if (p->total != CONTROL_NONE)
		rank->total = p->total;
	if (p->metrics.at == NULL || p->metrics.len > METRICS_MAX ||
		!are_metrics(p->metrics))
		return;
	metrics = strndup(p->metrics.at, p->metrics.len);
	if (metrics == NULL)
		return;
	free(rank->metrics);
	rank->metrics = metrics;
}

void
steer_told(struct job *job, uint32_t r, const struct control *m)
{
	struct rank *rank = &job->rank[r];

	/* It is no sign of life of the program. */
	if (counted_told(job, r, m))
		return;
	rank->told_ns = clock_now();
	rank->told += m->type == CONTROL_PROGRESS;
	if (m->type == CONTROL_READY)
		rank->ready = true;
	else if (m->type == CONTROL_PROGRESS)
		on_progress(rank, &m->progress);
	else if (m->type == CONTROL_GRACE)
		stop_later(job, r, m->grace.seconds);
}

static void
on_message(struct ctl_client *from, const struct control *m, void *ctx)
{
	struct job *job = ctx;

	if (keys_is(m->type)) {
		keys_asked(job, from, m);
		return;
	}
	if (ctl_rank(from) == CTL_NO_RANK) {
		handlers[m->type](job, from, m);
		return;
	}
	steer_told(job, ctl_rank(from) - job->plan.first, m);
	if (m->id != CONTROL_NONE)
		answer_done(from, m->id, CONTROL_NONE);
}

static void
close_aside(void *ctx, int fd)
{
	steer_close(ctx, fd);
}

static void
on_more(void *ctx, struct ctl_client *client)
{
	keys_more(ctx, client);
}

static void
on_gone(void *ctx, struct ctl_client *client)
{
	keys_gone(ctx, client);
	typist_gone(ctx, client);
}

/* Made when somebody comes; false: there is no memory for it. */
static bool
serve(struct job *job)
{
	struct ctl_config config = {
		.loop = job->sup->loop,
		.job = job->state.id,
		.pid = getppid(),
		.most = CLIENTS_MAX,
		.fn = on_message,
		.close = close_aside,
		.more = on_more,
		.gone = on_gone,
		.ctx = job,
	};

	if (job->sup->ctl == NULL)
		job->sup->ctl = ctl_open(&config);
	return job->sup->ctl != NULL;
}

bool
steer_is_stream(int fd)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
		domain == AF_UNIX &&
		getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
		type == SOCK_STREAM;
}

/* The lowest number that is free is taken, so it tells how many there are. */
bool
steer_spares(const struct job *job, int fd)
{
	struct rlimit files;
	uint64_t own = check_table(&job->limits, job->plan.local_size);

	return getrlimit(RLIMIT_NOFILE, &files) == -1 ||
		(uint64_t)fd + own < files.rlim_cur;
}

void
steer_admit(struct job *job, int fd, uint32_t r)
{
	if (steer_is_stream(fd) && steer_spares(job, fd) && serve(job))
		ctl_admit(job->sup->ctl, fd, job_rank(job, r));
	else
		steer_close(job, fd);
}

void
steer_made(struct job *job, int fd)
{
	job->sup->making = false;
	if (fd == -1 && job->opt.verbose)
		logs_say(job->sup->logs,
			"xrun: there is no control socket, so nobody can ask or steer the job: %s",
			job->sup->no_ctl);
	if (fd != -1 && serve(job))
		ctl_listen(job->sup->ctl, fd);
	else
		fd_close(fd);
	http_begin(job, fd == -1 ? job->sup->no_ctl : NULL);
}

/* A job that ends while its socket is being made would leave the folder of it.
 * On a file system that is frozen it does, for the next job to find. */
static void
await_made(struct job *job)
{
	const struct notes *notes = logs_notes(job->sup->logs);
	int64_t until = clock_now() + MAKE_PATIENCE, left;
	struct pollfd p = { .fd = notes->rd, .events = POLLIN };
	struct note note[64];
	uint32_t n;

	while (job->sup->making && (left = until - clock_now()) > 0) {
		poll(&p, 1, (int)(left / NS_PER_MS) + 1);
		n = notes_take(notes, note, 64);
		for (uint32_t i = 0; i < n; i++)
			if (note[i].kind == NOTE_STEER)
				steer_made(job, (int)note[i].value);
	}
}

void
steer_end(struct job *job)
{
	struct outcome o = outcome_of(job);
	struct control_over over = {
		.exit = o.exit_status,
		.reason = o.reason,
	};

	await_made(job);
	if (again_is_due(&job->page->again))
		job->page->listen = ctl_unlisten(job->sup->ctl);
	else
		ctl_end(job->sup->ctl, &over);
	ctl_close(job->sup->ctl);
	job->sup->ctl = NULL;
	keys_close(job);
	/* The keeper removes the folder if the supervisor cannot. */
	if (job->page->listen == -1 && ctl_place_remove(&job->page->ctl))
		job->page->ctl.dir = -1;
	for (uint32_t i = 0; i < job_size(job); i++) {
		free(job->rank[i].metrics);
		job->rank[i].metrics = NULL;
		free(job->rank[i].figures);
		job->rank[i].figures = NULL;
		gauges_free(&job->rank[i]);
		free(job->rank[i].pace);
		job->rank[i].pace = NULL;
	}
}
