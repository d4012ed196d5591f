/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - see page.h. */
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "launcher/ctl/client.h"
#include "launcher/http/page.h"
#include "launcher/stat/metric.h"
#include "launcher/stat/usage.h"

#define TRIES 3 /* a job with too many callers drops some */

static cJSON *
ask(const char *id)
{
	const struct control m = control_new(CONTROL_STATUS, CONTROL_NONE);
	struct control answer;
	struct ctl_call call;
	enum xr_status status = XR_E_CLOSED;
	cJSON *json = NULL;

	for (int i = 0; i < TRIES && status == XR_E_CLOSED; i++) {
		status = ctl_dial(&call, id, NULL);
		if (status != XR_OK)
			continue;
		status = ctl_ask(&call, &m, &answer, NULL);
		if (status == XR_OK)
			json = cJSON_ParseWithLength(answer.job.status.at,
				answer.job.status.len);
		ctl_hang_up(&call);
	}
	return json;
}

static void
put_index(struct buf *out, const char *id)
{
	buf_fmt(out,
		"xrun job %s\n\n/metrics      for Prometheus\n/api/v1/job   as JSON\n",
		id);
}

struct pages *
pages_ask(const char *id)
{
	struct pages *p = calloc(1, sizeof(*p));
	cJSON *status = p == NULL ? NULL : ask(id);
	char *text;

	if (p == NULL)
		return NULL;
	p->refs = 1;
	p->made_ns = clock_now();
	if (status == NULL)
		return p;
	usage_add(status);
	metric_put(&p->page[HTTP_METRICS], status);
	put_index(&p->page[HTTP_INDEX], id);
	text = cJSON_PrintUnformatted(status);
	if (text != NULL)
		buf_fmt(&p->page[HTTP_JOB], "%s\n", text);
	cJSON_free(text);
	cJSON_Delete(status);
	return p;
}

void
pages_unref(struct pages *p)
{
	if (p == NULL || --p->refs > 0)
		return;
	for (int i = 0; i < 3; i++)
		buf_fini(&p->page[i]);
	free(p);
}

const char *
pages_type(enum http_page page)
{
	static const char *const types[] = {
		[HTTP_INDEX] = "text/plain; charset=utf-8",
		[HTTP_METRICS] = "text/plain; version=0.0.4; charset=utf-8",
		[HTTP_JOB] = "application/json",
	};

	return types[page];
}
