/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - see account.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/ranks.h"
#include "base/signo.h"
#include "launcher/account.h"
#include "launcher/log/escape.h"
#include "launcher/outcome.h"
#include "launcher/platform.h"
#include "launcher/sup.h"
#include "proc/core.h"
#include "proc/descend.h"

#define FEW_RANKS      4 /* listed one by one */
#define TAIL_LINES     10
#define LONG_RUN_NS    (10 * NS_PER_S) /* worth a closing line */
#define ERROR_FILE_MAX (1 << 20)
#define LIST_MAX       16 /* ranks shown one by one */

static const char *
plural(uint32_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

static void
say(struct job *job, const struct buf *text)
{
	logs_put(job->sup->logs, buf_text(text), text->len);
}

/* "cuda:0-3", "tpu:8-15", "cpu". */
static void
put_devices(const struct plan *plan, struct buf *out)
{
	uint32_t last = plan->local_size - 1;

	if (plan_by_list(plan)) {
		buf_put_text(out, plan_deal(plan, 0)->text);
		if (last > 0)
			buf_fmt(out, "-%u", plan->first + last);
	} else if (plan->device_count == 0) {
		buf_put_text(out, "cpu");
	} else {
		platform_put(out, plan->devices, plan->device_count);
	}
}

void
account_header(struct job *job)
{
	uint32_t n = job_size(job);
	struct buf out = { 0 };
	char *dir = NULL;

	if (!job->errors_are_tty || job->opt.quiet)
		return;
	buf_fmt(&out, "xrun: job %s: %u %s", job->state.id, n,
		plural(n, "rank", "ranks"));
	if (job->plan.reason == PLAN_ACCELERATORS)
		buf_put_text(&out, " (one an accelerator)");
	else if (job->plan.reason == PLAN_WORKER_LIST)
		buf_put_text(&out, " (from the TPU worker list)");
	buf_put_text(&out, ", ");
	put_devices(&job->plan, &out);
	if (job->state.dir != NULL)
		dir = state_tilde(job->state.dir);
	buf_fmt(&out, ", %s%s\n", dir == NULL ? "no logs" : "logs ",
		dir == NULL ? "" : dir);
	if (job->route.reduced)
		buf_fmt(&out,
			"xrun: %u ranks: showing rank 0's stdout and everybody's stderr; --show all shows the rest\n",
			n);
	say(job, &out);
	free(dir);
	buf_fini(&out);
}

/* "SIGSEGV", "exit status 3". */
static void
put_how(const struct rank *r, struct buf *out)
{
	char name[16];

	if (WIFSIGNALED(r->status))
		buf_put_text(out,
			signo_name(WTERMSIG(r->status), name, sizeof(name)));
	else
		buf_fmt(out, "exit status %d", WEXITSTATUS(r->status));
}

/* Where the kernel put it. */
static void
put_core_file(const struct job *job, const struct rank *r, struct buf *out)
{
	const struct core core = {
		.pid = r->pid,
		.sig = WTERMSIG(r->status),
		.program = job->program,
		.since = job->begun_wall,
	};
	char found[PATH_MAX], path[PATH_MAX], *shown;

	switch (core_find(&core, found, sizeof(found))) {
	case CORE_FILE:
		shown = state_tilde(realpath(found, path) ? path : found);
		buf_fmt(out, ", core: %s", shown);
		free(shown);
		break;
	case CORE_PIPED:
		buf_fmt(out, ", core: handed to %s", found);
		break;
	case CORE_UNKNOWN:
		buf_put_text(out, ", core: written");
		break;
	}
}

/* Where the core file is, or why there is none. */
static void
put_core(const struct job *job, const struct rank *r, struct buf *out)
{
	struct rlimit core;

	if (!WIFSIGNALED(r->status))
		return;
	switch (WTERMSIG(r->status)) {
	case SIGSEGV:
	case SIGABRT:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
	case SIGSYS:
	case SIGQUIT:
		break;
	default:
		return; /* nobody expects one */
	}
	if (WCOREDUMP(r->status))
		put_core_file(job, r, out);
	else if (getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur == 0)
		buf_put_text(out, ", core: none, ulimit -c is 0");
	else
		buf_put_text(out, ", core: none");
}

/* The last lines of one stream, each behind a bar. */
static uint32_t
put_tail(const struct job *job, uint32_t stream, uint32_t lines,
	struct buf *out)
{
	bool draw = job->errors_are_tty && job->utf8;
	const char *bar = draw ? "  ┃ " : "  | ", *p, *nl;
	struct buf tail = { 0 };
	uint32_t got = logs_tail(job->sup->logs, stream, lines, &tail);
	uint8_t state = 0;
	bool colored = false;

	for (p = tail.data; got > 0 && p < tail.data + tail.len; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(tail.data + tail.len - p));
		buf_put_text(out, bar);
		escape_filter(out, (struct span){ p, (size_t)(nl - p) }, &state,
			&colored);
		buf_put_text(out, colored ? "\033[0m\n" : "\n");
		colored = false;
		state = 0;
	}
	buf_fini(&tail);
	return got;
}

/* What torch's @record left, in a line: {"message": {"message": "..."}}. */
static void
put_error_file(const struct job *job, uint32_t r, struct buf *out)
{
	char path[PATH_MAX], *text = NULL;
	const cJSON *message = NULL;
	cJSON *json = NULL;
	size_t len;

	if (!job->error_files ||
		snprintf(path, sizeof(path), "%s/rank-%04u/error.json",
			job->state.attempt,
			job_rank(job, r)) >= (int)sizeof(path) ||
		fd_read_file(path, ERROR_FILE_MAX, &text, &len, NULL) != XR_OK)
		return;
	if (json_check("error.json", text, len, ERROR_FILE_MAX, NULL) == XR_OK)
		json = cJSON_ParseWithLength(text, len);
	message = cJSON_GetObjectItemCaseSensitive(json, "message");
	if (cJSON_IsObject(message))
		message = cJSON_GetObjectItemCaseSensitive(message, "message");
	if (cJSON_IsString(message))
		buf_fmt(out, "  error.json: %.*s\n",
			(int)strcspn(message->valuestring, "\n"),
			message->valuestring);
	cJSON_Delete(json);
	free(text);
}

/* stderr says why; stdout fills up what is left of ten lines, before it. */
static void
put_last_lines(const struct job *job, uint32_t r, struct buf *out)
{
	struct buf err = { 0 };
	uint32_t got =
		put_tail(job, r * RAW_STREAMS + RAW_ERR, TAIL_LINES, &err);

	if (got < TAIL_LINES)
		put_tail(job, r * RAW_STREAMS + RAW_OUT, TAIL_LINES - got, out);
	buf_put(out, buf_text(&err), err.len);
	buf_fini(&err);
}

/* "0, 1, 3"; beyond a few, ranges: "0-1, 3-63". */
static void
put_set(const struct ranks *set, uint32_t count, struct buf *out)
{
	struct buf list = { 0 };
	const char *comma = "";

	if (count <= FEW_RANKS) {
		RANKS_EACH(r, set) {
			buf_fmt(out, "%s%u", comma, r);
			comma = ", ";
		}
		return;
	}
	ranks_put(set, &list);
	for (const char *p = buf_text(&list); *p != '\0'; p++) {
		buf_put_char(out, *p);
		if (*p == ',')
			buf_put_char(out, ' ');
	}
	buf_fini(&list);
}

/* The ranks for which @pick holds, as a list in a buffer. */
typedef bool pick_fn(const struct job *job, uint32_t r, uint32_t arg);

static uint32_t
put_ranks(const struct job *job, pick_fn *pick, uint32_t arg, struct buf *out)
{
	struct ranks set;
	uint32_t count;

	if (ranks_init(&set, job->plan.size) != XR_OK)
		return 0;
	for (uint32_t i = 0; i < job_size(job); i++)
		if (pick(job, i, arg))
			ranks_add(&set, job_rank(job, i));
	count = ranks_count(&set);
	buf_put_text(out, plural(count, "rank ", "ranks "));
	put_set(&set, count, out);
	ranks_fini(&set);
	return count;
}

static bool
was_stopped(const struct job *job, uint32_t r, uint32_t arg)
{
	(void)arg;
	return job->rank[r].after_stop;
}

static bool
failed_too(const struct job *job, uint32_t r, uint32_t culprit)
{
	const struct rank *rank = &job->rank[r];

	return r != culprit && !rank->after_stop && outcome_is_failure(rank);
}

static bool
lives(const struct job *job, uint32_t r, uint32_t arg)
{
	(void)arg;
	return job->rank[r].pidfd != -1;
}

static bool
left_open(const struct job *job, uint32_t r, uint32_t arg)
{
	(void)arg;
	return job->rank[r].left_open;
}

/* Which signals it took: the first alone, or SIGKILL, too. */
static const char *
means(const struct job *job, char *out, size_t cap)
{
	char name[16];
	bool killed = false;

	for (uint32_t i = 0; i < job_size(job); i++)
		killed = killed ||
			(job->rank[i].after_stop &&
				WIFSIGNALED(job->rank[i].status) &&
				WTERMSIG(job->rank[i].status) == SIGKILL);
	signo_name(job->sup->interrupts == 1 ? SIGINT : job->opt.stop_signal,
		name, sizeof(name));
	snprintf(out, cap, "%s%s", name + 3, killed ? ", then KILL" : "");
	return out;
}

/* False, and nothing is put, if there are none. */
static bool
put_stopped(const struct job *job, struct buf *out)
{
	int64_t last = job->stop_ns;
	char time[32], how[64];
	struct buf who = { 0 };
	uint32_t n = put_ranks(job, was_stopped, 0, &who);

	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].after_stop && job->rank[i].ended_ns > last)
			last = job->rank[i].ended_ns;
	if (n > 0)
		buf_fmt(out, "%s %s stopped by xrun (%s, %s)", buf_text(&who),
			plural(n, "was", "were"), means(job, how, sizeof(how)),
			clock_text(last - job->stop_ns, time, sizeof(time)));
	buf_fini(&who);
	return n > 0;
}

static void
put_where(const struct job *job, uint32_t r, struct buf *out)
{
	char *dir;

	if (job->state.attempt == NULL ||
		(logs_bytes(job->sup->logs, r * RAW_STREAMS) == 0 &&
			logs_bytes(job->sup->logs, r * RAW_STREAMS + 1) == 0))
		return;
	dir = state_tilde(job->state.attempt);
	buf_fmt(out, "%sAll output: %s/rank-%04u", out->len > 0 ? ". " : "",
		dir, job_rank(job, r));
	free(dir);
}

static void
put_others(const struct job *job, uint32_t culprit, struct buf *out)
{
	struct buf line = { 0 }, more = { 0 };

	put_stopped(job, &line);
	if (put_ranks(job, failed_too, culprit, &more) > 0)
		buf_fmt(&line, "%s%s failed after it", line.len > 0 ? ". " : "",
			buf_text(&more));
	put_where(job, culprit, &line);
	if (line.len > 0)
		buf_fmt(out, "  %s\n", buf_text(&line));
	buf_fini(&line);
	buf_fini(&more);
}

/* What to do about what the kernel says when it will not run a program. */
static const struct {
	int sys;
	const char *advice;
} refusals[] = {
	{ E2BIG,
		"shorter arguments and environment (ulimit -s; 128 KiB each)" },
	{ ENOENT, "head -n 1 of it, or: file" },
	{ ENOEXEC, "file, to see what machine it is for" },
	{ ETXTBSY, "again when it is no longer written to" },
	{ EACCES, "ls -l, and the mount options" },
};

/* "#!/no/such/interpreter": the file is there, what runs it is not. */
static void
put_interpreter(const char *program, struct buf *out)
{
	char line[256] = "", *p = line + 2;
	int fd = open(program, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd == -1 ? -1 : fd_read_some(fd, line, sizeof(line) - 1);

	fd_close(fd);
	if (n < 3 || memcmp(line, "#!", 2) != 0)
		return;
	p += strspn(p, " \t");
	p[strcspn(p, " \t\r\n")] = '\0';
	buf_fmt(out, " (its interpreter %s)", p);
}

static void
put_refusal(const struct job *job, const struct rank *r, struct buf *out)
{
	buf_fmt(out, "xrun: %s: %s", job->argv[0], strerror(r->failed_sys));
	if (r->failed_sys == ENOENT)
		put_interpreter(job->program, out);
	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (refusals[i].sys == r->failed_sys)
			buf_fmt(out, "   try: %s", refusals[i].advice);
	buf_put_char(out, '\n');
}

static void
put_failure(const struct job *job, uint32_t culprit, struct buf *out)
{
	const struct rank *r = &job->rank[culprit];
	char time[32];

	if (r->failed_step != SPAWN_OK) {
		put_refusal(job, r, out);
		return;
	}
	buf_fmt(out, "xrun: rank %u failed first: ", job_rank(job, culprit));
	put_how(r, out);
	buf_fmt(out, " after %s (pid %d",
		clock_text(r->ended_ns - r->started_ns, time, sizeof(time)),
		(int)r->pid);
	put_core(job, r, out);
	buf_put_text(out, ")\n");
	put_last_lines(job, culprit, out);
	put_error_file(job, culprit, out);
	put_others(job, culprit, out);
}

/* Why xrun itself ended the job. */
static void
put_cause(const struct job *job, struct buf *out)
{
	char time[32], name[16];

	switch (job->cause) {
	case CAUSE_NONE:
	case CAUSE_FAILURE:
		return;
	case CAUSE_TIMEOUT:
		buf_fmt(out, "xrun: --timeout reached after %s: ",
			clock_text(job->opt.timeout, time, sizeof(time)));
		break;
	case CAUSE_SIGNAL:
		buf_fmt(out, "xrun: %s: ",
			job->sup->interrupts > 0 ? "Ctrl-C" :
						   signo_name(job->cause_signal,
							   name, sizeof(name)));
		break;
	case CAUSE_CLOSED:
		buf_put_text(out, "xrun: nobody reads stdout any more: ");
		break;
	case CAUSE_XRUN:
		buf_fmt(out, "xrun: %s\n", job->cause_text);
		if (job->deaths == 0)
			return;
		buf_put_text(out, "xrun: ");
		break;
	}
	if (!put_stopped(job, out))
		buf_put_text(out, "no rank was ended by it");
	buf_put_char(out, '\n');
}

static void
put_undelivered(const struct job *job, struct buf *out)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < logs_sinks(job->sup->logs); i++)
		if (!job->sup->sink_closed[i])
			bytes += logs_backlog(job->sup->logs, i);
	if (job->sup->delivery_over && bytes > 0)
		buf_fmt(out,
			"xrun: the reader of the output is slow: %llu bytes are only in the files (%s)\n",
			(unsigned long long)bytes,
			job->state.attempt == NULL ? "" : job->state.attempt);
}

static void
put_lost(const struct job *job, struct buf *out)
{
	if (job->share->failed > 0)
		buf_fmt(out,
			"xrun: %llu bytes found no room on the disk and are lost\n",
			(unsigned long long)job->share->failed);
}

static void
put_left_open(const struct job *job, struct buf *out)
{
	struct buf who = { 0 };

	if (put_ranks(job, left_open, 0, &who) > 0 && job->stop_ns == 0)
		buf_fmt(out,
			"xrun: %s: a process left behind kept the output open; what it wrote after 2 s is not kept\n",
			buf_text(&who));
	buf_fini(&who);
}

static void
put_closing(const struct job *job, const struct outcome *o, struct buf *out)
{
	int64_t ran = job->ended_ns - job->begun_ns;
	char time[32];
	uint32_t n = job_size(job);

	if (!job->errors_are_tty || job->opt.quiet || o->exit_status != 0 ||
		ran < LONG_RUN_NS)
		return;
	buf_fmt(out, "xrun: job %s: %u %s ended well after %s\n", job->state.id,
		n, plural(n, "rank", "ranks"),
		clock_text(ran, time, sizeof(time)));
}

static double
seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void
put_resources(const struct job *job, struct buf *out)
{
	buf_put_text(out,
		"  rank  exit     wall s    user s     sys s  peak MiB    bytes logged\n");
	for (uint32_t i = 0; i < job_size(job); i++) {
		const struct rank *r = &job->rank[i];
		int64_t ran =
			r->ended_ns == 0 ? 0 : r->ended_ns - r->started_ns;

		buf_fmt(out, "  %4u  %4d  %9.3f %9.3f %9.3f %9.1f %15llu\n",
			job_rank(job, i), outcome_rank_status(r),
			(double)ran / NS_PER_S, seconds(r->usage.ru_utime),
			seconds(r->usage.ru_stime),
			(double)r->usage.ru_maxrss / 1024,
			(unsigned long long)(logs_bytes(job->sup->logs,
						     i * RAW_STREAMS) +
				logs_bytes(job->sup->logs,
					i * RAW_STREAMS + 1)));
	}
}

void
job_account(struct job *job)
{
	struct outcome o = outcome_of(job);
	struct buf out = { 0 };

	put_undelivered(job, &out);
	put_lost(job, &out);
	put_left_open(job, &out);
	put_cause(job, &out);
	if (o.culprit != OUTCOME_NOBODY)
		put_failure(job, o.culprit, &out);
	put_closing(job, &o, &out);
	if (job->opt.verbose)
		put_resources(job, &out);
	logs_last_words(job->sup->logs, buf_text(&out), out.len);
	buf_fini(&out);
}

/* Nobody's fault if it says nothing. */
static bool
is_stopped(const struct rank *rank)
{
	struct proc_stat st;

	return rank->state == RANK_RUNNING && proc_stat_read(rank->pid, &st) &&
		(st.state == 'T' || st.state == 't');
}

static void
put_rank_now(const struct job *job, uint32_t r, struct buf *out)
{
	const struct rank *rank = &job->rank[r];
	int64_t last = 0, one;
	char time[32];

	for (uint32_t k = 0; k < RAW_STREAMS; k++) {
		one = logs_last(job->sup->logs, r * RAW_STREAMS + k);
		last = one > last ? one : last;
	}
	buf_fmt(out, "  rank %-5u %-9s ", job_rank(job, r),
		is_stopped(rank) ? "stopped" : rank_state_name(rank->state));
	if (last == 0)
		buf_put_text(out,
			logs_bytes(job->sup->logs, r * RAW_STREAMS) > 0 ?
				"has written output\n" :
				"no output yet\n");
	else
		buf_fmt(out, "last output %s ago\n",
			clock_text(clock_wall() - last, time, sizeof(time)));
}

/* The terminal has just echoed "^C": what follows stands over it. */
static const char *
over_echo(const struct job *job)
{
	return job->errors_are_tty ? "\r" : "";
}

void
account_interrupt(struct job *job)
{
	struct buf out = { 0 }, who = { 0 };
	uint32_t alive = put_ranks(job, lives, 0, &who), shown = 0;

	buf_put_text(&out, over_echo(job));
	for (uint32_t i = 0; i < job_size(job) && shown < LIST_MAX; i++) {
		if (job->rank[i].pidfd == -1 && alive > 0)
			continue;
		put_rank_now(job, i, &out);
		shown++;
	}
	if (alive > shown)
		buf_fmt(&out, "  ... and %u more\n", alive - shown);
	buf_fmt(&out,
		job->opt.interrupt == INTERRUPT_ASK ?
			"xrun: %u %s running; Ctrl-C again: stop\n" :
			"xrun: stopping %u %s; Ctrl-C again: terminate now\n",
		alive, plural(alive, "rank", "ranks"));
	say(job, &out);
	buf_fini(&out);
	buf_fini(&who);
}

void
account_interrupt_again(struct job *job, uint32_t times)
{
	char time[32];

	if (times == 2)
		logs_say(job->sup->logs,
			"%sxrun: TERM to all ranks, KILL after %s; Ctrl-C again: kill now",
			over_echo(job),
			clock_text(job->opt.grace, time, sizeof(time)));
	else
		logs_say(job->sup->logs, "%sxrun: killing all ranks",
			over_echo(job));
}
