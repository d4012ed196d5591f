/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steer_rig.h - a supervisor (launcher/sup/steer.h) without sockets, ranks and output:
 * each message that is said to it, and what it does, in @done.
 *
 * For the program steer_job (meson.build).
 */
#ifndef TESTS_UNIT_STEER_RIG_H
#define TESTS_UNIT_STEER_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/socket.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/ctl/server.h"
#include "launcher/host/check.h"
#include "launcher/job/outcome.h"
#include "launcher/keeper/keeper.h"
#include "launcher/log/thread.h"
#include "launcher/sup/keys.h"
#include "launcher/sup/next.h"
#include "launcher/sup/steer.h"
#include "launcher/sup/sup.h"
#include "launcher/sup/typist.h"
#include "launcher/tell/http.h"
#include "launcher/tell/report.h"
#include "tests/unit/noted.h"

#define NOW (77 * NS_PER_S)

struct ctl_client {
	uint32_t rank;
	bool waits;
};

static struct ctl_client client, of_rank;
static struct rank ranks[4];
static struct sup sup;
static struct keeper_page page;
static struct job job = {
	.sup = &sup,
	.rank = ranks,
	.page = &page,
	.plan = { .size = 10, .first = 3, .local_size = 4 },
	.state = { .id = "train" },
};

static struct {
	struct ctl_config config;
	bool no_server;  /* ctl_open() */
	bool no_restart; /* next_restart() */
	bool no_thread;  /* thread_start() */
	bool no_remove;  /* ctl_place_remove() */
	int no_kill;     /* the process group that is no more */
	unsigned opened;
	int64_t now, step; /* of the clock, and how it goes on */
	bool makes;        /* the thread that makes the socket is run */
	bool no_place;     /* ctl_place_open() */
	int listens;       /* ctl_place_listen() */
	int notes;         /* that come before the one that counts */
} played;

int __wrap_kill(pid_t pid, int sig);
int64_t __wrap_clock_now(void);
int __wrap_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);
struct ctl *__wrap_ctl_open(const struct ctl_config *config);
bool __wrap_ctl_listen(struct ctl *ctl, int fd);
void __wrap_ctl_admit(struct ctl *ctl, int fd, uint32_t rank);
uint32_t __wrap_ctl_rank(const struct ctl_client *from);
int __wrap_ctl_unlisten(struct ctl *ctl);
void __wrap_ctl_close(struct ctl *ctl);
void __wrap_ctl_end(struct ctl *ctl, const struct control_over *over);
void __wrap_ctl_send(struct ctl_client *to, const struct control *m);
void __wrap_ctl_refuse(struct ctl_client *to, int64_t id, enum xr_status status,
	const struct xr_error *err);
bool __wrap_ctl_wait(struct ctl_client *from, int64_t id);
bool __wrap_ctl_place_remove(struct ctl_place *place);
void __wrap_logs_say(struct logs *logs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
const struct notes *__wrap_logs_notes(struct logs *logs);
uint32_t __wrap_notes_take(const struct notes *notes, struct note *out,
	uint32_t cap);
void __wrap_stop_by_signal(struct job *job_, int sig);
double __wrap_stop_seconds(const struct job *job_);
void __wrap_stop_later(struct job *job_, uint32_t r, double seconds);
void __wrap_next_told(struct job *job_, int sig);
bool __wrap_next_restart(struct job *job_);
void __wrap_finish_hurry(struct job *job_);
void __wrap_typist_asked(struct job *job_, struct ctl_client *from,
	const struct control *m);
void __wrap_typist_gone(struct job *job_, struct ctl_client *from);
void __wrap_keys_asked(struct job *job_, struct ctl_client *from,
	const struct control *m);
void __wrap_keys_more(struct job *job_, struct ctl_client *from);
void __wrap_keys_gone(struct job *job_, struct ctl_client *from);
void __wrap_keys_close(struct job *job_);
void __wrap_report_put_now(struct job *job_, struct buf *out);
void __wrap_http_begin(struct job *job_, const char *why);
struct outcome __wrap_outcome_of(const struct job *job_);
void __wrap_ctl_place_sweep(void);
enum xr_status __wrap_ctl_place_open(struct ctl_place *place, const char *id,
	struct xr_error *err);
int __wrap_ctl_place_listen(const struct ctl_place *place);
void __wrap_http_make(struct job *job_);
void __wrap_notes_send(const struct notes *notes, enum note_kind kind,
	uint32_t value, int sys);
int __wrap_poll(struct pollfd *p, nfds_t count, int timeout);

int
__wrap_poll(struct pollfd *p, nfds_t count, int timeout)
{
	cr_expect_eq(count, 1);
	cr_expect_eq(p->fd, -1);
	cr_expect_eq(p->events, POLLIN);
	note("%d ms ", timeout);
	return 0;
}

int
__wrap_kill(pid_t pid, int sig)
{
	note("kill:%d,%d ", (int)pid, sig);
	return -pid == played.no_kill ? -1 : 0;
}

int64_t
__wrap_clock_now(void)
{
	int64_t now = played.now;

	played.now += played.step;
	return now;
}

int
__wrap_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	(void)thread;
	if (played.no_thread)
		return EAGAIN;
	note("thread ");
	if (arg != &job || played.makes)
		run(arg);
	return 0;
}

struct ctl *
__wrap_ctl_open(const struct ctl_config *config)
{
	played.config = *config;
	played.opened++;
	return played.no_server ? NULL : (struct ctl *)&played;
}

bool
__wrap_ctl_listen(struct ctl *ctl, int fd)
{
	cr_expect_eq((void *)ctl, &played);
	note("listen:%d ", fd);
	return true;
}

void
__wrap_ctl_admit(struct ctl *ctl, int fd, uint32_t rank)
{
	cr_expect_eq((void *)ctl, &played);
	(void)fd;
	note("admit:%u ", rank);
}

uint32_t
__wrap_ctl_rank(const struct ctl_client *from)
{
	return from->rank;
}

int
__wrap_ctl_unlisten(struct ctl *ctl)
{
	note("unlisten:%d ", ctl != NULL);
	return 33;
}

void
__wrap_ctl_close(struct ctl *ctl)
{
	note("close:%d ", ctl != NULL);
}

void
__wrap_ctl_end(struct ctl *ctl, const struct control_over *over)
{
	note("end:%d,%d,%s ", ctl != NULL, (int)over->exit, over->reason);
}

void
__wrap_ctl_send(struct ctl_client *to, const struct control *m)
{
	note("%s:%s,%d", to == &client ? "" : "rank",
		control_rows[m->type].name, (int)m->id);
	if (m->type == CONTROL_JOB)
		note(",%.*s", (int)m->job.status.len, m->job.status.at);
	if (m->type == CONTROL_DONE && m->done.count != CONTROL_NONE)
		note(",count %d", (int)m->done.count);
	if (m->type == CONTROL_DONE && m->done.seconds > 0)
		note(",%.1f s", m->done.seconds);
	note(" ");
}

void
__wrap_ctl_refuse(struct ctl_client *to, int64_t id, enum xr_status status,
	const struct xr_error *err)
{
	cr_expect_eq(to, &client);
	note("refuse:%d,%s,%s ", (int)id, xr_status_name(status), err->text);
}

bool
__wrap_ctl_wait(struct ctl_client *from, int64_t id)
{
	bool waited = from->waits;

	from->waits = true;
	note("wait:%d ", (int)id);
	return !waited;
}

bool
__wrap_ctl_place_remove(struct ctl_place *place)
{
	cr_expect_eq(place, &page.ctl);
	note("remove ");
	return !played.no_remove;
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
	note("[%s] ", text);
}

const struct notes *
__wrap_logs_notes(struct logs *logs)
{
	static const struct notes notes = { .rd = -1, .wr = -1 };

	(void)logs;
	return &notes;
}

uint32_t
__wrap_notes_take(const struct notes *notes, struct note *out, uint32_t cap)
{
	(void)notes;
	cr_expect_eq(cap, 64);
	note("take ");
	out[0] = (struct note){ .kind = NOTE_STEER + 1, .value = 99 };
	out[1] = out[0];
	if (played.notes-- > 0)
		return 2;
	out[0] = (struct note){ .kind = NOTE_STEER, .value = (uint32_t)-1 };
	return 2;
}

void
__wrap_stop_by_signal(struct job *job_, int sig)
{
	cr_expect_eq(job_, &job);
	note("stop:%d ", sig);
}

double
__wrap_stop_seconds(const struct job *job_)
{
	cr_expect_eq(job_, &job);
	return 12.5;
}

void
__wrap_stop_later(struct job *job_, uint32_t r, double seconds)
{
	cr_expect_eq(job_, &job);
	note("later:%u,%.1f ", r, seconds);
}

void
__wrap_next_told(struct job *job_, int sig)
{
	cr_expect_eq(job_, &job);
	note("next:%d ", sig);
}

bool
__wrap_next_restart(struct job *job_)
{
	cr_expect_eq(job_, &job);
	note("restart ");
	return !played.no_restart;
}

void
__wrap_finish_hurry(struct job *job_)
{
	cr_expect_eq(job_, &job);
	note("hurry ");
}

void
__wrap_typist_asked(struct job *job_, struct ctl_client *from,
	const struct control *m)
{
	cr_expect_eq(job_, &job);
	cr_expect_eq(from, &client);
	note("typist:%s ", control_rows[m->type].name);
}

void
__wrap_typist_gone(struct job *job_, struct ctl_client *from)
{
	cr_expect_eq(job_, &job);
	cr_expect_eq(from, &client);
	note("typist gone ");
}

void
__wrap_keys_asked(struct job *job_, struct ctl_client *from,
	const struct control *m)
{
	cr_expect_eq(job_, &job);
	note("keys%s:%s ", from == &client ? "" : " of rank",
		control_rows[m->type].name);
}

void
__wrap_keys_more(struct job *job_, struct ctl_client *from)
{
	cr_expect_eq(job_, &job);
	cr_expect_eq(from, &client);
	note("more ");
}

void
__wrap_keys_gone(struct job *job_, struct ctl_client *from)
{
	cr_expect_eq(job_, &job);
	cr_expect_eq(from, &client);
	note("keys gone ");
}

void
__wrap_keys_close(struct job *job_)
{
	cr_expect_eq(job_, &job);
	note("keys close ");
}

void
__wrap_report_put_now(struct job *job_, struct buf *out)
{
	cr_expect_eq(job_, &job);
	buf_put_text(out, "{\"now\":1}");
}

void
__wrap_http_begin(struct job *job_, const char *why)
{
	cr_expect_eq(job_, &job);
	note("http:%s ", why == NULL ? "-" : why);
}

struct outcome
__wrap_outcome_of(const struct job *job_)
{
	cr_expect_eq(job_, &job);
	return (struct outcome){ .exit_status = 5, .reason = "failure" };
}

void
__wrap_ctl_place_sweep(void)
{
	note("sweep ");
}

enum xr_status
__wrap_ctl_place_open(struct ctl_place *place, const char *id,
	struct xr_error *err)
{
	cr_expect_str_eq(id, "train");
	cr_expect_eq(place->dir, -1);
	place->dir = 66;
	return played.no_place ? fail(err, XR_E_SYS, "no place") : XR_OK;
}

int
__wrap_ctl_place_listen(const struct ctl_place *place)
{
	cr_expect_eq(place->dir, 66);
	errno = ENOSPC;
	return played.listens;
}

void
__wrap_http_make(struct job *job_)
{
	cr_expect_eq(job_, &job);
	note("http make ");
}

void
__wrap_notes_send(const struct notes *notes, enum note_kind kind,
	uint32_t value, int sys)
{
	cr_expect_eq(notes->rd, -1);
	cr_expect_eq(kind, NOTE_STEER);
	cr_expect_eq(sys, 0);
	note("note:%d ", (int)value);
}

/* --- the rig ----------------------------------------------------------------- */

static void
begin(void)
{
	client.rank = CTL_NO_RANK;
	of_rank.rank = 4; /* local rank 1 */
	played.now = NOW;
	page.ctl.dir = 88;
	page.listen = -1;
	for (int r = 0; r < 4; r++) {
		ranks[r].pid = 100 + r;
		ranks[r].pidfd = 50;
		ranks[r].step = ranks[r].total = -1;
	}
	steer_made(&job, 44);
	cr_expect_str_eq(done, "listen:44 http:- ");
	done[0] = '\0';
}

static void
say(struct ctl_client *from, const char *text)
{
	char line[6000];
	struct xr_error err = { 0 };
	struct control m;

	snprintf(line, sizeof(line), "%s", text);
	for (char *p = line; *p != '\0'; p++)
		*p = *p == '\'' ? '"' : *p;
	done[0] = '\0';
	cr_assert_eq(control_read(&m, line, strlen(line), CONTROL_BY_BOTH,
			     &err),
		XR_OK, "%s", err.text);
	played.config.fn(from, &m, played.config.ctx);
}

#define EXPECT_SAID(from, text, want) \
	do { \
		say(from, text); \
		cr_expect_str_eq(done, want, "%s: %s", text, done); \
	} while (0)

#endif /* TESTS_UNIT_STEER_RIG_H */
