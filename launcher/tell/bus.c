/* SPDX-License-Identifier: Apache-2.0 */
/* bus.c - see bus.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/host.h"
#include "base/json.h"
#include "base/signo.h"
#include "launcher/job/outcome.h"
#include "launcher/keeper/keeper.h"
#include "launcher/tell/attempts.h"
#include "launcher/tell/bus.h"
#include "launcher/tell/hung.h"
#include "launcher/tell/stacks.h"

#define FLUSH_BYTES (64 * 1024)
#define LEFT_MAX    (16 << 20)
#define FLUSH_NS    (50 * NS_PER_MS)

/* What found no room in a file yet: a full disk may have some again. The helper
 * thread's. */
struct outlet {
	struct buf left; /* may begin in the midst of a line */
	int *sys;        /* where its failure is kept; atomic */
};

struct bus {
	struct job *job;
	struct work *work;
	struct timer *timer;
	int file; /* of --events, or -1 */
	struct outlet events, state;
	struct buf lines;
	bus_fn *fn; /* or NULL */
	void *ctx;
	bool last; /* what is told now is the end of it */
};

/* Lines on their way to the files, on the helper thread. */
struct parcel {
	struct bus *bus;
	bool keep; /* to the job's own file, too */
	bool last; /* there is no other time */
	struct buf lines;
};

const char *
bus_event_name(enum bus_event event)
{
	static const char *const names[] = {
#define E(name, text) text,
		BUS_EVENTS(E)
#undef E
	};

	return (unsigned)event < BUS_EVENT_COUNT ? names[event] : "?";
}

static ssize_t
write_some(int fd, const char *data, size_t len)
{
	ssize_t n;

	if (fault(FAULT_EVENTS_WRITE, FAULT_ANY) != 0)
		return -1;
	do {
		n = write(fd, data, len);
	} while (n == -1 && errno == EINTR);
	return n;
}

/* As much as there is room for, and from the next byte on another time. Any
 * other failure ends a file, so that no line in it is missing. */
static void
write_left(int fd, struct outlet *out, bool last)
{
	struct buf *left = &out->left;
	size_t at = 0;
	ssize_t n = 0;

	while (fd != -1 && at < left->len && n >= 0) {
		n = write_some(fd, left->data + at, left->len - at);
		at += n > 0 ? (size_t)n : 0;
	}
	if (at < left->len && (last || !raw_no_room(errno)))
		bus_lose(out->sys, errno);
	if (at > 0)
		memmove(left->data, left->data + at, left->len - at);
	left->len -= at;
}

static void
put_lines(int fd, struct outlet *out, const struct parcel *p)
{
	int sys = errno; /* of a file that could not be opened */

	if (__atomic_load_n(out->sys, __ATOMIC_SEQ_CST) != 0)
		return;
	buf_put(&out->left, p->lines.data, p->lines.len);
	errno = sys;
	if (out->left.bad != XR_OK || out->left.len > LEFT_MAX)
		bus_lose(out->sys, out->left.bad != XR_OK ? ENOMEM : ENOSPC);
	else
		write_left(fd, out, p->last);
}

static void
deliver(void *ctx)
{
	struct parcel *p = ctx;
	struct bus *bus = p->bus;
	int fd;

	if (bus->file != -1)
		put_lines(bus->file, &bus->events, p);
	if (p->keep) {
		fd = fd_sole(openat(bus->job->state.dir_fd, "events.jsonl",
			O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			0600));
		put_lines(fd, &bus->state, p);
		fd_close(fd);
	}
	buf_fini(&p->lines);
	free(p);
}

void
bus_lose(int *sys, int why)
{
	int none = 0;

	__atomic_compare_exchange_n(sys, &none, why, false, __ATOMIC_SEQ_CST,
		__ATOMIC_SEQ_CST);
}

/* There was no memory for a line: those before it are whole. */
static void
cut(struct bus *bus)
{
	struct buf *b = &bus->lines;
	const char *end = b->len == 0 ? NULL : memrchr(b->data, '\n', b->len);

	b->len = end == NULL ? 0 : (size_t)(end - b->data) + 1;
	b->bad = XR_OK;
	bus_lose(&bus->job->events_sys, ENOMEM);
}

bool
bus_flush(struct bus *bus, bool keep)
{
	struct parcel *p;

	if (bus->lines.bad != XR_OK)
		cut(bus);
	keep = keep && bus->job->state.dir_fd != -1;
	if (bus->lines.len == 0 || (!keep && bus->file == -1)) {
		buf_clear(&bus->lines); /* its folder goes: nobody to tell */
		return true;
	}
	p = malloc(sizeof(*p));
	if (p == NULL)
		return false;
	*p = (struct parcel){
		.bus = bus,
		.keep = keep,
		.last = bus->last,
		.lines = bus->lines,
	};
	if (!work_post(bus->work, deliver, p)) {
		free(p);
		return false;
	}
	bus->lines = (struct buf){ 0 };
	timer_disarm(bus->timer);
	return true;
}

bool
bus_flush_last(struct bus *bus, bool keep)
{
	bus->last = true;
	return bus_flush(bus, keep);
}

static void
on_timer(void *ctx)
{
	bus_flush(ctx, true);
}

struct bus *
bus_new(struct job *job, struct loop *loop, struct work *work, int file)
{
	struct bus *bus = calloc(1, sizeof(*bus));

	if (bus == NULL)
		return NULL;
	*bus = (struct bus){
		.job = job,
		.work = work,
		.file = file,
		.events.sys = &job->events_sys,
		.state.sys = &job->state_sys,
	};
	bus->timer = timer_open(loop, on_timer, bus);
	if (bus->timer == NULL) {
		free(bus);
		return NULL;
	}
	return bus;
}

/* The words of all programs, with the ':' between them. */
static void
put_argv(struct json *j, const struct job *job)
{
	json_open_array(j, "argv");
	for (uint32_t i = 0; i < job->part_count; i++) {
		if (i > 0)
			json_text(j, NULL, ":");
		json_items(j, job->parts[i].argv);
	}
	json_close_array(j);
}

static void
put_parts(struct json *j, const struct job *job)
{
	json_open_array(j, "parts");
	for (uint32_t i = 0; i < job->part_count; i++) {
		const struct part *part = &job->parts[i];

		json_open_object(j, NULL);
		json_int(j, "first", job_rank(job, part->first));
		json_int(j, "ranks", part->size);
		json_open_array(j, "argv");
		json_items(j, part->argv);
		json_close_array(j);
		if (part->dir != NULL)
			json_bytes(j, "cwd",
				(struct span){ part->dir, strlen(part->dir) });
		json_close_object(j);
	}
	json_close_array(j);
}

void
bus_put_job(struct json *j, const struct job *job, pid_t pid)
{
	char host[256];

	json_text(j, "job", job->state.id);
	json_int(j, "attempt", job->state.number);
	json_text(j, "host", host_name(host, sizeof(host)));
	json_int(j, "pid", pid);
	json_int(j, "ranks", job_size(job));
	put_argv(j, job);
	if (job->part_count > 1)
		put_parts(j, job);
}

static void
put_job_start(struct json *j, const struct job *job, uint32_t r)
{
	(void)r;
	bus_put_job(j, job, getppid());
}

static void
put_rank_start(struct json *j, const struct job *job, uint32_t r)
{
	json_int(j, "rank", job_rank(job, r));
	json_int(j, "pid", job->rank[r].pid);
}

static void
put_rank_error(struct json *j, const struct job *job, uint32_t r)
{
	json_int(j, "rank", job_rank(job, r));
	json_text(j, "step", spawn_step_name(job->rank[r].failed_step));
	json_text(j, "error", strerror(job->rank[r].failed_sys));
}

static void
put_rank_exit(struct json *j, const struct job *job, uint32_t r)
{
	const struct rank *rank = &job->rank[r];
	char name[16];

	json_int(j, "rank", job_rank(job, r));
	json_int(j, "pid", rank->pid);
	if (WIFSIGNALED(rank->status)) {
		json_text(j, "signal",
			signo_name(WTERMSIG(rank->status), name, sizeof(name)));
		json_bool(j, "core", WCOREDUMP(rank->status));
	}
	json_int(j, "exit", outcome_rank_status(rank));
	if (rank->oom != OOM_NO)
		json_text(j, "oom", oom_kind_name(rank->oom));
	json_bool(j, "stopped", rank->after_stop);
}

static void
put_job_stop(struct json *j, const struct job *job, uint32_t r)
{
	struct outcome o = outcome_of(job);
	char name[16];

	(void)r;
	json_text(j, "reason", o.reason);
	if (job->cause == CAUSE_SIGNAL)
		json_text(j, "signal",
			signo_name(job->cause_signal, name, sizeof(name)));
}

static void
put_job_stacks(struct json *j, const struct job *job, uint32_t r)
{
	(void)r;
	stacks_put_event(j, job);
}

static void
put_job_hang(struct json *j, const struct job *job, uint32_t r)
{
	(void)r;
	hung_put_event(j, job);
}

static void
put_log(struct json *j, const struct job *job, uint32_t stream)
{
	json_int(j, "rank", job_rank(job, stream / RAW_STREAMS));
	json_text(j, "stream",
		stream % RAW_STREAMS == RAW_OUT ? "stdout" : "stderr");
}

static void
put_job_end(struct json *j, const struct job *job, uint32_t r)
{
	struct outcome o = outcome_of(job);

	(void)r;
	json_int(j, "exit", o.exit_status);
	json_text(j, "reason", o.reason);
	if (o.culprit != OUTCOME_NOBODY)
		json_int(j, "culprit", job_rank(job, o.culprit));
}

static void
put_job_restart(struct json *j, const struct job *job, uint32_t r)
{
	put_job_end(j, job, r);
	attempts_put_event(j, job);
}

typedef void put_fn(struct json *j, const struct job *job, uint32_t about);

static put_fn *const fields[BUS_EVENT_COUNT] = {
	[BUS_JOB_START] = put_job_start,
	[BUS_RANK_START] = put_rank_start,
	[BUS_RANK_ERROR] = put_rank_error,
	[BUS_RANK_EXIT] = put_rank_exit,
	[BUS_JOB_STOP] = put_job_stop,
	[BUS_JOB_HANG] = put_job_hang,
	[BUS_JOB_STACKS] = put_job_stacks,
	[BUS_LOG_FULL] = put_log,
	[BUS_LOG_ROOM] = put_log,
	[BUS_JOB_RESTART] = put_job_restart,
	[BUS_JOB_END] = put_job_end,
};

/* Nobody will ever read them: no files are kept, none was asked for. */
static bool
unheard(const struct bus *bus)
{
	return bus->file == -1 && bus->job->state.dir_fd == -1 &&
		bus->fn == NULL;
}

void
bus_listen(struct bus *bus, bus_fn *fn, void *ctx)
{
	bus->fn = fn;
	bus->ctx = ctx;
}

void
bus_tell(struct bus *bus, enum bus_event event, uint32_t about)
{
	size_t at = bus->lines.len;
	char stamp[40];
	struct json j;

	if (unheard(bus))
		return;
	json_init(&j, &bus->lines);
	json_open_object(&j, NULL);
	json_int(&j, "v", 1);
	json_int(&j, "seq", (int64_t)bus->job->page->again.events++);
	json_int(&j, "mono_ns", clock_now());
	json_text(&j, "time", clock_stamp(clock_wall(), stamp, sizeof(stamp)));
	json_text(&j, "event", bus_event_name(event));
	fields[event](&j, bus->job, about);
	json_close_object(&j);
	if (bus->fn != NULL && bus->lines.bad == XR_OK)
		bus->fn(event,
			(struct span){ bus->lines.data + at,
				bus->lines.len - at },
			bus->ctx);
	buf_put_char(&bus->lines, '\n');
	if (bus->lines.len >= FLUSH_BYTES)
		bus_flush(bus, true);
	else if (!timer_armed(bus->timer))
		timer_arm(bus->timer, FLUSH_NS);
}
