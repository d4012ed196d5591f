/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c - see logs.h. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/ranks.h"
#include "base/status.h"
#include "launcher/cmd/logs.h"
#include "launcher/cmd/logs_inner.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/verb_args.h"
#include "launcher/cmd/when.h"
#include "launcher/job/options.h"
#include "launcher/job/outcome.h"
#include "launcher/job/words.h"
#include "proc/limit.h"

#define AT(field)     .offset = offsetof(struct logs_settings, field)
#define MOST_LINES    (INT64_C(1) << 53)
#define MOST_ATTEMPTS 999999999

static const char *const colors[] = { "auto", "always", "never", NULL };
const char *const logs_collapses[] = { "auto", "on", "off", NULL };

/* clang-format off */
const struct opt logs_options[] = {
	{ .name = "follow", .letter = 'f', VERB_ROW, .type = OPT_FLAG, AT(follow),
		.help = "go on with what comes, until the job is over",
		.text = "Go on with what comes, until the job is over and all of it is printed; of a job that was named (*--job*) with its next attempts, too, as long as one follows the other, unless *--attempt* says which." },
	{ .name = "tail", .alias = "lines", .letter = 'n', VERB_ROW, .type = OPT_INT, .arg = "N", .max = MOST_LINES, AT(tail),
		.help = "the last N lines" },
	{ .name = "since", VERB_ROW, .type = OPT_TEXT, .arg = "TIME", .check = when_check, AT(since),
		.help = "lines from then on: 10m (ago), 12:34:56",
		.text = "Lines that came at _TIME_ or later. _TIME_ is a time back from now such as 10m or 1h30m; a time of day as *--timestamps* prints it, 12:34:56.789, of the day on which the job ran; or one with a date, 2026-11-21 12:34 or 2026-11-21T12:34:56.789Z." },
	{ .name = "until", VERB_ROW, .type = OPT_TEXT, .arg = "TIME", .check = when_check, AT(until),
		.help = "lines up to then",
		.text = "Lines that came up to _TIME_, a second, minute or day that is typed included." },
	{ .name = "rank", .letter = 'r', VERB_ROW, .type = OPT_TEXT, .arg = "RANKS", .check = ranks_check, AT(ranks),
		.help = "of these ranks, 0-3,7; of all without" },
	{ .name = "stdout", VERB_ROW, .type = OPT_FLAG, AT(only_stdout),
		.help = "standard output alone" },
	{ .name = "stderr", VERB_ROW, .type = OPT_FLAG, AT(only_stderr),
		.help = "standard error alone" },
	{ .name = "grep", VERB_ROW, .type = OPT_TEXT, .arg = "PATTERN", AT(grep),
		.help = "lines that match this regular expression",
		.text = "Lines that match _PATTERN_, a POSIX extended regular expression as of *grep -E*: see *regex*(7). It is compared byte by byte. *--tail* counts these lines only." },
	{ .name = "ignore-case", .letter = 'i', VERB_ROW, .type = OPT_FLAG, AT(ignore_case),
		.help = "with --grep: letters match in either case",
		.text = "With *--grep*, letters match in upper and lower case: those of ASCII." },
	{ .name = "attempt", VERB_ROW, .type = OPT_INT, .arg = "N", .max = MOST_ATTEMPTS, AT(attempt),
		.help = "of a job with several: this one; else the last",
		.text = "Of a job with several attempts: the lines of this one. Without it, of the last that wrote something, which is said if it is not the last of all; with *-f*, of the last." },
	{ .name = "timestamps", .letter = 't', VERB_ROW, .type = OPT_FLAG, AT(timestamps),
		.help = "begin each line with the time when it came" },
	{ .name = "prefix", VERB_ROW, .type = OPT_FLAG, .dflt = "yes", AT(prefix),
		.help = "lines without their rank before them" },
	{ .name = "color", VERB_ROW, .type = OPT_CHOICE, .dflt = "auto", .choices = colors, AT(color),
		.help = "colour the ranks at the beginning of lines" },
	{ .name = "collapse", VERB_ROW, .type = OPT_CHOICE, .dflt = "auto", .choices = logs_collapses, AT(collapse),
		.help = "show equal lines of several ranks as one",
		.text = "Print a line that other ranks wrote, too, within 100 ms once, with all of them before it: 0-7. *auto* does so on a terminal; *on* in pipes and files, too. With *-f*, each line waits there for 100 ms. Nothing is collapsed with *--no-prefix* and *--json*." },
	{ .name = "json", VERB_ROW, .type = OPT_FLAG, AT(json),
		.help = "each line as an object: time, rank, stream, text" },
	{ 0 },
};
/* clang-format on */

/* --- what is wanted ------------------------------------------------------- */

static enum xr_status
chosen_ranks(const struct reading *l, struct ranks *set, struct xr_error *err)
{
	enum xr_status status = ranks_init(set, l->attempt.ranks);
	struct xr_error why = { 0 };

	if (status == XR_OK && l->s.ranks != NULL) {
		status = ranks_parse(set, l->s.ranks, &why);
		return status == XR_OK ?
			XR_OK :
			fail(err, status, "--rank: %s", why.text);
	}
	for (uint32_t r = 0; status == XR_OK && r < set->size; r++)
		ranks_add(set, r);
	return status;
}

static enum xr_status
choose_readers(struct reading *l, struct xr_error *err)
{
	struct ranks set = { 0 };
	enum xr_status status = chosen_ranks(l, &set, err);

	if (status == XR_OK)
		l->reader = xcalloc(ranks_count(&set) * RAW_STREAMS,
			sizeof(*l->reader));
	RANKS_EACH(r, &set) {
		if (status == XR_OK && !l->s.only_stderr &&
			l->put.route.shown[RAW_STREAMS * r + RAW_OUT])
			reader_init(&l->reader[l->count++], l->attempt.dir,
				RAW_STREAMS * r + RAW_OUT);
		if (status == XR_OK && !l->s.only_stdout)
			reader_init(&l->reader[l->count++], l->attempt.dir,
				RAW_STREAMS * r + RAW_ERR);
	}
	ranks_fini(&set);
	return status;
}

static enum xr_status
choose_times(struct reading *l, int64_t *since, int64_t *until,
	struct xr_error *err)
{
	const struct when_facts facts = {
		.now = clock_wall(),
		.start = l->attempt.start,
		.end = l->attempt.end,
	};
	enum xr_status status = XR_OK;
	struct when from = { .ns = INT64_MIN }, to = { .last = INT64_MAX };

	if (l->s.since != NULL)
		status = when_parse(l->s.since, &facts, &from, err);
	if (status == XR_OK && l->s.until != NULL)
		status = when_parse(l->s.until, &facts, &to, err);
	*since = from.ns;
	*until = to.last;
	return status;
}

/* --- where it begins ------------------------------------------------------ */

/* The line that holds the first byte of then. */
static void
begin_since(struct reader *r, int64_t since)
{
	struct back back;

	back_init(&back, &r->track, track_since(&r->track, since), false);
	reader_go(r, back.at);
	back_fini(&back);
}

/* Bytes of all streams that came before what is there. */
static void
say_gone(const struct reading *l)
{
	uint64_t gone = 0, first;

	for (size_t i = 0; i < l->count; i++) {
		first = track_first(&l->reader[i].track);
		gone += l->reader[i].offset <= first ? first : 0;
	}
	if (gone > 0)
		words_line("%llu bytes were rotated away",
			(unsigned long long)gone);
}

static void
place_readers(struct reading *l, int64_t since, int64_t until)
{
	const struct merge_tail tail = {
		.lines = (uint64_t)l->s.tail,
		.since = since,
		.last = l->last,
		.wanted = l->s.grep != NULL ? logs_put_wants : NULL,
		.ctx = &l->put,
	};
	bool all = true;

	for (size_t i = 0; i < l->count; i++) {
		struct reader *r = &l->reader[i];

		r->since = since;
		r->until = until;
		/* What comes meanwhile is another time's. */
		if (!l->last && !l->s.follow)
			r->limit = track_end(&r->track);
		if (l->s.tail < 0 && since != INT64_MIN)
			begin_since(r, since);
		else if (l->s.tail < 0)
			reader_go(r, track_first(&r->track));
	}
	if (l->s.tail >= 0)
		all = merge_tail(l->reader, l->count, &tail);
	if (all)
		say_gone(l);
}

/* --- all of it ------------------------------------------------------------ */

/* As a job does by itself, unless the lines that are wanted were named. */
static const char *
show_of(const struct logs_settings *s)
{
	return s->ranks == NULL && s->grep == NULL && !s->json ? "auto" : "all";
}

static void
say_reduced(struct reading *l)
{
	if (!l->put.route.reduced || l->reduced || l->s.only_stderr)
		return;
	l->reduced = true;
	words_line(
		"%u ranks: showing rank 0's stdout%s; -r 0-%u shows the rest",
		l->attempt.ranks,
		l->s.only_stdout ? "" : " and everybody's stderr",
		l->attempt.ranks - 1);
}

static enum xr_status
open_put(struct reading *l, struct xr_error *err)
{
	l->put = (struct logs_put){
		.torn = l->put.torn, /* by the attempt before */
		.grep = l->put.grep, /* of all attempts */
		.job = l->attempt.job.id,
		.ranks = l->attempt.ranks,
		.color = l->s.color,
		.collapse = l->s.collapse,
		.show = show_of(&l->s),
		.follow = l->s.follow,
		.prefix = l->s.prefix,
		.timestamps = l->s.timestamps,
		.json = l->s.json,
	};
	return logs_put_open(&l->put, err);
}

enum xr_status
reading_begin(struct reading *l, struct xr_error *err)
{
	enum xr_status status;
	int64_t since = 0, until = 0;

	l->last = attempt_is_over(&l->attempt);
	status = choose_times(l, &since, &until, err);
	if (status == XR_OK)
		status = open_put(l, err);
	if (status == XR_OK)
		status = choose_readers(l, err);
	if (status != XR_OK)
		return status;
	say_reduced(l);
	place_readers(l, since, until);
	return XR_OK;
}

void
reading_end(struct reading *l)
{
	for (size_t i = 0; i < l->count; i++)
		reader_fini(&l->reader[i]);
	free(l->reader);
	l->reader = NULL;
	l->count = 0;
	merge_fini(&l->merge);
	logs_put_close(&l->put);
}

void
reading_look(struct reading *l, size_t reader)
{
	struct reader *r = &l->reader[reader];

	if (r->run.len == 0)
		merge_add(&l->merge, r, l->last);
}

bool
reading_put_some(struct reading *l, size_t runs)
{
	const struct reader *r = NULL;

	for (; runs > 0 && l->put.sys == 0; runs--) {
		r = merge_first(&l->merge);
		if (r == NULL)
			break;
		logs_put_run(&l->put, r);
		merge_took(&l->merge, l->last);
	}
	return l->put.sys == 0 && r != NULL;
}

enum xr_status
reading_check(const struct reading *l, struct xr_error *err)
{
	char name[64], folder[PATH_MAX];
	const struct track *t;

	for (size_t i = 0; i < l->count; i++) {
		t = &l->reader[i].track;
		if (t->sys != 0)
			return fail(err, XR_E_SYS, "%s/%u/%s: %s\t-r RANKS",
				state_tilde(l->attempt.job.dir, folder,
					sizeof(folder)),
				l->attempt.number,
				raw_name(t->named, name, sizeof(name)),
				strerror(t->sys));
	}
	return XR_OK;
}

/* What there is now. */
static enum xr_status
put_all(struct reading *l, struct xr_error *err)
{
	enum xr_status status;

	if (!attempt_await_known(&l->attempt))
		return fail(err, XR_E_STATE, "%s says nothing of itself yet",
			l->attempt.job.id);
	status = reading_begin(l, err);
	if (status != XR_OK)
		return status;
	for (size_t i = 0; i < l->count; i++)
		reading_look(l, i);
	status = reading_check(l, err);
	while (status == XR_OK && reading_put_some(l, SIZE_MAX))
		status = reading_check(l, err);
	logs_put_end(&l->put);
	return status;
}

static enum xr_status
check(struct reading *l, struct xr_error *err)
{
	if (l->s.ignore_case && l->s.grep == NULL)
		return fail(err, XR_E_INVAL,
			"logs: -i is for --grep\t--grep PATTERN");
	if (l->s.follow && l->s.until != NULL)
		return fail(err, XR_E_INVAL,
			"logs: --until is for what is there already\t-f or --until");
	return logs_grep_open(&l->put.grep, l->s.grep, l->s.ignore_case, err);
}

/* Who asks for the last lines wants those of an attempt that has some. */
static void
skip_silent(struct attempt *a)
{
	uint32_t last = a->number;

	if (attempt_back(a))
		words_line("attempt %u wrote nothing; this is attempt %u", last,
			a->number);
}

int
cmd_logs(int argc, char **argv)
{
	struct reading l = { .s = { .tail = -1, .attempt = ATTEMPT_LAST },
		.stop = -1 };
	struct limits limits;
	struct verb_args args;
	struct xr_error err = { 0 };
	enum xr_status status;
	int exit_status;

	(void)argc;
	if (!verb_args_read(&args, logs_options, &l.s, 1, argv))
		return EXIT_XRUN;
	if (l.s.only_stdout && l.s.only_stderr)
		l.s.only_stdout = l.s.only_stderr = false;
	limit_read(&limits); /* as many files as may be open */
	status = check(&l, &err);
	if (status == XR_OK)
		status = attempt_find_job(args.count > 0 ? args.operand[0] :
							   NULL,
			"output", &l.attempt, &err);
	if (status == XR_OK)
		status = attempt_open(&l.attempt, l.s.attempt, &err);
	if (status == XR_OK && !l.s.follow && l.s.attempt == ATTEMPT_LAST)
		skip_silent(&l.attempt);
	if (status == XR_OK)
		status = l.s.follow ? reading_follow(&l, &err) :
				      put_all(&l, &err);
	exit_status =
		status == XR_OK ? say_unwritten(l.put.sys) : say_error(&err);
	if (status == XR_E_END)
		exit_status = 0; /* all that there is was printed: nothing */
	reading_end(&l);
	logs_grep_close(&l.put.grep);
	attempt_close(&l.attempt);
	return exit_status;
}
