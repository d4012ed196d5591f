/* SPDX-License-Identifier: Apache-2.0 */
/* verb.c - see verb.h. */
#include <string.h>

#include "base/suggest.h"
#include "launcher/cmd/completion.h"
#include "launcher/cmd/config.h"
#include "launcher/cmd/help.h"
#include "launcher/cmd/program.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/verb.h"
#include "launcher/cmd/version.h"

const struct verb verbs[] = {
	{ "help", "[TOPIC|OPTION]", "all of it, or one thing", cmd_help },
	{ "version", "[--json]", "which xrun this is", cmd_version },
	{ "completion", "bash|zsh|fish", "words for the shell to complete",
		cmd_completion },
	{ "config", "show|check|schema",
		"what settings are, and errors in files", cmd_config },
	{ "ps", NULL, NULL, NULL },
	{ "top", NULL, NULL, NULL },
	{ "logs", NULL, NULL, NULL },
	{ "events", NULL, NULL, NULL },
	{ "wait", NULL, NULL, NULL },
	{ "attach", NULL, NULL, NULL },
	{ "signal", NULL, NULL, NULL },
	{ "stop", NULL, NULL, NULL },
	{ "restart", NULL, NULL, NULL },
	{ "stacks", NULL, NULL, NULL },
	{ "doctor", NULL, NULL, NULL },
	{ "node", NULL, NULL, NULL },
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

int
verb_run(const struct verb *verb, int argc, char **argv)
{
	struct buf out = { 0 };

	if (verb->run == NULL && program_exists(verb->name))
		return say_no(
			"%s comes with a later version   try: xrun -- %s, for the program of that name",
			verb->name, verb->name);
	if (verb->run == NULL)
		return say_no("%s comes with a later version", verb->name);
	if (!asks_for_help(argc, argv))
		return verb->run(argc, argv);
	buf_fmt(&out, "usage: xrun %s %s\n\n  %s\n", verb->name, verb->operands,
		verb->help);
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
