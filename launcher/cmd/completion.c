/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - see completion.h. */
#include <ctype.h>
#include <string.h>

#include "base/opt_shell.h"
#include "base/signo.h"
#include "launcher/cmd/completion.h"
#include "launcher/cmd/help.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/verb.h"
#include "launcher/cmd/which.h"
#include "launcher/job/options.h"

/* How a shell writes a function that prints words by its first argument. */
struct dialect {
	const char *prefix;             /* of every function */
	const char *begin, *end;        /* of its body */
	const char *choose, *chosen;    /* switch on the first argument */
	const char *is, *then, *unless; /* one case of it: name, words */
};

static const struct dialect posix = {
	.prefix = "_xrun_",
	.begin = "()\n{\n",
	.end = "}\n",
	.choose = "\tcase $1 in\n",
	.chosen = "\tesac\n",
	.is = "\t",
	.then = ") echo '",
	.unless = "' ;;\n",
};

static const struct dialect fish = {
	.prefix = "function __xrun_",
	.begin = "\n",
	.end = "end\n",
	.choose = "\tswitch $argv[1]\n",
	.chosen = "\tend\n",
	.is = "\t\tcase ",
	.then = "\n\t\t\tstring split -- ' ' '",
	.unless = "'\n",
};

/* Words that may stand for @word of a verb's operands: itself, or, where it is
 * in capitals, what it stands for. */
static void
put_operand(struct buf *out, struct span word)
{
	if (span_is(word, "TOPIC")) {
		for (const struct help_topic *t = help_topics; t->name != NULL;
			t++)
			buf_fmt(out, " %s", t->name);
	} else if (span_is(word, "OPTION")) {
		for (const struct opt *o = run_options; o->name != NULL; o++)
			buf_fmt(out, " %s", o->name);
	} else if (!isupper((unsigned char)*word.at)) {
		buf_fmt(out, " %.*s", (int)word.len, word.at);
	}
}

/* "[TOPIC|OPTION]", "bash|zsh", "[--json]": the words of the first operand. */
static void
put_operands(struct buf *out, const char *operands)
{
	struct buf words = { 0 };
	struct span word;

	for (const char *p = operands; *p != '\0' && *p != ' ';) {
		word = (struct span){ .at = p, .len = strcspn(p, "[]| ") };
		if (word.len > 0)
			put_operand(&words, word);
		p += word.len == 0 ? 1 : word.len;
	}
	if (words.len > 0)
		buf_put_text(out, words.data + 1);
	buf_fini(&words);
}

static void
put_verbs(struct buf *out, const struct dialect *d)
{
	bool first = true;

	buf_fmt(out, "%sverbs%s", d->prefix, d->begin);
	buf_fmt(out, "\t%s '", d == &fish ? "string split -- ' '" : "echo");
	for (const struct verb *v = verbs; v->name != NULL; v++) {
		if (v->run == NULL)
			continue;
		buf_fmt(out, "%s%s", first ? "" : " ", v->name);
		first = false;
	}
	buf_fmt(out, "'\n%s%soperands%s%s", d->end, d->prefix, d->begin,
		d->choose);
	for (const struct verb *v = verbs; v->name != NULL; v++) {
		if (v->run == NULL || v->operands == NULL)
			continue;
		buf_fmt(out, "%s%s%s", d->is, v->name, d->then);
		put_operands(out, v->operands);
		buf_put_text(out, d->unless);
	}
	buf_fmt(out, "%s%s", d->chosen, d->end);
}

/* Verbs about jobs: their words change, so the shell asks for them. */
static void
put_asking(struct buf *out, const struct dialect *d)
{
	buf_fmt(out, "%sasks%s%s", d->prefix, d->begin, d->choose);
	for (const struct verb *v = verbs; v->name != NULL; v++)
		if (v->options != NULL)
			buf_fmt(out, "%s%s%syes%s", d->is, v->name, d->then,
				d->unless);
	buf_fmt(out, "%s%s", d->chosen, d->end);
}

void
completion_bash(struct buf *out)
{
	buf_put_text(out,
		"# bash completion of xrun, from its tables: xrun "
		"completion bash\n");
	put_verbs(out, &posix);
	put_asking(out, &posix);
	opt_shell_bash(run_options, out);
	buf_put_text(out, completion_bash_script);
}

/* As a file of $fpath, or sourced. */
void
completion_zsh(struct buf *out)
{
	buf_put_text(out,
		"#compdef xrun\n"
		"# zsh completion of xrun, from its tables: xrun "
		"completion zsh\n");
	put_verbs(out, &posix);
	put_asking(out, &posix);
	buf_put_text(out, "_xrun_set_options()\n{\n");
	opt_shell_zsh(run_options, false, out);
	buf_put_text(out, "}\n_xrun_set_part_options()\n{\n");
	opt_shell_zsh(run_options, true, out);
	buf_put_text(out, "}\n");
	buf_put_text(out, completion_zsh_script);
}

void
completion_fish(struct buf *out)
{
	buf_put_text(out,
		"# fish completion of xrun, from its tables: xrun "
		"completion fish\n");
	put_verbs(out, &fish);
	put_asking(out, &fish);
	buf_put_text(out, completion_fish_script);
	opt_shell_fish(run_options, out);
}

static const struct {
	const char *name;
	void (*put)(struct buf *out);
} shells[] = {
	{ "bash", completion_bash },
	{ "zsh", completion_zsh },
	{ "fish", completion_fish },
};

/* --- words of now --------------------------------------------------------- */

static bool
put_job(void *ctx, const struct which *job)
{
	buf_fmt(ctx, "%s\n", job->id);
	return true;
}

static void
put_signals(struct buf *out)
{
	char name[16];

	for (int sig = 1; sig < 32; sig++)
		buf_fmt(out, "%s\n", signo_short(sig, name, sizeof(name)));
}

static bool
put_running(void *ctx, const struct which *job)
{
	return !job->running || put_job(ctx, job);
}

/* What may stand behind @name and @before, the last word: the value of an option,
 * or options, jobs, signals; a line each. */
static int
put_words(const char *name, const char *before)
{
	const struct verb *verb = verb_find(name);
	struct buf out = { 0 };

	if (verb == NULL || verb->options == NULL)
		return 0;
	if (opt_shell_values(verb->options, before, &out))
		return say(&out);
	opt_shell_words(verb->options, &out);
	if (strstr(verb->operands, "SIGNAL") != NULL &&
		signo_parse(before) <= 0)
		put_signals(&out);
	if (strstr(verb->operands, "JOB") != NULL)
		which_each(verb->steers ? put_running : put_job, &out);
	return say(&out);
}

int
cmd_completion(int argc, char **argv)
{
	struct buf out = { 0 };

	if (argc < 2)
		return say_no(
			"completion: the shell is missing: bash, zsh or fish");
	if (argc >= 3 && strcmp(argv[1], "words") == 0)
		return put_words(argv[2], argc > 3 ? argv[3] : "");
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (argc == 2 && strcmp(argv[1], shells[i].name) == 0)
			shells[i].put(&out);
	if (out.len == 0)
		return say_no("completion: '%s' is not one of bash|zsh|fish",
			argv[argc - 1]);
	return say(&out);
}
