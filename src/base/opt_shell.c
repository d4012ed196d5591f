/* SPDX-License-Identifier: Apache-2.0 */
/* opt_shell.c - see opt_shell.h. */
#include <stdio.h>
#include <string.h>

#include "base/opt_inner.h"
#include "base/opt_shell.h"

/* What a shell shall propose for @o, or NULL. */
static const char *
kind_of(const struct opt *o)
{
	if (o->type == OPT_SIGNAL)
		return "HUP INT QUIT TERM USR1 USR2 KILL";
	if (o->arg == NULL)
		return NULL;
	if (strcmp(o->arg, "FILE") == 0)
		return "@file";
	return strcmp(o->arg, "DIR") == 0 ? "@dir" : NULL;
}

/* The words that a value may be; NULL: none are known. */
static const char *const *
words_of(const struct opt *o)
{
	return o->choices != NULL ? o->choices : o->words;
}

/* "auto none", or what kind_of() says, which is not NULL then. */
static void
put_values(const struct opt *o, struct buf *out)
{
	const char *const *words = words_of(o);

	for (int i = 0; words != NULL && words[i] != NULL; i++)
		buf_fmt(out, "%s%s", i == 0 ? "" : " ", words[i]);
	if (words == NULL)
		buf_put_text(out, kind_of(o));
}

static bool
takes_word(const struct opt *o)
{
	return o->type != OPT_FLAG && !o->maybe;
}

/* "-n|-np|--ranks" */
static void
put_pattern(const struct opt *o, struct buf *out)
{
	if (o->letter != 0)
		buf_fmt(out, "-%c|", o->letter);
	if (o->alias != NULL)
		buf_fmt(out, "%s%s|", opt_alias_dashes(o), o->alias);
	buf_fmt(out, "--%s", o->name);
}

static void
put_bash_values(const struct opt *table, struct buf *out)
{
	buf_put_text(out, "_xrun_values()\n{\n\tcase $1 in\n");
	for (const struct opt *o = table; o->name != NULL; o++) {
		if (words_of(o) == NULL && kind_of(o) == NULL)
			continue;
		buf_put_char(out, '\t');
		put_pattern(o, out);
		buf_put_text(out, ") echo '");
		put_values(o, out);
		buf_put_text(out, "' ;;\n");
	}
	buf_put_text(out, "\tesac\n}\n");
}

static void
put_bash_words(const struct opt *table, bool part, struct buf *out)
{
	buf_fmt(out, "_xrun_%swords()\n{\n\techo '", part ? "part_" : "");
	for (const struct opt *o = table; o->name != NULL; o++) {
		if (part && !o->part)
			continue;
		if (o->letter != 0)
			buf_fmt(out, "-%c ", o->letter);
		buf_fmt(out, "--%s%s ", o->name, takes_word(o) ? "=" : "");
		if (opt_negatable(o) && o->letter != 'h')
			buf_fmt(out, "--no-%s ", o->name);
	}
	buf_put_text(out, "'\n}\n");
}

void
opt_shell_bash(const struct opt *table, struct buf *out)
{
	const char *bar = "";

	put_bash_words(table, false, out);
	put_bash_words(table, true, out);
	buf_put_text(out, "_xrun_takes()\n{\n\tcase $1 in\n\t");
	for (const struct opt *o = table; o->name != NULL; o++) {
		if (!takes_word(o))
			continue;
		buf_put_text(out, bar);
		put_pattern(o, out);
		bar = "|\\\n\t";
	}
	buf_put_text(out, ") return 0 ;;\n\tesac\n\treturn 1\n}\n");
	put_bash_values(table, out);
}

/* @text within '...' of a shell where @quote is written @as, and with a
 * backslash before each of @special. */
static void
put_quoted(struct buf *out, const char *text, const char *as,
	const char *special)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'') {
			buf_put_text(out, as);
			continue;
		}
		if (strchr(special, *text) != NULL)
			buf_put_char(out, '\\');
		buf_put_char(out, *text);
	}
}

static bool
is_on(const struct opt *o)
{
	return o->type == OPT_FLAG && o->dflt != NULL &&
		strcmp(o->dflt, "yes") == 0;
}

/* One line about --name, or about its no- form; the help of a flag that is on
 * by default speaks of that one. */
static const char *
describe(const struct opt *o, bool no, char *out, size_t cap)
{
	if (no == is_on(o))
		snprintf(out, cap, "%s", o->help);
	else
		snprintf(out, cap, "undo --%s%s", no ? "" : "no-", o->name);
	return out;
}

/* ":message:action" of a value. */
static void
put_zsh_value(const struct opt *o, struct buf *out)
{
	const char *kind = kind_of(o);

	buf_put_char(out, ':');
	put_quoted(out, o->arg == NULL ? o->name : o->arg, "'\\''", ":");
	buf_put_char(out, ':');
	if (kind == NULL && words_of(o) == NULL)
		return;
	if (kind != NULL && strcmp(kind, "@file") == 0) {
		buf_put_text(out, "_files");
	} else if (kind != NULL && strcmp(kind, "@dir") == 0) {
		buf_put_text(out, "_files -/");
	} else {
		buf_put_char(out, '(');
		put_values(o, out);
		buf_put_char(out, ')');
	}
}

/* One spec: '(exclusions)NAME[help]:N:'; @end is what _arguments wants behind
 * the name of an option with a value. */
static void
put_zsh_spec(const struct opt *o, const char *name, const char *end, bool no,
	struct buf *out)
{
	char help[120];

	buf_put_text(out, "\t'");
	if (o->type == OPT_LIST) {
		buf_put_char(out, '*');
	} else {
		buf_fmt(out, "(--%s", o->name);
		if (opt_negatable(o))
			buf_fmt(out, " --no-%s", o->name);
		if (o->letter != 0)
			buf_fmt(out, " -%c", o->letter);
		buf_fmt(out, "%s%s)", o->alias == NULL ? "" : " -",
			o->alias == NULL ? "" : o->alias);
	}
	buf_fmt(out, "%s%s[", name, no ? "" : end);
	put_quoted(out, describe(o, no, help, sizeof(help)), "'\\''", "[]\\");
	buf_put_char(out, ']');
	if (o->maybe && !no)
		buf_put_char(out, ':');
	if (o->type != OPT_FLAG && !no)
		put_zsh_value(o, out);
	buf_put_text(out, "'\n");
}

void
opt_shell_zsh(const struct opt *table, bool part, struct buf *out)
{
	char name[64];

	buf_put_text(out, "_xrun_options=(\n");
	for (const struct opt *o = table; o->name != NULL; o++) {
		bool value = takes_word(o);

		if (part && !o->part)
			continue;
		snprintf(name, sizeof(name), "-%c", o->letter);
		if (o->letter != 0)
			put_zsh_spec(o, name, value ? "+" : "", false, out);
		snprintf(name, sizeof(name), "-%s",
			o->alias == NULL ? "" : o->alias);
		if (o->alias != NULL)
			put_zsh_spec(o, name, "", false, out);
		snprintf(name, sizeof(name), "--%s", o->name);
		put_zsh_spec(o, name,
			value            ? "=" :
				o->maybe ? "=-" :
					   "",
			false, out);
		snprintf(name, sizeof(name), "--no-%s", o->name);
		if (opt_negatable(o) && o->letter != 'h')
			put_zsh_spec(o, name, "", true, out);
	}
	buf_put_text(out, ")\n");
}

/* What follows `complete -c xrun -n __xrun_at_...`. */
static void
put_fish_value(const struct opt *o, struct buf *out)
{
	const char *kind = kind_of(o);

	if (!takes_word(o))
		return;
	if (kind != NULL && strcmp(kind, "@file") == 0) {
		buf_put_text(out, " -r -F");
	} else if (kind != NULL && strcmp(kind, "@dir") == 0) {
		buf_put_text(out, " -x -a '(__fish_complete_directories)'");
	} else {
		buf_put_text(out, " -x");
		if (kind == NULL && words_of(o) == NULL)
			return;
		buf_put_text(out, " -a '");
		put_values(o, out);
		buf_put_char(out, '\'');
	}
}

static void
put_fish_line(const struct opt *o, bool no, struct buf *out)
{
	char help[120];

	buf_fmt(out, "complete -c xrun -n __xrun_at_%s",
		o->part ? "options" : "first_options");
	if (o->letter != 0 && !no)
		buf_fmt(out, " -s %c", o->letter);
	if (o->alias != NULL && !no)
		buf_fmt(out, " -o %s", o->alias);
	buf_fmt(out, " -l %s%s", no ? "no-" : "", o->name);
	if (!no)
		put_fish_value(o, out);
	buf_put_text(out, " -d '");
	put_quoted(out, describe(o, no, help, sizeof(help)), "\\'", "\\");
	buf_put_text(out, "'\n");
}

void
opt_shell_fish(const struct opt *table, struct buf *out)
{
	buf_put_text(out, "set -g __xrun_takes");
	for (const struct opt *o = table; o->name != NULL; o++) {
		if (!takes_word(o))
			continue;
		if (o->letter != 0)
			buf_fmt(out, " -%c", o->letter);
		if (o->alias != NULL)
			buf_fmt(out, " -%s", o->alias);
		buf_fmt(out, " --%s", o->name);
	}
	buf_put_char(out, '\n');
	for (const struct opt *o = table; o->name != NULL; o++) {
		put_fish_line(o, false, out);
		if (opt_negatable(o) && o->letter != 'h')
			put_fish_line(o, true, out);
	}
}

void
opt_shell_words(const struct opt *table, struct buf *out)
{
	for (const struct opt *o = table; o->name != NULL; o++) {
		buf_fmt(out, "--%s\n", o->name);
		if (opt_negatable(o))
			buf_fmt(out, "--no-%s\n", o->name);
		if (o->letter != 0)
			buf_fmt(out, "-%c\n", o->letter);
	}
}

static bool
is_written(const struct opt *o, const char *word)
{
	return word[0] == '-' &&
		(word[1] == '-' ? strcmp(word + 2, o->name) == 0 :
				  o->letter != 0 && word[1] == o->letter &&
					word[2] == '\0');
}

bool
opt_shell_values(const struct opt *table, const char *word, struct buf *out)
{
	const struct opt *o = table;
	const char *const *words;

	while (o->name != NULL && !(takes_word(o) && is_written(o, word)))
		o++;
	if (o->name == NULL)
		return false;
	words = words_of(o);
	for (int i = 0; words != NULL && words[i] != NULL; i++)
		buf_fmt(out, "%s\n", words[i]);
	return true;
}
