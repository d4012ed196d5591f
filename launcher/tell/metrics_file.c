/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_file.c - see metrics_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "launcher/job/sup.h"
#include "launcher/job/words.h"
#include "launcher/stat/metric.h"
#include "launcher/stat/usage.h"
#include "launcher/tell/metrics_file.h"
#include "launcher/tell/report.h"

#define EVERY_NS (5 * NS_PER_S)
#define END_NS   NS_PER_S /* for the last one */

/* On its way to the thread, which owns it. */
struct parcel {
	struct metrics_file *file;
	const char *path;
	struct buf json;
};

/* --- on its thread ------------------------------------------------- */

static bool
make_text(const struct buf *json, struct buf *out)
{
	cJSON *status = cJSON_ParseWithLength(json->data, json->len);

	if (status == NULL)
		return false;
	usage_add(status);
	metric_put(out, status);
	cJSON_Delete(status);
	return out->bad == XR_OK;
}

/* Readers see the old one or the new one. What a job that was killed left is
 * removed, and no link is followed. */
static int
replace(const char *path, const struct buf *text)
{
	char beside[PATH_MAX];
	int fd, sys = 0;

	if (snprintf(beside, sizeof(beside), "%s.%d.tmp", path,
		    (int)getpid()) >= (int)sizeof(beside))
		return ENAMETOOLONG;
	unlink(beside);
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		0666);
	if (fd == -1)
		return errno;
	if (fd_write_all(fd, text->data, text->len) == -1)
		sys = errno;
	/* Some file systems say so only now. */
	if (close(fd) == -1 && sys == 0)
		sys = errno;
	if (sys == 0 && rename(beside, path) == -1)
		sys = errno;
	if (sys != 0)
		unlink(beside);
	return sys;
}

static void
write_it(void *ctx)
{
	struct parcel *p = ctx;
	struct buf text = { 0 };
	int sys = ENOMEM;

	if (make_text(&p->json, &text))
		sys = replace(p->path, &text);
	__atomic_store_n(&p->file->sys, sys, __ATOMIC_SEQ_CST);
	__atomic_store_n(&p->file->busy, false, __ATOMIC_SEQ_CST);
	buf_fini(&text);
	buf_fini(&p->json);
	free(p);
}

/* --- on the loop ---------------------------------------------------------- */

static void
post(struct job *job)
{
	struct metrics_file *file = &job->sup->metrics_file;
	struct parcel *p = calloc(1, sizeof(*p));

	if (file->work == NULL)
		file->work = work_new();
	if (p == NULL || file->work == NULL) {
		free(p);
		return;
	}
	p->file = file;
	p->path = job->opt.metrics_file;
	report_put_now(job, &p->json);
	__atomic_store_n(&file->busy, true, __ATOMIC_SEQ_CST);
	if (p->json.bad == XR_OK && work_post(file->work, write_it, p))
		return;
	__atomic_store_n(&file->busy, false, __ATOMIC_SEQ_CST);
	buf_fini(&p->json);
	free(p);
}

/* errno, if the last one could not be written and nobody was told. */
static int
lost(const struct metrics_file *file)
{
	return file->told ? 0 : __atomic_load_n(&file->sys, __ATOMIC_SEQ_CST);
}

static void
on_timer(void *ctx)
{
	struct job *job = ctx;
	struct metrics_file *file = &job->sup->metrics_file;
	int sys = lost(file);

	if (job->sup->phase != PHASE_RUN)
		return;
	timer_arm(file->timer, EVERY_NS);
	if (sys != 0)
		logs_say(job->sup->logs,
			"xrun: --metrics-file: %s: %s; it is tried again, and not told of any more",
			job->opt.metrics_file, strerror(sys));
	file->told = file->told || sys != 0;
	/* A disk that does not answer has one waiting, not many. */
	if (!__atomic_load_n(&file->busy, __ATOMIC_SEQ_CST))
		post(job);
}

void
metrics_file_begin(struct job *job)
{
	struct metrics_file *file = &job->sup->metrics_file;

	if (job->opt.metrics_file == NULL)
		return;
	file->timer = timer_open(job->sup->loop, on_timer, job);
	if (file->timer != NULL)
		on_timer(job);
}

void
metrics_file_last(struct job *job)
{
	if (job->opt.metrics_file != NULL)
		post(job);
}

void
metrics_file_end(struct job *job)
{
	struct metrics_file *file = &job->sup->metrics_file;
	int sys;

	if (file->work == NULL)
		return;
	sys = work_wait(file->work, END_NS) ? lost(file) : ETIMEDOUT;
	if (sys != 0 && words_have_room())
		words_line("--metrics-file: %s: %s", job->opt.metrics_file,
			sys == ETIMEDOUT ? "not written within 1 s" :
					   strerror(sys));
}

/* --- before --------------------------------------------------------------- */

enum xr_status
metrics_file_check(const char *path, struct xr_error *err)
{
	const char *name = strrchr(path, '/');
	char folder[PATH_MAX];
	struct stat st;

	snprintf(folder, sizeof(folder), "%.*s",
		name == NULL ? 1 : (int)(name - path) + 1,
		name == NULL ? "." : path);
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return fail(err, XR_E_INVAL,
			"--metrics-file: %s is no regular file, and would be replaced\tthe name of a file",
			path);
	if (access(folder, W_OK | X_OK) == -1)
		return fail(err, XR_E_SYS, "--metrics-file: %s: %s", path,
			strerror(errno));
	return XR_OK;
}
