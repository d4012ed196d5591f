/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - see doctor.h. What is looked at stands in launcher/doctor. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/json.h"
#include "base/utf8.h"
#include "launcher/cmd/doctor.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/table.h"
#include "launcher/cmd/terminal.h"
#include "launcher/cmd/verb_args.h"
#include "launcher/doctor/checks.h"
#include "launcher/job/options.h"
#include "launcher/job/outcome.h"

extern char **environ;

#define EXIT_BAD   1
#define MARGIN     "                  " /* below a finding's words */
#define NAMED_MOST 5                    /* processes of a job */

struct settings {
	bool json, clean;
};

#define AT(field) .offset = offsetof(struct settings, field)

const struct opt doctor_options[] = {
	{ .name = "clean",
		.type = OPT_FLAG,
		VERB_ROW,
		AT(clean),
		.help = "end and remove what jobs left that are over" },
	{ .name = "json",
		.type = OPT_FLAG,
		VERB_ROW,
		AT(json),
		.help = "as JSON, one object" },
	{ 0 },
};

/* All that was found out, and what came of --clean. */
struct visit {
	struct facts facts;
	struct remains before; /* what --clean met */
	uint32_t count[VERDICTS];
	bool clean;
	bool tty, color, narrow; /* of standard output */
};

static struct finding
judge(struct visit *v, const struct check *check)
{
	struct finding found = { 0 };

	check->judge(&v->facts, &found);
	v->count[found.verdict]++;
	return found;
}

/* --- as text ---------------------------------------------------------------- */

static void
put_processes(struct buf *out, const struct remain *r)
{
	for (uint32_t i = 0; i < r->count && i < NAMED_MOST; i++) {
		buf_put_text(out, i > 0 ? ", " : ": ");
		table_put_word(out, r->process[i].name);
		buf_fmt(out, " (pid %d)", (int)r->process[i].pid);
	}
	if (r->count > NAMED_MOST)
		buf_put_text(out, ", ...");
}

static void
put_part(struct buf *out, bool *some, bool is, const char *text)
{
	if (!is)
		return;
	buf_fmt(out, "%s%s", *some ? "; " : " ", text);
	*some = true;
}

static void
put_count(struct buf *out, const char *id, uint32_t count, bool *some)
{
	buf_fmt(out, MARGIN "%s:", id);
	if (count > 0)
		buf_fmt(out, " %u process%s", count, count == 1 ? "" : "es");
	*some = count > 0;
}

static void
put_remain(struct buf *out, const struct remain *r)
{
	bool some;

	put_count(out, r->id, r->count, &some);
	put_processes(out, r);
	put_part(out, &some, !r->known,
		"not known to be of that job, and left alone");
	put_part(out, &some, r->unclosed, "a record without an end");
	put_part(out, &some, r->groups, "control groups");
	put_part(out, &some, r->socket, "a control socket");
	buf_put_char(out, '\n');
}

/* What was there, and is not any more. */
static struct remain
gone_of(const struct visit *v, const struct remain *was)
{
	const struct remain *is =
		remains_find(&v->facts.remains, was->id, was->known);
	struct remain gone = *was;

	if (is == NULL)
		return gone;
	gone.count = was->count > is->count ? was->count - is->count : 0;
	gone.unclosed = was->unclosed && !is->unclosed;
	gone.groups = was->groups && !is->groups;
	gone.socket = was->socket && !is->socket;
	return gone;
}

static void
put_gone(struct buf *out, const struct remain *gone)
{
	bool some;

	if (gone->count == 0 && !gone->unclosed && !gone->groups &&
		!gone->socket)
		return;
	put_count(out, gone->id, gone->count, &some);
	buf_put_text(out, some ? " ended" : "");
	put_part(out, &some, gone->unclosed, "record closed");
	put_part(out, &some, gone->groups, "control groups removed");
	put_part(out, &some, gone->socket, "control socket removed");
	buf_put_char(out, '\n');
}

static void
put_leftovers(struct buf *out, const struct visit *v)
{
	struct remain gone;

	for (size_t i = 0; i < v->before.count; i++) {
		gone = gone_of(v, &v->before.remain[i]);
		put_gone(out, &gone);
	}
	for (size_t i = 0; i < v->facts.remains.count; i++)
		put_remain(out, &v->facts.remains.remain[i]);
}

static void
put_check(struct buf *out, struct visit *v, const struct check *c)
{
	static const char *const colors[VERDICTS] = {
		[VERDICT_OK] = "\x1b[32m",
		[VERDICT_NOTE] = "",
		[VERDICT_WARN] = "\x1b[33m",
		[VERDICT_BAD] = "\x1b[1;31m",
	};
	const struct finding found = judge(v, c);
	const char *on = v->color ? colors[found.verdict] : "";
	size_t at;

	buf_fmt(out, "%s%-4s%s  %-10s  ", on, verdict_name(found.verdict),
		on[0] == '\0' ? "" : "\x1b[0m", c->name);
	at = out->len;
	table_put_word(out, found.what);
	buf_put_char(out, '\n');
	if (strcmp(c->name, "leftovers") == 0)
		put_leftovers(out, v);
	if (found.todo[0] != '\0') {
		buf_put_text(out, MARGIN "try: ");
		table_put_word(out, found.todo);
		buf_put_char(out, '\n');
	}
	/* Not the colour. */
	if (v->tty && out->bad == XR_OK)
		utf8_tame(out->data + at, v->narrow);
}

static void
put_text(struct buf *out, struct visit *v)
{
	uint32_t bad, warned;

	v->tty = isatty(STDOUT_FILENO);
	v->color = terminal_wants_color(COLOR_AUTO, v->tty);
	v->narrow = v->tty && utf8_narrow(STDOUT_FILENO);
	for (const struct check *c = checks; c->name != NULL; c++)
		put_check(out, v, c);
	bad = v->count[VERDICT_BAD];
	warned = v->count[VERDICT_WARN];
	if (bad > 0)
		buf_fmt(out, "not ready: %u bad, ", bad);
	else
		buf_put_text(out, "ready: nothing bad, ");
	buf_fmt(out, "%u warning%s\n", warned, warned == 1 ? "" : "s");
}

/* --- as JSON ---------------------------------------------------------------- */

static void
json_check(struct json *j, struct visit *v, const struct check *c)
{
	const struct finding found = judge(v, c);

	json_open_object(j, NULL);
	json_text(j, "name", c->name);
	json_text(j, "about", c->about);
	json_text(j, "verdict", verdict_name(found.verdict));
	json_text(j, "what", found.what);
	if (found.todo[0] != '\0')
		json_text(j, "todo", found.todo);
	json_close_object(j);
}

static void
json_remain(struct json *j, const struct remain *r)
{
	json_open_object(j, NULL);
	json_text(j, "job", r->id);
	json_bool(j, "known", r->known);
	json_bool(j, "unclosed", r->unclosed);
	json_bool(j, "groups", r->groups);
	json_bool(j, "socket", r->socket);
	json_open_array(j, "processes");
	for (uint32_t i = 0; i < r->count; i++) {
		json_open_object(j, NULL);
		json_int(j, "pid", r->process[i].pid);
		json_text(j, "name", r->process[i].name);
		json_close_object(j);
	}
	json_close_array(j);
	json_close_object(j);
}

static void
json_gone(struct json *j, const struct remain *gone)
{
	json_open_object(j, NULL);
	json_text(j, "job", gone->id);
	json_int(j, "ended", gone->count);
	json_bool(j, "closed", gone->unclosed);
	json_bool(j, "groups", gone->groups);
	json_bool(j, "socket", gone->socket);
	json_close_object(j);
}

static void
json_cleaned(struct json *j, const struct visit *v)
{
	struct remain gone;

	json_open_array(j, "cleaned");
	for (size_t i = 0; i < v->before.count; i++) {
		gone = gone_of(v, &v->before.remain[i]);
		json_gone(j, &gone);
	}
	json_close_array(j);
}

static void
put_json(struct buf *out, struct visit *v)
{
	char host[256];
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_int(&j, "v", 1);
	json_text(&j, "xrun", XRUN_VERSION);
	json_text(&j, "host", host_name(host, sizeof(host)));
	json_open_array(&j, "checks");
	for (const struct check *c = checks; c->name != NULL; c++)
		json_check(&j, v, c);
	json_close_array(&j);
	json_open_array(&j, "leftovers");
	for (size_t i = 0; i < v->facts.remains.count; i++)
		json_remain(&j, &v->facts.remains.remain[i]);
	json_close_array(&j);
	if (v->clean)
		json_cleaned(&j, v);
	json_bool(&j, "ready", v->count[VERDICT_BAD] == 0);
	json_close_object(&j);
	buf_put_char(out, '\n');
}

static void
clean(struct visit *v)
{
	v->before = v->facts.remains;
	remains_end();
	remains_look(&v->facts.remains);
}

int
cmd_doctor(int argc, char **argv)
{
	static struct visit v;
	struct settings s = { 0 };
	struct verb_args args;
	struct buf out = { 0 };
	int status;

	(void)argc;
	if (!verb_args_read(&args, doctor_options, &s, 0, argv))
		return EXIT_XRUN;
	v.clean = s.clean;
	facts_read(&v.facts, environ);
	if (s.clean)
		clean(&v);
	if (s.json)
		put_json(&out, &v);
	else
		put_text(&out, &v);
	facts_fini(&v.facts);
	remains_fini(&v.before);
	status = s.json ? say(&out) : say_tame(&out);
	return status != 0 ? status : v.count[VERDICT_BAD] > 0 ? EXIT_BAD : 0;
}
