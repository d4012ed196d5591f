/* SPDX-License-Identifier: Apache-2.0 */
/* mask.c - see mask.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/span.h"
#include "base/status.h"
#include "place/mask.h"

#define INDEX_MAX 1000000

/* One run of mask_apply() or mask_select(). */
struct job {
	const struct mask_from *from;
	const char *text;
	struct xr_device *out;
	uint32_t count, room;
	struct xr_error *err;
};

#define BAD(job, status, piece, fmt, ...) \
	fail((job)->err, status, "%s: '%.*s' (byte %zu) " fmt, \
		(job)->from->name, QUOTED(piece), \
		(size_t)((piece).at - (job)->text), ##__VA_ARGS__)

static struct span
trim(struct span s)
{
	while (s.len > 0 && (*s.at == ' ' || *s.at == '\t')) {
		s.at++;
		s.len--;
	}
	while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
		s.len--;
	return s;
}

static bool
begins(const char *text, struct span start)
{
	return start.len > 0 && strncmp(text, start.at, start.len) == 0;
}

/* "2 devices here", with the range of their indices where they have one. */
static const char *
describe(const struct mask_from *from, char *out, size_t cap)
{
	const struct xr_device *last = NULL;

	if (from->count == 0)
		snprintf(out, cap, "there is no device here");
	else if (from->count == 1)
		snprintf(out, cap, "the only device here is %s",
			from->devices[0].id);
	else {
		last = &from->devices[from->count - 1];
		snprintf(out, cap, "the %u devices here are %s to %s",
			from->count, from->devices[0].id, last->id);
	}
	return out;
}

/* Twice is also GPU-12 beside GPU-1234: the driver would take one for both. */
static bool
same(const struct xr_device *a, const struct xr_device *b)
{
	size_t l = strlen(a->id), r = strlen(b->id);

	if (a->uuid[0] != '\0' && b->uuid[0] != '\0')
		return strcmp(a->uuid, b->uuid) == 0;
	if (a->index != UINT32_MAX && b->index != UINT32_MAX)
		return a->index == b->index;
	if (a->index != b->index)
		return false;
	return strncmp(a->id, b->id, l < r ? l : r) == 0;
}

static enum xr_status
put(struct job *job, const struct xr_device *device, struct span piece)
{
	for (uint32_t i = 0; i < job->count; i++)
		if (same(&job->out[i], device))
			return BAD(job, XR_E_EXISTS, piece, "is there twice");
	if (job->count == job->room) {
		job->room = job->room == 0 ? 16 : job->room * 2;
		job->out = xrealloc(job->out, job->room * sizeof(*job->out));
	}
	job->out[job->count++] = *device;
	return XR_OK;
}

static enum xr_status
put_index(struct job *job, uint32_t index, struct span piece)
{
	char here[200];

	for (uint32_t i = 0; i < job->from->count; i++)
		if (job->from->devices[i].index == index)
			return put(job, &job->from->devices[i], piece);
	return BAD(job, XR_E_RANGE, piece, "is out of range, %s",
		describe(job->from, here, sizeof(here)));
}

/* What a driver would take for a name: GPU-..., MIG-..., letters and digits. */
static bool
is_name(struct span s)
{
	static const char ok[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-/";

	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] == '\0' || strchr(ok, s.at[i]) == NULL)
			return false;
	return s.len > 4 &&
		(strncmp(s.at, "GPU-", 4) == 0 ||
			strncmp(s.at, "MIG-", 4) == 0) &&
		s.len < sizeof(((struct xr_device *)NULL)->id);
}

static const char *
name_of(const struct xr_device *device)
{
	return device->uuid[0] != '\0' ? device->uuid : device->id;
}

/* The one known device whose UUID or id begins with @piece; NULL if none. */
static enum xr_status
find_name(struct job *job, struct span piece, const struct xr_device **found)
{
	const struct xr_device *device = job->from->devices;

	*found = NULL;
	for (uint32_t i = 0; i < job->from->count; i++, device++) {
		if (!begins(device->uuid, piece) && !begins(device->id, piece))
			continue;
		if (*found != NULL)
			return BAD(job, XR_E_CONFLICT, piece, "fits %s and %s",
				name_of(*found), name_of(device));
		*found = device;
	}
	return XR_OK;
}

static enum xr_status
put_name(struct job *job, struct span piece)
{
	const struct xr_device *known = NULL;
	struct xr_device device = {
		.size = sizeof(device),
		.index = UINT32_MAX,
	};
	enum xr_status status = XR_OK;

	if (!is_name(piece))
		return BAD(job, XR_E_INVAL, piece,
			"is neither an index nor GPU-... nor MIG-...");
	status = find_name(job, piece, &known);
	if (status != XR_OK)
		return status;
	if (known != NULL)
		device = *known;
	else if (job->from->count > 0)
		memcpy(device.platform, job->from->devices[0].platform,
			sizeof(device.platform));
	memset(device.id, 0, sizeof(device.id));
	memcpy(device.id, piece.at, piece.len);
	return put(job, &device, piece);
}

static enum xr_status
mask_piece(struct job *job, struct span piece)
{
	uint32_t index = 0;

	if (number_parse(piece, INDEX_MAX, &index))
		return put_index(job, index, piece);
	return put_name(job, piece);
}

static enum xr_status
select_piece(struct job *job, struct span piece)
{
	const struct xr_device *known = NULL;
	enum xr_status status = XR_OK;
	struct span high = piece;
	struct span low = span_next(&high, '-');
	uint32_t from = 0, to = 0;
	char here[200];

	if (number_parse(low, INDEX_MAX, &from)) {
		to = from;
		if (high.at != NULL && !number_parse(high, INDEX_MAX, &to))
			return BAD(job, XR_E_INVAL, piece,
				"is not a range like 0-3");
		if (from > to)
			return BAD(job, XR_E_INVAL, piece, "runs backwards");
		for (; from <= to && status == XR_OK; from++)
			status = put_index(job, from, piece);
		return status;
	}
	if (piece.len == 0)
		return BAD(job, XR_E_INVAL, piece, "is not a device");
	status = find_name(job, piece, &known);
	if (status == XR_OK && known == NULL)
		return BAD(job, XR_E_RANGE, piece, "is no device, %s",
			describe(job->from, here, sizeof(here)));
	return status != XR_OK ? status : put(job, known, piece);
}

static enum xr_status
finish(struct job *job, enum xr_status status, struct xr_device **out,
	uint32_t *count)
{
	if (status != XR_OK) {
		free(job->out);
		return status;
	}
	*out = job->out;
	*count = job->count;
	return XR_OK;
}

/* Words that mean "no device" to those who write them. */
static bool
is_none(struct span s)
{
	return s.len == 0 || span_is(s, "none") || span_is(s, "void") ||
		span_is(s, "NoDevFiles"); /* Slurm */
}

enum xr_status
mask_apply(const struct mask_from *from, const char *text,
	struct xr_device **out, uint32_t *count, struct xr_error *err)
{
	struct job job = { .from = from, .text = text, .err = err };
	struct span rest = span_of(text);
	enum xr_status status = XR_OK;

	if (is_none(trim(rest)))
		return finish(&job, XR_OK, out, count);
	while (rest.at != NULL && status == XR_OK) {
		struct span piece = trim(span_next(&rest, ','));

		if (span_is(piece, "-1"))
			break;
		status = mask_piece(&job, piece);
	}
	return finish(&job, status, out, count);
}

enum xr_status
mask_select(const struct mask_from *from, const char *text,
	struct xr_device **out, uint32_t *count, struct xr_error *err)
{
	struct job job = { .from = from, .text = text, .err = err };
	struct span rest = span_of(text);
	enum xr_status status = XR_OK;

	while (rest.at != NULL && status == XR_OK)
		status = select_piece(&job, trim(span_next(&rest, ',')));
	return finish(&job, status, out, count);
}

/* The beginning of a name of a device: of "GPU-", or something behind it. */
static bool
begins_name(struct span s)
{
	return s.len > 0 &&
		(is_name(s) ||
			(s.len <= 4 &&
				(begins("GPU-", s) || begins("MIG-", s))));
}

static enum xr_status
check_piece(struct span piece, size_t at, struct xr_error *err)
{
	struct span high = piece;
	struct span low = span_next(&high, '-');
	uint32_t from = 0, to = UINT32_MAX;
	bool number = number_parse(low, INDEX_MAX, &from);

	if (!number && begins_name(piece))
		return XR_OK;
	if (number && high.at != NULL && !number_parse(high, INDEX_MAX, &to))
		return fail(err, XR_E_INVAL,
			"'%.*s' (byte %zu) is not a range like 0-3",
			QUOTED(piece), at);
	if (number && from <= to)
		return XR_OK;
	return fail(err, XR_E_INVAL, "'%.*s' (byte %zu) %s", QUOTED(piece), at,
		number ? "runs backwards" :
			 "is neither an index nor GPU-... nor MIG-...");
}

enum xr_status
mask_check(const char *text, struct xr_error *err)
{
	struct span rest = span_of(text), piece;
	enum xr_status status = XR_OK;

	while (rest.at != NULL && status == XR_OK) {
		piece = trim(span_next(&rest, ','));
		status = check_piece(piece, (size_t)(piece.at - text), err);
	}
	return status;
}

bool
mask_needs_driver(const char *text)
{
	if (strcmp(text, "auto") == 0 || strcmp(text, "none") == 0)
		return false;
	return text[strspn(text, "0123456789-, \t")] != '\0';
}
