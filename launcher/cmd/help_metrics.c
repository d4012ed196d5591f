/* SPDX-License-Identifier: Apache-2.0 */
/* help_metrics.c - see help_metrics.h. All of it is from the table of metric.c. */
#include <string.h>

#include "launcher/cmd/help_metrics.h"
#include "launcher/stat/metric.h"

void
help_metrics(struct buf *out)
{
	for (const struct metric_row *r = metric_rows; r->name != NULL; r++)
		buf_fmt(out, "  %s\n      %s; %s\n      %s.\n", r->name,
			r->type, metric_labels(r->of), r->help);
}

/* scdoc takes an underscore between letters for itself. */
void
help_metrics_man(struct buf *out)
{
	for (const struct metric_row *r = metric_rows; r->name != NULL; r++)
		buf_fmt(out, "*%s*\n\t%s; labels %s. %s.\n\n", r->name, r->type,
			metric_labels(r->of), r->help);
}
