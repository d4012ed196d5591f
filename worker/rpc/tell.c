/* SPDX-License-Identifier: Apache-2.0 */
/* tell.c - see tell.h. Messages are those of src/wire/control.def. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/socket.h>

#include <xrun/job.h>

#include "base/clock.h"
#include "worker/job/control.h"
#include "worker/job/slot.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/tell.h"

#define MESSAGE_MAX 6144
#define FIRST_NS    (100 * NS_PER_MS)
#define EVERY_NS    NS_PER_S
#define SELDOM_NS   (8 * NS_PER_S) /* while nothing changes */
#define PATIENCE_MS 100            /* for the last word */

static struct {
	pthread_mutex_t lock; /* of figures: who tells them */
	char place[TELL_PLACE_MAX + 1];
	bool counts; /* has to tell what it counts */
	int64_t due, every;
	int64_t told; /* a sum that changes with what is counted */
} t = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- messages ------------------------------------------------------------- */

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

/* A queue that is full is another's affair: this thread has to go on. */
static void
send_it(const struct message *m, int patience_ms)
{
	int saved = errno, fd = job_control();
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	bool sent = fd == -1;

	for (int tries = 0; tries < 2 && !sent; tries++) {
		sent = send(fd, m->text, m->len, MSG_DONTWAIT | MSG_NOSIGNAL) >=
				0 ||
			(errno != EAGAIN && errno != EINTR);
		if (!sent && tries == 0)
			poll(&room, 1, patience_ms);
	}
	if (!sent)
		slot_lost();
	errno = saved;
}

/* --- who we are ----------------------------------------------------------- */

void
tell_open(void)
{
	const char *job = xr_job_id();
	bool in_job = job[0] != '\0' && getenv("XRUN_RANK") != NULL;

	t.place[0] = '\0';
	if (in_job)
		snprintf(t.place, sizeof(t.place), "%s/%u/%u", job,
			xr_job_attempt(), xr_job_rank());
	/* The slots of a rank's children are read by nobody: they do not tell
	 * what would be taken for the rank's own. */
	t.counts = in_job && !figures_are_of_job() && job_control() != -1;
	t.due = t.counts ? clock_now() + FIRST_NS : INT64_MAX;
	t.every = EVERY_NS;
}

const char *
tell_place(void)
{
	return t.place;
}

uint32_t
tell_rank(const char *place)
{
	const char *slash = strrchr(t.place, '/');
	char *end = NULL;
	unsigned long rank;
	size_t len;

	if (place == NULL || slash == NULL)
		return 0;
	len = (size_t)(slash - t.place) + 1;
	/* No sign and no blank, which strtoul() accepts. */
	if (strncmp(place, t.place, len) != 0 || place[len] < '0')
		return 0;
	rank = strtoul(place + len, &end, 10);
	return *end == '\0' && rank < UINT32_MAX ? (uint32_t)rank + 1 : 0;
}

/* --- what is told --------------------------------------------------------- */

void
tell_lost(uint32_t rank)
{
	struct message m = { .len = 0 };

	if (rank == 0 || t.place[0] == '\0' || figures_lost(rank - 1))
		return;
	put(&m, "{\"type\":\"lost\",\"rank\":%u,\"peer\":%u}", xr_job_rank(),
		rank - 1);
	send_it(&m, 0);
}

static void
put_figures(struct message *m, const struct figures_view *v)
{
	const char *comma = "";

	put(m, "{\"type\":\"rpc\",\"rank\":%u", xr_job_rank());
#define F(name, member, text) \
	put(m, ",\"" #member "\":%lld", (long long)v->count[FIGURE_##name]);
	FIGURES_TABLE(F)
#undef F
	put(m, ",\"latency\":[");
	for (uint32_t i = 0; i < FIGURES_LATENCIES; i++) {
		if (v->latency[i] == 0)
			continue;
		put(m, "%s[%u,%lld]", comma, i, (long long)v->latency[i]);
		comma = ",";
	}
	put(m, "]}");
}

/* False: it is as it was told. */
static bool
tell(int patience_ms)
{
	struct message m = { .len = 0 };
	struct figures_view v;
	int64_t sum;

	figures_sum(&v);
	sum = v.calls + 1;
	for (uint32_t i = 0; i < FIGURES; i++)
		sum += v.count[i];
	if (sum == t.told)
		return false;
	t.told = sum;
	put_figures(&m, &v);
	send_it(&m, patience_ms);
	return true;
}

int64_t
tell_figures(int64_t now)
{
	int64_t due;

	pthread_mutex_lock(&t.lock);
	if (now >= t.due) {
		t.every = tell(0) ? EVERY_NS : 2 * t.every;
		t.every = t.every < SELDOM_NS ? t.every : SELDOM_NS;
		t.due = now + t.every;
	}
	due = t.due;
	pthread_mutex_unlock(&t.lock);
	return due;
}

void
tell_last(void)
{
	pthread_mutex_lock(&t.lock);
	if (t.counts)
		tell(PATIENCE_MS);
	t.due = INT64_MAX;
	pthread_mutex_unlock(&t.lock);
}
