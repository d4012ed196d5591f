/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - see show.h. */
#include <string.h>

#include "base/json.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/show.h"

/* As a person would type it: quoted where a shell would not take it whole. */
static void
put_word(struct buf *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=./:,@%^";

	if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
		buf_put_text(out, word);
		return;
	}
	buf_put_char(out, '\'');
	for (; *word != '\0'; word++) {
		if (*word == '\'')
			buf_put_text(out, "'\\''");
		else
			buf_put_char(out, *word);
	}
	buf_put_char(out, '\'');
}

static void
put_command(struct buf *out, char *const *argv)
{
	for (; *argv != NULL; argv++) {
		put_word(out, *argv);
		if (argv[1] != NULL)
			buf_put_char(out, ' ');
	}
}

/* A worker list names the devices, whatever was found on this machine. */
static const char *
platform_of(const struct job *job, const struct prepared *p)
{
	return plan_by_list(&job->plan) ? "tpu" : p->platform.plugin->name;
}

static void
plan_as_json(const struct job *job, const struct prepared *p, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_int(&j, "v", 1);
	json_int(&j, "size", job->plan.size);
	json_text(&j, "why", plan_reason_text(job->plan.reason));
	json_text(&j, "platform", platform_of(job, p));
	json_text(&j, "program", job->program);
	json_open_array(&j, "argv");
	for (char *const *a = job->argv; *a != NULL; a++)
		json_bytes(&j, NULL, (struct span){ *a, strlen(*a) });
	json_close_array(&j);
	json_text(&j, "preload", p->preload);
	json_open_array(&j, "ranks");
	for (uint32_t i = 0; i < job_size(job); i++) {
		json_open_object(&j, NULL);
		json_int(&j, "rank", job->plan.first + i);
		json_int(&j, "local_rank", i);
		json_int(&j, "node", job->plan.node);
		json_text(&j, "host", p->host);
		json_text(&j, "device", plan_deal(&job->plan, i)->text);
		if (bind_of(&job->processors.bind, i) != NULL)
			json_text(&j, "cpus",
				bind_of(&job->processors.bind, i)->text);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_close_object(&j);
	buf_put_char(out, '\n');
}

static void
plan_as_text(const struct job *job, const struct prepared *p, struct buf *out)
{
	const struct bind_set *bound = bind_of(&job->processors.bind, 0);
	uint32_t n = job_size(job);

	buf_fmt(out, "%u rank%s (%s), platform %s; nothing was started\n\n", n,
		n == 1 ? "" : "s", plan_reason_text(job->plan.reason),
		platform_of(job, p));
	buf_fmt(out, " rank  host              device            %scommand\n",
		bound == NULL ? "" : "cpus      ");
	for (uint32_t i = 0; i < n; i++) {
		buf_fmt(out, "%5u  %-16s  %-16s  ", job->plan.first + i,
			p->host, plan_deal(&job->plan, i)->text);
		bound = bind_of(&job->processors.bind, i);
		if (bound != NULL)
			buf_fmt(out, "%-8s  ", bound->text);
		put_command(out, job->argv);
		buf_put_char(out, '\n');
	}
	buf_fmt(out, "\nprogram  %s\n", job->program);
	if (p->preload != NULL)
		buf_fmt(out, "agent    %s\n", p->preload);
	else
		buf_fmt(out, "agent    none%s%s\n",
			p->no_preload[0] != '\0' ? ": the program is " :
						   " (--buffer full)",
			p->no_preload);
}

int
show_plan(const struct job *job, const struct prepared *p)
{
	struct buf out = { 0 };

	if (job->opt.json)
		plan_as_json(job, p, &out);
	else
		plan_as_text(job, p, &out);
	return say(&out);
}

static void
item_as_json(void *arg, const struct env_item *item)
{
	struct json *j = arg;

	json_open_object(j, NULL);
	json_bytes(j, "name", item->name);
	json_bytes(j, "value",
		(struct span){ item->value, strlen(item->value) });
	json_text(j, "source", item->source);
	if (item->hides != NULL)
		json_bytes(j, "hides",
			(struct span){ item->hides, strlen(item->hides) });
	json_close_object(j);
}

static void
removed_as_json(void *arg, const struct env_removed *removed)
{
	struct json *j = arg;

	json_open_object(j, NULL);
	json_bytes(j, "name", removed->name);
	json_bytes(j, "value",
		(struct span){ removed->value, strlen(removed->value) });
	json_text(j, "why", removed->rule->why);
	json_close_object(j);
}

static void
env_as_json(const struct job *job, const struct env_rank *rank, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_int(&j, "v", 1);
	json_int(&j, "rank", job->plan.first + rank->local_rank);
	json_open_array(&j, "variables");
	env_each(job->env, rank, item_as_json, &j);
	json_close_array(&j);
	json_open_array(&j, "removed");
	env_each_removed(job->env, removed_as_json, &j);
	json_close_array(&j);
	json_close_object(&j);
	buf_put_char(out, '\n');
}

static void
item_as_text(void *arg, const struct env_item *item)
{
	struct buf *out = arg;

	buf_fmt(out, "%-18s %.*s=", item->source, (int)item->name.len,
		item->name.at);
	put_word(out, item->value);
	if (item->hides != NULL) {
		buf_put_text(out, "   (inherited: ");
		put_word(out, item->hides);
		buf_put_char(out, ')');
	}
	buf_put_char(out, '\n');
}

static void
removed_as_text(void *arg, const struct env_removed *removed)
{
	buf_fmt(arg, "%-18s %.*s   (%s)\n", "removed", (int)removed->name.len,
		removed->name.at, removed->rule->why);
}

int
show_env(const struct job *job, uint32_t rank)
{
	struct env_rank r = { .local_rank = rank - job->plan.first };
	struct buf out = { 0 };

	if (job->opt.json) {
		env_as_json(job, &r, &out);
	} else {
		env_each(job->env, &r, item_as_text, &out);
		env_each_removed(job->env, removed_as_text, &out);
	}
	return say(&out);
}
