/* SPDX-License-Identifier: Apache-2.0 */
/* help_protocol.c - see help_protocol.h. All of it is from control.def. */
#include "base/opt_print.h"
#include "launcher/cmd/help_protocol.h"
#include "wire/control.h"

static const struct {
	enum control_by by;
	const char *title;
} senders[] = {
	{ CONTROL_BY_CLIENT, "Asked by a client" },
	{ CONTROL_BY_JOB, "Said by the job" },
	{ CONTROL_BY_RANK, "Told by a rank" },
	{ CONTROL_BY_BOTH, "Asked of the store, by a client or a rank" },
};

static const char *const kinds[] = {
	[CONTROL_KIND_text] = "text",
	[CONTROL_KIND_int] = "whole number",
	[CONTROL_KIND_real] = "number",
	[CONTROL_KIND_flag] = "true or false",
	[CONTROL_KIND_json] = "any value",
};

static void
put_row(struct buf *out, const struct control_row *row)
{
	buf_fmt(out, "  %-10s %s\n", row->name, row->help);
	for (const struct control_field *f = row->fields(); f->name != NULL;
		f++)
		buf_fmt(out, "    %-10s %s%s: %s\n", f->name, kinds[f->kind],
			f->must ? "" : ", optional", f->help);
}

static void
put_row_man(struct buf *out, const struct control_row *row)
{
	buf_fmt(out, "*%s*\n\t%s.\n\n", row->name, row->help);
	for (const struct control_field *f = row->fields(); f->name != NULL;
		f++)
		buf_fmt(out, "\t_%s_: %s%s; %s.\n\n", f->name, kinds[f->kind],
			f->must ? "" : ", optional", f->help);
}

static bool
any(enum control_by by)
{
	for (int i = 0; i < CONTROL_TYPES; i++)
		if (control_rows[i].by == (unsigned)by)
			return true;
	return false;
}

static void
put_all(struct buf *out, const char *before,
	void (*put)(struct buf *, const struct control_row *))
{
	for (size_t s = 0; s < sizeof(senders) / sizeof(senders[0]); s++) {
		if (!any(senders[s].by))
			continue;
		buf_fmt(out, "%s%s\n\n", before, senders[s].title);
		for (int i = 0; i < CONTROL_TYPES; i++)
			if (control_rows[i].by == (unsigned)senders[s].by)
				put(out, &control_rows[i]);
	}
}

void
help_protocol(struct buf *out)
{
	put_all(out, "\n", put_row);
}

void
help_protocol_man(struct buf *out)
{
	put_all(out, "## ", put_row_man);
}
