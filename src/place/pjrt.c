/* SPDX-License-Identifier: Apache-2.0 */
/* pjrt.c - see pjrt.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/span.h"
#include "base/status.h"
#include "place/pjrt.h"

/* The address of the next worker of the list. */
static enum xr_status
next_worker(const struct tpu_facts *facts, struct span *rest,
	struct span *address, struct xr_error *err)
{
	struct span piece = span_next(rest, ',');
	struct span part = piece;

	*address = piece;
	if (facts->endpoints) {
		for (int i = 0; i < 2 && part.at != NULL; i++)
			span_next(&part, ':');
		*address = (struct span){ 0 };
		if (part.at != NULL)
			*address = span_next(&part, ':');
	}
	if (address->len == 0)
		return fail(err, XR_E_INVAL, "%s: '%.*s' is no host",
			facts->endpoints ? "worker-network-endpoints" :
					   "TPU_WORKER_HOSTNAMES",
			QUOTED(piece));
	return XR_OK;
}

static uint32_t
count_workers(const struct tpu_facts *facts)
{
	if (facts->workers == NULL || *facts->workers == '\0')
		return 1;
	return (uint32_t)span_count(span_of(facts->workers), ',');
}

static enum xr_status
make_addresses(struct pjrt *pjrt, const struct tpu_facts *facts,
	uint32_t local_size, struct xr_error *err)
{
	const char *list = count_workers(facts) > 1 ? facts->workers : NULL;
	struct span rest = span_of(list == NULL ? "localhost" : list);
	struct buf text = { 0 };

	while (rest.at != NULL) {
		struct span host = rest;
		enum xr_status status = XR_OK;

		if (list == NULL)
			rest.at = NULL;
		else
			status = next_worker(facts, &rest, &host, err);
		if (status != XR_OK) {
			buf_fini(&text);
			return status;
		}
		for (uint32_t i = 0; i < local_size; i++)
			buf_fmt(&text, "%s%.*s:%u", text.len == 0 ? "" : ",",
				(int)host.len, host.at, PJRT_PORT + i);
	}
	XR_ASSERT(text.bad == XR_OK);
	pjrt->addresses = text.data;
	for (uint32_t i = 0; i < local_size; i++)
		pjrt->ports[i] = (uint16_t)(PJRT_PORT + i);
	return XR_OK;
}

/* A list made by hand: one address a process, this host's ports from it. */
static enum xr_status
take_addresses(struct pjrt *pjrt, const struct tpu_facts *facts,
	uint32_t local_size, struct xr_error *err)
{
	uint32_t workers = count_workers(facts), port = 0;
	struct span rest = span_of(facts->addresses);
	size_t count = span_count(rest, ',');

	if (count != (size_t)workers * local_size)
		return fail(err, XR_E_INVAL,
			"TPU_PROCESS_ADDRESSES has %zu address%s, but %u host%s x %u ranks = %u processes",
			count, count == 1 ? "" : "es", workers,
			workers == 1 ? "" : "s", local_size,
			workers * local_size);
	for (uint32_t i = 0; rest.at != NULL; i++) {
		struct span piece = span_next(&rest, ',');
		const char *colon = memrchr(piece.at, ':', piece.len);
		struct span digits = { 0 };

		if (colon != NULL)
			digits = (struct span){ colon + 1,
				(size_t)(piece.at + piece.len - colon - 1) };
		if (!number_parse(digits, UINT16_MAX, &port) || port == 0)
			return fail(err, XR_E_INVAL,
				"TPU_PROCESS_ADDRESSES: '%.*s' is not host:port",
				QUOTED(piece));
		if (i / local_size == facts->worker)
			pjrt->ports[i % local_size] = (uint16_t)port;
	}
	pjrt->addresses = xstrdup(facts->addresses);
	return XR_OK;
}

static const char *
bounds_text(const struct tpu_bounds *b, char out[40])
{
	snprintf(out, 40, "%u,%u,%u", b->at[0], b->at[1], b->at[2]);
	return out;
}

static uint64_t
product(const struct tpu_bounds *b)
{
	return (uint64_t)b->at[0] * b->at[1] * b->at[2];
}

/* All processes of the slice must exist, and no others. */
static enum xr_status
check_sum(const struct tpu_facts *facts, uint32_t local_size,
	struct xr_error *err)
{
	uint64_t chips = product(&facts->chips);
	uint64_t hosts = product(&facts->process);
	uint32_t workers = count_workers(facts);
	uint64_t ranks = (uint64_t)workers * local_size;
	char process[40], chip[40];

	/* tpu7x has two cores a chip, which may be one process each. */
	if (chips > UINT32_MAX || hosts > UINT32_MAX ||
		(chips * hosts != ranks &&
			(facts->version != 7 || chips * hosts * 2 != ranks)))
		return fail(err, XR_E_INVAL,
			"%s %s x %s %s = %" PRIu64
			" processes, but %u host%s x %u ranks = %" PRIu64,
			facts->process.name,
			bounds_text(&facts->process, process),
			facts->chips.name, bounds_text(&facts->chips, chip),
			chips * hosts, workers, workers == 1 ? "" : "s",
			local_size, ranks);
	if (workers > 1 && !facts->worker_known)
		return fail(err, XR_E_INVAL,
			"TPU_WORKER_HOSTNAMES has %u hosts, but TPU_WORKER_ID does not say which is this one",
			workers);
	if (facts->worker >= workers)
		return fail(err, XR_E_INVAL,
			"TPU worker %u does not exist: TPU_WORKER_HOSTNAMES has %u host%s",
			facts->worker, workers, workers == 1 ? "" : "s");
	return XR_OK;
}

static char *
multiply(const struct tpu_facts *facts)
{
	struct tpu_bounds b = facts->process;

	for (int i = 0; i < 3; i++)
		b.at[i] *= facts->chips.at[i];
	return xasprintf("%u,%u,%u%s", b.at[0], b.at[1], b.at[2],
		facts->version == 7 ? ",2" : "");
}

enum xr_status
pjrt_make(struct pjrt *pjrt, const struct tpu_facts *facts, uint32_t local_size,
	struct xr_error *err)
{
	struct pjrt out = { .chip_bounds = "1,1,1" };
	enum xr_status status = XR_OK;

	if (local_size == 1) {
		out.process_bounds = xstrdup("1,1,1");
		*pjrt = out;
		return XR_OK;
	}
	if (facts->process.name == NULL || facts->chips.name == NULL) {
		*pjrt = (struct pjrt){ 0 };
		return XR_OK;
	}
	if (local_size > UINT16_MAX - PJRT_PORT)
		return fail(err, XR_E_INVAL, "%u ranks need more ports than %d",
			local_size, UINT16_MAX - PJRT_PORT);
	status = check_sum(facts, local_size, err);
	if (status != XR_OK)
		return status;
	out.process_bounds = multiply(facts);
	out.first_task = facts->worker * local_size;
	out.ports = xcalloc(local_size, sizeof(*out.ports));
	if (facts->addresses != NULL && *facts->addresses != '\0')
		status = take_addresses(&out, facts, local_size, err);
	else
		status = make_addresses(&out, facts, local_size, err);
	if (status == XR_OK)
		*pjrt = out;
	else
		pjrt_fini(&out);
	return status;
}

void
pjrt_fini(struct pjrt *pjrt)
{
	free(pjrt->process_bounds);
	free(pjrt->addresses);
	free(pjrt->ports);
	*pjrt = (struct pjrt){ 0 };
}
