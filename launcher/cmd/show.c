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
part_as_json(const struct job *job, const struct part *part, struct json *j)
{
	json_text(j, "program", part->program);
	json_open_array(j, "argv");
	json_items(j, part->argv);
	json_close_array(j);
	json_text(j, "preload", part->preload);
	if (job->part_count == 1)
		return;
	json_int(j, "first", job_rank(job, part->first));
	json_int(j, "ranks", part->size);
	if (part->dir != NULL)
		json_text(j, "cwd", part->dir);
}

static void
parts_as_json(const struct job *job, struct json *j)
{
	if (job->part_count == 1) {
		part_as_json(job, &job->parts[0], j);
		return;
	}
	json_open_array(j, "parts");
	for (uint32_t i = 0; i < job->part_count; i++) {
		json_open_object(j, NULL);
		part_as_json(job, &job->parts[i], j);
		json_close_object(j);
	}
	json_close_array(j);
}

static void
rank_as_json(const struct job *job, const struct prepared *p, uint32_t r,
	struct json *j)
{
	json_open_object(j, NULL);
	json_int(j, "rank", job_rank(job, r));
	json_int(j, "local_rank", r);
	if (job->part_count > 1)
		json_int(j, "part", job_part_index(job, job_part(job, r)));
	json_int(j, "node", job->plan.node);
	json_text(j, "host", p->host);
	json_text(j, "device", plan_deal(&job->plan, r)->text);
	if (bind_of(&job->processors.bind, r) != NULL)
		json_text(j, "cpus", bind_of(&job->processors.bind, r)->text);
	if (job_part(job, r)->args != NULL) {
		json_open_array(j, "argv");
		json_items(j, job_argv(job, r));
		json_close_array(j);
	}
	json_close_object(j);
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
	parts_as_json(job, &j);
	json_open_array(&j, "ranks");
	for (uint32_t i = 0; i < job_size(job); i++)
		rank_as_json(job, p, i, &j);
	json_close_array(&j);
	json_close_object(&j);
	buf_put_char(out, '\n');
}

static void
part_as_text(const struct job *job, const struct part *part, struct buf *out)
{
	uint32_t first = job_rank(job, part->first);

	buf_put_char(out, '\n');
	if (job->part_count > 1) {
		buf_fmt(out, "part     %u, rank%s %u",
			job_part_index(job, part), part->size == 1 ? "" : "s",
			first);
		if (part->size > 1)
			buf_fmt(out, "-%u", first + part->size - 1);
		if (part->dir != NULL)
			buf_fmt(out, ", in %s", part->dir);
		buf_put_char(out, '\n');
	}
	buf_fmt(out, "program  %s\n", part->program);
	if (part->preload != NULL)
		buf_fmt(out, "agent    %s\n", part->preload);
	else
		buf_fmt(out, "agent    none%s%s\n",
			part->no_preload[0] != '\0' ? ": the program is " :
						      " (--buffer full)",
			part->no_preload);
}

static void
plan_as_text(const struct job *job, const struct prepared *p, struct buf *out)
{
	const struct bind_set *bound = bind_of(&job->processors.bind, 0);
	uint32_t n = job_size(job);

	buf_fmt(out, "%u rank%s", n, n == 1 ? "" : "s");
	if (job->part_count > 1)
		buf_fmt(out, " of %u programs", job->part_count);
	buf_fmt(out, " (%s), platform %s; nothing was started\n\n",
		plan_reason_text(job->plan.reason), platform_of(job, p));
	buf_fmt(out, " rank  host              device            %scommand\n",
		bound == NULL ? "" : "cpus      ");
	for (uint32_t i = 0; i < n; i++) {
		buf_fmt(out, "%5u  %-16s  %-16s  ", job_rank(job, i), p->host,
			plan_deal(&job->plan, i)->text);
		bound = bind_of(&job->processors.bind, i);
		if (bound != NULL)
			buf_fmt(out, "%-8s  ", bound->text);
		put_command(out, job_argv(job, i));
		buf_put_char(out, '\n');
	}
	for (uint32_t i = 0; i < job->part_count; i++)
		part_as_text(job, &job->parts[i], out);
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
	struct env *env = job_part(job, rank->local_rank)->env;
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_int(&j, "v", 1);
	json_int(&j, "rank", job->plan.first + rank->local_rank);
	json_open_array(&j, "variables");
	env_each(env, rank, item_as_json, &j);
	json_close_array(&j);
	json_open_array(&j, "removed");
	env_each_removed(env, removed_as_json, &j);
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
	struct env *env = job_part(job, r.local_rank)->env;
	struct buf out = { 0 };

	if (job->opt.json) {
		env_as_json(job, &r, &out);
	} else {
		env_each(env, &r, item_as_text, &out);
		env_each_removed(env, removed_as_text, &out);
	}
	return say(&out);
}
