/* SPDX-License-Identifier: Apache-2.0 */
/* remove.c - see remove.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/cmd/remove.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/verb_args.h"
#include "launcher/cmd/which.h"
#include "launcher/job/outcome.h"
#include "launcher/job/words.h"
#include "launcher/state/history.h"
#include "launcher/state/jobs.h"
#include "launcher/state/retain.h"

#define REMOVE_KEEP_MAX (INT64_C(1) << 31)
#define REMOVE_DAY      (INT64_C(24) * 3600 * NS_PER_S)
#define REMOVE_DAYS_MAX 36500
#define REMOVE_MIB      (1024.0 * 1024.0)

struct settings {
	bool dry_run, all;
	const char *older_than; /* may be NULL */
	int64_t age;            /* the same in ns; -1 */
	int64_t keep;           /* -1: not given */
};

/* "7d", or a duration of any other option. */
static bool
remove_parse_age(const char *text, int64_t *age)
{
	char *unit;
	long days = strtol(text, &unit, 10);

	if (text[0] < '0' || text[0] > '9' || strcmp(unit, "d") != 0)
		return opt_time(text, age);
	*age = days > REMOVE_DAYS_MAX ? INT64_MAX : days * REMOVE_DAY;
	return true;
}

static enum xr_status
remove_check_age(const char *text, struct xr_error *err)
{
	int64_t age;

	return remove_parse_age(text, &age) ?
		XR_OK :
		fail(err, XR_E_INVAL, "'%s' is no time such as 12h or 7d",
			text);
}

#define AT(field) .offset = offsetof(struct settings, field)

/* clang-format off */
const struct opt rm_options[] = {
	{ .name = "dry-run", VERB_ROW, .type = OPT_FLAG, AT(dry_run),
		.help = "name the jobs, and remove none" },
	{ 0 },
};

const struct opt prune_options[] = {
	{ .name = "older-than", VERB_ROW, .type = OPT_TEXT, .arg = "TIME", .check = remove_check_age, AT(older_than),
		.help = "jobs that ended longer ago: 12h, 7d" },
	{ .name = "keep", VERB_ROW, .type = OPT_INT, .arg = "N", .max = REMOVE_KEEP_MAX, AT(keep),
		.help = "keep the N jobs that ended last, remove the others" },
	{ .name = "all", .letter = 'a', VERB_ROW, .type = OPT_FLAG, AT(all),
		.help = "all jobs that have ended" },
	{ .name = "dry-run", VERB_ROW, .type = OPT_FLAG, AT(dry_run),
		.help = "list the jobs, and remove none" },
	{ 0 },
};
/* clang-format on */

/* A stored job that has ended. */
struct remove_job {
	char id[STATE_ID_MAX + 1];
	int64_t ended;  /* wall ns; -1: not known, so it is old */
	int64_t bytes;  /* of output in the state directory */
	bool elsewhere; /* --log-dir, --no-logs or no output */
};

struct remove_list {
	struct remove_job *job;
	size_t count;
};

static bool
remove_is_of_this_host(const cJSON *json)
{
	const char *host = jobs_text(json, "host");
	char here[256];

	return host == NULL || strcmp(host, host_name(here, sizeof(here))) == 0;
}

static void
remove_describe(struct remove_job *r, const struct which *job,
	const cJSON *json)
{
	int64_t ended = clock_parse(jobs_text(json, "end"));

	if (ended == -1)
		ended = clock_parse(jobs_text(json, "start"));
	*r = (struct remove_job){
		.ended = ended,
		.elsewhere = job->past,
	};
	memcpy(r->id, job->id, sizeof(r->id));
	if (!job->past)
		r->bytes = jobs_number(json, "bytes", 0) +
			jobs_number(json, "bytes_before", 0);
}

struct remove_walk {
	struct remove_list *list;
	struct history *past;
};

/* Jobs of another machine that shares the home stay. */
static bool
remove_add(void *ctx, const struct which *job)
{
	struct remove_walk *walk = ctx;
	struct remove_list *list = walk->list;
	cJSON *read = job->past ? NULL : jobs_read(job->dir);
	const cJSON *json =
		job->past ? history_find(walk->past, job->id) : read;

	if (!job->running && remove_is_of_this_host(json)) {
		list->job = xrealloc(list->job,
			(list->count + 1) * sizeof(*list->job));
		remove_describe(&list->job[list->count++], job, json);
	}
	cJSON_Delete(read);
	return true;
}

/* The youngest first. */
static int
remove_by_age(const void *pa, const void *pb)
{
	const struct remove_job *a = pa, *b = pb;

	return (a->ended < b->ended) - (a->ended > b->ended);
}

static bool
remove_is(void *ctx, const char *id)
{
	return strcmp(ctx, id) == 0;
}

/* Folder and lines: a job that was named may have both. */
static bool
remove_stored(const char *root, char *id)
{
	bool gone = retain_remove(root, id);

	return history_remove(root, remove_is, id) == 0 && gone;
}

/* --- rm ------------------------------------------------------------------- */

static enum xr_status
remove_named(const char *root, const char *text, const struct settings *s,
	struct buf *out, struct xr_error *err)
{
	struct which job;
	enum xr_status status = which_job(text, WHICH_RUNNING, &job, err);

	if (status != XR_OK)
		return status;
	/* A mistyped letter must not remove another job. */
	if (strcmp(job.id, text) != 0)
		return fail(err, XR_E_NOTFOUND,
			"rm: '%s' is only the beginning of %s\txrun rm %s",
			text, job.id, job.id);
	if (job.running)
		return fail(err, XR_E_STATE, "rm: %s runs\txrun stop %s",
			job.id, job.id);
	if (s->dry_run) {
		buf_fmt(out, "%s\n", job.id);
		return XR_OK;
	}
	if (root == NULL || !remove_stored(root, job.id))
		return fail(err, XR_E_SYS,
			"rm: %s could not be removed as a whole from %s",
			job.id, root == NULL ? "the state directory" : root);
	buf_fmt(out, "%s\n", job.id);
	if (job.past && job.dir[0] != '\0')
		words_line("%s: its output stays in %s", job.id, job.dir);
	return XR_OK;
}

/* For someone who meant rm(1), as a rank. */
static void
rm_hint(char **argv)
{
	for (char **word = argv + 1; *word != NULL; word++)
		if ((*word)[0] == '-' && (*word)[1] != '\0' &&
			strspn(*word + 1, "rRfidv") == strlen(*word + 1)) {
			words_line("to run rm(1)   try: xrun -- rm %s ...",
				*word);
			return;
		}
}

/* A job that cannot be removed does not keep the others. */
int
cmd_rm(int argc, char **argv)
{
	struct settings s = { 0 };
	struct verb_args args;
	struct xr_error err;
	struct buf out = { 0 };
	int exit_status = 0, said;
	char *root;

	(void)argc;
	if (!verb_args_read(&args, rm_options, &s, VERB_OPERANDS, argv)) {
		rm_hint(argv);
		return EXIT_XRUN;
	}
	if (args.count == 0)
		return say_no(
			"rm: a job must be named   try: xrun rm JOB, or xrun prune -h");
	root = state_home();
	for (int i = 0; i < args.count; i++) {
		err = (struct xr_error){ 0 };
		if (remove_named(root, args.operand[i], &s, &out, &err) !=
			XR_OK)
			exit_status = say_error(&err);
	}
	said = say(&out);
	free(root);
	return exit_status != 0 ? exit_status : said;
}

/* --- prune ---------------------------------------------------------------- */

static bool
prune_takes(const struct settings *s, const struct remove_job *job, size_t at)
{
	return (s->keep < 0 || at >= (size_t)s->keep) &&
		(s->age < 0 || clock_wall() - job->ended > s->age);
}

static void
prune_say(const struct settings *s, uint32_t count, uint32_t failed,
	int64_t bytes)
{
	if (failed > 0)
		words_line("%u job%s could not be removed as a whole", failed,
			failed == 1 ? "" : "s");
	words_line("%u job%s, %.1f MiB of output %s", count,
		count == 1 ? "" : "s", (double)bytes / REMOVE_MIB,
		s->dry_run ? "would be removed" : "removed");
}

static int
prune_by_id(const void *pa, const void *pb)
{
	const struct remove_job *a = pa, *b = pb;

	return strcmp(a->id, b->id);
}

static bool
prune_is(void *ctx, const char *id)
{
	const struct remove_list *list = ctx;
	struct remove_job key;

	snprintf(key.id, sizeof(key.id), "%s", id);
	return bsearch(&key, list->job, list->count, sizeof(key),
		       prune_by_id) != NULL;
}

/* The lines of all removed jobs. The history is read once: it may be long. */
static bool
prune_history(const char *root, const struct remove_list *list)
{
	struct remove_list gone = { .count = list->count };
	size_t size = list->count * sizeof(*gone.job);
	bool done;

	if (list->count == 0)
		return true;
	gone.job = xrealloc(NULL, size);
	memcpy(gone.job, list->job, size);
	qsort(gone.job, gone.count, sizeof(*gone.job), prune_by_id);
	done = history_remove(root, prune_is, &gone) == 0;
	free(gone.job);
	return done;
}

/* Removes the jobs that are meant. @list then has those that were removed. */
static uint32_t
prune_remove(const char *root, const struct settings *s,
	struct remove_list *list)
{
	uint32_t failed = 0;
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (!prune_takes(s, &list->job[i], i))
			continue;
		if (s->dry_run || retain_remove(root, list->job[i].id))
			list->job[count++] = list->job[i];
		else
			failed++;
	}
	list->count = count;
	if (!s->dry_run && !prune_history(root, list)) {
		failed += (uint32_t)count;
		list->count = 0;
	}
	return failed;
}

static int
prune_list(const char *root, const struct settings *s, struct remove_list *list)
{
	uint32_t failed = prune_remove(root, s, list);
	int64_t bytes = 0;
	struct buf out = { 0 };
	int status;

	for (size_t i = 0; i < list->count; i++) {
		buf_fmt(&out, "%s\n", list->job[i].id);
		bytes += list->job[i].bytes;
	}
	status = say(&out);
	prune_say(s, (uint32_t)list->count, failed, bytes);
	return failed > 0 ? EXIT_XRUN : status;
}

int
cmd_prune(int argc, char **argv)
{
	struct settings s = { .age = -1, .keep = -1 };
	struct remove_list list = { 0 };
	struct history past;
	struct verb_args args;
	int status;
	char *root;

	(void)argc;
	if (!verb_args_read(&args, prune_options, &s, 0, argv))
		return EXIT_XRUN;
	if (!s.all && s.older_than == NULL && s.keep < 0)
		return say_no(
			"prune: a condition is missing   try: --older-than 7d, --keep 10 or --all");
	if (s.all && (s.older_than != NULL || s.keep >= 0))
		return say_no(
			"prune: --all leaves no job for --older-than and --keep   try: one of them");
	if (s.older_than != NULL)
		remove_parse_age(s.older_than, &s.age);
	root = state_home();
	history_read(&past, root);
	which_each(remove_add, &(struct remove_walk){ &list, &past });
	history_fini(&past);
	if (list.count > 0)
		qsort(list.job, list.count, sizeof(*list.job), remove_by_age);
	status = prune_list(root, &s, &list);
	free(list.job);
	free(root);
	return status;
}
