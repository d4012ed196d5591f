/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - see config.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/opt_print.h"
#include "launcher/cmd/config.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/verb.h"
#include "launcher/job/config.h"
#include "launcher/job/options.h"
#include "launcher/job/words.h"

extern char **environ;

#define USAGE \
	"config: show [--origin] [--json] [OPTION...], check FILE..., schema"

/* What `show` shows. */
struct shown {
	struct run_options opt;
	struct options_found found;
	bool origin, json;
};

static const char *const sources[] = {
	[OPT_DEFAULT] = "default",
	[OPT_SYSTEM] = "system",
	[OPT_USER] = "user",
	[OPT_FILE] = "file",
	[OPT_ENV] = "environment",
	[OPT_ARGV] = "command line",
};

static enum opt_source
source_of(const struct shown *s, const struct opt *o)
{
	return (enum opt_source)s->found.opts.source[o - run_options];
}

/* Nobody said anything, and there is no default: not even "" would be true. */
static bool
is_unset(const struct shown *s, const struct opt *o)
{
	return source_of(s, o) == OPT_DEFAULT && o->type != OPT_LIST &&
		(o->dflt == NULL || o->maybe);
}

/* Name, value and, if asked for, origin; the items of a list a line each. */
static void
put_lines(struct buf *out, const char *name, const char *value,
	const char *origin)
{
	const char *nl = NULL;
	int len;

	for (const char *p = value; p != NULL; p = nl == NULL ? NULL : nl + 1) {
		nl = strchr(p, '\n');
		len = nl == NULL ? (int)strlen(p) : (int)(nl - p);
		if (origin == NULL)
			buf_fmt(out, "%-16s %.*s\n", name, len, p);
		else
			buf_fmt(out, "%-16s %-20.*s %s\n", name, len, p,
				origin);
	}
}

static void
put_text(const struct shown *s, struct buf *out)
{
	struct buf value = { 0 };
	const char *word;
	char *origin;

	for (const struct opt *o = run_options; o->name != NULL; o++) {
		if (o->no_file)
			continue;
		buf_clear(&value);
		if (is_unset(s, o))
			buf_put_text(&value, "-");
		else
			opt_print_value(o, &s->opt, &value);
		origin = options_origin(&s->found, &s->found.opts, o);
		word = origin == NULL ? sources[source_of(s, o)] : origin;
		put_lines(out, o->name, buf_text(&value),
			s->origin ? word : NULL);
		free(origin);
	}
	buf_fini(&value);
}

static void
put_json_origin(const struct shown *s, const struct opt *o, struct json *j)
{
	enum opt_source source = source_of(s, o);
	const struct config_file *file =
		config_file_of(&s->found.config, source);
	const struct gate_place *place = &s->found.opts.place[o - run_options];
	char *variable;

	json_text(j, "source", sources[source]);
	if (source == OPT_ENV) {
		variable = options_origin(&s->found, &s->found.opts, o);
		json_text(j, "variable", variable);
		free(variable);
	}
	if (file == NULL)
		return;
	json_text(j, "file", file->path);
	json_int(j, "line", place->line);
	json_int(j, "column", place->column);
}

static void
put_json(const struct shown *s, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_int(&j, "v", 1);
	json_open_array(&j, "files");
	for (unsigned i = 0; i < s->found.config.n; i++) {
		json_open_object(&j, NULL);
		json_text(&j, "source",
			sources[s->found.config.file[i].opt.who]);
		json_text(&j, "file", s->found.config.file[i].path);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_open_array(&j, "settings");
	for (const struct opt *o = run_options; o->name != NULL; o++) {
		if (o->no_file)
			continue;
		json_open_object(&j, NULL);
		json_text(&j, "name", o->name);
		if (is_unset(s, o))
			json_text(&j, "value", NULL);
		else
			opt_print_json(o, &s->opt, "value", &j);
		put_json_origin(s, o, &j);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_close_object(&j);
	buf_put_char(out, '\n');
}

/* Everything that is wrong, as before a job. */
static int
say_wrong(const struct config *config, const struct xr_error *err)
{
	if (config->errors.len > 0)
		words_lines(&config->errors);
	else
		words_error(err);
	return 125;
}

static int
say_shown(const struct shown *s, const struct options_in *in)
{
	struct buf out = { 0 };

	words_lines(&s->found.warnings);
	if (s->found.first < in->argc)
		return say_no("config show: takes options, not '%s'",
			in->argv[s->found.first]);
	if (s->json)
		put_json(s, &out);
	else
		put_text(s, &out);
	return say(&out);
}

/* Options are read as those of a job, but for the two that are show's own. */
static int
show(int argc, char **argv)
{
	struct shown s = { 0 };
	struct options_in in = { .vars = environ };
	struct xr_error err = { 0 };
	int status;

	in.argv = xcalloc((size_t)argc + 1, sizeof(*in.argv));
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--origin") == 0)
			s.origin = true;
		else if (strcmp(argv[i], "--json") == 0)
			s.json = true;
		else
			in.argv[in.argc++] = argv[i];
	}
	if (options_read(&in, &s.opt, &s.found, &err) != XR_OK)
		status = say_wrong(&s.found.config, &err);
	else if (s.opt.help)
		status = verb_run(verb_find("config"), 2,
			(char *[]){ "config", "-h", NULL });
	else
		status = say_shown(&s, &in);
	options_fini(&s.found);
	free(in.argv);
	return status;
}

static int
check_file(const char *path)
{
	struct run_options opt = { 0 };
	struct config config = { 0 };
	struct xr_error err = { 0 };
	struct buf out = { 0 };
	enum xr_status status;
	struct opts opts;
	unsigned count;
	int code;

	opt_init(&opts, run_options, &opt);
	opts.later = run_options_later;
	status = config_open_one(&config, path, &err);
	if (status == XR_OK)
		status = config_apply(&config, &opts, &err);
	if (status != XR_OK) {
		code = say_wrong(&config, &err);
	} else {
		count = config.file[0].opt.count;
		buf_fmt(&out, "%s: %u setting%s, nothing wrong\n", path, count,
			count == 1 ? "" : "s");
		code = say(&out);
	}
	opt_fini(&opts);
	config_fini(&config);
	return code;
}

static int
check(int argc, char **argv)
{
	int status = 0, one;

	if (argc < 2)
		return say_no("config check: which file?");
	for (int i = 1; i < argc; i++) {
		one = check_file(argv[i]);
		status = status == 0 ? one : status;
	}
	return status;
}

static int
schema(int argc, char **argv)
{
	struct buf out = { 0 };
	struct json j;

	if (argc > 1)
		return say_no("config schema: takes nothing, not '%s'",
			argv[1]);
	json_init(&j, &out);
	json_open_object(&j, NULL);
	json_text(&j, "$schema",
		"https://json-schema.org/draft/2020-12/schema");
	json_text(&j, "title", "settings of xrun");
	json_text(&j, "description",
		"a file of settings as xrun(5) tells it, without its comments");
	json_text(&j, "type", "object");
	json_open_object(&j, "properties");
	opt_print_schema(run_options, &j);
	json_close_object(&j);
	json_bool(&j, "additionalProperties", false);
	json_close_object(&j);
	buf_put_char(&out, '\n');
	return say(&out);
}

int
cmd_config(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} words[] = { { "show", show }, { "check", check },
		{ "schema", schema } };

	for (size_t i = 0; argc > 1 && i < sizeof(words) / sizeof(words[0]);
		i++)
		if (strcmp(argv[1], words[i].name) == 0)
			return words[i].run(argc - 1, argv + 1);
	return say_no(USAGE);
}
