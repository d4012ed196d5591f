/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - see plan.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "place/mask.h"
#include "place/plan.h"

/* Under a worker list a host starts one process, or one a device. */
static enum xr_status
check_list_rule(const struct plan_facts *facts, uint32_t devices,
	struct xr_error *err)
{
	const char *all = facts->parts > 1 ? " in all" : "";

	if (facts->any_ranks || facts->ranks == 1 || facts->ranks == devices)
		return XR_OK;
	if (devices == 1)
		return fail(err, XR_E_INVAL,
			"-n %" PRId64
			"%s: this TPU worker list has 1 device a host, so 1\t-n 1%s, or --any-ranks",
			facts->ranks, all, all);
	return fail(err, XR_E_INVAL,
		"-n %" PRId64
		"%s: this TPU worker list has %u devices a host, so 1 or %u\t-n %u%s, or --any-ranks",
		facts->ranks, all, devices, devices, devices, all);
}

static enum xr_status
count_local(struct plan *plan, const struct plan_facts *facts,
	struct xr_error *err)
{
	if (facts->ranks < 0 || facts->ranks > PLAN_RANKS_MAX)
		return fail(err, XR_E_RANGE,
			"-n %" PRId64 ": ranks can be 1 to %d", facts->ranks,
			PLAN_RANKS_MAX);
	if (facts->ranks > 0) {
		plan->local_size = (uint32_t)facts->ranks;
		plan->reason = PLAN_GIVEN;
		if (plan->workers.present)
			return check_list_rule(facts, plan->workers.devices,
				err);
	} else if (plan->workers.present) {
		plan->local_size = plan->workers.devices;
		plan->reason = PLAN_WORKER_LIST;
	} else if (plan->device_count > 0) {
		plan->local_size = plan->device_count;
		plan->reason = PLAN_ACCELERATORS;
	} else {
		plan->local_size = 1;
	}
	return XR_OK;
}

static enum xr_status
count_all(struct plan *plan, const struct plan_facts *facts,
	struct xr_error *err)
{
	uint64_t size = 0;

	plan->node = facts->node;
	plan->nodes = facts->nodes == 0 ? 1 : facts->nodes;
	if (plan->workers.present) {
		plan->node = plan->workers.host;
		plan->nodes = plan->workers.hosts;
	}
	size = (uint64_t)plan->nodes * plan->local_size;
	if (size > PLAN_RANKS_MAX)
		return fail(err, XR_E_RANGE,
			"%u hosts with %u ranks are %" PRIu64
			" ranks, at most %d",
			plan->nodes, plan->local_size, size, PLAN_RANKS_MAX);
	plan->size = (uint32_t)size;
	plan->first = worker_ordinal(plan->node, plan->local_size, 0);
	return XR_OK;
}

static enum xr_status
choose_devices(struct plan *plan, const struct plan_facts *facts,
	struct xr_error *err)
{
	struct mask_from from = {
		.name = "--devices",
		.devices = facts->found,
		.count = facts->found_count,
	};
	size_t bytes = facts->found_count * sizeof(*facts->found);

	if (facts->devices != NULL && strcmp(facts->devices, "none") == 0) {
		plan->devices_none = true;
		return XR_OK;
	}
	if (facts->devices != NULL && strcmp(facts->devices, "auto") != 0)
		return mask_select(&from, facts->devices, &plan->devices,
			&plan->device_count, err);
	if (bytes == 0)
		return XR_OK;
	plan->devices =
		memcpy(xcalloc(facts->found_count, sizeof(*facts->found)),
			facts->found, bytes);
	plan->device_count = facts->found_count;
	return XR_OK;
}

/* "cuda:0,cuda:2" with platforms, "0,2" without. */
static char *
join(const struct plan_deal *deal, bool platforms)
{
	struct buf text = { 0 };

	buf_put_text(&text, platforms && deal->count == 0 ? "cpu" : "");
	for (uint32_t i = 0; i < deal->count; i++) {
		const struct xr_device *device = &deal->devices[i];

		if (i > 0)
			buf_put_char(&text, ',');
		if (platforms)
			buf_fmt(&text, "%s:", device->platform);
		buf_put_text(&text, device->id);
	}
	XR_ASSERT(text.bad == XR_OK);
	return text.data != NULL ? text.data : xstrdup("");
}

static void
free_deals(struct plan *plan)
{
	for (uint32_t i = 0; i < plan->deal_count; i++) {
		free(plan->deals[i].text);
		free(plan->deals[i].ids);
	}
	free(plan->deals);
}

/* Puts the devices of each deal side by side, in plan->devices. */
static void
deal_out(struct plan *plan, uint32_t most)
{
	uint32_t n = plan->local_size, count = plan->device_count, at = 0;
	struct xr_device *dealt = xcalloc(count, sizeof(*dealt));
	struct plan_deal *deal = NULL;

	plan->deal_count = count < n ? count : n;
	if (count == 0)
		plan->deal_count = 1; /* one deal of nothing */
	plan->deals = xcalloc(plan->deal_count, sizeof(*plan->deals));
	for (uint32_t first = 0; first < plan->deal_count; first++) {
		deal = &plan->deals[first];
		deal->devices = &dealt[at];
		for (uint32_t i = first; i < count; i += plan->deal_count) {
			if (most != 0 && deal->count == most)
				break;
			dealt[at++] = plan->devices[i];
			deal->count++;
		}
		deal->text = join(deal, true);
		deal->ids = join(deal, false);
	}
	free(plan->devices);
	plan->devices = dealt;
	plan->device_count = at;
}

/* Under a worker list a device is of the whole job: tpu:11 is local rank 3 of
 * the second host. So every rank has a deal of its own. */
static void
deal_by_list(struct plan *plan)
{
	struct plan_deal *deals = xcalloc(plan->local_size, sizeof(*deals));

	for (uint32_t i = 0; i < plan->local_size; i++) {
		const struct plan_deal *from = plan_deal(plan, i);

		deals[i] = *from;
		deals[i].text = xasprintf("tpu:%u", plan->first + i);
		deals[i].ids = xstrdup(from->ids);
	}
	free_deals(plan);
	plan->deals = deals;
	plan->deal_count = plan->local_size;
}

enum xr_status
plan_make(struct plan *plan, const struct plan_facts *facts,
	struct xr_error *err)
{
	struct plan out = { .host = facts->host };
	enum xr_status status = XR_OK;

	status = worker_env_read(&out.workers, facts->vars, err);
	if (status == XR_OK)
		status = choose_devices(&out, facts, err);
	if (status == XR_OK)
		status = count_local(&out, facts, err);
	if (status == XR_OK)
		status = count_all(&out, facts, err);
	if (status != XR_OK) {
		plan_fini(&out);
		return status;
	}
	deal_out(&out, facts->most);
	if (plan_by_list(&out))
		deal_by_list(&out);
	*plan = out;
	return XR_OK;
}

bool
plan_by_list(const struct plan *plan)
{
	return plan->workers.present && !plan->devices_none;
}

void
plan_fini(struct plan *plan)
{
	free_deals(plan);
	free(plan->devices);
	worker_env_fini(&plan->workers);
	*plan = (struct plan){ 0 };
}

const struct plan_deal *
plan_deal(const struct plan *plan, uint32_t local_rank)
{
	return &plan->deals[local_rank % plan->deal_count];
}

const char *
plan_reason_text(enum plan_reason reason)
{
	switch (reason) {
	case PLAN_DEFAULT:
		return "default";
	case PLAN_GIVEN:
		return "given";
	case PLAN_WORKER_LIST:
		return "worker list";
	case PLAN_ACCELERATORS:
		return "accelerators";
	}
	return "?";
}
