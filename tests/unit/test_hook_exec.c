/* SPDX-License-Identifier: Apache-2.0 */
/* test_hook_exec.c - commands of --exec-on: what they get, and one after the other. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "base/clock.h"
#include "launcher/job/detach.h"
#include "launcher/job/sup.h"
#include "launcher/job/words.h"
#include "launcher/tell/aide.h"
#include "launcher/tell/hook.h"
#include "tests/unit/short_memory.h"

extern char **environ;

static struct hooks hooks;
static struct sup sup;
static struct job job = { .hooks = &hooks,
	.sup = &sup,
	.state = { .id = "k7m2" } };

/* --- commands that do not run ----------------------------------------------- */

static struct {
	char command[256], input[8192];
	char *env[256];
	struct aide_config config;
	unsigned count; /* started */
	int sys;        /* why the next cannot be; 0: it can */
} aide;
static unsigned ended;
static struct buf said;

struct aide *__wrap_aide_start(struct job *job_, const struct aide_config *c);
void __wrap_aide_end(struct aide *a);
void __wrap_logs_say(struct logs *logs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool __wrap_words_have_room(void);
void __wrap_words_line(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

struct aide *
__wrap_aide_start(struct job *job_, const struct aide_config *c)
{
	ssize_t n = read(c->in, aide.input, sizeof(aide.input) - 1);
	size_t count = 0;

	cr_expect_eq(job_, &job);
	cr_expect_geq(n, 0);
	aide.input[n < 0 ? 0 : n] = '\0';
	aide.config = *c;
	cr_expect_str_eq(c->path, "/bin/sh");
	cr_expect_str_eq(c->argv[0], "sh");
	cr_expect_str_eq(c->argv[1], "-c");
	snprintf(aide.command, sizeof(aide.command), "%s", c->argv[2]);
	cr_expect_null(c->argv[3]);
	for (size_t i = 0; i < 256; i++)
		free(aide.env[i]);
	memset(aide.env, 0, sizeof(aide.env));
	for (; c->envp[count] != NULL; count++)
		aide.env[count] = strdup(c->envp[count]);
	errno = aide.sys;
	aide.count += aide.sys == 0;
	return aide.sys == 0 ? (struct aide *)&aide : NULL;
}

void
__wrap_aide_end(struct aide *a)
{
	ended += a != NULL;
}

void
__wrap_logs_say(struct logs *logs, const char *fmt, ...)
{
	char line[600];
	va_list ap;

	(void)logs;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_fmt(&said, "%s\n", line);
}

static bool no_room;

bool
__wrap_words_have_room(void)
{
	return !no_room;
}

void
__wrap_words_line(const char *fmt, ...)
{
	char line[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_fmt(&said, "words: %s\n", line);
}

static void
is_said(const char *want)
{
	cr_expect_str_eq(buf_text(&said), want, "got:  %s\nwant: %s",
		buf_text(&said), want);
	buf_clear(&said);
}

static void
tell(const char *command, const char *line)
{
	hook_exec_tell(&job, command, BUS_RANK_EXIT, span_of(line));
}

/* The command that runs has ended. */
static void
end(int status, bool late)
{
	aide.config.fn(status, late, aide.config.ctx);
}

static void
clean(void)
{
	if (job.hooks != NULL)
		hook_exec_free(&job);
	for (size_t i = 0; i < 256; i++)
		free(aide.env[i]);
	buf_fini(&said);
}

TestSuite(hook_exec, .fini = clean);

/* The value of a variable of the command; NULL if it has none. */
static const char *
value_of(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; aide.env[i] != NULL; i++)
		if (strncmp(aide.env[i], name, len) == 0 &&
			aide.env[i][len] == '=')
			return aide.env[i] + len + 1;
	return NULL;
}

static void
has(const char *name, const char *want)
{
	const char *is = value_of(name);

	cr_expect(is != NULL && strcmp(is, want) == 0, "%s=%s, not %s", name,
		is, want);
}

static unsigned
count_of(char **env)
{
	unsigned n = 0;

	while (env[n] != NULL)
		n++;
	return n;
}

/* --- what a command gets ---------------------------------------------------- */

Test(hook_exec, members_of_an_event_are_variables)
{
	unsigned before;

	setenv("XRUN_RANK", "3", 1);
	setenv("XRUNNER", "4", 1);
	before = count_of(environ);
	tell("a command",
		"{\"event\":\"rank.exit\",\"rank\":7,\"Text\":\"a\\n\\\"b\",\"ok\":true,\"no\":null,\"list\":[1],\"object\":{\"a\":1}}");
	cr_expect_eq(aide.count, 1);
	cr_expect_str_eq(aide.command, "a command");
	cr_expect_str_eq(aide.input + strlen(aide.input) - 17,
		"\"object\":{\"a\":1}}");
	cr_expect_eq(aide.config.time_ns, 5 * NS_PER_S);
	cr_expect_eq(aide.config.out, STDERR_FILENO);
	cr_expect_eq(aide.config.err, STDERR_FILENO);
	has("XRUN_JOB", "k7m2");
	has("XRUN_EVENT", "rank.exit");
	has("XRUN_EVENT_RANK", "7");
	has("XRUN_EVENT_TEXT", "a\n\"b");
	has("XRUN_EVENT_OK", "true");
	has("XRUNNER", "4");
	cr_expect_null(value_of("XRUN_RANK"));
	cr_expect_null(value_of("XRUN_EVENT_NO"));
	cr_expect_null(value_of("XRUN_EVENT_LIST"));
	cr_expect_null(value_of("XRUN_EVENT_OBJECT"));
	cr_expect_eq(count_of(aide.env), before - 1 + 5);
	is_said("");
}

Test(hook_exec, long_names_and_values_and_many_members_are_left_out)
{
	struct buf line = { 0 };

	buf_fmt(&line, "{\"%062d\":1,\"%063d\":2,\"fits\":\"%04093d\",", 0, 0,
		0);
	buf_fmt(&line, "\"long\":\"%04094d\"}", 0);
	tell("", buf_text(&line));
	cr_expect_eq(strlen(value_of("XRUN_EVENT_FITS")), 4093);
	cr_expect_null(value_of("XRUN_EVENT_LONG"));
	cr_expect_eq(count_of(aide.env), count_of(environ) + 3);
	end(0, false);
	buf_clear(&line);
	for (int i = 0; i < 40; i++)
		buf_fmt(&line, "%c\"n%d\":%d", i == 0 ? '{' : ',', i, i);
	buf_put_char(&line, '}');
	tell("", buf_text(&line));
	has("XRUN_EVENT_N30", "30"); /* and XRUN_JOB: 32 */
	cr_expect_null(value_of("XRUN_EVENT_N31"));
	buf_fini(&line);
}

Test(hook_exec, with_d_a_command_writes_to_the_file_of_its_words)
{
	struct detach detach = { .words = -1 };

	job.detach = &detach;
	tell("", "{}");
	cr_expect_eq(aide.config.out, STDERR_FILENO);
	end(0, false);
	detach.words = 77;
	tell("", "{}");
	cr_expect_eq(aide.config.out, 77);
	cr_expect_eq(aide.config.err, 77);
}

/* --- one after the other ---------------------------------------------------- */

Test(hook_exec, commands_run_in_their_order)
{
	int free_fd = dup(STDERR_FILENO);

	close(free_fd);
	cr_expect_not(hook_exec_busy(&job));
	hook_exec_give_up(&job);
	tell("first", "{\"n\":1}");
	tell("second", "{\"n\":2}");
	cr_expect(hook_exec_busy(&job));
	cr_expect_str_eq(aide.command, "first");
	cr_expect_str_eq(aide.input, "{\"n\":1}");
	end(0, false);
	cr_expect(hook_exec_busy(&job));
	cr_expect_str_eq(aide.command, "second");
	cr_expect_str_eq(aide.input, "{\"n\":2}");
	end(0, false);
	cr_expect_not(hook_exec_busy(&job));
	cr_expect_eq(aide.count, 2);
	is_said("");
	cr_expect_eq(dup(STDERR_FILENO), free_fd); /* none was left open */
}

Test(hook_exec, a_command_that_is_late_or_fails_is_named)
{
	tell("a", "{}");
	end(9 << 8, false);
	is_said("");
	job.opt.verbose = true;
	tell("a", "{}");
	end(9 << 8, false);
	is_said("xrun: --exec-on rank.exit: 'a' ended with status 9\n");
	tell("a", "{}");
	end(9, false);
	is_said("xrun: --exec-on rank.exit: 'a' ended with status 137\n");
	tell("a", "{}");
	end(0, false);
	is_said("");
	job.opt.verbose = false;
	tell("a", "{}");
	end(9, true);
	is_said("xrun: --exec-on rank.exit: 'a' took longer than 5 s, and was ended\n");
	sup.phase = PHASE_ACCOUNT;
	tell("0123456789012345678901234567890123456789012345678901234567890123",
		"{}");
	end(9, true);
	is_said("words: --exec-on rank.exit: '012345678901234567890123456789012345678901234567890123456789' took longer than 5 s, and was ended\n");
	no_room = true;
	tell("a", "{}");
	end(9, true);
	is_said("");
}

Test(hook_exec, a_command_that_cannot_be_started_holds_no_other_up)
{
	tell("first", "{}");
	tell("second", "{}");
	aide.sys = EAGAIN;
	end(0, false);
	is_said("xrun: --exec-on rank.exit: 'second' Resource temporarily unavailable\n");
	cr_expect_not(hook_exec_busy(&job));
	aide.sys = 0;
	tell("third", "{}");
	cr_expect_str_eq(aide.command, "third");
	cr_expect(hook_exec_busy(&job));
}

/* One runs and 64 wait; the end of the job has a place of its own. */
Test(hook_exec, events_that_find_no_place_are_dropped_and_the_end_is_not)
{
	for (int i = 0; i < 65; i++)
		tell("slow", "{}");
	is_said("");
	for (int i = 0; i < 3; i++)
		tell("slow", "{}");
	is_said("xrun: --exec-on rank.exit: 'slow' is too slow: it is not run for each event any more\n");
	hook_exec_tell(&job, "last", BUS_JOB_END, span_of("{}"));
	is_said("");
	for (int i = 0; i < 65; i++)
		end(0, false);
	cr_expect_str_eq(aide.command, "last");
	cr_expect_eq(aide.count, 66);
	end(0, false);
	cr_expect_not(hook_exec_busy(&job));
	/* there is room again */
	for (int i = 0; i < 65; i++)
		tell("slow", "{}");
	for (int i = 0; i < 65; i++)
		end(0, false);
	cr_expect_eq(aide.count, 131);
	is_said("");
}

Test(hook_exec, commands_that_are_given_up_are_named)
{
	for (int i = 0; i < 3; i++)
		tell(i == 0 ? "runs" : i == 1 ? "a" : "b", "{}");
	hook_exec_give_up(&job);
	is_said("xrun: --exec-on rank.exit: 'runs' is not waited for any longer\n"
		"xrun: --exec-on rank.exit: 'a' is not run: the job is over\n"
		"xrun: --exec-on rank.exit: 'b' is not run: the job is over\n");
	cr_expect_eq(ended, 1);
}

/* The event has memory, and the queue of events has none. */
Test(hook_exec, an_event_is_freed_if_there_is_no_memory_for_the_queue)
{
	until_short = 2;
	was_short = false;
	hook_exec_tell(&job, "true", BUS_JOB_END, span_of("{}"));
	until_short = 0;
	cr_expect(was_short);
	cr_expect_not(hook_exec_busy(&job));
	is_said("");
}

Test(hook_exec, without_memory_an_event_is_dropped_and_it_is_told)
{
	tell("a", "{}");
	until_short = 1;
	tell("b", "{}");
	until_short = 0;
	is_said("xrun: --exec-on rank.exit: 'b' is too slow: it is not run for each event any more\n");
	end(0, false);
	cr_expect_eq(aide.count, 1);
	until_short = 2; /* for its variables */
	tell("c", "{}");
	until_short = 0;
	is_said("xrun: --exec-on rank.exit: 'c' Cannot allocate memory\n");
	cr_expect_eq(aide.count, 1);
	cr_expect_not(hook_exec_busy(&job));
}
