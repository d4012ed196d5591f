/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - see record.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/ctl/root.h"
#include "launcher/job/job.h"
#include "launcher/job/words.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/record.h"
#include "launcher/log/raw.h"
#include "launcher/state/history.h"
#include "proc/lineage.h"

#define RECORD_ARGV_MAX 2000 /* bytes of the command; a line is one write */
#define RECORD_ADVICE   "\tXDG_RUNTIME_DIR=DIR, a folder of yours with mode 0700"

/* The first program; of a long command its beginning. */
static void
record_put_argv(struct json *j, const struct job *job)
{
	size_t len = 0;

	json_open_array(j, "argv");
	for (char *const *word = job->parts[0].argv; *word != NULL; word++) {
		len += strlen(*word);
		if (len > RECORD_ARGV_MAX) {
			json_text(j, NULL, "...");
			break;
		}
		json_text(j, NULL, *word);
	}
	json_close_array(j);
}

static void
record_put_place(struct json *j, const struct job *job)
{
	char number[24];

	snprintf(number, sizeof(number), "%016llx",
		(unsigned long long)job->page->record.lineage);
	json_text(j, "lineage", number);
	json_int(j, "ticks", (int64_t)job->page->record.ticks);
	if (job->record_root != NULL)
		json_text(j, "root", job->record_root);
	if (job->errors != NULL)
		json_text(j, "errors", job->errors);
	if (job->state.dir != NULL)
		json_text(j, "dir", job->state.dir);
	else
		json_bool(j, "no_logs", true);
}

/* record_note() puts more members in the place of its last character. */
static void
record_put(struct job *job)
{
	char text[256];
	struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_open_object(&j, NULL);
	json_int(&j, "v", 1);
	json_text(&j, "job", job->state.id);
	json_int(&j, "attempt", job->state.number);
	json_text(&j, "host", host_name(text, sizeof(text)));
	json_int(&j, "pid", getpid());
	json_int(&j, "ranks", job_size(job));
	record_put_argv(&j, job);
	json_text(&j, "start",
		clock_stamp(job->begun_wall, text, sizeof(text)));
	record_put_place(&j, job);
	json_close_object(&j);
	if (out.bad == XR_OK) {
		job->record_text = out.data;
		job->record_len = out.len - 1;
	} else {
		buf_fini(&out);
	}
}

/* The state directory, whether the job keeps its output there or not. It need
 * not exist with --no-logs. */
static char *
record_root(const struct job *job)
{
	char *root = job->state.root != NULL ? strdup(job->state.root) :
					       state_home();

	if (job->state.root == NULL && root != NULL &&
		access(root, F_OK) == -1 && state_make_parents(root) == 0)
		mkdir(root, 0700);
	return root;
}

/* Why a folder before @root is not used, and what that means. */
static enum xr_status
record_warn(const struct job *job, const struct ctl_root *root,
	const struct xr_error *trouble, struct xr_error *err)
{
	char where[CTL_WHERE_MAX];
	bool reached = root->dir != -1 && root->kind != CTL_ROOT_STATE;

	if (!reached && job->detach != NULL)
		return fail(err, XR_E_STATE,
			"-d: %s: verbs might not reach the job" RECORD_ADVICE,
			trouble->text);
	if (trouble->text[0] == '\0' || (reached && job->opt.quiet))
		return XR_OK;
	if (root->dir == -1)
		words_line(
			"%s: there is no folder for a control socket: verbs do not reach this job",
			trouble->text);
	else
		words_line("%s: the control socket is in %s instead",
			trouble->text, ctl_root_where(root, where));
	return XR_OK;
}

static struct span
record_span(const struct job *job)
{
	return (struct span){ job->record_text, job->record_len + 1 };
}

static void
record_warn_none(const struct job *job, int sys)
{
	char where[CTL_WHERE_MAX];
	struct ctl_root root;

	if (job->opt.quiet || !ctl_root_open(&root, false, NULL))
		return;
	words_line(
		"%s: no record of this job could be made: %s: should xrun be killed, nothing ends its processes",
		ctl_root_where(&root, where), strerror(sys));
	fd_close(root.dir);
}

static void
record_make(struct job *job, const struct ctl_root *root)
{
	struct record *r = &job->page->record;

	if (job->record_text == NULL)
		record_warn_none(job, ENOMEM);
	else if (ctl_record_make(&r->file, root, r->lineage,
			 record_span(job)) == -1)
		record_warn_none(job, errno);
}

enum xr_status
record_open(struct job *job, const struct ctl_root *root,
	const struct xr_error *trouble, struct xr_error *err)
{
	struct record *r = &job->page->record;
	enum xr_status status;

	r->lineage = lineage_new();
	r->ticks = lineage_ticks();
	job->record_root = record_root(job);
	record_put(job);
	status = record_warn(job, root, trouble, err);
	if (status == XR_OK && root->dir != -1)
		record_make(job, root);
	return status;
}

void
record_begin(struct job *job)
{
	struct ctl_record *file = &job->page->record.file;

	if (file->fd != -1 && !file->is_named &&
		ctl_record_name(file, record_span(job)) == -1)
		record_warn_none(job, errno);
}

void
record_search(struct job *job)
{
	job->state.others =
		job->state.others || ctl_record_others(&job->page->record.file);
}

void
record_mark(const struct job *job)
{
	if (!lineage_set(job->page->record.lineage) && !job->opt.quiet &&
		job->page->again.restarts == 0)
		words_line(
			"RLIMIT_RTTIME and RLIMIT_LOCKS cannot be set: if xrun is killed, the next xrun does not find the processes of this job   try: ulimit -R unlimited");
}

/* Until then the mark alone has to do: in another boot no process has it. Process
 * ids have a meaning in one PID namespace only. */
void
record_complete(void *ctx)
{
	const struct job *job = ctx;
	struct buf text = { 0 };
	struct stat st;
	char boot[64];

	if (job->record_text == NULL || stat("/proc/self/ns/pid", &st) == -1)
		return;
	buf_put(&text, job->record_text, job->record_len);
	if (host_boot(boot, sizeof(boot))[0] != '\0')
		buf_fmt(&text, ",\"boot\":\"%s\"", boot);
	buf_fmt(&text, ",\"pid_namespace\":%llu}",
		(unsigned long long)st.st_ino);
	if (text.bad == XR_OK)
		ctl_record_write(&job->page->record.file,
			(struct span){ text.data, text.len });
	buf_fini(&text);
}

bool
record_remove(const struct job *job)
{
	return ctl_record_remove(&job->page->record.file);
}

void
record_free(struct job *job)
{
	if (job->page != NULL)
		ctl_record_free(&job->page->record.file);
	free(job->record_text);
	free(job->record_root);
	job->record_text = job->record_root = NULL;
	job->record_len = 0;
}

void
record_note(struct job *job, int status, const char *reason)
{
	struct record *r = &job->page->record;
	char end[256], stamp[40], line[8192];
	bool elsewhere = job->state.root == NULL || job->state.dir == NULL;
	int n;

	if ((!elsewhere && job->page->removed == 0) ||
		job->record_root == NULL || job->record_text == NULL ||
		job->record_len > sizeof(line) - sizeof(end) ||
		__atomic_exchange_n(&r->noted, 1, __ATOMIC_SEQ_CST) != 0)
		return;
	n = snprintf(end, sizeof(end),
		",\"end\":\"%s\",\"exit\":%d,\"reason\":\"%s\",\"bytes\":%llu}\n",
		clock_stamp(clock_wall(), stamp, sizeof(stamp)), status, reason,
		(unsigned long long)raw_written(job->share));
	memcpy(line, job->record_text, job->record_len);
	memcpy(line + job->record_len, end, (size_t)n);
	history_add(job->record_root, line, job->record_len + (size_t)n);
}
