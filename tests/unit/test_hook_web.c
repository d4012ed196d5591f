/* SPDX-License-Identifier: Apache-2.0 */
/* test_hook_web.c - what xrun-notify is given to send, and what it says. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include <criterion/criterion.h>

#include "base/host.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/aide.h"
#include "launcher/tell/hook.h"
#include "tests/unit/noted.h"

struct watch {
	watch_fn *fn;
	void *ctx;
	bool on, room;
};

static struct watch watches[2];
static unsigned watch_fails; /* at the n-th; 0: none */
static struct sup sup;
static struct hooks hooks = { .notify = (char *)"/lib/n" };
static struct job job = { .sup = &sup, .hooks = &hooks };
static int notify = -1; /* xrun-notify's end */
static aide_fn *on_over;
static bool no_aide;
static int line_fd = -1; /* the job's end */

struct aide *__wrap_aide_start(struct job *j, const struct aide_config *c);
void __wrap_aide_end(struct aide *aide);
struct watch *__wrap_watch_open(struct loop *loop, int fd, bool writable,
	watch_fn *fn, void *ctx);
void __wrap_watch_pause(struct watch *watch);
void __wrap_watch_resume(struct watch *watch);
void __wrap_watch_close(struct watch *watch);
void __wrap_hook_say(struct job *j, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void __wrap_hook_done(struct job *j);
const char *__wrap_host_name(char *out, size_t cap);

struct aide *
__wrap_aide_start(struct job *j, const struct aide_config *c)
{
	cr_expect_eq(j, &job);
	cr_expect_eq(c->ctx, &job);
	cr_expect(c->out == -1 && c->err == -1 && c->time_ns == 0);
	cr_expect_str_eq(c->argv[0], "xrun-notify");
	cr_expect(c->argv[1] == NULL && c->envp[0] == NULL);
	note("start:%s ", c->path);
	if (no_aide)
		return NULL;
	if (notify != -1)
		close(notify);
	notify = fcntl(c->in, F_DUPFD_CLOEXEC, 100);
	fcntl(notify, F_SETFL, O_NONBLOCK);
	on_over = c->fn;
	return (struct aide *)&job;
}

void
__wrap_aide_end(struct aide *aide)
{
	note("end:%d ", aide == (struct aide *)&job);
}

struct watch *
__wrap_watch_open(struct loop *loop, int fd, bool writable, watch_fn *fn,
	void *ctx)
{
	(void)loop;
	cr_expect_neq(fcntl(fd, F_GETFD), -1);
	line_fd = fd;
	if (watch_fails > 0 && --watch_fails == 0)
		return NULL;
	watches[writable] = (struct watch){ fn, ctx, true, writable };
	return &watches[writable];
}

void
__wrap_watch_pause(struct watch *watch)
{
	watch->on = false;
}

void
__wrap_watch_resume(struct watch *watch)
{
	watch->on = true;
}

void
__wrap_watch_close(struct watch *watch)
{
	if (watch != NULL)
		note("unwatch:%d ", watch->room);
}

void
__wrap_hook_say(struct job *j, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	cr_expect_eq(j, &job);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("[%s] ", text);
}

void
__wrap_hook_done(struct job *j)
{
	cr_expect_eq(j, &job);
	note("done ");
}

const char *
__wrap_host_name(char *out, size_t cap)
{
	snprintf(out, cap, "h");
	return out;
}

static void
begin(void)
{
	snprintf(job.state.id, sizeof(job.state.id), "k7m2");
}

TestSuite(hook_web, .init = begin, .timeout = 20);

static void
tell(enum bus_event event, const char *line)
{
	hook_web_tell(&job, "http://x", event,
		(struct span){ line, strlen(line) });
}

static void
expect_sent(const char *text)
{
	char got[4000];
	ssize_t n = read(notify, got, sizeof(got) - 1);

	got[n > 0 ? n : 0] = '\0';
	cr_expect_str_eq(got, text);
}

static void
expect_done(const char *text)
{
	cr_expect_str_eq(done, text);
	done[0] = '\0';
}

#define SENT "http://x {\"job\":\"k7m2\",\"host\":\"h\""

Test(hook_web, an_event_is_a_line_with_its_job)
{
	cr_expect(!hook_web_busy(&job));
	hook_web_last(&job);
	hook_web_give_up(&job);
	expect_done("");
	tell(BUS_JOB_START, "{\"a\":1}");
	expect_done("start:/lib/n ");
	expect_sent("http://x {\"a\":1}\n");
	cr_expect(hook_web_busy(&job));
	cr_expect(watches[0].on && !watches[1].on);
	tell(BUS_JOB_START + 1, "{\"a\":2}");
	expect_done("");
	expect_sent(SENT ",\"a\":2}\n");
	hook_web_last(&job);
	cr_expect_eq(read(notify, &(char){ 0 }, 1), 0);
	hook_web_give_up(&job);
	expect_done("end:1 unwatch:0 unwatch:1 ");
	cr_expect(!hook_web_busy(&job));
	hook_web_give_up(&job);
	expect_done("end:0 ");
}

/* Until an aide can be started, events are counted. */
Test(hook_web, what_was_dropped_is_told_with_the_next)
{
	int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(lowest);
	no_aide = true;
	tell(BUS_JOB_START, "{\"a\":1}");
	expect_done("start:/lib/n unwatch:0 unwatch:1 ");
	no_aide = false;
	watch_fails = 1;
	tell(BUS_JOB_START, "{\"a\":1}");
	expect_done("unwatch:1 ");
	watch_fails = 2;
	tell(BUS_JOB_START, "{\"a\":1}");
	expect_done("unwatch:0 ");
	cr_expect_eq(fcntl(lowest, F_GETFD), -1);
	cr_expect_eq(fcntl(lowest + 1, F_GETFD), -1);
	tell(BUS_JOB_START, "{\"a\":2}");
	expect_sent("http://x {\"dropped\":3,\"a\":2}\n");
	tell(BUS_JOB_START, "{\"a\":3}");
	expect_sent("http://x {\"a\":3}\n");
}

Test(hook_web, one_that_ends_is_started_again)
{
	tell(BUS_JOB_START, "{\"a\":1}");
	expect_sent("http://x {\"a\":1}\n");
	done[0] = '\0';
	on_over(0, false, &job);
	expect_done("unwatch:0 unwatch:1 done ");
	cr_expect(!hook_web_busy(&job));
	for (int i = 1; i <= 3; i++) {
		char want[200];

		tell(BUS_JOB_START, "{\"a\":1}");
		expect_done("start:/lib/n ");
		expect_sent("http://x {\"a\":1}\n");
		on_over(9, true, &job);
		snprintf(want, sizeof(want),
			"unwatch:0 unwatch:1 [xrun: --on-event: xrun-notify "
			"ended (9)%s] done ",
			i < 3 ? "" : "; web hooks are not told any more");
		expect_done(want);
	}
	tell(BUS_JOB_START, "{\"a\":1}");
	expect_done("");
	on_over(9, false, &job);
	expect_done("done ");
}

/* It does not read, so that what there is waits here. */
Test(hook_web, what_waits_has_a_limit)
{
	static char line[4096], got[65536];
	unsigned told, lines = 0;
	ssize_t n;

	memset(line, 'x', sizeof(line) - 1);
	line[0] = '{';
	for (told = 0; told < 500; told++)
		tell(BUS_JOB_START, line);
	cr_expect(watches[1].on);
	for (;;) {
		n = read(notify, got, sizeof(got));
		if (n <= 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			lines += got[i] == '\n';
		watches[1].fn(0, watches[1].ctx);
	}
	cr_expect(!watches[1].on);
	/* 256 KiB, and what the socket held. */
	cr_expect(lines > 64 && lines < told, "%u", lines);
	tell(BUS_JOB_START, "{\"a\":1}");
	n = read(notify, got, sizeof(got) - 1);
	got[n > 0 ? n : 0] = '\0';
	snprintf(line, sizeof(line), "http://x {\"dropped\":%u,\"a\":1}\n",
		told - lines);
	cr_expect_str_eq(got, line);
}

/* xrun-notify says something. */
static void
says(const char *text)
{
	size_t len = strlen(text);

	if (len > 0)
		cr_assert_eq(write(notify, text, len), (ssize_t)len);
	done[0] = '\0';
	watches[0].fn(line_fd, watches[0].ctx);
}

Test(hook_web, what_it_says_is_said)
{
	static char line[400];
	char want[500];

	tell(BUS_JOB_START, "{\"a\":1}");
	says("one\n");
	expect_done("[xrun: --on-event: one] ");
	says("two\nthr");
	expect_done("[xrun: --on-event: two] ");
	says("");
	expect_done("");
	says("ee\nfour\n");
	expect_done("[xrun: --on-event: three] [xrun: --on-event: four] ");
	memset(line, 'x', 301);
	line[301] = '\n';
	says(line);
	snprintf(want, sizeof(want), "[xrun: --on-event: %.300s] ", line);
	expect_done(want);
	says("6\n7\n8\n9\n10\n11\n");
	expect_done("[xrun: --on-event: 6] [xrun: --on-event: 7] "
		    "[xrun: --on-event: 8] [xrun: --on-event: 9] "
		    "[xrun: --on-event: 10] ");
	cr_expect(watches[0].on);
	close(notify);
	notify = -1;
	says("");
	cr_expect(!watches[0].on);
	expect_done("");
}

Test(hook_web, a_line_that_is_too_long_is_forgotten)
{
	static char text[1025];

	memset(text, 'x', 1024);
	tell(BUS_JOB_START, "{\"a\":1}");
	says(text);
	says("\n");
	text[300] = '\0';
	cr_expect_eq(strncmp(done, "[xrun: --on-event: xxx", 22), 0);
	text[300] = 'x';
	says(text);
	says("y");
	says("z\n");
	expect_done("[xrun: --on-event: z] ");
}
