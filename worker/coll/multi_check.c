/* SPDX-License-Identifier: Apache-2.0 */
/* multi_check.c - what may be called; see multi.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "worker/coll/kernel.h"
#include "worker/coll/multi.h"
#include "worker/coll/plan.h"
#include "worker/coll/team.h"

static enum xr_status
check_call(const struct multi *m, struct xr_error *err)
{
	const struct xr_coll_multi *call = m->call;

	if (m->team->me < 0)
		return fail(err, XR_E_NOTMEMBER,
			"this rank is no member of the group");
	if (call == NULL || call->size < sizeof(*call))
		return fail(err, XR_E_INVAL,
			"struct xr_coll_multi: its size is %u",
			call != NULL ? call->size : 0);
	if (call->timeout < XR_TIMEOUT_DEFAULT)
		return fail(err, XR_E_INVAL, "a timeout of %lld ns",
			(long long)call->timeout);
	if (call->count == 0 || call->count > XR_COLL_MULTI_MOST)
		return fail(err, XR_E_INVAL, "%s: %u tensors: 1 to %d are fine",
			m->form->name, call->count, XR_COLL_MULTI_MOST);
	if (call->tensors == NULL)
		return fail(err, XR_E_INVAL, "%s: tensors is NULL",
			m->form->name);
	if (!m->form->gathers != (call->lists == NULL))
		return fail(err, XR_E_INVAL, "%s: there are %s lists",
			m->form->name, m->form->gathers ? "no" : "to be no");
	return XR_OK;
}

static enum xr_status
check_root(const struct multi *m, struct xr_error *err)
{
	const struct xr_coll_multi *call = m->call;

	if (!m->form->plan->has_root)
		return XR_OK;
	if (team_place_of_rank(m->team, call->rank) < 0)
		return fail(err, XR_E_INVAL,
			"rank %lld is no member of the group",
			(long long)call->rank);
	if (call->index >= call->count)
		return fail(err, XR_E_INVAL,
			"%s: tensor %u of %u: there is none", m->form->name,
			call->index, call->count);
	return XR_OK;
}

/* Is @tensor what @spot becomes, and like the first? @where: "tensors[1]". */
static enum xr_status
check_tensor(const struct multi *m, const struct xr_value *tensor,
	struct spot *spot, const char *where, struct xr_error *err)
{
	const struct spot *first = &m->spot[0];
	struct xr_error why = { 0 };
	enum xr_status status = spot_init(spot, tensor, &why);

	if (status != XR_OK)
		return fail(err, status, "%s: %s %s", m->form->name, where,
			why.text);
	if (spot->dtype != first->dtype || spot->elements != first->elements)
		return fail(err, XR_E_INVAL,
			"%s: %s has %zu %s, and tensors[0] %zu %s",
			m->form->name, where, spot->elements,
			xr_dtype_name(spot->dtype), first->elements,
			xr_dtype_name(first->dtype));
	return XR_OK;
}

static enum xr_status
check_tensors(struct multi *m, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	char where[32];

	for (uint32_t i = 0; i < m->call->count && status == XR_OK; i++) {
		snprintf(where, sizeof(where), "tensors[%u]", i);
		status = check_tensor(m, m->call->tensors[i], &m->spot[i],
			where, err);
		for (uint32_t k = 0; k < i && status == XR_OK; k++)
			if (spot_is_near(&m->spot[k], &m->spot[i]))
				status = fail(err, XR_E_INVAL,
					"%s: tensors %u and %u lie on one device, %s:%d",
					m->form->name, k, i,
					device_kind_name(m->spot[i].kind),
					m->spot[i].all.index);
	}
	return status;
}

static enum xr_status
check_list(struct multi *m, uint32_t i, struct xr_error *err)
{
	struct xr_value *const *list = m->call->lists[i];
	enum xr_status status = XR_OK;
	char where[48];

	for (size_t k = 0; k < m->all && list != NULL && status == XR_OK; k++) {
		snprintf(where, sizeof(where), "lists[%u][%zu]", i, k);
		status = check_tensor(m, list[k], &m->out[i * m->all + k],
			where, err);
	}
	return status;
}

/* All that members can differ in. */
static void
tell(struct multi *m)
{
	const struct xr_coll_multi *call = m->call;
	const struct plan *plan = m->form->plan;
	size_t cap = sizeof(m->text), n;

	n = (size_t)snprintf(m->text, cap, "%s of %u x %zu %s", m->form->name,
		call->count, m->spot[0].elements,
		xr_dtype_name(m->spot[0].dtype));
	if (plan->reduces && n < cap)
		n += (size_t)snprintf(m->text + n, cap - n, ", %s",
			plan_redop_name(call->op));
	if (plan->has_root && n < cap)
		snprintf(m->text + n, cap - n, ", rank %lld, tensor %u",
			(long long)call->rank, call->index);
}

static enum xr_status
make_spots(struct multi *m, struct xr_error *err)
{
	size_t count = m->call->count;

	m->all = count * m->team->count;
	m->spot = calloc(count, sizeof(*m->spot));
	if (m->form->gathers)
		m->out = calloc(count * m->all, sizeof(*m->out));
	if (m->spot == NULL || (m->form->gathers && m->out == NULL))
		return fail(err, XR_E_NOMEM, "out of memory");
	return XR_OK;
}

enum xr_status
multi_check(struct multi *m, struct xr_error *err)
{
	enum xr_status status = check_call(m, err);

	if (status == XR_OK)
		status = check_root(m, err);
	if (status == XR_OK)
		status = make_spots(m, err);
	if (status == XR_OK)
		status = check_tensors(m, err);
	for (uint32_t i = 0;
		status == XR_OK && m->form->gathers && i < m->call->count; i++)
		status = check_list(m, i, err);
	if (status != XR_OK)
		return status;
	if (m->form->plan->reduces &&
		!kernel_can(m->spot[0].dtype, m->call->op))
		return fail(err, XR_E_INVAL, "%s: there is no %s of %s",
			m->form->name, plan_redop_name(m->call->op),
			xr_dtype_name(m->spot[0].dtype));
	tell(m);
	return XR_OK;
}
