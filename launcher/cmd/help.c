/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - see help.h. */
#include <string.h>

#include "base/opt_print.h"
#include "base/suggest.h"
#include "launcher/cmd/completion.h"
#include "launcher/cmd/help.h"
#include "launcher/cmd/help_env.h"
#include "launcher/cmd/help_metrics.h"
#include "launcher/cmd/help_protocol.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/verb.h"
#include "launcher/job/options.h"
#include "launcher/job/rank.h"
#include "place/profile.h"

#define USAGE \
	"usage: xrun [options] [--] PROGRAM [ARG...] [: [options] PROGRAM [ARG...]]...\n"

static const struct {
	bool brief; /* in the 24 lines of the short help, too */
	const char *line, *what;
} examples[] = {
	{ true, "xrun -n 8 ./train", "8 ranks on this machine" },
	{ true, "xrun -n 4 python3 train.py", "PyTorch: nothing to change" },
	{ true, "xrun -n 1 ./server : -n 7 ./worker",
		"different programs in one job" },
	{ true, "XRUN_RANKS=8 xrun ./train",
		"most options are variables, too" },
	{ false, "xrun --dry-run -n 8 ./train",
		"who would run where, with what" },
	{ true, "xrun -d -n 8 ./train", "leave it running" },
};

static const struct {
	const char *code, *text;
} exits[] = {
	{ "0", "All ranks ended with 0." },
	{ "_N_",
		"The status of the first rank that failed, see *--exit-code*." },
	{ "128 + _n_", "The first rank that failed was ended by signal _n_." },
	{ "120",
		"A rank could not be ended, not even with SIGKILL, and is left." },
	{ "121", "A rank hung, see *--hang-timeout*." },
	{ "124", "The job was stopped by *--timeout*." },
	{ "125",
		"xrun itself: usage, limits, output that cannot be written, ..." },
	{ "126", "The program cannot be executed." },
	{ "127", "The program was not found." },
	{ "130", "Ctrl-C; 128 + _n_ when signal _n_ told xrun to stop." },
	{ "141",
		"The reader of standard output exited, see *--on-stdout-close*." },
};

static void
put_examples(struct buf *out, bool all)
{
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
		if (all || examples[i].brief)
			buf_fmt(out, "  %-39s%s\n", examples[i].line,
				examples[i].what);
}

static void
put_options(struct buf *out)
{
	opt_print_all(run_options, out);
}

static void
put_options_man(struct buf *out)
{
	opt_print_man(run_options, out);
}

static void
put_keys(struct buf *out)
{
	opt_print_keys(run_options, out);
}

static void
put_keys_man(struct buf *out)
{
	opt_print_keys_man(run_options, out);
}

static void
put_exits(struct buf *out)
{
	char code[16], text[128];

	for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++) {
		struct buf plain = { 0 };

		opt_print_fill(exits[i].code, 0, &plain);
		snprintf(code, sizeof(code), "%.*s", (int)plain.len - 1,
			buf_text(&plain));
		buf_clear(&plain);
		opt_print_fill(exits[i].text, 0, &plain);
		snprintf(text, sizeof(text), "%s", buf_text(&plain));
		buf_fini(&plain);
		buf_fmt(out, "  %-8s%s", code, text);
	}
}

static void
put_exits_man(struct buf *out)
{
	for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++)
		buf_fmt(out, "%s\n\t%s\n\n", exits[i].code, exits[i].text);
}

/* What is done on the way, in words. */
static const struct {
	unsigned act;
	const char *text;
} acts[] = {
	{ RANK_DO_STOP, "stop signal" },
	{ RANK_DO_KILL, "SIGKILL" },
	{ RANK_DO_DRAIN, "wait for its pipes" },
	{ RANK_DO_CLOSE, "give its pipes up" },
	{ RANK_DO_SETTLE, "count it" },
};

/* @first before the first of them, @next before each other one. */
static void
put_acts(struct buf *out, unsigned act, const char *first, const char *next)
{
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		if ((act & acts[i].act) == 0)
			continue;
		buf_fmt(out, "%s%s", first, acts[i].text);
		first = next;
	}
}

static void
put_states(struct buf *out)
{
	enum rank_state to;
	unsigned act;

	buf_put_text(out,
		"  state     event        leads to, and what is done on the way\n\n");
	for (int s = 0; s < RANK_STATE_COUNT; s++)
		for (int e = 0; e < RANK_EVENT_COUNT; e++) {
			if (!rank_next((enum rank_state)s, (enum rank_event)e,
				    &to, &act))
				continue;
			buf_fmt(out, "  %-9s %-12s %s",
				rank_state_name((enum rank_state)s),
				rank_event_name((enum rank_event)e),
				rank_state_name(to));
			put_acts(out, act, ", ", ", ");
			buf_put_char(out, '\n');
		}
}

/* Steps that stay where they are are left out. */
static void
put_states_dot(struct buf *out)
{
	enum rank_state to;
	unsigned act;

	buf_put_text(out, "digraph rank {\n");
	for (int s = 0; s < RANK_STATE_COUNT; s++)
		for (int e = 0; e < RANK_EVENT_COUNT; e++) {
			if (!rank_next((enum rank_state)s, (enum rank_event)e,
				    &to, &act) ||
				(int)to == s)
				continue;
			buf_fmt(out, "\t%s -> %s [label=\"%s",
				rank_state_name((enum rank_state)s),
				rank_state_name(to),
				rank_event_name((enum rank_event)e));
			put_acts(out, act, "\\n", ", ");
			buf_put_text(out, "\"];\n");
		}
	buf_put_text(out, "}\n");
}

const struct help_topic help_topics[] = {
	{ "options", "every option of the main form",
		{ [HELP_TEXT] = put_options,
			[HELP_MAN] = put_options_man,
			[HELP_BASH] = completion_bash } },
	{ "keys", "what may stand in a file of settings",
		{ [HELP_TEXT] = put_keys, [HELP_MAN] = put_keys_man } },
	{ "environ", "variables, those of ranks and those of xrun",
		{ [HELP_TEXT] = help_environ, [HELP_MAN] = help_environ_man } },
	{ "exit", "what xrun's exit status means",
		{ [HELP_TEXT] = put_exits, [HELP_MAN] = put_exits_man } },
	{ "metrics", "what is counted of a job, for Prometheus",
		{ [HELP_TEXT] = help_metrics, [HELP_MAN] = help_metrics_man } },
	{ "protocol", "what can be said on a control socket",
		{ [HELP_TEXT] = help_protocol,
			[HELP_MAN] = help_protocol_man } },
	{ "states", "the life of a rank, step by step",
		{ [HELP_TEXT] = put_states, [HELP_DOT] = put_states_dot } },
	{ 0 },
};

static const struct help_topic *
find_topic(const char *name)
{
	for (const struct help_topic *t = help_topics; t->name != NULL; t++)
		if (strcmp(t->name, name) == 0)
			return t;
	return NULL;
}

static void
put_verbs(struct buf *out)
{
	for (const struct verb *v = verbs; v->name != NULL; v++)
		if (v->run != NULL)
			buf_fmt(out, "  xrun %-10s %-20s %s\n", v->name,
				v->operands, v->help);
}

/* xrun help, with nothing behind it. */
static void
put_all(struct buf *out)
{
	buf_put_text(out,
		USAGE "       xrun VERB [ARG...]\n\n"
		      "Start PROGRAM as several ranks of one job, carry their "
		      "output, watch them, and\nend with a true account of "
		      "what happened. Options end at PROGRAM or behind --.\n"
		      "Most options are variables and keys in a file, too, and "
		      "most flags have a --no-\nform. The command line wins, "
		      "then variables, then files.\n\n");
	put_examples(out, true);
	buf_put_char(out, '\n');
	put_options(out);
	buf_put_text(out, "\nExit status\n\n");
	put_exits(out);
	buf_put_text(out, "\nVerbs, each with -h\n\n");
	put_verbs(out);
	buf_put_text(out,
		"\nTopics of xrun help, besides verbs and options:\n ");
	for (const struct help_topic *t = help_topics; t->name != NULL; t++)
		buf_fmt(out, " %s", t->name);
	buf_put_char(out, '\n');
}

void
help_short(FILE *out)
{
	struct buf b = { 0 };

	buf_put_text(&b, USAGE "\n");
	put_examples(&b, false);
	buf_put_char(&b, '\n');
	opt_print_short(run_options, &b);
	buf_put_text(&b,
		"\n  xrun help  all of it      xrun help OPTION  one of them\n");
	fputs(buf_text(&b), out);
	buf_fini(&b);
}

void
help_alone(struct buf *out, const struct help_here *here)
{
	const char *devices = here->devices == NULL ? "" : here->devices;

	buf_put_text(out, "xrun: no program given\n\n");
	put_examples(out, true);
	buf_put_text(out,
		"\n"
		"  xrun ps|logs|stop        running jobs      xrun doctor   is this machine ready?\n"
		"  xrun -h  short help      xrun help         all of it\n\n");
	if (here->accelerators == 0)
		buf_put_text(out, "No accelerator here.");
	else
		buf_fmt(out, "%u accelerator%s here%s%s%s.", here->accelerators,
			here->accelerators == 1 ? "" : "s",
			*devices == '\0' ? "" : " (", devices,
			*devices == '\0' ? "" : ")");
	if (here->running != NULL && here->jobs == 0)
		buf_put_text(out, " No job running.");
	else if (here->running != NULL)
		buf_fmt(out, " %u job%s running: %s.", here->jobs,
			here->jobs == 1 ? "" : "s", here->running);
	buf_put_char(out, '\n');
}

/* "--man" is HELP_MAN; HELP_FORMS if it is no form. */
static enum help_form
form_of(const char *word)
{
	static const char *const forms[] = {
		[HELP_TEXT] = "--text",
		[HELP_MAN] = "--man",
		[HELP_BASH] = "--bash",
		[HELP_DOT] = "--dot",
	};
	int form = 0;

	while (form < HELP_FORMS && strcmp(forms[form], word) != 0)
		form++;
	return (enum help_form)form;
}

/* "XRUN_STOP_SIGNAL", "XRUN_NO_LOGS". */
static const struct opt *
find_variable(const char *word)
{
	char name[80], no[64];

	for (const struct opt *o = run_options; o->name != NULL; o++) {
		opt_env_name(o->name, name, sizeof(name));
		if (strcmp(word, name) == 0)
			return o;
		snprintf(no, sizeof(no), "no-%s", o->name);
		opt_env_name(no, name, sizeof(name));
		if (strcmp(word, name) == 0)
			return o;
	}
	return NULL;
}

/* "--timeout", "-n", "no-logs", "XRUN_RANKS". */
static const struct opt *
find_option(const char *word)
{
	if (strncmp(word, "XRUN_", 5) == 0)
		return find_variable(word);
	word += strspn(word, "-");
	if (word[0] != '\0' && word[1] == '\0')
		for (const struct opt *o = run_options; o->name != NULL; o++)
			if (o->letter == word[0])
				return o;
	if (strncmp(word, "no-", 3) == 0)
		word += 3;
	return opt_find(run_options,
		(struct span){ .at = word, .len = strlen(word) });
}

/* Does xrun tell its ranks a variable of this name? */
static bool
is_told(const char *word)
{
	for (int i = 0; env_output_names[i] != NULL; i++)
		if (strcmp(env_output_names[i], word) == 0)
			return true;
	return false;
}

/* No topic of that name: perhaps an option, a variable, a verb, or a slip. */
static int
help_other(const char *word, struct buf *out)
{
	const struct opt *option = find_option(word);
	const struct verb *verb = verb_find(word);
	struct suggest near;

	if (option != NULL) {
		opt_print_row(option, out);
		if (verb != NULL && verb->run != NULL)
			buf_fmt(out, "  xrun %s %s\n      %s\n", verb->name,
				verb->operands, verb->help);
		return say(out);
	}
	if (is_told(word)) {
		buf_fmt(out,
			"  %s is what xrun tells a rank, and no option. What it is there:\n"
			"      xrun -n N --show-env=RANK PROGRAM; see xrun(1), ENVIRONMENT.\n",
			word);
		return say(out);
	}
	if (verb != NULL)
		return verb_run(verb, 2, (char *[]){ "", "-h", NULL });
	suggest_init(&near, word, strlen(word));
	for (const struct help_topic *t = help_topics; t->name != NULL; t++)
		suggest_offer(&near, t->name);
	for (const struct opt *o = run_options; o->name != NULL; o++)
		suggest_offer(&near, o->name);
	if (suggest_best(&near) != NULL)
		return say_no("help: nothing is called '%s' (did you mean %s?)",
			word, suggest_best(&near));
	return say_no("help: nothing is called '%s'", word);
}

int
cmd_help(int argc, char **argv)
{
	const struct help_topic *topic = NULL;
	enum help_form form = HELP_TEXT;
	struct buf out = { 0 };
	const char *word = NULL;

	for (int i = 1; i < argc; i++) {
		if (form == HELP_TEXT && form_of(argv[i]) != HELP_FORMS)
			form = form_of(argv[i]);
		else if (word == NULL)
			word = argv[i];
		else
			return say_no("help: one topic at a time, not '%s'",
				argv[i]);
	}
	if (word == NULL && form == HELP_TEXT) {
		put_all(&out);
		return say(&out);
	}
	topic = find_topic(word == NULL ? "options" : word);
	if (topic == NULL && form == HELP_MAN && verb_find(word) != NULL &&
		verb_find(word)->options != NULL) {
		opt_print_man(verb_find(word)->options, &out);
		return say(&out);
	}
	if (topic == NULL)
		return help_other(word, &out);
	if (topic->put[form] == NULL)
		return say_no("help: %s cannot be shown that way", topic->name);
	topic->put[form](&out);
	return say(&out);
}
