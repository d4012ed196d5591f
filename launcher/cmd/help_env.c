/* SPDX-License-Identifier: Apache-2.0 */
/* help_env.c - see help_env.h. */
#include <string.h>

#include "base/buf.h"
#include "base/opt.h"
#include "launcher/cmd/help_env.h"
#include "launcher/job/options.h"
#include "place/profile.h"

static const struct {
	enum env_origin profile;
	const char *name, *when;
} profiles[] = {
	{ ENV_XRUN, "xrun", "always" },
	{ ENV_TORCH, "torch", "unless --env-profile leaves it out" },
	{ ENV_XRT, "xrt", "under a TPU worker list" },
	{ ENV_PJRT, "pjrt", "on a TPU without a worker list" },
};

#define PROFILES (sizeof(profiles) / sizeof(profiles[0]))

/* When a row counts that does not always; "" for always. */
static const char *
when_text(enum env_when when)
{
	switch (when) {
	case ENV_ALWAYS:
		break;
	case ENV_UNSET:
		return "if unset";
	case ENV_EMPTY:
		return "if unset or empty";
	case ENV_CROWD:
		return "if unset, with several ranks";
	case ENV_LINES:
		return "if unset, but not with --buffer full";
	}
	return "";
}

/* The variable by which an option is said: a flag that is on by default has
 * its no- form. */
static void
put_variable(const struct opt *o, char *out, size_t cap)
{
	struct buf name = { 0 };
	bool on = o->type == OPT_FLAG && o->dflt != NULL &&
		strcmp(o->dflt, "yes") == 0;

	buf_fmt(&name, "%s%s", on ? "no-" : "", o->name);
	opt_env_name(buf_text(&name), out, cap);
	buf_fini(&name);
}

/* Name and what is said of it, aligned. */
static void
put_pair(struct buf *out, const char *name, const char *text, const char *more)
{
	buf_fmt(out, "  %-31s %s%s%s\n", name, text, *more == '\0' ? "" : "  ",
		more);
}

static void
put_rows(struct buf *out, enum env_origin profile)
{
	for (const struct env_row *r = env_rows; r->name != NULL; r++)
		if (r->profile == profile)
			put_pair(out, r->name, r->value, when_text(r->when));
}

static void
put_scrubbed(struct buf *out)
{
	for (const struct env_scrub *s = env_scrub_rules; s->pattern; s++)
		put_pair(out, s->pattern, s->why, "");
}

static void
put_options(struct buf *out)
{
	char name[80];

	for (const struct opt *o = run_options; o->name != NULL; o++) {
		if (o->no_variable || o->argv_only)
			continue;
		put_variable(o, name, sizeof(name));
		put_pair(out, name, o->help, "");
	}
}

void
help_environ(struct buf *out)
{
	buf_put_text(out,
		"What ranks are told; xrun --show-env=RANK PROGRAM "
		"shows the values\n");
	for (size_t i = 0; i < PROFILES; i++) {
		buf_fmt(out, "\n  profile %s, %s\n", profiles[i].name,
			profiles[i].when);
		put_rows(out, profiles[i].profile);
	}
	buf_put_text(out, "\nWhat ranks are not told\n\n");
	put_scrubbed(out);
	buf_put_text(out, "\nOptions as variables\n\n");
	put_options(out);
}

void
help_environ_man(struct buf *out)
{
	for (size_t i = 0; i < PROFILES; i++) {
		buf_fmt(out, "## Profile %s, %s\n\n```\n", profiles[i].name,
			profiles[i].when);
		put_rows(out, profiles[i].profile);
		buf_put_text(out, "```\n\n");
	}
	buf_put_text(out,
		"# WHAT RANKS ARE NOT TOLD\n\n"
		"What another launcher said to the process that xrun "
		"was started in would be a lie\nto its ranks:\n\n```\n");
	put_scrubbed(out);
	buf_put_text(out,
		"```\n\n# OPTIONS AS VARIABLES\n\n"
		"Ranks do not see these, either. A flag also has the "
		"other form: XRUN\\_NO\\_NAME, or\nwithout the NO.\n\n```\n");
	put_options(out);
	buf_put_text(out, "```\n\n");
}
