/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - see xrun/job.h. What is told is a message of src/wire/control.def; it
 * is put together on the stack. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/socket.h>
#include <sys/stat.h>

#include <xrun/job.h>

#include "base/status.h"
#include "worker/job/control.h"
#include "worker/job/slot.h"

#define MESSAGE_MAX     8192
#define NAME_MAX_       64
#define EVERY_NS        INT64_C(100000000)  /* between two reports */
#define EVERY_NS_BESIDE INT64_C(1000000000) /* of steps that a slot has */
#define PATIENCE_NS     INT64_C(100000000)  /* for what is told once */
#define PAUSE_MS        10
#define STEP_MAX        ((INT64_C(1) << 53) - 1) /* readers of JSON count so far */

/* --- who we are ----------------------------------------------------------- */

static uint32_t
number_of(const char *name, uint32_t otherwise)
{
	const char *text = getenv(name);
	char *end = NULL;
	unsigned long long n;
	int saved = errno;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return otherwise;
	n = strtoull(text, &end, 10); /* the largest, if it is larger */
	errno = saved;
	return *end != '\0' || n > UINT32_MAX ? otherwise : (uint32_t)n;
}

static const char *
text_of(const char *name, const char *otherwise)
{
	const char *text = getenv(name);

	return text != NULL && text[0] != '\0' ? text : otherwise;
}

XR_EXPORT const char *
xr_job_id(void)
{
	return text_of("XRUN_JOB", "");
}

XR_EXPORT uint32_t
xr_job_attempt(void)
{
	return number_of("XRUN_ATTEMPT", 0);
}

XR_EXPORT uint32_t
xr_job_rank(void)
{
	return number_of("XRUN_RANK", 0);
}

XR_EXPORT uint32_t
xr_job_size(void)
{
	return number_of("XRUN_SIZE", 1);
}

XR_EXPORT uint32_t
xr_job_local_rank(void)
{
	return number_of("XRUN_LOCAL_RANK", 0);
}

XR_EXPORT uint32_t
xr_job_local_size(void)
{
	return number_of("XRUN_LOCAL_SIZE", 1);
}

XR_EXPORT uint32_t
xr_job_node(void)
{
	return number_of("XRUN_NODE", 0);
}

XR_EXPORT uint32_t
xr_job_nodes(void)
{
	return number_of("XRUN_NODES", 1);
}

XR_EXPORT const char *
xr_job_device(void)
{
	return text_of("XRUN_DEVICE", "cpu");
}

/* --- what we tell --------------------------------------------------------- */

struct message {
	char text[MESSAGE_MAX];
	size_t len;
};

static void put(struct message *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void
put(struct message *m, const char *fmt, ...)
{
	size_t room = sizeof(m->text) - m->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(m->text + m->len, room, fmt, ap);
	va_end(ap);
	m->len += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* As JSON has it, whatever bytes the program's locale puts for a point. A whole
 * number gets one, too: beyond 2^53 it is refused without. */
static void
put_number(struct message *m, double number)
{
	static const char plain[] = "0123456789+-e";
	char text[64];
	size_t before, point;

	snprintf(text, sizeof(text), "%.17g", number);
	before = strspn(text, plain);
	point = strcspn(text + before, plain);
	if (point > 0)
		put(m, "%.*s.%s", (int)before, text, text + before + point);
	else
		put(m, "%s%s", text, strchr(text, 'e') == NULL ? ".0" : "");
}

static void
begin(struct message *m, const char *type)
{
	m->len = 0;
	put(m, "{\"type\":\"%s\",\"rank\":%u", type, (unsigned)xr_job_rank());
}

static int64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* False: the queue, which all ranks share, was full for @patience. There may be
 * room before poll() says so. */
static bool
sent(int fd, const struct message *m, int64_t patience)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	int64_t end = patience > 0 ? now_ns() + patience : 0;

	while (send(fd, m->text, m->len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return true; /* xrun is gone: nobody is there to miss it */
		if (patience == 0 || now_ns() >= end)
			return false;
		poll(&room, 1, PAUSE_MS);
	}
	return true;
}

/* errno survives: a report is nothing that a caller should notice. */
static enum xr_status
tell(struct message *m, int64_t patience)
{
	int saved = errno, fd = job_control();
	bool lost;

	put(m, "}");
	lost = fd != -1 && !sent(fd, m, patience);
	if (lost)
		slot_lost();
	errno = saved;
	return lost && patience > 0 ? XR_E_AGAIN : XR_OK;
}

XR_EXPORT enum xr_status
xr_job_ready(void)
{
	struct message m;

	begin(&m, "ready");
	return tell(&m, PATIENCE_NS);
}

static bool
is_name(const char *name)
{
	size_t n = name == NULL ?
		0 :
		strspn(name,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return n > 0 && n <= NAME_MAX_ && name[n] == '\0';
}

static bool
is_sound(const struct xr_progress *p)
{
	if (p == NULL || p->size < sizeof(*p) || p->step < 0 || p->total < 0 ||
		p->metric_count > XR_METRICS_MAX ||
		(p->metric_count > 0 && p->metrics == NULL))
		return false;
	for (uint32_t i = 0; i < p->metric_count; i++)
		if (!is_name(p->metrics[i].name))
			return false;
	return true;
}

static bool
is_last(const struct xr_progress *p)
{
	return p->step == p->total && p->total > 0;
}

/* Once in @every, whichever thread comes first. */
static bool
is_due(const struct xr_progress *p, int64_t every)
{
	static int64_t last;
	int64_t before = __atomic_load_n(&last, __ATOMIC_RELAXED);
	int64_t now = now_ns();

	if (is_last(p)) {
		__atomic_store_n(&last, now, __ATOMIC_RELAXED);
		return true;
	}
	return (before == 0 || now - before >= every) &&
		__atomic_compare_exchange_n(&last, &before, now, false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static long long
told_step(int64_t step)
{
	return step < STEP_MAX ? step : STEP_MAX;
}

static void
put_metrics(struct message *m, const struct xr_progress *p)
{
	const char *comma = "";

	put(m, ",\"metrics\":{");
	for (uint32_t i = 0; i < p->metric_count; i++) {
		if (!isfinite(p->metrics[i].value))
			continue;
		put(m, "%s\"%s\":", comma, p->metrics[i].name);
		put_number(m, p->metrics[i].value);
		comma = ",";
	}
	put(m, "}");
}

XR_EXPORT enum xr_status
xr_job_progress(const struct xr_progress *progress)
{
	int64_t every = EVERY_NS;
	struct message m;

	if (!is_sound(progress))
		return XR_E_INVAL;
	if (slot_progress(progress->step, progress->total) &&
		progress->metric_count == 0)
		every = EVERY_NS_BESIDE;
	if (!is_due(progress, every))
		return XR_OK;
	begin(&m, "progress");
	put(&m, ",\"step\":%lld", told_step(progress->step));
	if (progress->total > 0)
		put(&m, ",\"total\":%lld", told_step(progress->total));
	if (progress->metric_count > 0)
		put_metrics(&m, progress);
	return tell(&m, is_last(progress) ? PATIENCE_NS : 0);
}

XR_EXPORT enum xr_status
xr_job_extend(int64_t ns)
{
	struct message m;

	if (ns <= 0)
		return XR_E_INVAL;
	begin(&m, "grace");
	put(&m, ",\"seconds\":");
	put_number(&m, (double)ns / 1e9);
	return tell(&m, PATIENCE_NS);
}
