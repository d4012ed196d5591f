/* SPDX-License-Identifier: Apache-2.0 */
/* test_config_show.c - xrun config: what settings are, and where they were said. */
#include "launcher/job/options.h"
#include "tests/unit/verb_rig.h"

static void
begin(void)
{
	verb_rig_make();
	cr_assert_eq(mkdir("settings", 0700), 0);
	cr_assert_eq(mkdir("settings/xrun", 0700), 0);
}

TestSuite(config_show, .init = begin, .fini = folder_remove, .timeout = 60);

#define USER "settings/xrun/config.json"

static void
make_user(void)
{
	folder_write(USER,
		"{ \"ranks\": 3,\n  \"env\": [\"A=1\", \"B=2\"], \"logs\": false }\n",
		0600);
	setenv("XRUN_QUIET", "1", 1);
}

static const char *
in_folder(const char *name)
{
	static char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* The whole lines @lines are in the output, one behind the other. */
#define EXPECT_LINES(lines) \
	cr_expect(strstr(said.out, "\n" lines) != NULL || \
			strncmp(said.out, lines, strlen(lines)) == 0, \
		"%s: %s", lines, said.out)

static unsigned
rows(void)
{
	unsigned n = 0;

	for (const struct opt *o = run_options; o->name != NULL; o++)
		n += !o->no_file;
	return n;
}

static unsigned
count(const char *text)
{
	unsigned n = 0;

	for (const char *at = said.out; (at = strstr(at, text)) != NULL; at++)
		n++;
	return n;
}

Test(config_show, each_setting_has_a_line)
{
	make_user();
	CALL("config", "show", "--timeout", "5s");
	cr_expect_eq(said.status, 0);
	cr_expect_str_eq(said.err, "");
	cr_expect_eq(count("\n"), rows() + 1, "one for each item of a list");
	EXPECT_LINES("ranks            3\n");
	EXPECT_LINES("env              A=1\nenv              B=2\n");
	EXPECT_LINES("env-pass         \n");
	EXPECT_LINES("logs             no\n");
	EXPECT_LINES("quiet            yes\n");
	EXPECT_LINES("verbose          no\n");
	EXPECT_LINES("timeout          5s\n");
	EXPECT_LINES("chdir            -\n");
	EXPECT_LINES("report           -\n");
	EXPECT_LINES("show-env         -\n");
	EXPECT_LINES("grace            10s\n");
}

Test(config_show, each_setting_has_an_origin)
{
	make_user();
	CALL("config", "show", "--origin", "--timeout", "5s");
	cr_expect_eq(said.status, 0);
	EXPECT_LINES(
		"ranks            3                    ~/settings/xrun/config.json:1:12\n");
	EXPECT_LINES(
		"env              A=1                  ~/settings/xrun/config.json:2:");
	EXPECT_LINES("quiet            yes                  XRUN_QUIET\n");
	EXPECT_LINES("timeout          5s                   command line\n");
	EXPECT_LINES("verbose          no                   default\n");
	EXPECT_LINES("chdir            -                    default\n");
}

Test(config_show, as_json)
{
	char text[3 * PATH_MAX];

	make_user();
	CALL("config", "show", "--json", "--timeout", "5s");
	cr_expect_eq(said.status, 0);
	snprintf(text, sizeof(text),
		"{\"v\":1,\"files\":[{\"source\":\"user\",\"file\":\"%s\"}],\"settings\":[{\"name\":\"ranks\",\"value\":3,\"source\":\"user\",\"file\":\"%s\",\"line\":1,\"column\":12},",
		in_folder(USER), in_folder(USER));
	cr_expect_eq(strncmp(said.out, text, strlen(text)), 0, "%s", said.out);
	cr_expect(
		strstr(said.out,
			"{\"name\":\"quiet\",\"value\":true,\"source\":\"environment\",\"variable\":\"XRUN_QUIET\"}") !=
		NULL);
	cr_expect(
		strstr(said.out,
			"{\"name\":\"timeout\",\"value\":\"5s\",\"source\":\"command line\"}") !=
		NULL);
	cr_expect(
		strstr(said.out,
			"{\"name\":\"chdir\",\"value\":null,\"source\":\"default\"}") !=
		NULL);
	cr_expect(
		strstr(said.out,
			"{\"name\":\"env-pass\",\"value\":[],\"source\":\"default\"}") !=
		NULL);
	cr_expect_eq(count("\"name\":"), rows());
	cr_expect_str_eq(said.out + strlen(said.out) - 4, "}]}\n");
}

Test(config_show, it_takes_options_and_no_program)
{
	CALL("config", "show", "true");
	EXPECT_SAID(125, "", "xrun: config show: takes options, not 'true'\n");
	CALL("config", "show", "--no-such");
	cr_expect_eq(said.status, 125);
	cr_expect_str_eq(said.out, "");
	CALL("config", "show", "-h");
	cr_expect_eq(said.status, 0);
	cr_expect_eq(strncmp(said.out, "usage: xrun config show|check|schema\n",
			     37),
		0, "%s", said.out);
	folder_write(USER, "{ \"ranks\": 0,\n  \"quiet\": 7 }", 0600);
	CALL("config", "show");
	cr_expect_eq(said.status, 125);
	cr_expect(strstr(said.err, "config.json:1:") != NULL &&
			strstr(said.err, "config.json:2:") != NULL,
		"%s", said.err);
}

Test(config_show, files_are_checked_one_by_one)
{
	CALL("config", "check");
	EXPECT_SAID(125, "", "xrun: config check: which file?\n");
	folder_write("one", "{ \"ranks\": 1 }", 0600);
	folder_write("two", "{ \"ranks\": 1, \"quiet\": true }", 0600);
	folder_write("bad", "{ \"ranks\": 0 }", 0600);
	CALL("config", "check", "one", "two");
	EXPECT_SAID(0,
		"one: 1 setting, nothing wrong\ntwo: 2 settings, nothing wrong\n",
		"");
	CALL("config", "check", "bad", "two");
	cr_expect_eq(said.status, 125);
	cr_expect_str_eq(said.out, "two: 2 settings, nothing wrong\n");
	cr_expect_eq(strncmp(said.err, "xrun: bad:1:12: ", 16), 0, "%s",
		said.err);
	CALL("config", "check", "none");
	EXPECT_SAID(125, "", "xrun: none: No such file or directory\n");
}

Test(config_show, the_schema_has_every_key)
{
	static const char begins[] =
		"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"title\":\"settings of xrun\",\"description\":\"a file of settings as xrun(5) tells it, without its comments\",\"type\":\"object\",\"properties\":{\"$schema\":{\"type\":\"string\"},\"ranks\":{";
	static const char ends[] = "}},\"additionalProperties\":false}\n";

	CALL("config", "schema");
	cr_expect_eq(said.status, 0);
	cr_expect_eq(strncmp(said.out, begins, strlen(begins)), 0);
	cr_expect_str_eq(said.out + strlen(said.out) - strlen(ends), ends);
	CALL("config", "schema", "x");
	EXPECT_SAID(125, "", "xrun: config schema: takes nothing, not 'x'\n");
}

Test(config_show, other_words)
{
	static const char usage[] =
		"xrun: config: show [--origin] [--json] [OPTION...], check FILE..., schema\n";

	CALL("config");
	EXPECT_SAID(125, "", usage);
	CALL("config", "shows");
	EXPECT_SAID(125, "", usage);
}
