/* SPDX-License-Identifier: Apache-2.0 */
/* test_opt_keys.c - rows as keys of a file, and values as a person types them. */
#include <stddef.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/gate.h"
#include "base/json.h"
#include "base/opt_print.h"

struct settings {
	int64_t count, size, time, rank;
	bool given, quiet, logs;
	const char *file, *kind, *prefix;
	int mode, sig;
	struct opt_list env, tags;
};

#define AT(field) offsetof(struct settings, field)

static const char *const modes[] = { "line", "full", NULL };

/* clang-format off */
static const struct opt table[] = {
	{ .name = "ranks", .type = OPT_INT, .arg = "N", .min = 1, .max = 9,
		.offset = AT(count), .help = "how many" },
	{ .name = "cache", .type = OPT_SIZE, .arg = "SIZE", .dflt = "1M",
		.max = 1LL << 40, .offset = AT(size), .help = "room" },
	{ .name = "grace", .type = OPT_DURATION, .arg = "TIME", .dflt = "0",
		.max = 86400000000000, .offset = AT(time), .help = "patience" },
	{ .name = "show-env", .type = OPT_INT, .maybe = true, .arg = "RANK",
		.dflt = "0", .max = 99, .offset = AT(rank), .given = AT(given),
		.help = "print" },
	{ .name = "quiet", .type = OPT_FLAG, .dflt = "no", .offset = AT(quiet),
		.help = "say less" },
	{ .name = "logs", .type = OPT_FLAG, .dflt = "yes", .offset = AT(logs),
		.help = "keep none" },
	{ .name = "report", .type = OPT_TEXT, .arg = "FILE",
		.offset = AT(file), .help = "write" },
	{ .name = "kind", .type = OPT_TEXT, .dflt = "full", .choices = modes,
		.offset = AT(kind), .help = "kind" },
	{ .name = "prefix", .type = OPT_TEXT, .arg = "FORMAT", .no = "none",
		.dflt = "auto", .offset = AT(prefix), .help = "begin" },
	{ .name = "buffer", .type = OPT_CHOICE, .dflt = "line",
		.choices = modes, .offset = AT(mode), .help = "mode" },
	{ .name = "stop-signal", .type = OPT_SIGNAL, .arg = "SIGNAL",
		.dflt = "TERM", .offset = AT(sig), .help = "signal" },
	{ .name = "env", .type = OPT_LIST, .arg = "NAME=VALUE",
		.offset = AT(env), .help = "set" },
	{ .name = "tag", .type = OPT_LIST, .arg = "TAG", .offset = AT(tags),
		.help = "mark" },
	{ .name = "config", .type = OPT_TEXT, .arg = "FILE", .no_file = true,
		.offset = AT(file), .help = "read" },
	{ 0 },
};
/* clang-format on */

static struct settings s;
static struct opts opts;
static struct buf out;

static void
begin(void)
{
	s = (struct settings){ 0 };
	opt_init(&opts, table, &s);
}

static void
end(void)
{
	opt_fini(&opts);
	buf_fini(&out);
}

TestSuite(opt_keys, .init = begin, .fini = end);

static void
say(const char *entry)
{
	struct xr_error err = { 0 };
	bool known;

	cr_assert_eq(opt_env(&opts, entry, &known, &err), XR_OK, "%s",
		err.text);
	cr_assert(known);
}

static const char *
value(const char *name)
{
	buf_clear(&out);
	opt_print_value(opt_find(table, (struct span){ name, strlen(name) }),
		&s, &out);
	return buf_text(&out);
}

static const char *
json_of(const char *name)
{
	struct json j;

	buf_clear(&out);
	json_init(&j, &out);
	json_open_object(&j, NULL);
	opt_print_json(opt_find(table, (struct span){ name, strlen(name) }), &s,
		"v", &j);
	json_close_object(&j);
	return buf_text(&out);
}

Test(opt_keys, values_are_printed_as_a_person_would_type_them)
{
	static const char *const rows[][3] = {
		{ "XRUN_RANKS=7", "ranks", "7" },
		{ "XRUN_CACHE=65536", "cache", "64k" },
		{ "XRUN_CACHE=1000", "cache", "64k" }, /* the first counts */
		{ "XRUN_GRACE=1.5s", "grace", "1500ms" },
		{ "XRUN_SHOW_ENV=3", "show-env", "3" },
		{ "XRUN_QUIET=1", "quiet", "yes" },
		{ "XRUN_NO_LOGS=1", "logs", "no" },
		{ "XRUN_REPORT=a b", "report", "a b" },
		{ "XRUN_KIND=line", "kind", "line" },
		{ "XRUN_NO_PREFIX=1", "prefix", "none" },
		{ "XRUN_BUFFER=full", "buffer", "full" },
		{ "XRUN_STOP_SIGNAL=2", "stop-signal", "INT" },
		{ "XRUN_ENV=A=1\nB=2", "env", "A=1\nB=2" },
	};

	cr_expect_str_eq(value("report"), "");
	cr_expect_str_eq(value("show-env"), "no");
	cr_expect_str_eq(value("env"), "");
	cr_expect_str_eq(value("grace"), "0");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		say(rows[i][0]);
		cr_expect_str_eq(value(rows[i][1]), rows[i][2]);
	}
}

Test(opt_keys, json_values_are_of_their_own_kind)
{
	say("XRUN_RANKS=7");
	say("XRUN_ENV=A=1\nB=2");
	cr_expect_str_eq(json_of("ranks"), "{\"v\":7}");
	cr_expect_str_eq(json_of("cache"), "{\"v\":\"1M\"}");
	cr_expect_str_eq(json_of("quiet"), "{\"v\":false}");
	cr_expect_str_eq(json_of("logs"), "{\"v\":true}");
	cr_expect_str_eq(json_of("show-env"), "{\"v\":false}");
	cr_expect_str_eq(json_of("stop-signal"), "{\"v\":\"TERM\"}");
	cr_expect_str_eq(json_of("env"), "{\"v\":[\"A=1\",\"B=2\"]}");
	cr_expect_str_eq(json_of("tag"), "{\"v\":[]}");
}

Test(opt_keys, keys_are_listed_in_the_form_of_a_file)
{
	opt_print_keys(table, &out);
	cr_expect(strstr(buf_text(&out), "  \"ranks\": N\n      how many\n"));
	cr_expect(strstr(buf_text(&out), "  \"logs\": false\n"));
	cr_expect(strstr(buf_text(&out), "  \"quiet\": true\n"));
	cr_expect(strstr(buf_text(&out), "  \"env\": [\"NAME=VALUE\"]\n"));
	cr_expect(strstr(buf_text(&out),
		"  \"buffer\": \"line|full\"\n      mode (line)\n"));
	cr_expect_null(strstr(buf_text(&out), "config"));
	buf_clear(&out);
	opt_print_keys_man(table, &out);
	cr_expect(strstr(buf_text(&out), "*\"ranks\"*: _N_\n\thow many\n\n"));
	cr_expect(strstr(buf_text(&out),
		"*\"buffer\"*: \"_line|full_\"\n"
		"\tmode; \"line\" unless it is said\n\n"));
	cr_expect_null(strstr(buf_text(&out), "config"));
}

static bool
schema_has(const char *text)
{
	return strstr(buf_text(&out), text) != NULL;
}

Test(opt_keys, the_schema_has_type_range_and_choices_of_each_row)
{
	struct json j;

	json_init(&j, &out);
	json_open_object(&j, NULL);
	opt_print_schema(table, &j);
	json_close_object(&j);
	cr_assert_eq(gate_check("schema", out.data, out.len, GATE_MAX, NULL),
		XR_OK);
	cr_expect(schema_has("\"ranks\":{\"description\":\"how many\","
			     "\"type\":\"integer\",\"minimum\":1,"
			     "\"maximum\":9}"));
	cr_expect(schema_has("\"default\":\"1M\",\"anyOf\":[{\"type\":"
			     "\"integer\",\"minimum\":0,"));
	cr_expect(schema_has("\"default\":0,\"anyOf\":[{\"const\":0},"));
	cr_expect(schema_has("\"logs\":{\"description\":\"false: keep none\","
			     "\"default\":true,\"type\":\"boolean\"}"));
	cr_expect(schema_has("\"enum\":[\"line\",\"full\"]"));
	cr_expect(schema_has("\"prefix\":{\"description\":\"begin\","
			     "\"default\":\"auto\",\"anyOf\":[{\"const\":"
			     "false},"));
	cr_expect(schema_has("\"show-env\":{\"description\":\"print\","
			     "\"anyOf\":[{\"type\":\"boolean\"},"));
	cr_expect(schema_has("\"type\":[\"array\",\"object\"]"));
	cr_expect_not(schema_has("\"config\""));
}
