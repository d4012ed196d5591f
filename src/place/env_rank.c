/* SPDX-License-Identifier: Apache-2.0 */
/* env_rank.c - rows become texts; ranks get theirs. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "place/env_inner.h"
#include "place/environ.h"

/* @number into the field's own digits, at least @width of them. */
static void
set_number(struct env *env, enum env_field field, uint32_t number, int width)
{
	char *end = &env->digits[field][ENV_DIGITS - 1];
	char *at = end;

	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0 || end - at < width);
	env->fields[field] = (struct field_text){ at, (uint32_t)(end - at) };
}

static void
set_text(struct env *env, enum env_field field, const char *text)
{
	env->fields[field] = (struct field_text){
		.at = text,
		.len = text == NULL ? 0 : (uint32_t)strlen(text),
	};
}

static const char *
pjrt_device(const struct env_facts *facts)
{
	const char *platform = facts->platform;

	if (platform == NULL || facts->plan->devices_none)
		return "CPU";
	if (strcmp(platform, "tpu") == 0)
		return "TPU";
	return strcmp(platform, "cuda") == 0 ? "CUDA" : "CPU";
}

/* Numbers of 0 that mean "not there" stay without text. */
static void
set_job_fields(struct env *env)
{
	const struct env_facts *facts = &env->facts;

	set_text(env, FIELD_job, facts->job);
	set_text(env, FIELD_join, facts->join);
	set_number(env, FIELD_size, facts->plan->size, 1);
	set_number(env, FIELD_local_size, facts->plan->local_size, 1);
	set_number(env, FIELD_node, facts->plan->node, 1);
	set_number(env, FIELD_nodes, facts->plan->nodes, 1);
	set_text(env, FIELD_host, facts->plan->host);
	set_text(env, FIELD_master_addr, facts->master_addr);
	set_number(env, FIELD_max_restarts, facts->max_restarts, 1);
	set_text(env, FIELD_control, facts->control);
	set_text(env, FIELD_store, facts->control == NULL ? NULL : "control:");
	set_number(env, FIELD_threads, facts->threads == 0 ? 1 : facts->threads,
		1);
	set_number(env, FIELD_part, facts->part.index, 1);
	set_number(env, FIELD_part_size, facts->plan->nodes * facts->part.size,
		1);
	if (facts->no_mpi)
		set_number(env, FIELD_no_mpi, facts->plan->size, 1);
	set_text(env, FIELD_pjrt_device, pjrt_device(facts));
	if (facts->master_port != 0 && facts->master_addr != NULL)
		set_number(env, FIELD_master_port, facts->master_port, 1);
	set_text(env, FIELD_agent_store, facts->agent_store ? "True" : "False");
	if (facts->mesh_port != 0)
		set_number(env, FIELD_mesh_port, facts->mesh_port, 1);
}

static void
set_xla_fields(struct env *env)
{
	const struct worker_list *list = &env->facts.plan->workers.list;
	const struct pjrt *pjrt = env->facts.pjrt;

	if (list->count > 0) {
		const struct worker *w = &list->workers[0];

		env->local_worker = xasprintf("%.*s:%u", (int)w->name.len,
			w->name.at, w->ordinal);
		env->tpu_config =
			environ_get(env->facts.inherited, "XRT_TPU_CONFIG");
	}
	set_text(env, FIELD_local_worker, env->local_worker);
	if (pjrt != NULL) {
		set_text(env, FIELD_tpu_process_bounds, pjrt->process_bounds);
		set_text(env, FIELD_tpu_chip_bounds, pjrt->chip_bounds);
		set_text(env, FIELD_tpu_addresses, pjrt->addresses);
	}
}

void
env_fields_init(struct env *env)
{
	const struct pjrt *pjrt = env->facts.pjrt;
	bool ports = pjrt != NULL && pjrt->ports != NULL;

	set_job_fields(env);
	set_xla_fields(env);
	for (int f = 0; f < FIELD_COUNT; f++)
		env->never[f] =
			!env_field_per_rank(f) && env->fields[f].at == NULL;
	env->never[FIELD_attempt_dir] = env->facts.attempt_dir == NULL;
	env->never[FIELD_segment] = !env->facts.segment;
	env->never[FIELD_tpu_config] = env->tpu_config == NULL;
	env->never[FIELD_tpu_port] = !ports;
	env->never[FIELD_tpu_task] = !ports;
	env->never[FIELD_tpu_chips] = pjrt == NULL ||
		env->facts.plan->device_count == 0 ||
		strcmp(env->fields[FIELD_pjrt_device].at, "TPU") != 0;
}

/* A program has as many ranks on each machine as on this one; those of the
 * machines before this one come first. */
static uint32_t
part_rank(const struct env *env, uint32_t local_rank)
{
	const struct env_part *part = &env->facts.part;

	return env->facts.plan->node * part->size + local_rank - part->first;
}

/* What differs from rank to rank. */
static void
set_rank_fields(struct env *env, const struct env_rank *rank)
{
	const struct plan *plan = env->facts.plan;
	const struct plan_deal *deal = plan_deal(plan, rank->local_rank);
	const struct pjrt *pjrt = env->facts.pjrt;
	uint32_t number = plan->first + rank->local_rank;

	XR_ASSERT(rank->local_rank < plan->local_size);
	XR_ASSERT(rank->stdio == NULL || strlen(rank->stdio) < STDIO_TAG_MAX);
	XR_ASSERT(rank->segment == NULL ||
		strlen(rank->segment) < ENV_SEGMENT_MAX);
	set_number(env, FIELD_rank, number, 1);
	set_number(env, FIELD_rank4, number, 4);
	set_number(env, FIELD_local_rank, rank->local_rank, 1);
	set_number(env, FIELD_part_rank, part_rank(env, rank->local_rank), 1);
	set_number(env, FIELD_attempt, rank->attempt, 1);
	set_text(env, FIELD_attempt_dir, env->facts.attempt_dir);
	set_text(env, FIELD_device, deal->text);
	set_text(env, FIELD_stdio, rank->stdio);
	set_text(env, FIELD_segment, rank->segment);
	set_text(env, FIELD_tpu_config, number == 0 ? env->tpu_config : NULL);
	set_text(env, FIELD_tpu_chips, deal->count > 0 ? deal->ids : NULL);
	if (pjrt == NULL || pjrt->ports == NULL)
		return;
	set_number(env, FIELD_tpu_task, pjrt->first_task + rank->local_rank, 1);
	set_number(env, FIELD_tpu_port, pjrt->ports[rank->local_rank], 1);
}

/* Bytes the field can have at most, for any rank. */
static size_t
widest(const struct env *env, enum env_field field)
{
	const struct plan *plan = env->facts.plan;
	size_t most = 0, len = 0;

	if (!env_field_per_rank(field))
		return env->fields[field].len;
	if (field == FIELD_stdio)
		return STDIO_TAG_MAX;
	if (field == FIELD_segment)
		return ENV_SEGMENT_MAX;
	if (field == FIELD_attempt_dir)
		return env->facts.attempt_dir == NULL ?
			0 :
			strlen(env->facts.attempt_dir) + ENV_DIGITS;
	if (field == FIELD_tpu_config)
		return env->tpu_config == NULL ? 0 : strlen(env->tpu_config);
	if (field != FIELD_device && field != FIELD_tpu_chips)
		return ENV_DIGITS;
	for (uint32_t i = 0; i < plan->deal_count; i++) {
		len = strlen(plan->deals[i].text);
		most = len > most ? len : most;
	}
	return most; /* the ids are shorter than the text */
}

/* Takes a row's value apart. False if a field of it never has a text. */
static bool
take_apart(const struct env *env, const struct env_row *row, struct slot *slot,
	bool *per_rank)
{
	const char *at = row->value;

	while (*at != '\0') {
		struct piece *piece = &slot->pieces[slot->count++];
		size_t len = strcspn(at, "{");

		XR_ASSERT(slot->count <= ENV_PIECES);
		if (len > 0) {
			*piece = (struct piece){ at, (uint32_t)len, 0 };
			at += len;
			continue;
		}
		len = strcspn(++at, "}");
		piece->field = env_field_find((struct span){ at, len });
		XR_ASSERT(piece->field < FIELD_COUNT);
		if (env->never[piece->field])
			return false;
		*per_rank |= env_field_per_rank(piece->field);
		at += len + 1;
	}
	return true;
}

/* The value of a slot at @at; false if a field has nothing to say now. */
static bool
fill(const struct env *env, const struct slot *slot, char *at)
{
	for (uint32_t i = 0; i < slot->count; i++) {
		const struct piece *piece = &slot->pieces[i];
		struct field_text text = { piece->text, piece->len };

		if (piece->text == NULL)
			text = env->fields[piece->field];
		if (text.at == NULL)
			return false;
		memcpy(at, text.at, text.len);
		at += text.len;
	}
	*at = '\0';
	return true;
}

char *
env_row_text(struct env *env, const struct env_row *row, bool *per_rank)
{
	size_t head = strlen(row->name) + 1, room = head + 1;
	struct slot slot = { 0 };
	char *text = NULL;

	if (!take_apart(env, row, &slot, per_rank))
		return NULL;
	for (uint32_t i = 0; i < slot.count; i++)
		room += slot.pieces[i].text != NULL ?
			slot.pieces[i].len :
			widest(env, slot.pieces[i].field);
	text = xcalloc(1, room);
	memcpy(text, row->name, head - 1);
	text[head - 1] = '=';
	if (!*per_rank)
		fill(env, &slot, text + head);
	return text;
}

void
env_slots_init(struct env *env)
{
	uint32_t varying = 0;
	bool per_rank = false;

	env->vars = xcalloc(env->count + 1, sizeof(*env->vars));
	for (uint32_t i = 0; i < env->count; i++) {
		if (env->entries[i].kind == ENTRY_FIXED)
			env->vars[env->fixed_count++] = env->entries[i].text;
		else
			varying++;
	}
	env->slots = xcalloc(varying, sizeof(*env->slots));
	for (uint32_t i = 0; i < env->count; i++) {
		const struct entry *e = &env->entries[i];
		struct slot *slot = &env->slots[env->slot_count];

		if (e->kind == ENTRY_FIXED)
			continue;
		slot->entry = i;
		env->slot_count++;
		if (e->kind == ENTRY_ROW)
			take_apart(env, e->row, slot, &per_rank);
	}
}

/* NAME=VALUE of one slot for the rank whose fields are set, or NULL. */
static char *
text_of(struct env *env, const struct slot *slot, uint32_t local_rank)
{
	struct entry *e = &env->entries[slot->entry];

	if (e->kind == ENTRY_DEAL)
		return e->by_deal[local_rank % env->facts.plan->deal_count];
	if (!fill(env, slot, e->text + e->name_len + 1))
		return NULL;
	return e->text;
}

char *const *
env_of_rank(struct env *env, const struct env_rank *rank)
{
	char **at = &env->vars[env->fixed_count];

	set_rank_fields(env, rank);
	for (uint32_t i = 0; i < env->slot_count; i++) {
		char *text = text_of(env, &env->slots[i], rank->local_rank);

		if (text != NULL)
			*at++ = text;
	}
	*at = NULL;
	return env->vars;
}

static const char *
source_of(const struct env *env, enum env_origin origin)
{
	switch (origin) {
	case ENV_INHERITED:
		return "inherited";
	case ENV_XRUN:
		return "xrun";
	case ENV_TORCH:
		return "profile torch";
	case ENV_XRT:
		return "profile xrt";
	case ENV_PJRT:
		return "profile pjrt";
	case ENV_PLATFORM:
		return env->platform_source;
	case ENV_OPTION:
		return env->facts.user_source != NULL ? env->facts.user_source :
							"--env";
	}
	return "?";
}

void
env_each(struct env *env, const struct env_rank *rank, env_item_fn *fn,
	void *arg)
{
	uint32_t next = 0;

	set_rank_fields(env, rank);
	for (uint32_t i = 0; i < env->count; i++) {
		const struct entry *e = &env->entries[i];
		const char *text = e->text;
		struct env_item item = {
			.name = { .at = text, .len = e->name_len },
			.origin = e->origin,
			.source = source_of(env, e->origin),
			.hides = e->hides,
		};

		if (e->kind != ENTRY_FIXED)
			text = text_of(env, &env->slots[next++],
				rank->local_rank);
		if (text == NULL)
			continue;
		item.value = text + e->name_len;
		item.value += *item.value == '=';
		fn(arg, &item);
	}
}
