/* SPDX-License-Identifier: Apache-2.0 */
/* put_json.c - see put.h. */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "launcher/stacks/chain.h"
#include "launcher/stacks/merge.h"
#include "launcher/stacks/put.h"

/* Empty ones are left out. */
static void
put_text(struct json *j, const char *key, const char *text)
{
	if (text[0] != '\0')
		json_bytes(j, key, span_of(text));
}

static void
put_frames(struct json *j, const char *key, const struct frames *frames)
{
	if (frames->count == 0)
		return;
	json_open_array(j, key);
	for (uint32_t i = 0; i < frames->count; i++) {
		json_open_object(j, NULL);
		put_text(j, "function", frames->at[i].function);
		put_text(j, "file", frames->at[i].file);
		if (frames->at[i].line > 0)
			json_int(j, "line", frames->at[i].line);
		json_close_object(j);
	}
	json_close_array(j);
}

static void
put_group(struct json *j, const struct stacks *s, uint32_t i)
{
	const struct group *g = &s->group[i];
	struct buf text = { 0 };

	json_open_object(j, NULL);
	merge_ranks(s, i, &text);
	json_text(j, "ranks", buf_text(&text));
	json_int(j, "count", g->ranks);
	json_int(j, "threads", g->threads);
	json_bool(j, "main", g->main);
	put_text(j, "command", g->process->comm);
	buf_clear(&text);
	chain_put(&text, g->thread, 0);
	put_text(j, "stack", buf_text(&text));
	json_close_object(j);
	buf_fini(&text);
}

static void
put_thread(struct json *j, const struct thread *t)
{
	json_open_object(j, NULL);
	json_int(j, "tid", t->tid);
	put_text(j, "name", t->comm);
	json_bytes(j, "state", (struct span){ &t->state, 1 });
	put_text(j, "call", t->call);
	put_text(j, "wchan", t->wchan);
	json_int(j, "group", t->group);
	put_frames(j, "python", &t->python);
	put_frames(j, "native", &t->native);
	put_frames(j, "kernel", &t->kernel);
	json_close_object(j);
}

static void
put_process(struct json *j, const struct process *p)
{
	json_open_object(j, NULL);
	json_int(j, "pid", p->pid);
	put_text(j, "command", p->comm);
	json_int(j, "depth", p->depth);
	json_text(j, "by", stacks_by_name(p->by));
	if (p->python_by != NULL)
		json_text(j, "python_by", p->python_by);
	if (p->stopped)
		json_bool(j, "stopped", true);
	put_text(j, "error", p->why);
	json_open_array(j, "thread");
	for (uint32_t i = 0; i < p->threads; i++)
		put_thread(j, &p->thread[i]);
	json_close_array(j);
	json_close_object(j);
}

static void
put_rank(struct json *j, const struct stacks *s, const struct stacks_rank *r)
{
	json_open_object(j, NULL);
	json_int(j, "rank", r->rank);
	json_int(j, "pid", r->pid);
	if (r->ended)
		json_bool(j, "ended", true);
	if (r->left_out > 0)
		json_int(j, "left_out", r->left_out);
	json_open_array(j, "process");
	for (uint32_t i = 0; i < s->count; i++)
		if (s->process[i].rank == r->rank)
			put_process(j, &s->process[i]);
	json_close_array(j);
	json_close_object(j);
}

void
put_json(struct buf *out, const struct stacks *s, const char *job)
{
	char stamp[40];
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_int(&j, "v", 1);
	if (job != NULL)
		json_text(&j, "job", job);
	json_text(&j, "time", clock_stamp(clock_wall(), stamp, sizeof(stamp)));
	json_real(&j, "seconds", (double)s->took_ns / NS_PER_S);
	json_open_array(&j, "group");
	for (uint32_t i = 0; i < s->groups; i++)
		put_group(&j, s, i);
	json_close_array(&j);
	json_open_array(&j, "rank");
	for (uint32_t i = 0; i < s->ranks; i++)
		put_rank(&j, s, &s->rank[i]);
	json_close_array(&j);
	json_close_object(&j);
	buf_put_char(out, '\n');
}
