/* SPDX-License-Identifier: Apache-2.0 */
/* bind.c - see bind.h. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "place/bind.h"

/* A set of @count CPUs at @cpus, which are neighbours in no table. */
static struct bind_set
make_set(const struct topology *t, const uint32_t *cpus, uint32_t count)
{
	struct bind_set set = { 0 };
	uint32_t highest = 0;
	struct buf text = { 0 };
	struct ranks cores;

	for (uint32_t i = 0; i < count; i++)
		highest = cpus[i] > highest ? cpus[i] : highest;
	XR_ASSERT(ranks_init(&set.cpus, (highest / 64 + 1) * 64) == XR_OK);
	XR_ASSERT(ranks_init(&cores, t->cores) == XR_OK);
	for (uint32_t i = 0; i < count; i++)
		ranks_add(&set.cpus, cpus[i]);
	for (uint32_t i = 0; i < t->count; i++)
		if (ranks_has(&set.cpus, t->cpus[i].cpu))
			ranks_add(&cores, t->cpus[i].core);
	set.cores = ranks_count(&cores);
	ranks_fini(&cores);
	ranks_put(&set.cpus, &text);
	XR_ASSERT(text.bad == XR_OK);
	set.text = text.data;
	return set;
}

/* Where core @core stands in the table. */
static uint32_t
core_begin(const struct topology *t, uint32_t core)
{
	uint32_t i = 0;

	while (i < t->count && t->cpus[i].core != core)
		i++;
	return i;
}

struct cores {
	const struct topology *topology;
	bind_take_fn *take;
	void *arg;
	struct ranks tried, had; /* cores */
};

/* Every CPU of it that may be used can be had. */
static bool
take_core(struct cores *c, uint32_t core)
{
	const struct topology *t = c->topology;
	bool all = true;

	ranks_add(&c->tried, core);
	for (uint32_t i = core_begin(t, core);
		all && i < t->count && t->cpus[i].core == core; i++)
		all = c->take == NULL || c->take(c->arg, t->cpus[i].cpu);
	if (all)
		ranks_add(&c->had, core);
	return all;
}

/* The first core from @from on, round the machine, that nobody has. */
static bool
take_near(struct cores *c, uint32_t from)
{
	uint32_t n = c->topology->cores;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t core = (from + i) % n;

		if (!ranks_has(&c->tried, core) && take_core(c, core))
			return true;
	}
	return false;
}

static void
put_core(struct bind *bind, const struct topology *t, uint32_t core)
{
	uint32_t first = core_begin(t, core), n = 0;
	uint32_t *cpus = xcalloc(t->count, sizeof(*cpus));

	for (uint32_t i = first; i < t->count && t->cpus[i].core == core; i++)
		cpus[n++] = t->cpus[i].cpu;
	bind->sets[bind->count++] = make_set(t, cpus, n);
	free(cpus);
}

uint32_t
bind_cores(struct bind *bind, const struct topology *topology, uint32_t ranks,
	bind_take_fn *take, void *arg)
{
	uint32_t all = topology->cores, n = ranks < all ? ranks : all;
	struct cores c = { .topology = topology, .take = take, .arg = arg };

	*bind = (struct bind){ 0 };
	XR_ASSERT(ranks_init(&c.tried, all) == XR_OK);
	XR_ASSERT(ranks_init(&c.had, all) == XR_OK);
	for (uint32_t r = 0; r < n; r++)
		if (!take_near(&c, (uint32_t)((uint64_t)r * all / n)))
			break;
	bind->sets = xcalloc(n, sizeof(*bind->sets));
	RANKS_EACH(core, &c.had) {
		put_core(bind, topology, core);
	}
	ranks_fini(&c.tried);
	ranks_fini(&c.had);
	return bind->count;
}

static bool
is_there(const struct topology *t, uint32_t cpu)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->cpus[i].cpu == cpu)
			return true;
	return false;
}

static enum xr_status
no_such_cpu(const struct topology *t, uint32_t cpu, struct xr_error *err)
{
	struct buf may = { 0 };
	enum xr_status status;
	struct ranks all;

	XR_ASSERT(ranks_init(&all, TOPOLOGY_CPUS) == XR_OK);
	for (uint32_t i = 0; i < t->count; i++)
		ranks_add(&all, t->cpus[i].cpu);
	ranks_put(&all, &may);
	status = fail(err, XR_E_RANGE,
		"--bind: CPU %u is not among those that may be used here: %.120s",
		cpu, buf_text(&may));
	buf_fini(&may);
	ranks_fini(&all);
	return status;
}

/* The CPUs of @text in its order, at @out; their number in @n. */
static enum xr_status
read_list(const struct topology *t, const char *text, uint32_t *out,
	uint32_t *n, struct xr_error *err)
{
	struct ranks seen;
	enum xr_status status = XR_OK;
	uint32_t range[2];
	const char *at = text;

	XR_ASSERT(ranks_init(&seen, TOPOLOGY_CPUS) == XR_OK);
	while (at != NULL && status == XR_OK) {
		if (!cpulist_next(&at, range) || strchr(text, '\n') != NULL) {
			status = fail(err, XR_E_INVAL,
				"--bind: '%.60s' is not auto, none, core or a list of CPUs such as 0-3,8",
				text);
			break;
		}
		for (uint32_t cpu = range[0];
			cpu <= range[1] && status == XR_OK; cpu++) {
			if (!is_there(t, cpu))
				status = no_such_cpu(t, cpu, err);
			else if (ranks_has(&seen, cpu))
				status = fail(err, XR_E_INVAL,
					"--bind: CPU %u is named twice", cpu);
			else
				out[(*n)++] = cpu;
			ranks_add(&seen, cpu);
		}
	}
	ranks_fini(&seen);
	return status;
}

enum xr_status
bind_list(struct bind *bind, const struct topology *topology, const char *text,
	uint32_t ranks, struct xr_error *err)
{
	uint32_t *cpus = xcalloc(topology->count, sizeof(*cpus));
	uint32_t n = 0, shares, from, to;
	enum xr_status status;

	*bind = (struct bind){ 0 };
	status = read_list(topology, text, cpus, &n, err);
	shares = ranks < n ? ranks : n;
	if (status == XR_OK)
		bind->sets = xcalloc(shares, sizeof(*bind->sets));
	for (uint32_t i = 0; status == XR_OK && i < shares; i++) {
		from = (uint32_t)((uint64_t)i * n / shares);
		to = (uint32_t)((uint64_t)(i + 1) * n / shares);
		bind->sets[bind->count++] =
			make_set(topology, &cpus[from], to - from);
	}
	free(cpus);
	return status;
}

const struct bind_set *
bind_of(const struct bind *bind, uint32_t local_rank)
{
	return bind->count == 0 ? NULL : &bind->sets[local_rank % bind->count];
}

void
bind_fini(struct bind *bind)
{
	for (uint32_t i = 0; i < bind->count; i++) {
		ranks_fini(&bind->sets[i].cpus);
		free(bind->sets[i].text);
	}
	free(bind->sets);
	*bind = (struct bind){ 0 };
}
