/* SPDX-License-Identifier: Apache-2.0 */
/* opt_print.c - see opt_print.h. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/opt_inner.h"
#include "base/opt_print.h"

#define WIDTH 80u
#define HELP  34u /* column at which the help of -h begins */

/* A flag that is on by default is asked for by its --no- form. */
static const char *
no_of(const struct opt *o)
{
	bool on = o->type == OPT_FLAG && o->dflt != NULL;

	return on && strcmp(o->dflt, "yes") == 0 ? "no-" : "";
}

/* "=N", "[=RANK]" or "". */
static void
put_arg(const struct opt *o, struct buf *out)
{
	char arg[96];

	if (o->type == OPT_FLAG)
		return;
	opt_arg(o, arg, sizeof(arg));
	buf_fmt(out, o->maybe ? "[=%s]" : "=%s", arg);
}

/* Blanks up to column @to of the line that began at @from; one at least. */
static void
put_blanks(struct buf *out, size_t from, size_t to)
{
	do
		buf_put_char(out, ' ');
	while (out->bad == XR_OK && out->len - from < to);
}

void
opt_print_short(const struct opt *table, struct buf *out)
{
	size_t from;

	for (const struct opt *o = table; o->name != NULL; o++) {
		if (!o->common)
			continue;
		from = out->len;
		if (o->letter != 0)
			buf_fmt(out, "  -%c, ", o->letter);
		else
			buf_put_text(out, "      ");
		buf_fmt(out, "--%s%s", no_of(o), o->name);
		put_arg(o, out);
		put_blanks(out, from, HELP);
		buf_fmt(out, "%s\n", o->help);
	}
}

/* A reader of scdoc, as far as the texts of rows need one. */
struct reader {
	const char *text, *p;
	bool under; /* inside of _..._ */
};

/* Is the character at p a mark? An underscore inside a word is a letter. */
static bool
is_mark(struct reader *r)
{
	bool after = r->p > r->text && isalnum((unsigned char)r->p[-1]);

	if (*r->p == '*')
		return true;
	if (*r->p != '_' || (after && !r->under) ||
		(r->under && isalnum((unsigned char)r->p[1])))
		return false;
	r->under = !r->under;
	return true;
}

/* The next word without its marks; "" at the end. */
static void
next_word(struct reader *r, char *word, size_t cap)
{
	size_t n = 0;

	while (*r->p == ' ')
		r->p++;
	for (; *r->p != '\0' && *r->p != ' '; r->p++) {
		if (is_mark(r))
			continue;
		if (*r->p == '\\' && r->p[1] != '\0')
			r->p++; /* what follows is no mark */
		if (n + 1 < cap)
			word[n++] = *r->p;
	}
	word[n] = '\0';
}

void
opt_print_fill(const char *text, unsigned indent, struct buf *out)
{
	struct reader r = { .text = text, .p = text };
	size_t from = out->len, start = from;
	char word[WIDTH];

	for (;;) {
		next_word(&r, word, sizeof(word));
		if (word[0] == '\0')
			break;
		if (out->len == start) {
			buf_fmt(out, "%*s", (int)indent, "");
		} else if (out->len - from + 1 + strlen(word) > WIDTH) {
			buf_fmt(out, "\n%*s", (int)indent, "");
			from = out->len - indent;
		} else {
			buf_put_char(out, ' ');
		}
		buf_put_text(out, word);
	}
	buf_put_char(out, '\n');
}

void
opt_print_row(const struct opt *o, struct buf *out)
{
	size_t from = out->len;
	char env[64], name[64], text[2048];

	snprintf(name, sizeof(name), "%s%s", no_of(o), o->name);
	env[0] = '\0';
	if (!o->no_variable)
		opt_env_name(name, env, sizeof(env));
	buf_put_text(out, "  ");
	if (o->letter != 0)
		buf_fmt(out, "-%c, ", o->letter);
	if (o->alias != NULL)
		buf_fmt(out, "%s%s, ", opt_alias_dashes(o), o->alias);
	buf_fmt(out, "--%s", name);
	put_arg(o, out);
	if (!o->no_variable)
		put_blanks(out, from, WIDTH - strlen(env));
	buf_fmt(out, "%s\n", env);
	snprintf(text, sizeof(text), "%s", o->text);
	if (o->dflt != NULL && o->type != OPT_FLAG)
		snprintf(text, sizeof(text), "%s Default: %s.", o->text,
			o->dflt);
	opt_print_fill(text, 6, out);
}

void
opt_print_all(const struct opt *table, struct buf *out)
{
	for (const struct opt *o = table; o->name != NULL; o++) {
		if (o->group != NULL)
			buf_fmt(out, "%s%s\n\n", o == table ? "" : "\n",
				o->group);
		opt_print_row(o, out);
	}
}

/* "=_N_", with the choices as they are. */
static void
put_man_arg(const struct opt *o, const char *before, struct buf *out)
{
	char arg[96];

	if (o->type == OPT_FLAG)
		return;
	opt_arg(o, arg, sizeof(arg));
	buf_fmt(out, o->maybe ? "[%s_%s_]" : "%s_%s_", before, arg);
}

static void
put_man_names(const struct opt *o, struct buf *out)
{
	char letter[2] = { o->letter, '\0' };
	const char *others[] = { letter, o->alias };
	const char *dashes;

	for (size_t i = 0; i < 2; i++) {
		if (others[i] == NULL || others[i][0] == '\0')
			continue;
		dashes = i == 0 ? "-" : opt_alias_dashes(o);
		buf_fmt(out, "*%s%s*", dashes, others[i]);
		put_man_arg(o, dashes[1] == '-' ? "=" : " ", out);
		buf_put_text(out, ", ");
	}
	buf_fmt(out, "*--%s%s*", no_of(o), o->name);
	put_man_arg(o, "=", out);
	buf_put_char(out, '\n');
}

void
opt_print_man(const struct opt *table, struct buf *out)
{
	char env[64], name[64];

	for (const struct opt *o = table; o->name != NULL; o++) {
		if (o->group != NULL)
			buf_fmt(out, "## %s\n\n", o->group);
		put_man_names(o, out);
		if (o->text != NULL)
			buf_fmt(out, "\t%s", o->text);
		else
			buf_fmt(out, "\t%c%s.", toupper(o->help[0]),
				o->help + 1);
		if (o->dflt != NULL && o->type != OPT_FLAG)
			buf_fmt(out, " Default: %s.", o->dflt);
		snprintf(name, sizeof(name), "%s%s", no_of(o), o->name);
		opt_env_name(name, env, sizeof(env));
		if (o->no_variable)
			buf_put_text(out, "\n\n");
		else
			buf_fmt(out, " Environment: *%s*.\n\n", env);
	}
}
