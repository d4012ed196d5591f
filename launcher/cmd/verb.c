/* SPDX-License-Identifier: Apache-2.0 */
/* verb.c - see verb.h. */
#include <string.h>

#include "base/opt_print.h"
#include "base/suggest.h"
#include "launcher/cmd/attach.h"
#include "launcher/cmd/completion.h"
#include "launcher/cmd/config.h"
#include "launcher/cmd/doctor.h"
#include "launcher/cmd/events.h"
#include "launcher/cmd/help.h"
#include "launcher/cmd/logs.h"
#include "launcher/cmd/program.h"
#include "launcher/cmd/ps.h"
#include "launcher/cmd/remove.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/stacks.h"
#include "launcher/cmd/steer.h"
#include "launcher/cmd/verb.h"
#include "launcher/cmd/version.h"
#include "launcher/keeper/orphan.h"

const struct verb verbs[] = {
	{ "ps", "[JOB]", "jobs, or the ranks of one", ps_options, .run = cmd_ps,
		.jobs = true },
	{ "logs", "[JOB]", "what the ranks of a job wrote", logs_options,
		.run = cmd_logs, .jobs = true },
	{ "events", "[JOB]", "what happened to a job", events_options,
		.run = cmd_events, .jobs = true },
	{ "attach", "[JOB]", "a running job's output, or terminal",
		attach_options, .run = cmd_attach, .steers = true,
		.jobs = true },
	{ "signal", "SIGNAL [JOB...]", "a signal to the ranks of a job",
		signal_options, .run = cmd_signal, .steers = true,
		.jobs = true },
	{ "stop", "[JOB...]", "end a job as SIGTERM does", stop_options,
		.run = cmd_stop, .steers = true, .jobs = true },
	{ "restart", "[JOB]", "end the ranks of a job, start them anew",
		restart_options, .run = cmd_restart, .steers = true,
		.jobs = true },
	{ "wait", "[JOB...]", "for the end of a job; exits as it did",
		wait_options, .run = cmd_wait, .jobs = true },
	{ "stacks", "[JOB]", "where the ranks of a job are", stacks_options,
		.run = cmd_stacks, .steers = true, .jobs = true },
	{ "rm", "JOB...", "remove stored jobs", rm_options, .run = cmd_rm,
		.jobs = true },
	{ "prune", "", "remove stored jobs by age or number", prune_options,
		.run = cmd_prune, .jobs = true },
	{ "doctor", "", "is this machine ready?", doctor_options,
		.run = cmd_doctor },
	{ "help", "[TOPIC|OPTION]", "all of it, or one thing", NULL,
		.run = cmd_help },
	{ "version", "[--json]", "which xrun this is", NULL,
		.run = cmd_version },
	{ "completion", "bash|zsh|fish", "words for the shell to complete",
		NULL, .run = cmd_completion },
	{ "config", "show|check|schema",
		"what settings are, and errors in files", NULL,
		.run = cmd_config },
	{ .name = "top", .help = "xrun ps" },
	{ .name = "node" },
	{ 0 },
};

const struct verb *
verb_find(const char *word)
{
	for (const struct verb *v = verbs; v->name != NULL; v++)
		if (strcmp(v->name, word) == 0)
			return v;
	return NULL;
}

static bool
asks_for_help(int argc, char **argv)
{
	return argc > 1 &&
		(strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0);
}

static int
say_not_built(const struct verb *verb)
{
	const char *advice = verb->help == NULL ? "" : verb->help;
	const char *then = advice[0] == '\0' ? "" : "; or ";

	if (program_exists(verb->name))
		return say_no(
			"%s comes with a later version   try: %s%sxrun -- %s, for the program of that name",
			verb->name, advice, then, verb->name);
	return say_no("%s comes with a later version%s%s", verb->name,
		advice[0] == '\0' ? "" : "   try: ", advice);
}

int
verb_run(const struct verb *verb, int argc, char **argv)
{
	struct buf out = { 0 };

	if (verb->run == NULL)
		return say_not_built(verb);
	if (!asks_for_help(argc, argv)) {
		if (verb->jobs)
			orphan_run_now();
		return verb->run(argc, argv);
	}
	buf_fmt(&out, "usage: xrun %s%s %s\n\n  %s\n", verb->name,
		verb->options == NULL ? "" : " [OPTION...]", verb->operands,
		verb->help);
	if (verb->options != NULL) {
		buf_put_char(&out, '\n');
		opt_print_short(verb->options, &out);
	}
	return say(&out);
}

const char *
verb_suggest(const char *word)
{
	struct suggest near;
	const char *best;

	suggest_init(&near, word, strlen(word));
	for (const struct verb *v = verbs; v->name != NULL; v++)
		if (v->run != NULL)
			suggest_offer(&near, v->name);
	best = suggest_best(&near);
	return best == NULL ? NULL : verb_find(best)->name;
}
