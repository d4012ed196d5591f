/* SPDX-License-Identifier: Apache-2.0 */
/* hook_exec.c - commands of --exec-on, one after the other; see hook.h. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/gate.h"
#include "launcher/job/detach.h"
#include "launcher/job/outcome.h"
#include "launcher/job/sup.h"
#include "launcher/tell/aide.h"
#include "launcher/tell/hook.h"
#include "place/environ.h"

#define QUEUE_MAX 64
#define VARS_MAX  32 /* of an event */
#define VALUE_MAX 4096

extern char **environ;

struct order {
	STAILQ_ENTRY(order) list;
	const char *command;
	enum bus_event event;
	size_t len;
	char line[]; /* JSON */
};

struct hook_exec {
	STAILQ_HEAD(, order) queue;
	unsigned count, dropped;
	struct order *now; /* runs; NULL: none */
	struct aide *aide;
};

/* --- what a command gets -------------------------------------------------- */

struct vars {
	struct buf text; /* "NAME=value\0" each */
	size_t at[VARS_MAX];
	size_t count;
};

static void
put_var(struct vars *v, const char *name, struct span value)
{
	if (v->count == VARS_MAX)
		return;
	v->at[v->count++] = v->text.len;
	buf_put_text(&v->text, "XRUN_");
	for (; *name != '\0'; name++)
		buf_put_char(&v->text, (char)toupper((unsigned char)*name));
	buf_put_char(&v->text, '=');
	buf_put(&v->text, value.at, value.len);
	buf_put_char(&v->text, '\0');
}

/* A member that is no list, as XRUN_EVENT_<NAME>. */
static void
put_member(struct vars *v, const struct gate_item *item)
{
	char name[80] = "event_", value[VALUE_MAX];
	const enum gate_kind kind = gate_kind(item->value);

	if (item->key.len > 64 || item->value.len >= sizeof(value) ||
		kind == GATE_OBJECT || kind == GATE_ARRAY || kind == GATE_NULL)
		return;
	gate_unescape(item->key, name + strlen(name));
	if (strcmp(name, "event_event") == 0)
		name[strlen("event")] = '\0';
	if (kind == GATE_TEXT)
		put_var(v, name,
			(struct span){ value,
				gate_unescape(item->value, value) });
	else
		put_var(v, name, item->value);
}

static void
put_vars(struct vars *v, const struct job *job, const struct order *o)
{
	struct gate_walk walk = gate_walk(gate_root(o->line, o->len));
	struct gate_item item;

	put_var(v, "job", span_of(job->state.id));
	while (gate_next(&walk, &item))
		put_member(v, &item);
}

/* What xrun was started with, but its options; NULL: no memory. The caller
 * frees the array. */
static char **
make_env(const struct vars *v)
{
	size_t n = 0, count = 0;
	char **env;

	while (environ[count] != NULL)
		count++;
	env = calloc(count + v->count + 1, sizeof(*env));
	if (env == NULL || v->text.bad != XR_OK)
		return env;
	for (size_t i = 0; i < count; i++)
		if (strncmp(environ[i], "XRUN_", 5) != 0)
			env[n++] = environ[i];
	for (size_t i = 0; i < v->count; i++)
		env[n++] = v->text.data + v->at[i];
	return env;
}

static int
make_input(const struct order *o)
{
	int fd = memfd_create("xrun-event", MFD_CLOEXEC);

	if (fd != -1 &&
		(fd_write_all(fd, o->line, o->len) == -1 ||
			lseek(fd, 0, SEEK_SET) == -1)) {
		fd_close(fd);
		fd = -1;
	}
	return fd;
}

/* --- one after the other -------------------------------------------------- */

static void next(struct job *job);

static void
say(struct job *job, const struct order *o, const char *what)
{
	hook_say(job, "xrun: --exec-on %s: '%.60s' %s",
		bus_event_name(o->event), o->command, what);
}

static void
on_over(int status, bool late, void *ctx)
{
	struct job *job = ctx;
	struct hook_exec *e = job->hooks->running;
	char text[64];

	if (late)
		say(job, e->now, "took longer than 5 s, and was ended");
	else if (status != 0 && job->opt.verbose) {
		snprintf(text, sizeof(text), "ended with status %d",
			WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
					      WEXITSTATUS(status));
		say(job, e->now, text);
	}
	free(e->now);
	e->now = NULL;
	e->aide = NULL;
	next(job);
}

/* The xrun that was called waits for the end of its pipe, which nobody who
 * outlives the start is to hold: the file that takes its place is there. */
static int
words_of(const struct job *job)
{
	return job->detach != NULL && job->detach->words != -1 ?
		job->detach->words :
		STDERR_FILENO;
}

static bool
start(struct job *job, struct order *o)
{
	struct hook_exec *e = job->hooks->running;
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)o->command, NULL };
	struct vars vars = { 0 };
	struct aide_config config = {
		.path = "/bin/sh",
		.argv = argv,
		.in = make_input(o),
		.out = words_of(job),
		.err = words_of(job),
		.time_ns = HOOK_EXEC_NS,
		.fn = on_over,
		.ctx = job,
	};

	put_vars(&vars, job, o);
	config.envp = make_env(&vars);
	errno = ENOMEM;
	if (config.envp != NULL && config.in != -1 && vars.text.bad == XR_OK)
		e->aide = aide_start(job, &config);
	if (e->aide == NULL)
		say(job, o, strerror(errno));
	fd_close(config.in);
	free((void *)config.envp);
	buf_fini(&vars.text);
	return e->aide != NULL;
}

static void
next(struct job *job)
{
	struct hook_exec *e = job->hooks->running;

	while (e->now == NULL && !STAILQ_EMPTY(&e->queue)) {
		e->now = STAILQ_FIRST(&e->queue);
		STAILQ_REMOVE_HEAD(&e->queue, list);
		e->count--;
		if (start(job, e->now))
			return;
		free(e->now);
		e->now = NULL;
	}
	if (e->now == NULL)
		hook_done(job);
}

/* Said with the first, and not of each. */
static void
drop(struct job *job, const char *command, enum bus_event event)
{
	if (job->hooks->running->dropped++ == 0)
		hook_say(job,
			"xrun: --exec-on %s: '%.60s' is too slow: it is not run for each event any more",
			bus_event_name(event), command);
}

void
hook_exec_tell(struct job *job, const char *command, enum bus_event event,
	struct span line)
{
	struct hook_exec *e = job->hooks->running;
	struct order *o = malloc(sizeof(*o) + line.len);

	if (e == NULL && (e = calloc(1, sizeof(*e))) != NULL) {
		STAILQ_INIT(&e->queue);
		job->hooks->running = e;
	}
	/* The end of the job has a place of its own. */
	if (e == NULL || o == NULL ||
		(e->count >= QUEUE_MAX && event != BUS_JOB_END)) {
		free(o);
		if (e != NULL)
			drop(job, command, event);
		return;
	}
	*o = (struct order){ .command = command,
		.event = event,
		.len = line.len };
	memcpy(o->line, line.at, line.len);
	STAILQ_INSERT_TAIL(&e->queue, o, list);
	e->count++;
	if (e->now == NULL)
		next(job);
}

bool
hook_exec_busy(const struct job *job)
{
	const struct hook_exec *e = job->hooks->running;

	return e != NULL && (e->now != NULL || !STAILQ_EMPTY(&e->queue));
}

void
hook_exec_give_up(struct job *job)
{
	struct hook_exec *e = job->hooks->running;
	struct order *o;

	if (e == NULL)
		return;
	if (e->now != NULL)
		say(job, e->now, "is not waited for any longer");
	while ((o = STAILQ_FIRST(&e->queue)) != NULL) {
		say(job, o, "is not run: the job is over");
		STAILQ_REMOVE_HEAD(&e->queue, list);
		free(o);
	}
	aide_end(e->aide);
	e->aide = NULL;
}

void
hook_exec_free(struct job *job)
{
	struct hook_exec *e = job->hooks->running;
	struct order *o;

	if (e == NULL)
		return;
	while ((o = STAILQ_FIRST(&e->queue)) != NULL) {
		STAILQ_REMOVE_HEAD(&e->queue, list);
		free(o);
	}
	free(e->now);
	free(e);
	job->hooks->running = NULL;
}
