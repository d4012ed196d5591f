/* SPDX-License-Identifier: Apache-2.0 */
/* test_hook.c - who is told of which event, and how long that is waited for. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/host/own_file.h"
#include "launcher/job/words.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/bus.h"
#include "launcher/tell/hook.h"
#include "launcher/tell/report.h"
#include "proc/descend.h"
#include "tests/unit/noted.h"

#define S NS_PER_S

struct timer {
	bool armed;
	int64_t ns;
};

static struct timer end_timer;
static timer_fn *on_end;
static struct sup sup;
static struct keeper_page page;
static struct job job = { .sup = &sup, .page = &page };
static struct xr_error err;
static bool no_file, no_room, no_timer, exec_busy, web_busy;
static bus_fn *on_event;
static int64_t now = 100 * S;
static unsigned reaps; /* looks in which somebody is there */
static const char *vars;

char *__wrap_own_file(const char *name, const char *built);
void __wrap_logs_say(struct logs *logs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool __wrap_words_have_room(void);
void __wrap_words_line(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
void __wrap_bus_listen(struct bus *bus, bus_fn *fn, void *ctx);
void __wrap_hook_exec_tell(struct job *j, const char *command,
	enum bus_event event, struct span line);
bool __wrap_hook_exec_busy(const struct job *j);
void __wrap_hook_exec_give_up(struct job *j);
void __wrap_hook_exec_free(struct job *j);
void __wrap_hook_web_tell(struct job *j, const char *url, enum bus_event event,
	struct span line);
void __wrap_hook_web_last(struct job *j);
bool __wrap_hook_web_busy(const struct job *j);
void __wrap_hook_web_give_up(struct job *j);
struct timer *__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx);
void __wrap_timer_arm(struct timer *timer, int64_t ns);
void __wrap_timer_disarm(struct timer *timer);
bool __wrap_timer_armed(const struct timer *timer);
int64_t __wrap_timer_left(const struct timer *timer);
void __wrap_report_written(struct job *j);
uint32_t __wrap_descend_reap(const struct descend *d);
uint32_t __wrap_descend_end(const struct descend *d, int64_t deadline);
const char *__wrap_vars_of(pid_t pid, const char *name, char *room);
int __wrap_poll(struct pollfd *p, nfds_t count, int timeout);
int64_t __wrap_clock_now(void);

char *
__wrap_own_file(const char *name, const char *built)
{
	note("file:%s,%s ", name, built);
	return no_file ? NULL : strdup("/lib/xrun-notify");
}

void
__wrap_logs_say(struct logs *logs, const char *fmt, ...)
{
	char text[700];
	va_list ap;

	(void)logs;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("[%s] ", text);
}

bool
__wrap_words_have_room(void)
{
	return !no_room;
}

void
__wrap_words_line(const char *fmt, ...)
{
	char text[700];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("<%s> ", text);
}

void
__wrap_bus_listen(struct bus *bus, bus_fn *fn, void *ctx)
{
	cr_expect_eq(bus, (struct bus *)&job);
	cr_expect_eq(ctx, &job);
	on_event = fn;
}

void
__wrap_hook_exec_tell(struct job *j, const char *command, enum bus_event event,
	struct span line)
{
	cr_expect_eq(j, &job);
	note("exec:%s,%d,%.*s ", command, (int)event, (int)line.len, line.at);
}

bool
__wrap_hook_exec_busy(const struct job *j)
{
	cr_expect_eq(j, &job);
	return exec_busy;
}

void
__wrap_hook_exec_give_up(struct job *j)
{
	cr_expect_eq(j, &job);
	note("no_exec ");
}

void
__wrap_hook_exec_free(struct job *j)
{
	cr_expect_eq(j, &job);
	note("free ");
}

void
__wrap_hook_web_tell(struct job *j, const char *url, enum bus_event event,
	struct span line)
{
	cr_expect_eq(j, &job);
	note("web:%s,%d,%.*s ", url, (int)event, (int)line.len, line.at);
}

void
__wrap_hook_web_last(struct job *j)
{
	cr_expect_eq(j, &job);
	note("last ");
}

bool
__wrap_hook_web_busy(const struct job *j)
{
	cr_expect_eq(j, &job);
	return web_busy;
}

void
__wrap_hook_web_give_up(struct job *j)
{
	cr_expect_eq(j, &job);
	note("no_web ");
}

struct timer *
__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx)
{
	(void)loop;
	cr_expect_eq(ctx, &job);
	on_end = fn;
	return no_timer ? NULL : &end_timer;
}

void
__wrap_timer_arm(struct timer *timer, int64_t ns)
{
	*timer = (struct timer){ true, ns };
	note("arm:%lld ", (long long)(ns / NS_PER_MS));
}

void
__wrap_timer_disarm(struct timer *timer)
{
	timer->armed = false;
	note("disarm ");
}

bool
__wrap_timer_armed(const struct timer *timer)
{
	return timer->armed;
}

int64_t
__wrap_timer_left(const struct timer *timer)
{
	return timer->ns;
}

void
__wrap_report_written(struct job *j)
{
	cr_expect_eq(j, &job);
	note("written ");
}

uint32_t
__wrap_descend_reap(const struct descend *d)
{
	(void)d;
	return reaps > 0 ? reaps-- : 0;
}

uint32_t
__wrap_descend_end(const struct descend *d, int64_t deadline)
{
	note("end:%lld ", (long long)((deadline - now) / NS_PER_MS));
	if (exec_busy)
		d->tell(5, "sleep", d->ctx);
	if (web_busy)
		d->tell(67, "cat", d->ctx);
	return 0;
}

const char *
__wrap_vars_of(pid_t pid, const char *name, char *room)
{
	cr_expect_eq(pid, 8);
	cr_expect_not_null(room);
	note("%s ", name);
	return vars;
}

static unsigned pauses;

int
__wrap_poll(struct pollfd *p, nfds_t count, int timeout)
{
	cr_expect(p == NULL && count == 0 && timeout == 1);
	pauses++;
	return 0;
}

int64_t
__wrap_clock_now(void)
{
	return now;
}

static void
begin(void)
{
	sup.bus = (struct bus *)&job;
	sup.phase = PHASE_RUN;
}

TestSuite(hook, .init = begin);

/* --- what is asked for -------------------------------------------------------- */

static enum xr_status
parse(const char *text, struct hook *hook)
{
	*hook = (struct hook){ 0 };
	err.text[0] = '\0';
	return hook_parse(hook, text, "exec-on", &err);
}

Test(hook, an_event_has_something_behind_it)
{
	struct hook h;
	char text[64];

	cr_expect_eq(parse("all:a:b", &h), XR_OK);
	cr_expect_eq(h.events, UINT32_MAX);
	cr_expect_str_eq(h.text, "a:b");
	for (int e = 0; e < BUS_EVENT_COUNT; e++) {
		snprintf(text, sizeof(text), "%s:x",
			bus_event_name((enum bus_event)e));
		cr_expect_eq(parse(text, &h), XR_OK);
		cr_expect_eq(h.events, 1u << e);
		cr_expect_str_eq(h.text, "x");
	}
	cr_expect_eq(parse("all:", &h), XR_E_INVAL);
	cr_expect_str_eq(err.text, "--exec-on: nothing behind 'all:'");
	cr_expect_eq(parse("all", &h), XR_E_INVAL);
	cr_expect_str_eq(err.text, "--exec-on: nothing behind 'all:'");
	cr_expect_eq(parse("al:x", &h), XR_E_INVAL);
	cr_expect_eq(parse("allx:x", &h), XR_E_INVAL);
	cr_expect_eq(parse(":x", &h), XR_E_INVAL);
	snprintf(text, sizeof(text), "%.3s:x", bus_event_name(0));
	cr_expect_eq(parse(text, &h), XR_E_INVAL);
	snprintf(text, sizeof(text), "--exec-on: '%.3s' is not one of %s, ",
		bus_event_name(0), bus_event_name(0));
	cr_expect_eq(strncmp(err.text, text, strlen(text)), 0, "%s", err.text);
	snprintf(text, sizeof(text), "%s, all",
		bus_event_name(BUS_EVENT_COUNT - 1));
	cr_expect_not_null(strstr(err.text, text), "%s", err.text);
}

static enum xr_status
open_with(const char *exec, const char *web)
{
	const char *execs[] = { exec, "all:two" }, *webs[] = { web };

	done[0] = '\0';
	err.text[0] = '\0';
	job.opt.exec_on =
		(struct opt_list){ .items = execs, .n = exec != NULL ? 2 : 0 };
	job.opt.on_event =
		(struct opt_list){ .items = webs, .n = web != NULL ? 1 : 0 };
	return hook_open(&job, &err);
}

Test(hook, nothing_is_there_unless_it_is_asked_for)
{
	cr_expect_eq(open_with(NULL, NULL), XR_OK);
	cr_expect_null(job.hooks);
	hook_free(&job);
	hook_begin(&job);
	cr_expect_null(on_event);
	cr_expect(!hook_wait(&job));
	hook_bound(&job);
	hook_hurry(&job);
	hook_end(&job);
	cr_expect(!hook_left(&job, 8));
	cr_expect_str_eq(done, "");
}

Test(hook, commands_and_addresses_are_read)
{
	cr_expect_eq(open_with("all:one", NULL), XR_OK);
	cr_expect_str_eq(done, "");
	cr_assert_eq(job.hooks->exec_count, 2);
	cr_expect_eq(job.hooks->web_count, 0);
	cr_expect_null(job.hooks->web);
	cr_expect_str_eq(job.hooks->exec[0].text, "one");
	cr_expect_str_eq(job.hooks->exec[1].text, "two");
	hook_free(&job);
	cr_expect_null(job.hooks);
	cr_expect_eq(open_with("bad:one", NULL), XR_E_INVAL);
	cr_expect_eq(strncmp(err.text, "--exec-on: 'bad' is", 19), 0);
	hook_free(&job);
	cr_expect_eq(open_with(NULL, "bad:http://x"), XR_E_INVAL);
	cr_expect_eq(strncmp(err.text, "--on-event: 'bad' is", 20), 0);
	hook_free(&job);
	cr_expect_eq(open_with(NULL, "all:http://x"), XR_OK);
	cr_expect_str_eq(done, "file:xrun-notify,. ");
	cr_expect_str_eq(job.hooks->notify, "/lib/xrun-notify");
	cr_expect_str_eq(job.hooks->web[0].text, "http://x");
	cr_expect_eq(job.hooks->exec_count, 0);
	hook_free(&job);
	no_file = true;
	cr_expect_eq(open_with(NULL, "all:https://x"), XR_E_NOTFOUND);
	cr_expect_str_eq(err.text,
		"--on-event: xrun-notify is not where xrun is: this xrun was "
		"built without libcurl");
	hook_free(&job);
}

Test(hook, an_address_is_http)
{
	static const char *const bad[] = { "all:http://", "all:https://",
		"all:ftp://x", "all:http:/x", "all:httpx://x", "all:x" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_eq(open_with(NULL, bad[i]), XR_E_INVAL, "%s", bad[i]);
		cr_expect_not_null(strstr(err.text,
					   "is not http://... or https://..."),
			"%s", err.text);
		hook_free(&job);
	}
	cr_expect_eq(open_with(NULL, "all:http://a b"), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"--on-event: a URL has no blanks or control characters");
	hook_free(&job);
	cr_expect_eq(open_with(NULL, "all:http://a\x1f"), XR_E_INVAL);
	hook_free(&job);
	cr_expect_eq(open_with(NULL, "all:http://a\x7f"), XR_E_INVAL);
	hook_free(&job);
	cr_expect_eq(open_with(NULL, "all:http://a!~"), XR_OK);
	hook_free(&job);
}

/* --- events --------------------------------------------------------------------- */

Test(hook, each_is_told_of_its_events)
{
	const struct span line = { "{}", 2 };
	char one[64], want[100];

	snprintf(one, sizeof(one), "%s:one", bus_event_name(1));
	cr_assert_eq(open_with(one, "all:http://x"), XR_OK);
	hook_begin(&job);
	cr_assert_not_null(on_event);
	done[0] = '\0';
	on_event(0, line, &job);
	cr_expect_str_eq(done, "web:http://x,0,{} exec:two,0,{} ");
	done[0] = '\0';
	on_event(1, line, &job);
	cr_expect_str_eq(done,
		"web:http://x,1,{} exec:one,1,{} exec:two,1,{} ");
	done[0] = '\0';
	job.hooks->web[0].events = 1u << (BUS_EVENT_COUNT - 1);
	on_event(BUS_EVENT_COUNT - 1, line, &job);
	snprintf(want, sizeof(want), "web:http://x,%d,{} exec:two,%d,{} ",
		BUS_EVENT_COUNT - 1, BUS_EVENT_COUNT - 1);
	cr_expect_str_eq(done, want);
	hook_free(&job);
}

Test(hook, words_go_to_stderr_where_the_log_is_over)
{
	hook_say(&job, "xrun: %d", 5);
	cr_expect_str_eq(done, "[xrun: 5] ");
	done[0] = '\0';
	sup.phase = PHASE_DELIVER;
	hook_say(&job, "xrun: %d", 6);
	cr_expect_str_eq(done, "[xrun: 6] ");
	done[0] = '\0';
	sup.phase = PHASE_ACCOUNT;
	hook_say(&job, "xrun: %d", 7);
	cr_expect_str_eq(done, "<7> ");
	done[0] = '\0';
	no_room = true;
	hook_say(&job, "xrun: %d", 8);
	cr_expect_str_eq(done, "");
}

/* --- the end ---------------------------------------------------------------------- */

/* What hook_wait() does. */
static const char *
wait_for(bool busy)
{
	done[0] = '\0';
	end_timer.armed = false;
	if (job.hooks != NULL)
		job.hooks->end = NULL;
	cr_expect_eq(hook_wait(&job), busy);
	return done;
}

Test(hook, the_end_waits_for_what_is_under_way)
{
	cr_assert_eq(open_with("all:one", NULL), XR_OK);
	cr_expect_str_eq(wait_for(false), "last ");
	exec_busy = true;
	cr_expect_str_eq(wait_for(true), "last arm:10000 ");
	done[0] = '\0';
	cr_expect(hook_wait(&job)); /* it is asked again */
	cr_expect_str_eq(done, "");
	hook_done(&job); /* not all of it */
	cr_expect_str_eq(done, "");
	exec_busy = false;
	cr_expect(!hook_wait(&job));
	hook_done(&job);
	cr_expect_str_eq(done, "disarm written ");
	done[0] = '\0';
	job.hooks->end = NULL;
	hook_done(&job); /* nobody waits yet */
	cr_expect_str_eq(done, "");
	web_busy = true;
	page.again.due = 1;
	cr_expect_str_eq(wait_for(true), "last arm:2000 ");
	no_timer = true;
	cr_expect_str_eq(wait_for(false), "last ");
	no_timer = false;
	page.again.due = 0;
	job.hooks->over = true;
	cr_expect_str_eq(wait_for(false), "last ");
	hook_free(&job);
}

Test(hook, who_tells_to_end_makes_it_shorter)
{
	cr_assert_eq(open_with("all:one", NULL), XR_OK);
	web_busy = true;
	hook_bound(&job); /* nobody waits */
	sup.until_ns = now + 2 * S;
	cr_expect_str_eq(wait_for(true), "last arm:2000 ");
	sup.until_ns = now + 11 * S;
	cr_expect_str_eq(wait_for(true), "last arm:10000 ");
	sup.until_ns = now - S;
	cr_expect_str_eq(wait_for(true), "last arm:500 ");
	done[0] = '\0';
	end_timer.ns = S;
	sup.until_ns = now + S;
	hook_bound(&job);
	cr_expect_str_eq(done, "");
	sup.until_ns = now + S - NS_PER_MS;
	hook_bound(&job);
	cr_expect_str_eq(done, "arm:999 ");
	end_timer.armed = false;
	end_timer.ns = 9 * S;
	done[0] = '\0';
	hook_bound(&job);
	hook_hurry(&job);
	cr_expect_str_eq(done, "");
	end_timer.armed = true;
	hook_hurry(&job);
	cr_expect_str_eq(done,
		"disarm [xrun: --on-event: not all web hooks were told: xrun "
		"was told to end] no_exec no_web written ");
	cr_expect(job.hooks->over);
	web_busy = false;
	end_timer.armed = true;
	done[0] = '\0';
	hook_hurry(&job);
	cr_expect_str_eq(done, "disarm no_exec no_web written ");
	hook_free(&job);
}

Test(hook, it_is_given_up_in_time)
{
	cr_assert_eq(open_with("all:one", NULL), XR_OK);
	exec_busy = true;
	wait_for(true);
	done[0] = '\0';
	on_end(&job);
	cr_expect_str_eq(done, "no_exec no_web written ");
	cr_expect(job.hooks->over);
	web_busy = true;
	done[0] = '\0';
	on_end(&job);
	cr_expect_str_eq(done,
		"[xrun: --on-event: not all web hooks were told within 10 s] "
		"no_exec no_web written ");
	page.again.due = 1;
	done[0] = '\0';
	on_end(&job);
	cr_expect_str_eq(done,
		"[xrun: --on-event: not all web hooks were told within 2 s] "
		"no_exec no_web written ");
	sup.until_ns = 1;
	done[0] = '\0';
	on_end(&job);
	cr_expect_str_eq(done,
		"[xrun: --on-event: not all web hooks were told: xrun was told "
		"to end] no_exec no_web written ");
	hook_free(&job);
}

Test(hook, what_commands_left_is_ended_and_named)
{
	cr_assert_eq(open_with("all:one", NULL), XR_OK);
	done[0] = '\0';
	hook_end(&job); /* none ran */
	cr_expect_str_eq(done, "");
	job.hooks->running = (struct hook_exec *)&job;
	hook_end(&job);
	cr_expect_str_eq(done, "end:1000 free ");
	cr_expect_eq(pauses, 0);
	reaps = 3;
	exec_busy = true;
	done[0] = '\0';
	hook_end(&job);
	cr_expect_eq(pauses, 3);
	cr_expect_str_eq(done,
		"end:1000 [xrun: --exec-on: ended what a command left behind: "
		"sleep (pid 5)] free ");
	web_busy = true;
	reaps = 1000;
	done[0] = '\0';
	hook_end(&job);
	cr_expect_eq(pauses, 103);
	cr_expect_str_eq(done,
		"end:1000 [xrun: --exec-on: ended what a command left behind: "
		"sleep (pid 5), cat (pid 67)] free ");
	done[0] = '\0';
	cr_expect(!hook_left(&job, 8));
	vars = "x";
	cr_expect(hook_left(&job, 8));
	cr_expect_str_eq(done, "XRUN_EVENT XRUN_EVENT ");
	job.hooks->exec_count = 0;
	cr_expect(!hook_left(&job, 8));
	hook_free(&job);
}
