/* SPDX-License-Identifier: Apache-2.0 */
/* version.c - see version.h. */
#include <string.h>

#include <cjson/cJSON.h>
#include <event2/event.h>

#include "base/json.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/version.h"

#define TEXT_OF(x)      #x
#define DOTTED(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* What it was compiled with; the libraries found at run time may be newer. */
static const struct {
	const char *name, *value;
} facts[] = {
	{ "compiler", COMPILER },
	{ "libevent", LIBEVENT_VERSION },
	{ "cjson",
		DOTTED(CJSON_VERSION_MAJOR, CJSON_VERSION_MINOR,
			CJSON_VERSION_PATCH) },
};

#define COUNT (sizeof(facts) / sizeof(facts[0]))

static void
put_json(struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_text(&j, "xrun", XRUN_VERSION);
	for (size_t i = 0; i < COUNT; i++)
		json_text(&j, facts[i].name, facts[i].value);
	json_close_object(&j);
	buf_put_char(out, '\n');
}

static void
put_text(struct buf *out)
{
	buf_put_text(out,
		"xrun " XRUN_VERSION "\n"
		"the launcher for distributed jobs; Cadence's simulator is called xrun, too\n"
		"built with");
	for (size_t i = 0; i < COUNT; i++)
		buf_fmt(out, "%s %s%s%s", i == 0 ? "" : ",",
			i == 0 ? "" : facts[i].name, i == 0 ? "" : " ",
			facts[i].value);
	buf_put_char(out, '\n');
}

int
cmd_version(int argc, char **argv)
{
	struct buf out = { 0 };

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "--json") != 0))
		return say_no("version: '%s' is not --json", argv[argc - 1]);
	if (argc == 2)
		put_json(&out);
	else
		put_text(&out);
	return say(&out);
}
