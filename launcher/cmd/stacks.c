/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - see stacks.h; the work is launcher/stacks'. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/signalfd.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/ranks.h"
#include "base/status.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/stacks.h"
#include "launcher/cmd/table.h"
#include "launcher/cmd/verb_args.h"
#include "launcher/job/outcome.h"
#include "launcher/stacks/differ.h"
#include "launcher/stacks/gather.h"
#include "launcher/stacks/merge.h"
#include "launcher/stacks/put.h"
#include "launcher/state/jobs.h"

#define GROUPS_MAX 20 /* on a terminal */

struct settings {
	const char *ranks, *save, *title;
	int64_t patience;
	bool full, json, pids;
};

#define AT(field) .offset = offsetof(struct settings, field)

const struct opt stacks_options[] = {
	{ .name = "rank",
		.letter = 'r',
		.type = OPT_TEXT,
		VERB_ROW,
		.arg = "RANKS",
		.check = ranks_check,
		AT(ranks),
		.help = "of these ranks, 0-3,7; of all without" },
	{ .name = "full",
		.letter = 'f',
		.type = OPT_FLAG,
		VERB_ROW,
		AT(full),
		.help = "each stack with a line a function, too" },
	{ .name = "patience",
		.type = OPT_DURATION,
		VERB_ROW,
		.arg = "TIME",
		.dflt = "5s",
		.min = NS_PER_MS,
		.max = 3600 * NS_PER_S,
		AT(patience),
		.help = "with all tools together" },
	{ .name = "save",
		.type = OPT_TEXT,
		VERB_ROW,
		.arg = "FILE",
		AT(save),
		.help = "append all of it to FILE, print the oddest" },
	{ .name = "title",
		.type = OPT_TEXT,
		VERB_ROW,
		.arg = "TEXT",
		AT(title),
		.help = "what begins it in the file" },
	{ .name = "pids",
		.type = OPT_FLAG,
		VERB_ROW,
		AT(pids),
		.help = "of no job: standard input has lines RANK PID" },
	{ .name = "json",
		.type = OPT_FLAG,
		VERB_ROW,
		AT(json),
		.help = "as one JSON object" },
	{ 0 },
};

/* --- of whom -------------------------------------------------------------- */

/* One that ended has no process, whoever bears its number now. */
static void
add_rank(struct stacks *s, const cJSON *rank, const struct ranks *set)
{
	int64_t number = jobs_number(rank, "rank", UINT32_MAX);
	int64_t pid = jobs_number(rank, "pid", 0);

	if (number >= set->size || !ranks_has(set, (uint32_t)number))
		return;
	if (cJSON_HasObjectItem(rank, "exit") ||
		cJSON_HasObjectItem(rank, "signal"))
		pid = 0;
	stacks_add_rank(s, (uint32_t)number, (pid_t)pid);
}

static enum xr_status
add_ranks(struct stacks *s, const cJSON *json, const char *chosen,
	struct xr_error *err)
{
	int64_t size = jobs_number(json, "ranks", 0);
	struct ranks set = { 0 };
	enum xr_status status = ranks_init(&set, (uint32_t)size);
	const cJSON *rank;

	for (uint32_t r = 0; status == XR_OK && chosen == NULL && r < size; r++)
		ranks_add(&set, r);
	if (status == XR_OK && chosen != NULL)
		status = ranks_parse(&set, chosen, err);
	cJSON_ArrayForEach(rank, cJSON_GetObjectItemCaseSensitive(json, "rank"))
	{
		if (status == XR_OK)
			add_rank(s, rank, &set);
	}
	ranks_fini(&set);
	return status;
}

static enum xr_status
find_job(struct stacks *s, struct which *job, const char *name,
	const struct settings *set, struct xr_error *err)
{
	enum xr_status status = which_job(name, WHICH_RUNNING, job, err);
	cJSON *json = NULL;

	if (status == XR_OK)
		status = dial_status(job, &json, err);
	if (status == XR_OK)
		status = add_ranks(s, json, set->ranks, err);
	cJSON_Delete(json);
	return status;
}

static enum xr_status
read_pids(struct stacks *s, struct xr_error *err)
{
	char *text = NULL;
	size_t cap = 0;
	unsigned rank;
	int pid, n;
	enum xr_status status = XR_OK;

	while (status == XR_OK && getline(&text, &cap, stdin) > 0) {
		n = 0;
		if (sscanf(text, "%u %d %n", &rank, &pid, &n) != 2 ||
			text[n] != '\0' || pid <= 0)
			status = fail(err, XR_E_INVAL,
				"--pids: '%.*s' is not RANK PID",
				(int)strcspn(text, "\n"), text);
		else
			stacks_add_rank(s, rank, pid);
	}
	free(text);
	if (status == XR_OK && s->ranks == 0)
		status = fail(err, XR_E_INVAL,
			"stacks: --pids: standard input has no line");
	return status;
}

/* --- and then ------------------------------------------------------------- */

/* What would end us ends tools first, so that nobody is left standing. */
static int
hear_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int
save(const struct stacks *s, const char *path, const char *title)
{
	char stamp[40];
	int fd = fd_sole(open(path,
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW |
			O_NONBLOCK,
		0600));
	struct buf out = { 0 }, first = { 0 };
	int sys = 0;

	buf_fmt(&out,
		"%s%s%s: ", clock_stamp(clock_wall(), stamp, sizeof(stamp)),
		title == NULL ? "" : " ", title == NULL ? "" : title);
	put_table(&out, s, 0, 0);
	put_full(&out, s);
	buf_put_char(&out, '\n');
	if (fd == -1 || fd_write_all(fd, buf_text(&out), out.len) == -1)
		sys = errno;
	fd_close(fd);
	buf_fini(&out);
	if (sys != 0)
		return say_no("stacks: %s: %s", path, strerror(sys));
	put_first(&first, s);
	return say(&first);
}

static int
show(const struct stacks *s, const struct settings *set, const char *job)
{
	struct buf out = { 0 };
	uint32_t cols = table_columns(), majority;

	if (set->save != NULL)
		return save(s, set->save, set->title);
	if (set->json) {
		put_json(&out, s, job);
		return say(&out);
	}
	if (set->title != NULL)
		differ_put(&out, s, &majority);
	put_table(&out, s, cols, cols != 0 && !set->full ? GROUPS_MAX : 0);
	if (set->full)
		put_full(&out, s);
	return say(&out);
}

static int
look(struct stacks *s, const struct settings *set, const char *job)
{
	const struct gather gather = {
		.patience = set->patience,
		.signals = hear_signals(),
	};
	int sig = gather_stacks(s, &gather);

	if (sig != 0)
		return 128 + sig;
	merge_stacks(s);
	return show(s, set, job);
}

int
cmd_stacks(int argc, char **argv)
{
	struct settings set = { 0 };
	struct verb_args args;
	struct which job = { 0 };
	struct stacks s = { 0 };
	struct xr_error err = { 0 };
	enum xr_status found;
	int status;

	(void)argc;
	if (!verb_args_read(&args, stacks_options, &set, 1, argv))
		return EXIT_XRUN;
	if (set.pids && args.count > 0)
		return say_no("stacks: --pids is for processes of no job");
	if (set.pids) {
		prctl(PR_SET_NAME, "xrun-stacks");
		found = read_pids(&s, &err);
	} else {
		found = find_job(&s, &job,
			args.count > 0 ? args.operand[0] : NULL, &set, &err);
	}
	status = found == XR_OK ? look(&s, &set, set.pids ? NULL : job.id) :
				  say_error(&err);
	stacks_fini(&s);
	return status;
}
