/* SPDX-License-Identifier: Apache-2.0 */
/* failure.c - see failure.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/gate.h"
#include "base/signo.h"
#include "base/utf8.h"
#include "launcher/job/outcome.h"
#include "launcher/job/sup.h"
#include "launcher/keeper/keeper.h"
#include "launcher/log/escape.h"
#include "launcher/log/live.h"
#include "launcher/tell/failure.h"
#include "launcher/tell/who.h"
#include "launcher/tell/why.h"
#include "proc/core.h"

#define TAIL_LINES     10
#define ERROR_FILE_MAX (1 << 20)
#define FRAMES         8 /* of a backtrace */

/* A name that anybody chose, in a line. The bytes that steer terminals which do
 * not read UTF-8 are the filter's of logs_last_words(). */
static void
put_name(struct buf *out, const char *name)
{
	size_t at = out->len;

	buf_put_text(out, name);
	if (out->bad != XR_OK || out->len == at)
		return;
	utf8_tame(out->data + at, false);
	for (char *p = out->data + at; (p = strchr(p, '\n')) != NULL;)
		*p = '?';
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
	const struct part *part = job_part(job, (uint32_t)(r - job->rank));
	const struct core core = {
		.pid = r->pid,
		.sig = WTERMSIG(r->status),
		.program = part->program,
		.dir = part->dir,
		.since = job->begun_wall,
	};
	char found[PATH_MAX], path[PATH_MAX], shown[PATH_MAX];

	switch (core_find(&core, found, sizeof(found))) {
	case CORE_FILE:
		buf_put_text(out, ", core: ");
		put_name(out,
			state_tilde(realpath(found, path) ? path : found, shown,
				sizeof(shown)));
		break;
	case CORE_PIPED:
		buf_put_text(out, ", core: handed to ");
		put_name(out, found);
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

/* What a rank wrote, in a line that it ends: nothing of it but colour steers. */
static void
put_line(struct span text, bool narrow, struct buf *out)
{
	uint8_t state = 0;
	bool colored = false;

	escape_filter(out, text, narrow, &state, &colored);
	escape_end(out, &state);
	buf_put_text(out, colored ? "\033[0m\n" : "\n");
}

/* The last lines of one stream, each behind a bar. */
static uint32_t
put_tail(const struct job *job, uint32_t stream, uint32_t lines,
	struct buf *out)
{
	bool draw = job->errors_are_tty && job->utf8;
	bool narrow = job->route.config.narrow[RAW_ERR];
	const char *bar = draw ? "  ┃ " : "  | ", *p, *nl;
	struct buf tail = { 0 };
	uint32_t got = logs_tail(job->sup->logs, stream, lines, &tail);

	for (p = tail.data; got > 0 && p < tail.data + tail.len; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(tail.data + tail.len - p));
		buf_put_text(out, bar);
		/* Progress that was written over itself: its last state. */
		put_line(live_seen((struct span){ p, (size_t)(nl - p) }),
			narrow, out);
	}
	buf_fini(&tail);
	return got;
}

/* Where a fatal signal met it, as worker/job/crash.c left it. */
static void
put_backtrace(const cJSON *frames, bool narrow, struct buf *out)
{
	const cJSON *frame;
	int n = 0;

	cJSON_ArrayForEach(frame, frames)
	{
		if (!cJSON_IsString(frame) || n == FRAMES)
			break;
		buf_fmt(out, "    #%d ", n++);
		put_line((struct span){ frame->valuestring,
				 strcspn(frame->valuestring, "\r\n") },
			narrow, out);
	}
}

/* Programs such as torch make the file with the modes of their umask. */
static void
failure_restrict_modes(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd != -1 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		(st.st_mode & 077) != 0)
		fchmod(fd, 0600);
	fd_close(fd);
}

static bool
failure_error_path(const struct job *job, uint32_t r, char out[static PATH_MAX])
{
	bool stored = job->errors == NULL;
	const char *begin = stored ? job->state.attempt : job->errors;

	return begin != NULL &&
		snprintf(out, PATH_MAX, "%s%srank-%04u.error.json", begin,
			stored ? "/" : "-", job_rank(job, r)) < PATH_MAX;
}

void
failure_restrict_files(const struct job *job)
{
	char path[PATH_MAX];

	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].status != 0 &&
			failure_error_path(job, i, path))
			failure_restrict_modes(path);
}

/* What torch's @record left, in a line: {"message": {"message": "..."}}. A job
 * whose ranks said nothing else keeps its folder for it. */
static void
put_error_file(const struct job *job, uint32_t r, struct buf *out)
{
	char path[PATH_MAX], *text = NULL;
	bool narrow = job->route.config.narrow[RAW_ERR];
	const cJSON *message = NULL, *extra = NULL;
	cJSON *json = NULL;
	size_t len;

	if (!failure_error_path(job, r, path) ||
		fd_read_file(path, ERROR_FILE_MAX, &text, &len, NULL) != XR_OK)
		return;
	job->page->kept = 1;
	if (gate_check("error.json", text, len, ERROR_FILE_MAX, NULL) == XR_OK)
		json = cJSON_ParseWithLength(text, len);
	message = cJSON_GetObjectItemCaseSensitive(json, "message");
	extra = cJSON_GetObjectItemCaseSensitive(message, "extraInfo");
	if (cJSON_IsObject(message))
		message = cJSON_GetObjectItemCaseSensitive(message, "message");
	if (cJSON_IsString(message)) {
		buf_put_text(out, "  error.json: ");
		put_line((struct span){ message->valuestring,
				 strcspn(message->valuestring, "\r\n") },
			narrow, out);
		put_backtrace(cJSON_GetObjectItemCaseSensitive(extra,
				      "backtrace"),
			narrow, out);
	}
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

/* What programs print if a stream is no terminal: vim, tmux, top, docker, libc, sudo,
 * ncurses. */
static const char *const terminal_complaints[] = { "not a tty",
	"not a terminal", "not to a terminal", "not from a terminal", "no tty",
	"needs a terminal", "requires a terminal", "connected to a terminal",
	"failed tty get", "Inappropriate ioctl for device",
	"a terminal is required", "Error opening terminal" };

/* Suggests --pty if the only rank complained in @lines, and xrun is on a terminal. */
static void
put_terminal_advice(const struct job *job, const char *lines, struct buf *out)
{
	size_t n = sizeof(terminal_complaints) / sizeof(terminal_complaints[0]);

	if (job_size(job) != 1 || job->opt.pty || !job->errors_are_tty)
		return;
	for (size_t i = 0; i < n; i++)
		if (strcasestr(lines, terminal_complaints[i]) != NULL) {
			buf_put_text(out,
				"  a rank's streams are pipes   try: xrun --pty, which gives it a terminal\n");
			return;
		}
}

/* If xrun serves a store at MASTER_PORT, no program can listen there, and PyTorch expects
 * that all its stores are served, also those of tcp:// with another port. */
static void
put_port_advice(const struct job *job, const char *lines, struct buf *out)
{
	if (job->tcpstore_fd == -1 ||
		(strcasestr(lines, "address already in use") == NULL &&
			strcasestr(lines, "trying to connect to") == NULL))
		return;
	buf_put_text(out,
		"  xrun serves PyTorch's store at MASTER_PORT   try: --port-hold always, if the program serves one itself\n");
}

static void
put_where(const struct job *job, uint32_t r, struct buf *out)
{
	char dir[PATH_MAX];

	if (job->state.attempt == NULL ||
		(logs_bytes(job->sup->logs, r * RAW_STREAMS) == 0 &&
			logs_bytes(job->sup->logs, r * RAW_STREAMS + 1) == 0))
		return;
	buf_fmt(out, "%sAll output: %s/rank-%04u", out->len > 0 ? ". " : "",
		state_tilde(job->state.attempt, dir, sizeof(dir)),
		job_rank(job, r));
}

static bool
unborn(const struct job *job, uint32_t r, uint32_t arg)
{
	(void)arg;
	return outcome_is_unborn(&job->rank[r]);
}

/* ". Rank 3 failed after it", if there are such. */
static void
put_more(const struct job *job, who_fn *pick, uint32_t culprit,
	struct buf *line)
{
	struct buf who = { 0 };
	uint32_t n = who_put(job, pick, culprit, &who);
	const char *what = pick == who_failed_too ? "failed after it" :
		n == 1                            ? "was not started" :
						    "were not started";

	if (n > 0 && line->len > 0)
		buf_fmt(line, ". R%s %s", buf_text(&who) + 1, what);
	else if (n > 0)
		buf_fmt(line, "%s %s", buf_text(&who), what);
	buf_fini(&who);
}

static void
put_others(const struct job *job, uint32_t culprit, struct buf *out)
{
	struct buf line = { 0 };

	if (job->cause == CAUSE_FAILURE) /* else it was said before */
		who_put_stopped(job, &line);
	put_more(job, who_failed_too, culprit, &line);
	put_more(job, unborn, culprit, &line);
	put_where(job, culprit, &line);
	if (line.len > 0)
		buf_fmt(out, "  %s\n", buf_text(&line));
	buf_fini(&line);
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
put_interpreter(const struct part *part, struct buf *out)
{
	char path[PATH_MAX], line[256] = "", *p = line + 2;
	bool aside = part->dir != NULL && part->program[0] != '/';
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s%s%s", aside ? part->dir : "",
		    aside ? "/" : "", part->program) >= (int)sizeof(path))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd == -1 ? -1 : fd_read_some(fd, line, sizeof(line) - 1);
	fd_close(fd);
	if (n < 3 || memcmp(line, "#!", 2) != 0)
		return;
	p += strspn(p, " \t");
	p[strcspn(p, " \t\r\n")] = '\0';
	buf_put_text(out, " (its interpreter ");
	put_name(out, p);
	buf_put_char(out, ')');
}

static void
put_refusal(const struct part *part, const struct rank *r, bool files,
	struct buf *out)
{
	buf_put_text(out, "xrun: ");
	put_name(out, part->argv[0]);
	buf_fmt(out, ": %s", strerror(r->failed_sys));
	if (files && r->failed_sys == ENOENT)
		put_interpreter(part, out);
	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (refusals[i].sys == r->failed_sys)
			buf_fmt(out, "   try: %s", refusals[i].advice);
	buf_put_char(out, '\n');
}

/* Names the culprit, and its program if the job has several. A job of one rank
 * has no order of failures. */
static void
put_culprit(const struct job *job, uint32_t culprit, struct buf *out)
{
	buf_fmt(out, "xrun: rank %u", job_rank(job, culprit));
	if (job->part_count > 1) {
		buf_put_text(out, " (");
		put_name(out, job_part(job, culprit)->argv[0]);
		buf_put_char(out, ')');
	}
	buf_put_text(out, job_size(job) == 1 ? " failed: " : " failed first: ");
}

void
failure_put(const struct job *job, uint32_t culprit, bool files,
	struct buf *out)
{
	const struct rank *r = &job->rank[culprit];
	char time[32];

	if (r->failed_step != SPAWN_OK) {
		put_refusal(job_part(job, culprit), r, files, out);
		return;
	}
	if (job->opt.quiet)
		return;
	put_culprit(job, culprit, out);
	put_how(r, out);
	buf_fmt(out, " after %s (pid %d",
		clock_text(r->ended_ns - r->started_ns, time, sizeof(time)),
		(int)r->pid);
	if (files)
		put_core(job, r, out);
	why_put(job, r, out);
	buf_put_text(out, ")\n");
	if (files) {
		size_t at = out->len;

		put_last_lines(job, culprit, out);
		put_terminal_advice(job, buf_text(out) + at, out);
		put_port_advice(job, buf_text(out) + at, out);
		put_error_file(job, culprit, out);
	}
	why_put_refused(job, culprit, out);
	put_others(job, culprit, out);
}
