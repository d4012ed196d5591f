/* SPDX-License-Identifier: Apache-2.0 */
/* test_opt_file.c - values from files, and what is said about wrong ones. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/opt.h"
#include "tests/unit/short_memory.h"

struct settings {
	int64_t count, size, time, maybe;
	bool given, quiet, logs;
	const char *file, *prefix, *platform, *show, *bind, *devices, *place;
	int mode, sig;
	struct opt_list env, tags;
};

#define AT(field) offsetof(struct settings, field)

static const char *const modes[] = { "line", "full", "none", NULL };
static const char *const platforms[] = { "cpu", "gpu", NULL };

static bool
has_equals(const char *value)
{
	return strchr(value, '=') != NULL;
}

/* clang-format off */
static const struct opt table[] = {
	{ .name = "ranks", .alias = "np", .type = OPT_INT, .arg = "N",
		.min = 1, .max = 1000000, .offset = AT(count) },
	{ .name = "cache", .type = OPT_SIZE, .arg = "SIZE", .dflt = "1M",
		.max = 1LL << 40, .offset = AT(size) },
	{ .name = "grace", .type = OPT_DURATION, .arg = "TIME", .dflt = "10s",
		.max = 86400000000000, .offset = AT(time) },
	{ .name = "show-env", .type = OPT_INT, .maybe = true, .arg = "RANK",
		.dflt = "0", .max = 99, .offset = AT(maybe),
		.given = AT(given) },
	{ .name = "quiet", .type = OPT_FLAG, .dflt = "no", .offset = AT(quiet) },
	{ .name = "logs", .type = OPT_FLAG, .dflt = "yes", .offset = AT(logs) },
	{ .name = "report", .type = OPT_TEXT, .arg = "FILE",
		.offset = AT(file) },
	{ .name = "prefix", .type = OPT_TEXT, .arg = "FORMAT", .no = "none",
		.offset = AT(prefix) },
	{ .name = "platform", .type = OPT_TEXT, .choices = platforms,
		.offset = AT(platform) },
	{ .name = "show", .type = OPT_TEXT, .arg = "RANKS", .offset = AT(show) },
	{ .name = "bind", .type = OPT_TEXT, .arg = "LIST", .offset = AT(bind) },
	{ .name = "devices", .type = OPT_TEXT, .arg = "DEVICES",
		.pattern = "[0-9,]+", .max = 64, .offset = AT(devices) },
	{ .name = "place", .type = OPT_TEXT, .arg = "PLACE",
		.pattern = "[a-z]+", .offset = AT(place) },
	{ .name = "buffer", .type = OPT_CHOICE, .dflt = "line",
		.choices = modes, .offset = AT(mode) },
	{ .name = "stop-signal", .type = OPT_SIGNAL, .arg = "SIGNAL",
		.dflt = "TERM", .offset = AT(sig) },
	{ .name = "env", .type = OPT_LIST, .arg = "NAME=VALUE",
		.valid = has_equals, .offset = AT(env) },
	{ .name = "tag", .type = OPT_LIST, .arg = "TAG", .offset = AT(tags) },
	{ .name = "config", .type = OPT_TEXT, .arg = "FILE", .no_file = true,
		.offset = AT(file) },
	{ 0 },
};
/* clang-format on */

static const struct opt_later later[] = { { "hosts", 0 }, { 0 } };

static struct settings s;
static struct opts opts;
static struct xr_error err;
static struct buf errors;
static struct opt_file file;

static void
end(void)
{
	free(file.text);
	free(file.values);
	buf_fini(&errors);
	if (opts.table != NULL)
		opt_fini(&opts);
	file = (struct opt_file){ 0 };
	opts = (struct opts){ 0 };
}

TestSuite(opt_file, .fini = end);

/* Memory of just this size, so that the sanitizer sees any step too far. */
static enum xr_status
read_bytes(const char *text, size_t len)
{
	end();
	s = (struct settings){ 0 };
	err = (struct xr_error){ 0 };
	opt_init(&opts, table, &s);
	opts.later = later;
	file = (struct opt_file){ .name = "f",
		.who = OPT_USER,
		.text = malloc(len == 0 ? 1 : len),
		.len = len,
		.errors = &errors };
	memcpy(file.text, text, len);
	return opt_file(&opts, &file, &err);
}

static enum xr_status
read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

Test(opt_file, every_type_is_read_from_its_own_kind_of_value)
{
	cr_assert_eq(
		read_text("{\"ranks\": 8, \"cache\": 4096, \"grace\": 0, "
			  "\"show-env\": 3, \"quiet\": true, "
			  "\"logs\": false, \"report\": \"a\\u00e9\\n\", "
			  "\"buffer\": \"none\", \"stop-signal\": \"INT\", "
			  "\"env\": [\"A=b\", \"C=\"], \"tag\": [1, \"x\"]}"),
		XR_OK, "%s", err.text);
	cr_expect_eq(s.count, 8);
	cr_expect_eq(s.size, 4096);
	cr_expect_eq(s.time, 0);
	cr_expect_eq(s.maybe, 3);
	cr_expect(s.given);
	cr_expect(s.quiet);
	cr_expect_not(s.logs);
	cr_expect_str_eq(s.file, "a\xc3\xa9\n");
	cr_expect_eq(s.mode, 2);
	cr_expect_eq(s.sig, 2);
	cr_assert_eq(s.env.n, 2);
	cr_expect_str_eq(s.env.items[0], "A=b");
	cr_expect_str_eq(s.env.items[1], "C=");
	cr_assert_eq(s.tags.n, 2);
	cr_expect_str_eq(s.tags.items[0], "1");
	cr_expect_str_eq(s.tags.items[1], "x");
	cr_expect_eq(file.count, 11);
	cr_expect_eq(errors.len, 0);
}

Test(opt_file, false_is_the_no_form_of_a_text_that_has_one)
{
	cr_assert_eq(read_text("{\"prefix\": false}"), XR_OK, "%s", err.text);
	cr_expect_str_eq(s.prefix, "none");
	cr_assert_eq(read_text("{\"prefix\": \"{rank}\"}"), XR_OK);
	cr_expect_str_eq(s.prefix, "{rank}");
}

Test(opt_file, text_does_for_amounts_and_numbers_may_be_written_as_fractions)
{
	cr_assert_eq(read_text("{\"ranks\": 8.0, \"cache\": \"64k\", "
			       "\"grace\": \"1.5s\", \"quiet\": true, "
			       "\"logs\": false, \"stop-signal\": 1e1, "
			       "\"show-env\": true}"),
		XR_OK, "%s", err.text);
	cr_expect_eq(s.count, 8);
	cr_expect_eq(s.size, 65536);
	cr_expect_eq(s.time, 1500000000);
	cr_expect(s.quiet);
	cr_expect_not(s.logs);
	cr_expect_eq(s.sig, 10);
	cr_expect(s.given);
	cr_expect_eq(s.maybe, 0);
}

Test(opt_file, pairs_may_be_an_object)
{
	cr_assert_eq(read_text("{\"env\": {\"A\": \"b=c\", \"N\": -1.5e3, "
			       "\"E\": \"\", \"\\u0058\": \"\\\\\"}}"),
		XR_OK, "%s", err.text);
	cr_assert_eq(s.env.n, 4);
	cr_expect_str_eq(s.env.items[0], "A=b=c");
	cr_expect_str_eq(s.env.items[1], "N=-1.5e3");
	cr_expect_str_eq(s.env.items[2], "E=");
	cr_expect_str_eq(s.env.items[3], "X=\\");
}

Test(opt_file, the_place_of_a_value_and_its_source_are_kept)
{
	cr_assert_eq(read_text("// x\n{\n  \"quiet\": true, /* \xc3\xa9 */ "
			       "\"ranks\": 8,\n}"),
		XR_OK);
	cr_expect_eq(opt_source(&opts, "ranks"), OPT_USER);
	cr_expect_eq(opt_source(&opts, "quiet"), OPT_USER);
	cr_expect_eq(opt_source(&opts, "grace"), OPT_DEFAULT);
	cr_expect_eq(opts.place[0].line, 3);
	cr_expect_eq(opts.place[0].column, 35);
}

Test(opt_file, stronger_sources_win_and_their_lists_replace)
{
	struct opt_file second = { .name = "g", .who = OPT_FILE };
	char text[] = "{\"env\": [\"Z=1\"], \"tag\": [], \"ranks\": 2}";
	char *argv[] = { "xrun", "--ranks=4", "--env", "Q=1", NULL };
	bool known;
	int next;

	cr_assert_eq(read_text("{\"env\": [\"A=1\", \"B=2\"], \"tag\": [1], "
			       "\"ranks\": 1, \"grace\": \"1s\"}"),
		XR_OK);
	second.text = text;
	second.len = strlen(text);
	cr_assert_eq(opt_file(&opts, &second, &err), XR_OK, "%s", err.text);
	cr_assert_eq(s.env.n, 1);
	cr_expect_str_eq(s.env.items[0], "Z=1");
	cr_expect_eq(s.tags.n, 0);
	cr_expect_eq(opt_source(&opts, "tag"), OPT_FILE);
	cr_expect_eq(s.count, 2);
	cr_expect_eq(s.time, 1000000000);
	cr_assert_eq(opt_env(&opts, "XRUN_RANKS=3", &known, &err), XR_OK);
	cr_assert_eq(opt_env(&opts, "XRUN_ENV=X=1\nY=2", &known, &err), XR_OK);
	cr_expect_eq(s.count, 3);
	cr_expect_eq(s.env.n, 2);
	cr_assert_eq(opt_argv(&opts, 4, argv, &next, &err), XR_OK);
	cr_expect_eq(s.count, 4);
	cr_assert_eq(s.env.n, 1);
	cr_expect_str_eq(s.env.items[0], "Q=1");
	free(second.values);
}

/* Where a text has a form that numbers may have, too. */
Test(opt_file, a_number_may_stand_for_a_text_that_is_one)
{
	static const char *const rows[][2] = {
		{ "4", "4" },
		{ "4.0", "4" },
		{ "-5.0", "-5" },
		{ "10e0", "10" },
		{ "1E1", "10" },
		{ "1e3", "1e3" }, /* shorter than its digits */
		{ "1.000000000000000000000", "1" },
		{ "9007199254740992", "9007199254740992" },
		{ "\"2,3\"", "2,3" },
		{ "\"4.0\"", "4.0" },
	};
	char text[100];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), "{\"devices\": %s}", rows[i][0]);
		cr_assert_eq(read_text(text), XR_OK, "%s", err.text);
		cr_expect_str_eq(s.devices, rows[i][1]);
	}
	cr_assert_eq(read_text("{\"place\": \"here\"}"), XR_OK);
	cr_expect_str_eq(s.place, "here");
}

static const char *const wrong[][2] = {
	{ "{\"devices\": 4.5}",
		"f:1:13: devices: '4.5' is no whole number; a text stands in quotes" },
	{ "{\"devices\": 1e300}",
		"f:1:13: devices: '1e300' is no whole number; a text stands in quotes" },
	{ "{\"devices\": 1.0000000000000000000000}",
		"f:1:13: devices: '1.0000000000000000000000' is no whole number; a text stands in quotes" },
	{ "{\"devices\": 1.00000000000000000000001}",
		"f:1:13: devices: '1.0000000000000000000000' is no whole number; a text stands in quotes" },
	{ "{\"place\": 3}", "f:1:11: place: expected a text, in quotes" },
	{ "{\"ranks\": 1e15}",
		"f:1:11: ranks: '1000000000000000' is too large; 1 to 1000000" },
	{ "{\"ranks\": -1e15}",
		"f:1:11: ranks: '-1000000000000000' is too small; 1 to 1000000" },
	{ "{\"ranks\": 1.000000000000001e15}",
		"f:1:11: ranks: '1.000000000000001e15' is not a number; 1 to 1000000" },
	{ "{\"ranks\": -1.000000000000001e15}",
		"f:1:11: ranks: '-1.000000000000001e15' is not a number; 1 to 1000000" },
	{ "{\"ranks\": 0}", "f:1:11: ranks: '0' is too small; 1 to 1000000" },
	{ "{\"ranks\": 1.5}",
		"f:1:11: ranks: '1.5' is not a number; 1 to 1000000" },
	{ "{\"ranks\": true}",
		"f:1:11: ranks: 'true' is not a number; 1 to 1000000" },
	{ "{\"ranks\": null}",
		"f:1:11: ranks: 'null' is not a number; 1 to 1000000" },
	{ "{\"ranks\": [1]}",
		"f:1:11: ranks: '[1]' is not a number; 1 to 1000000" },
	{ "{\"grace\": 90}",
		"f:1:11: grace: '90' has no unit, such as 90s, 90m or 90h" },
	{ "{\"quiet\": \"si\"}", "f:1:11: quiet: expected true or false" },
	{ "{\"quiet\": 1}", "f:1:11: quiet: expected true or false" },
	{ "{\"ranks\": \"8\"}",
		"f:1:11: ranks: expected a number, without quotes" },
	{ "{\"buffer\": \"x\"}",
		"f:1:12: buffer: 'x' is not one of line|full|none" },
	{ "{\"report\": \"\"}",
		"f:1:12: report: '' is empty, where FILE should stand" },
	{ "{\"report\": false}", "f:1:12: report: 'false' is not a FILE" },
	{ "{\"prefix\": true}", "f:1:12: prefix: 'true' is not a FORMAT" },
	{ "{\"report\": [\"x\"]}", "f:1:12: report: '[\"x\"]' is not a FILE" },
	{ "{\"platform\": \"x\"}",
		"f:1:14: platform: 'x' is not one of cpu|gpu" },
	{ "{\"platform\": [\"cpu\"]}",
		"f:1:14: platform: '[\"cpu\"]' is not one of cpu|gpu" },
	{ "{\"show\": [0, 1]}",
		"f:1:10: show: expected one text, with commas in it, and no list" },
	{ "{\"bind\": [0, 1]}",
		"f:1:10: bind: expected one text, with commas in it, and no list" },
	{ "{\"bind\": {\"a\": 1}}",
		"f:1:10: bind: '{\"a\": 1}' is not a LIST" },
	{ "{\"ranks\": [1, 2]}",
		"f:1:11: ranks: '[1, 2]' is not a number; 1 to 1000000" },
	{ "{\"env\": \"A=b\"}",
		"f:1:9: env: expected a list, [\"NAME=VALUE\"], or an object, {\"NAME\": \"VALUE\"}" },
	{ "{\"tag\": {\"a\": 1}}", "f:1:9: tag: expected a list, [\"TAG\"]" },
	{ "{\"env\": [\"A\"]}", "f:1:10: env: 'A' is not a NAME=VALUE" },
	{ "{\"env\": [true]}", "f:1:10: env: expected a text or a number" },
	{ "{\"env\": {\"A\": null}}",
		"f:1:15: env: expected a text or a number" },
	{ "{\"env\": {\"A=B\": 1}}",
		"f:1:10: 'A=B' cannot be a variable's name" },
	{ "{\"env\": {\"\": 1}}", "f:1:10: '' cannot be a variable's name" },
	{ "{\n \"rank\": 1}",
		"f:2:2: unknown key \"rank\" (did you mean \"ranks\"?)" },
	{ "{\"np\": 1}",
		"f:1:2: unknown key \"np\" (did you mean \"ranks\"?)" },
	{ "{\"zzz\": 1}", "f:1:2: unknown key \"zzz\"" },
	{ "{\"confg\": 1}", "f:1:2: unknown key \"confg\"" },
	{ "{\"\\n\": 1}", "f:1:2: unknown key \"?\"" },
	{ "{\"no-logs\": true}",
		"f:1:2: \"no-logs\" is written \"logs\": false" },
	{ "{\"hosts\": 1}", "f:1:2: \"hosts\" comes with a later version" },
	{ "{\"config\": \"x\"}", "f:1:2: \"config\" cannot stand in a file" },
	{ "[]", "f:1:1: expected an object, {\"NAME\": ...}" },
	{ " 1", "f:1:2: expected an object, {\"NAME\": ...}" },
	{ "{\"ranks\": 1,\n \"ranks\": 2}", "f:2:2: the key \"ranks\" again" },
	{ "{", "f:1:2: the text ends too early" },
};

Test(opt_file, each_wrong_value_is_named_with_its_place)
{
	char want[256];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_expect_neq(read_text(wrong[i][0]), XR_OK, "%s", wrong[i][0]);
		cr_expect_str_eq(err.text, wrong[i][1]);
		snprintf(want, sizeof(want), "%s\n", wrong[i][1]);
		cr_expect_str_eq(buf_text(&errors), want);
	}
}

Test(opt_file, all_errors_are_told_at_once_and_the_rest_is_set)
{
	cr_expect_eq(
		read_text("{\"rank\": 1, \"ranks\": 3,\n \"grace\": \"x\",\n"
			  " \"env\": [\"A=1\", \"B\", \"C\"]}"),
		XR_E_NOTFOUND);
	cr_expect_str_eq(buf_text(&errors),
		"f:1:2: unknown key \"rank\" (did you mean \"ranks\"?)\n"
		"f:2:11: grace: 'x' is not a time such as 250ms, 30s, 10m or 1h30m\n"
		"f:3:17: env: 'B' is not a NAME=VALUE\n"
		"f:3:22: env: 'C' is not a NAME=VALUE\n");
	cr_expect_eq(s.count, 3);
	cr_expect_eq(s.time, 10000000000);
}

Test(opt_file, without_memory_nothing_is_read)
{
	enum xr_status status;
	unsigned n = 0;

	cr_assert_eq(read_text("{\"ranks\": 1}"), XR_OK);
	do {
		free(file.values);
		file.values = NULL;
		buf_clear(&errors);
		s.count = 7;
		was_short = false;
		until_short = ++n;
		status = opt_file(&opts, &file, &err);
		until_short = 0;
		cr_expect_eq(status, was_short ? XR_E_NOMEM : XR_OK);
		cr_expect_eq(s.count, was_short ? 7 : 1);
		if (was_short) {
			cr_expect_str_eq(err.text, "f: out of memory");
			cr_expect_str_eq(buf_text(&errors),
				"f: out of memory\n");
		}
	} while (was_short);
	cr_expect_gt(n, 2);
}

Test(opt_file, the_first_error_is_that_of_the_file)
{
	cr_expect_eq(read_text("{\"ranks\": 0, \"rank\": 1}"), XR_E_RANGE);
	cr_expect_str_eq(err.text,
		"f:1:11: ranks: '0' is too small; 1 to 1000000");
	cr_expect_eq(err.status, XR_E_RANGE);
	/* Nobody may want to know the others. */
	file.errors = NULL;
	cr_expect_eq(opt_file(&opts, &file, &err), XR_E_RANGE);
	cr_expect_str_eq(err.text,
		"f:1:11: ranks: '0' is too small; 1 to 1000000");
	file.text[0] = ']';
	cr_expect_neq(opt_file(&opts, &file, &err), XR_OK);
}

Test(opt_file, twenty_errors_are_told_one_by_one)
{
	struct buf text = { 0 };

	for (int n = 20; n <= 21; n++) {
		buf_clear(&text);
		buf_put_text(&text, "{");
		for (int i = 0; i < n; i++)
			buf_fmt(&text, "%s\"zz%d\":0", i == 0 ? "" : ",", i);
		buf_put_text(&text, "}");
		cr_expect_eq(read_text(buf_text(&text)), XR_E_NOTFOUND);
		cr_expect_not_null(strstr(buf_text(&errors), "\"zz19\"\n"));
		cr_expect_null(strstr(buf_text(&errors), "\"zz20\"\n"));
		cr_expect_eq(strstr(buf_text(&errors),
				     "f: and 1 more errors\n") != NULL,
			n == 21);
		cr_expect_eq(strstr(buf_text(&errors), "more errors") != NULL,
			n == 21);
	}
	buf_fini(&text);
}

Test(opt_file, what_is_shown_of_a_value_has_a_limit)
{
	char text[200], want[200];

	memset(text, 'x', sizeof(text));
	memcpy(text, "{\"report\": [\"", 13);
	memcpy(text + sizeof(text) - 4, "\"]}", 4);
	cr_expect_eq(read_text(text), XR_E_INVAL);
	snprintf(want, sizeof(want), "f:1:12: report: '%.56s...' is not a FILE",
		text + 11);
	cr_expect_str_eq(err.text, want);
}

Test(opt_file, a_thousand_errors_are_counted_after_the_first_twenty)
{
	struct buf text = { 0 };
	size_t lines = 0;

	buf_put_text(&text, "{");
	for (int i = 0; i < 1000; i++)
		buf_fmt(&text, "%s\"zz%d\":0", i == 0 ? "" : ",", i);
	buf_put_text(&text, "}");
	cr_expect_neq(read_text(buf_text(&text)), XR_OK);
	for (size_t i = 0; i < errors.len; i++)
		lines += errors.data[i] == '\n';
	cr_expect_eq(lines, 21);
	cr_expect(strstr(buf_text(&errors), "f: and 980 more errors\n"));
	buf_fini(&text);
}

Test(opt_file, schema_is_passed_over)
{
	cr_expect_eq(read_text("{\"$schema\": \"x\", \"ranks\": 1}"), XR_OK);
	cr_expect_eq(file.count, 1);
}

static const char whole[] =
	"{\n // all\n \"ranks\": 8, \"env\": {\"A\": \"b\", \"C\": 1,},\n"
	" \"tag\": [\"\\u00e9\", 2], \"quiet\": true, /* x */ \"grace\": \"1s\"}";

Test(opt_file, every_truncation_is_refused_and_nothing_is_read_outside)
{
	for (size_t n = 0; n < sizeof(whole) - 1; n++)
		cr_expect_neq(read_bytes(whole, n), XR_OK);
	cr_expect_eq(read_bytes(whole, sizeof(whole) - 1), XR_OK);
}

Test(opt_file, whatever_byte_changes_nothing_is_read_or_written_outside)
{
	char text[sizeof(whole)];

	for (size_t i = 0; i < sizeof(whole) - 1; i++) {
		for (int byte = 0; byte < 256; byte += 5) {
			memcpy(text, whole, sizeof(whole));
			text[i] = (char)byte;
			read_bytes(text, sizeof(whole) - 1);
		}
	}
}

/* What fills the room for values most: no blanks, nothing but what must be. */
Test(opt_file, the_room_for_values_is_enough)
{
	struct buf text = { 0 };

	buf_put_text(&text, "{\"env\":[\"=\"");
	for (int i = 0; i < 500; i++)
		buf_put_text(&text, ",\"=\"");
	buf_put_text(&text, "],\"tag\":[1");
	for (int i = 0; i < 500; i++)
		buf_put_text(&text, ",1");
	buf_put_text(&text, "],\"ranks\":1}");
	cr_expect_eq(read_text(buf_text(&text)), XR_OK, "%s", err.text);
	buf_clear(&text);
	buf_put_text(&text, "{\"env\":{\"a0\":1");
	for (int i = 1; i < 500; i++)
		buf_fmt(&text, ",\"a%d\":1", i);
	buf_put_text(&text, "}}");
	cr_expect_eq(read_text(buf_text(&text)), XR_OK, "%s", err.text);
	cr_expect_eq(s.env.n, 500);
	buf_fini(&text);
}
