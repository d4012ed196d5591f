/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - see account.h. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/signo.h"
#include "launcher/job/outcome.h"
#include "launcher/job/sup.h"
#include "launcher/tell/account.h"
#include "launcher/tell/attempts.h"
#include "launcher/tell/failure.h"
#include "launcher/tell/slow.h"
#include "launcher/tell/who.h"

#define NAMED_MAX   8               /* ranks with their bytes */
#define LONG_RUN_NS (10 * NS_PER_S) /* worth a closing line */

static bool
left_open(const struct job *job, uint32_t r, uint32_t arg)
{
	(void)arg;
	return job->rank[r].left_open;
}

static bool
unsaved(const struct job *job, uint32_t r, uint32_t arg)
{
	(void)arg;
	return job->rank[r].unsaved;
}

static void
put_own_failure(const struct job *job, struct buf *out)
{
	struct buf who = { 0 };

	buf_fmt(out, "xrun: %s\n", job->cause_text);
	if (job->deaths > 0 && who_put_stopped(job, &who))
		buf_fmt(out, "xrun: %s\n", buf_text(&who));
	buf_fini(&who);
}

/* The cause found no rank to end: there was only the wait for their output. */
static void
put_nobody(const struct job *job, struct buf *out)
{
	bool ended = job->deaths > 0 && job->deaths == job->started;

	if (!ended)
		buf_put_text(out, "no rank was ended by it");
	else if (outcome_lost(job) > 0)
		buf_put_text(out,
			"all ranks had ended; their last output was waited for no longer");
	else
		buf_put_text(out, "all ranks had ended by themselves");
}

static void
put_timeout(const struct job *job, struct buf *out)
{
	char time[32];

	buf_fmt(out, "xrun: --timeout reached after %s: ",
		clock_text(job->opt.timeout, time, sizeof(time)));
}

/* Why xrun itself ended the job. With -q only a failure of xrun is reported. */
static void
put_cause(const struct job *job, struct buf *out)
{
	char name[16];

	if (job->opt.quiet && job->cause != CAUSE_XRUN)
		return;
	switch (job->cause) {
	case CAUSE_NONE:
	case CAUSE_FAILURE:
		if (!job->waited_out || outcome_lost(job) == 0)
			return;
		put_timeout(job, out);
		break;
	case CAUSE_TIMEOUT:
		put_timeout(job, out);
		break;
	case CAUSE_HANG:
		buf_put_text(out, "xrun: --hang-timeout: ");
		break;
	case CAUSE_SIGNAL:
		buf_fmt(out, "xrun: %s: ",
			job->ctrl_c ? "Ctrl-C" :
				      signo_name(job->cause_signal, name,
					      sizeof(name)));
		break;
	case CAUSE_RESTART:
		buf_put_text(out, "xrun: restart: ");
		break;
	case CAUSE_CLOSED:
		buf_put_text(out, "xrun: the reader of stdout exited: ");
		break;
	case CAUSE_XRUN:
		put_own_failure(job, out);
		return;
	}
	if (!who_put_stopped(job, out))
		put_nobody(job, out);
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
	char text[RAW_LOST_MAX];
	struct buf who = { 0 };

	buf_put_text(out, raw_lost_text(job->share, text));
	if (logs_left(job->sup->logs) > 0)
		buf_fmt(out,
			"xrun: no thread could read what ranks wrote last: it is not shown; it is %s%s\n",
			job->opt.logs ? "saved in " : "lost",
			job->opt.logs ? job->state.attempt : "");
	if (who_put(job, unsaved, 0, &who) > 0)
		buf_fmt(out,
			"xrun: %s: the file system of %s does not answer: what was written last may be lost\n",
			buf_text(&who), job->state.attempt);
	buf_fini(&who);
}

typedef uint64_t bytes_fn(const struct logs *logs, uint32_t stream);

/* "rank 0: 120 bytes, rank 3: 7 bytes", the first few. */
static void
put_bytes_of(const struct job *job, bytes_fn *of, const char *what,
	struct buf *out)
{
	uint32_t named = 0, more = 0;

	for (uint32_t i = 0; i < job_size(job); i++) {
		unsigned long long n = of(job->sup->logs, i * RAW_STREAMS) +
			of(job->sup->logs, i * RAW_STREAMS + 1);

		if (n == 0)
			continue;
		if (named == NAMED_MAX) {
			more++;
			continue;
		}
		buf_fmt(out, "%srank %u: %llu bytes",
			named++ == 0 ? what : ", ", job_rank(job, i), n);
	}
	if (more > 0)
		buf_fmt(out, ", and of %u more", more);
	if (named > 0)
		buf_put_char(out, '\n');
}

static void
put_gaps(const struct job *job, struct buf *out)
{
	put_bytes_of(job, logs_dropped,
		job->sup->too_large ?
			"xrun: dropped, because log files could not grow: " :
			"xrun: dropped, because the log file system was full: ",
		out);
	put_bytes_of(job, logs_unseen,
		"xrun: removed by --log-rotate before it was shown: ", out);
}

static void
put_input(const struct job *job, struct buf *out)
{
	int sys = job->sup->input_sys;

	if (sys != 0)
		buf_fmt(out,
			"xrun: standard input cannot be read (%s): the ranks saw its end\n",
			strerror(sys));
}

static void
put_left_open(const struct job *job, struct buf *out)
{
	struct buf who = { 0 };

	if (who_put(job, left_open, 0, &who) > 0 && job->stop_ns == 0)
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
		n, who_plural(n, "rank", "ranks"),
		clock_text(ran, time, sizeof(time)));
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

		if (outcome_is_unborn(r)) {
			buf_fmt(out, "  %4u     -\n", job_rank(job, i));
			continue;
		}
		buf_fmt(out, "  %4u  %4d  %9.3f %9.3f %9.3f %9.1f %15llu\n",
			job_rank(job, i), outcome_rank_status(r),
			(double)ran / NS_PER_S,
			clock_seconds(r->usage.ru_utime),
			clock_seconds(r->usage.ru_stime),
			(double)r->usage.ru_maxrss / 1024,
			(unsigned long long)(logs_bytes(job->sup->logs,
						     i * RAW_STREAMS) +
				logs_bytes(job->sup->logs,
					i * RAW_STREAMS + 1)));
	}
}

bool
job_account_needs_files(const struct job *job)
{
	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].status != 0)
			return true;
	return outcome_of(job).culprit != OUTCOME_NOBODY;
}

void
job_account(struct job *job, bool files)
{
	struct outcome o = outcome_of(job);
	struct buf out = { 0 };

	if (files)
		failure_restrict_files(job);
	put_undelivered(job, &out);
	put_lost(job, &out);
	put_gaps(job, &out);
	put_left_open(job, &out);
	put_input(job, &out);
	put_cause(job, &out);
	if (o.culprit != OUTCOME_NOBODY)
		failure_put(job, o.culprit, files, &out);
	if (!job->opt.quiet)
		attempts_put(job, &out);
	if (job->opt.verbose || (job->errors_are_tty && !job->opt.quiet))
		slow_put(job, !job->opt.verbose, &out);
	put_closing(job, &o, &out);
	if (job->opt.verbose)
		put_resources(job, &out);
	if (!__atomic_exchange_n(&job->sup->account_said, true,
		    __ATOMIC_ACQ_REL))
		logs_last_words(job->sup->logs, buf_text(&out), out.len);
	buf_fini(&out);
}
