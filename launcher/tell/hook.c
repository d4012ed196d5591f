/* SPDX-License-Identifier: Apache-2.0 */
/* hook.c - see hook.h. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/host/own_file.h"
#include "launcher/job/sup.h"
#include "launcher/job/words.h"
#include "launcher/keeper/keeper.h"
#include "launcher/tell/aide.h"
#include "launcher/tell/hook.h"
#include "launcher/tell/report.h"
#include "proc/descend.h"
#include "proc/vars.h"

#define NOTIFY       "xrun-notify"
#define ALL          "all"
#define END_PATIENCE NS_PER_S
#define HOOK_MIN_NS \
	(NS_PER_S / 2) /* past the deadline of a job that was told */
#define DYING_MS 100

/* --- what is asked for ---------------------------------------------------- */

static uint32_t
events_of(struct span name)
{
	if (name.len == strlen(ALL) && memcmp(name.at, ALL, name.len) == 0)
		return UINT32_MAX;
	for (int e = 0; e < BUS_EVENT_COUNT; e++) {
		const char *is = bus_event_name((enum bus_event)e);

		if (strlen(is) == name.len &&
			memcmp(is, name.at, name.len) == 0)
			return 1u << e;
	}
	return 0;
}

static enum xr_status
no_event(struct span name, const char *option, struct xr_error *err)
{
	struct buf all = { 0 };
	enum xr_status status;

	for (int e = 0; e < BUS_EVENT_COUNT; e++)
		buf_fmt(&all, "%s, ", bus_event_name((enum bus_event)e));
	status = fail(err, XR_E_INVAL, "--%s: '%.*s' is not one of %s" ALL,
		option, QUOTED(name), buf_text(&all));
	buf_fini(&all);
	return status;
}

enum xr_status
hook_parse(struct hook *hook, const char *text, const char *option,
	struct xr_error *err)
{
	struct span name = { text, strcspn(text, ":") };

	_Static_assert(BUS_EVENT_COUNT <= 32, "a bit for each event");
	hook->events = events_of(name);
	if (hook->events == 0)
		return no_event(name, option, err);
	hook->text = text + name.len + (text[name.len] == ':');
	if (*hook->text == '\0')
		return fail(err, XR_E_INVAL, "--%s: nothing behind '%.*s:'",
			option, QUOTED(name));
	return XR_OK;
}

/* Only these two, and nothing that would end the line it travels in. */
static enum xr_status
check_url(const char *url, struct xr_error *err)
{
	bool http = strncmp(url, "http://", 7) == 0 && url[7] != '\0',
	     https = strncmp(url, "https://", 8) == 0 && url[8] != '\0';

	if (!http && !https)
		return fail(err, XR_E_INVAL,
			"--on-event: '%.*s' is not http://... or https://...",
			QUOTED(span_of(url)));
	for (const char *p = url; *p != '\0'; p++)
		if (*p <= ' ' || *p == 0x7f)
			return fail(err, XR_E_INVAL,
				"--on-event: a URL has no blanks or control characters");
	return XR_OK;
}

static enum xr_status
read_list(const struct opt_list *list, const char *option, struct hook **out,
	struct xr_error *err)
{
	enum xr_status status = XR_OK;

	*out = list->n > 0 ? xcalloc(list->n, sizeof(**out)) : NULL;
	for (size_t i = 0; status == XR_OK && i < list->n; i++)
		status = hook_parse(&(*out)[i], list->items[i], option, err);
	return status;
}

enum xr_status
hook_open(struct job *job, struct xr_error *err)
{
	const struct run_options *opt = &job->opt;
	enum xr_status status;
	struct hooks *h;

	if (opt->exec_on.n == 0 && opt->on_event.n == 0)
		return XR_OK;
	h = job->hooks = xcalloc(1, sizeof(*h));
	h->exec_count = opt->exec_on.n;
	h->web_count = opt->on_event.n;
	status = read_list(&opt->exec_on, "exec-on", &h->exec, err);
	if (status == XR_OK)
		status = read_list(&opt->on_event, "on-event", &h->web, err);
	for (size_t i = 0; status == XR_OK && i < h->web_count; i++)
		status = check_url(h->web[i].text, err);
	if (status != XR_OK || h->web_count == 0)
		return status;
	h->notify = own_file(NOTIFY, ".");
	return h->notify != NULL ?
		XR_OK :
		fail(err, XR_E_NOTFOUND,
			"--on-event: " NOTIFY
			" is not where xrun is: this xrun was built without libcurl");
}

void
hook_free(struct job *job)
{
	if (job->hooks == NULL)
		return;
	free(job->hooks->exec);
	free(job->hooks->web);
	free((void *)job->hooks->notify);
	free(job->hooks);
	job->hooks = NULL;
}

/* --- words ---------------------------------------------------------------- */

void
hook_say(struct job *job, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (job->sup->phase < PHASE_ACCOUNT)
		logs_say(job->sup->logs, "%s", text);
	else if (words_have_room())
		words_line("%s", text + strlen("xrun: "));
}

/* --- events --------------------------------------------------------------- */

static void
on_event(enum bus_event event, struct span line, void *ctx)
{
	struct job *job = ctx;
	struct hooks *h = job->hooks;

	for (size_t i = 0; i < h->web_count; i++)
		if (h->web[i].events & (1u << event))
			hook_web_tell(job, h->web[i].text, event, line);
	for (size_t i = 0; i < h->exec_count; i++)
		if (h->exec[i].events & (1u << event))
			hook_exec_tell(job, h->exec[i].text, event, line);
}

void
hook_begin(struct job *job)
{
	if (job->hooks != NULL)
		bus_listen(job->sup->bus, on_event, job);
}

/* --- the end -------------------------------------------------------------- */

static bool
is_busy(const struct job *job)
{
	return !job->hooks->over && (hook_exec_busy(job) || hook_web_busy(job));
}

void
hook_done(struct job *job)
{
	struct hooks *h = job->hooks;

	if (h->end == NULL || is_busy(job))
		return;
	timer_disarm(h->end);
	report_written(job);
}

static int64_t
hook_patience(const struct job *job)
{
	int64_t until = job->sup->until_ns, left = until - clock_now(),
		most = again_is_due(&job->page->again) ? HOOK_NEXT_NS :
							 HOOK_END_NS;

	if (until == 0)
		return most;
	left = left < HOOK_MIN_NS ? HOOK_MIN_NS : left;
	return left < most ? left : most;
}

static void
give_up(struct job *job)
{
	hook_exec_give_up(job);
	hook_web_give_up(job);
	job->hooks->over = true;
	report_written(job);
}

void
hook_hurry(struct job *job)
{
	struct hooks *h = job->hooks;

	if (h == NULL || h->end == NULL || !timer_armed(h->end))
		return;
	timer_disarm(h->end);
	if (hook_web_busy(job))
		hook_say(job,
			"xrun: --on-event: not all web hooks were told: xrun was told to end");
	give_up(job);
}

static void
on_end(void *ctx)
{
	struct job *job = ctx;
	bool again = again_is_due(&job->page->again);

	if (hook_web_busy(job) && job->sup->until_ns != 0)
		hook_say(job,
			"xrun: --on-event: not all web hooks were told: xrun was told to end");
	else if (hook_web_busy(job))
		hook_say(job,
			"xrun: --on-event: not all web hooks were told within %d s",
			(int)((again ? HOOK_NEXT_NS : HOOK_END_NS) / NS_PER_S));
	give_up(job);
}

void
hook_bound(struct job *job)
{
	struct hooks *h = job->hooks;
	int64_t left;

	if (h == NULL || h->end == NULL || !timer_armed(h->end))
		return;
	left = hook_patience(job);
	if (left < timer_left(h->end))
		timer_arm(h->end, left);
}

bool
hook_wait(struct job *job)
{
	struct hooks *h = job->hooks;

	if (h == NULL)
		return false;
	if (h->end != NULL)
		return is_busy(job);
	hook_web_last(job);
	h->end = timer_open(job->sup->loop, on_end, job);
	if (h->end == NULL || !is_busy(job))
		return false;
	timer_arm(h->end, hook_patience(job));
	return true;
}

static void
note_left(pid_t pid, const char *comm, void *ctx)
{
	struct buf *who = ctx;

	buf_fmt(who, "%s%s (pid %d)", who->len > 0 ? ", " : "", comm, (int)pid);
}

bool
hook_left(const struct job *job, pid_t pid)
{
	bool left;
	char *room;

	if (job->hooks == NULL || job->hooks->exec_count == 0)
		return false;
	room = malloc(VARS_ROOM);
	left = room != NULL && vars_of(pid, "XRUN_EVENT", room) != NULL;
	free(room);
	return left;
}

/* Ranks, and what they left, are gone by now; and aides. */
void
hook_end(struct job *job)
{
	struct buf who = { 0 };
	struct descend d = { .tell = note_left, .ctx = &who };

	if (job->hooks == NULL || job->hooks->running == NULL)
		return;
	/* Those of its group were killed with it, and may be on their way. */
	for (int ms = 0; ms < DYING_MS && descend_reap(&d) > 0; ms++)
		poll(NULL, 0, 1);
	descend_end(&d, clock_now() + END_PATIENCE);
	if (who.len > 0)
		hook_say(job,
			"xrun: --exec-on: ended what a command left behind: %s",
			buf_text(&who));
	buf_fini(&who);
	hook_exec_free(job);
}
