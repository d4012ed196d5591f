/* SPDX-License-Identifier: Apache-2.0 */
/* gauge.c - see gauge.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/span.h"
#include "segment/member.h"
#include "worker/shm/gauge.h"

static struct {
	pthread_mutex_t lock; /* of what follows, and of what rows there are */
	bool looked;
	bool (*send)(int fd);
	struct segment_gauges *page; /* of the rank; NULL: there is none */
	struct segment_gauges *at;   /* the same, if it is ours */
	uint64_t freed[GAUGES];      /* when, by count */
	uint64_t count;
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- whose they are --------------------------------------------------------- */

static void
before_fork(void)
{
	pthread_mutex_lock(&g.lock);
}

static void
in_parent(void)
{
	pthread_mutex_unlock(&g.lock);
}

/* It is its parent that tells. */
static void
in_child(void)
{
	g.looked = true;
	g.page = NULL;
	g.at = NULL;
	pthread_mutex_init(&g.lock, NULL);
}

static void
watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

/* What another had to tell, who is gone, is not ours. */
static bool
take(struct segment_gauges *at)
{
	uint32_t owner = atomic_load(&at->owner), me = (uint32_t)getpid();

	if (owner != 0 && owner != me &&
		(kill((pid_t)owner, 0) == 0 || errno != ESRCH))
		return false;
	if (!atomic_compare_exchange_strong(&at->owner, &owner, me))
		return false;
	for (uint32_t i = 0; i < GAUGES; i++)
		memset(&at->row[i], 0, sizeof(at->row[i]));
	atomic_store(&at->more, 0);
	return true;
}

static struct segment_gauges *
find_page(void)
{
	const char *text = getenv("XRUN_LOCAL_RANK");
	struct segment_tag tag;
	uint32_t rank;

	if (!segment_tag_parse(getenv("XRUN_SEGMENT_FD"), &tag) ||
		!number_parse(span_of(text == NULL ? "" : text), UINT32_MAX - 1,
			&rank))
		return NULL;
	return segment_gauges_join(&tag, rank);
}

void
gauge_send_by(bool (*send)(int fd))
{
	g.send = send;
}

/* Of a rank that has no slot. The mapping stays, and so does the supervisor's
 * descriptor. */
static struct segment_gauges *
send_page(void)
{
	const size_t size = GAUGE_SENT_AT + SEGMENT_GAUGES;
	char *map = MAP_FAILED;
	bool is_sent = false;
	int fd;

	if (g.send == NULL)
		return NULL;
	fd = memfd_create("xrun-gauges", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd != -1 && ftruncate(fd, (off_t)size) == 0 &&
		fcntl(fd, F_ADD_SEALS,
			F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			0);
	if (map != MAP_FAILED)
		is_sent = g.send(fd);
	fd_close(fd);
	if (is_sent)
		return (void *)(map + GAUGE_SENT_AT);
	if (map != MAP_FAILED)
		munmap(map, size);
	return NULL;
}

/* Whoever has it may have ended since the last look. */
static void
look(void)
{
	int saved = errno;

	if (!g.looked && getenv("XRUN_SEGMENT_FD") != NULL)
		g.page = find_page();
	else if (!g.looked)
		g.page = send_page();
	g.looked = true;
	if (g.at == NULL && g.page != NULL && take(g.page))
		g.at = g.page;
	errno = saved;
}

/* --- rows ------------------------------------------------------------------- */

static bool
is_live(const struct gauge_row *row)
{
	return atomic_load(&row->kind) != GAUGE_NONE &&
		atomic_load(&row->live) != 0;
}

static bool
is_alike(const struct gauge_row *row, enum gauge_kind kind, const char *name)
{
	enum gauge_kind has = (enum gauge_kind)atomic_load(&row->kind);

	return has != GAUGE_NONE &&
		(has == GAUGE_QUEUE) == (kind == GAUGE_QUEUE) &&
		strncmp(row->name, name, sizeof(row->name)) == 0;
}

static struct gauge_row *
find_row(enum gauge_kind kind, const char *name)
{
	for (uint32_t i = 0; i < GAUGES; i++)
		if (is_alike(&g.at->row[i], kind, name))
			return &g.at->row[i];
	return NULL;
}

/* No character is cut. */
static size_t
cut(const char *name, size_t room)
{
	size_t len = strnlen(name, room);

	if (len < room)
		return len;
	for (len = room - 1; len > 0 && ((uint8_t)name[len] & 0xc0) == 0x80;)
		len--;
	return len;
}

/* The name, or with the first number that no other live one of these has. Gives the row
 * of one that was freed; or NULL. */
static struct gauge_row *
choose_name(const struct gauge_of *of, char name[GAUGE_NAME])
{
	struct gauge_row *row;
	char suffix[12] = "";

	for (uint32_t n = 2;; n++) {
		size_t room = GAUGE_NAME - strlen(suffix);

		snprintf(name, GAUGE_NAME, "%.*s%s", (int)cut(of->name, room),
			of->name, suffix);
		row = find_row(of->kind, name);
		if (row == NULL || !is_live(row))
			return row;
		snprintf(suffix, sizeof(suffix), "-%u", n);
	}
}

/* One that nobody has had; or the one that was freed first. */
static struct gauge_row *
choose_row(void)
{
	struct gauge_row *best = NULL;

	for (uint32_t i = 0; i < GAUGES; i++) {
		struct gauge_row *row = &g.at->row[i];

		if (atomic_load(&row->kind) == GAUGE_NONE)
			return row;
		if (!is_live(row) &&
			(best == NULL ||
				g.freed[i] < g.freed[best - g.at->row]))
			best = row;
	}
	return best;
}

static void
fill(struct gauge_row *row, const struct gauge_of *of)
{
	struct stat st;

	atomic_store(&row->inode,
		fstat(of->fd, &st) == 0 ? (uint64_t)st.st_ino : 0);
	atomic_store(&row->fd, (uint32_t)of->fd);
	atomic_store(&row->parts, of->parts);
	atomic_store(&row->room, of->room);
	atomic_store(&row->at, of->at);
	atomic_store(&row->stride, of->stride);
	atomic_store(&row->born, clock_now());
	atomic_store(&row->open, 0);
	atomic_store(&row->kind, of->kind);
	atomic_store(&row->live, 1);
}

static struct gauge_row *
make(const struct gauge_of *of)
{
	char name[GAUGE_NAME];
	struct gauge_row *row = choose_name(of, name);

	if (row == NULL) {
		row = choose_row();
		if (row == NULL) {
			atomic_fetch_add(&g.at->more, 1);
			return NULL;
		}
		memset(row, 0, sizeof(*row));
		memcpy(row->name, name, sizeof(row->name));
	}
	fill(row, of);
	return row;
}

struct gauge_row *
gauge_new(const struct gauge_of *of)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct gauge_row *row = NULL;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&g.lock);
	look();
	if (g.at != NULL)
		row = make(of);
	pthread_mutex_unlock(&g.lock);
	return row;
}

void
gauge_rename(struct gauge_row *row, const char *name)
{
	const struct gauge_of of = {
		.kind = GAUGE_QUEUE,
		.name = name,
	};
	char chosen[GAUGE_NAME];
	struct gauge_row *freed;

	if (row == NULL)
		return;
	pthread_mutex_lock(&g.lock);
	if (g.at != NULL && strncmp(row->name, name, sizeof(row->name)) != 0) {
		freed = choose_name(&of, chosen);
		if (freed != NULL) {
			gauge_add(&row->put, atomic_load(&freed->put));
			gauge_add(&row->got, atomic_load(&freed->got));
			atomic_store(&freed->kind, GAUGE_NONE);
		}
		memcpy(row->name, chosen, sizeof(row->name));
	}
	pthread_mutex_unlock(&g.lock);
}

void
gauge_name(const struct gauge_row *row, char name[GAUGE_NAME])
{
	pthread_mutex_lock(&g.lock);
	memcpy(name, row->name, GAUGE_NAME);
	pthread_mutex_unlock(&g.lock);
}

void
gauge_free(struct gauge_row *row)
{
	if (row == NULL)
		return;
	pthread_mutex_lock(&g.lock);
	if (g.at != NULL) {
		atomic_store(&row->live, 0);
		g.freed[row - g.at->row] = ++g.count;
	}
	pthread_mutex_unlock(&g.lock);
}
