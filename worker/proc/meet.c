/* SPDX-License-Identifier: Apache-2.0 */
/* meet.c - see meet.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "worker/proc/meet.h"
#include "worker/proc/rank_process.h"

#define MAGIC UINT64_C(0x327465656d727878) /* "xxrmeet2" */

struct place {
	uint64_t magic;
	uint32_t count;
	_Atomic uint32_t bell; /* rises with each record; a futex */
	_Atomic uint64_t end;  /* where the next one goes */
	struct {
		_Atomic uint64_t latest; /* 0: it has left none */
		_Atomic int32_t pid;     /* 0: it has not begun */
	} rank[];
};

/* In front of the tag and the value. */
struct record {
	uint64_t former; /* of that rank; 0: none */
	uint32_t round, tag_len;
	uint64_t len;
};

static struct {
	int fd;
	uint32_t index;
	struct place *place;  /* NULL: there is none */
	pthread_mutex_t lock; /* of this process's records */
} here = { .fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t
place_size(uint32_t count)
{
	return sizeof(struct place) +
		count * sizeof(((struct place *)NULL)->rank[0]);
}

enum xr_status
meet_make(uint32_t count, int *fd, struct xr_error *err)
{
	struct place head = {
		.magic = MAGIC,
		.count = count,
		.end = place_size(count),
	};
	int made = fd_above_stdio(memfd_create("xrun-meet", MFD_CLOEXEC));

	if (made != -1 && ftruncate(made, (off_t)place_size(count)) == 0 &&
		fd_write_all(made, &head, sizeof(head)) == 0) {
		*fd = made;
		return XR_OK;
	}
	fail(err, XR_E_SYS, "memfd_create: %s", strerror(errno));
	fd_close(made);
	return XR_E_SYS;
}

void
meet_take(int fd, uint32_t index)
{
	struct place *p;
	struct stat st;

	if (fstat(fd, &st) == -1)
		return;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		fd, 0);
	if (p == MAP_FAILED)
		return;
	/* Behind the end of the file, in its page, there are zeros. */
	if (p->magic != MAGIC || place_size(p->count) > (size_t)st.st_size ||
		index >= p->count) {
		munmap(p, (size_t)st.st_size);
		return;
	}
	here.fd = fd;
	here.index = index;
	here.place = p;
	atomic_store(&p->rank[index].pid, getpid());
}

bool
meet_is_here(void)
{
	return here.place != NULL;
}

/* --- leaving ---------------------------------------------------------------- */

static bool
put(const void *data, size_t len, uint64_t *at)
{
	const char *from = data;
	ssize_t n;

	while (len > 0) {
		n = pwrite(here.fd, from, len, (off_t)*at);
		if (n <= 0)
			return false;
		from += n;
		*at += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
}

/* It is found only once it is whole. */
static bool
put_record(struct meet *m, const struct xr_encoded *encoded)
{
	size_t count;
	const struct xr_part *parts = xr_encoded_parts(encoded, &count);
	_Atomic uint64_t *latest = &here.place->rank[here.index].latest;
	struct record r = {
		.former = atomic_load(latest),
		.round = m->round,
		.tag_len = (uint32_t)strlen(m->tag),
	};
	uint64_t begin, at;
	bool ok;

	for (size_t i = 0; i < count; i++)
		r.len += parts[i].len;
	begin = atomic_fetch_add(&here.place->end,
		sizeof(r) + r.tag_len + r.len);
	at = begin;
	ok = put(&r, sizeof(r), &at) && put(m->tag, r.tag_len, &at);
	for (size_t i = 0; i < count && ok; i++)
		ok = put(parts[i].data, parts[i].len, &at);
	if (ok) {
		m->left = (struct meet_spot){ at - r.len, r.len };
		atomic_store(latest, begin);
	}
	return ok;
}

static void
ring(void)
{
	atomic_fetch_add(&here.place->bell, 1);
	syscall(SYS_futex, &here.place->bell, FUTEX_WAKE, INT_MAX, NULL, NULL,
		0);
}

enum xr_status
meet_leave(struct meet *m, struct xr_value *payload, struct xr_error *err)
{
	struct xr_encoded *encoded = NULL;
	enum xr_status status = xr_encode(payload, NULL, &encoded, err);
	bool ok;

	if (status != XR_OK)
		return status;
	pthread_mutex_lock(&here.lock);
	ok = put_record(m, encoded);
	pthread_mutex_unlock(&here.lock);
	xr_encoded_free(encoded);
	if (!ok)
		return fail(err, XR_E_SYS, "rendezvous %.100s: %s", m->tag,
			strerror(errno));
	ring();
	return XR_OK;
}

/* Of the record only what was in front stays: others look for older ones by it. */
void
meet_drop(struct meet_spot spot)
{
	fallocate(here.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		(off_t)spot.at, (off_t)spot.len); /* of 0 bytes: nothing */
}

/* --- collecting ------------------------------------------------------------- */

static bool
get(void *out, size_t len, uint64_t at)
{
	return pread(here.fd, out, len, (off_t)at) == (ssize_t)len;
}

/* The value behind a record, of which @left bytes are in the file. */
static enum xr_status
get_value(const struct record *r, uint64_t at, struct xr_value **value,
	struct xr_error *err)
{
	struct xr_dec_opts opts = { .size = sizeof(opts) };
	struct xr_part part = { .len = r->len };
	enum xr_status status;
	struct stat st;
	void *data;

	if (fstat(here.fd, &st) == -1 || r->len > (uint64_t)st.st_size)
		return fail(err, XR_E_DECODE, "a payload is cut");
	data = malloc(r->len + 1);
	if (data == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	part.data = data;
	status = get(data, r->len, at) ?
		xr_decode(&part, 1, &opts, value, err) :
		fail(err, XR_E_DECODE, "a payload is cut");
	free(data);
	return status;
}

/* XR_E_NOTFOUND: rank @index has left none yet. */
static enum xr_status
find(const struct meet *m, uint32_t index, struct xr_value **value,
	struct xr_error *err)
{
	uint64_t at = atomic_load(&here.place->rank[index].latest), former;
	char tag[MEET_TAG_MAX];
	struct record r;

	while (at != 0 && get(&r, sizeof(r), at)) {
		if (r.round == m->round && r.tag_len == strlen(m->tag) &&
			get(tag, r.tag_len, at + sizeof(r)) &&
			memcmp(tag, m->tag, r.tag_len) == 0)
			return get_value(&r, at + sizeof(r) + r.tag_len, value,
				err);
		former = r.former;
		at = former < at ? former : 0;
	}
	return XR_E_NOTFOUND;
}

static void
sleep_until(uint32_t seen, int64_t deadline)
{
	struct timespec at = {
		.tv_sec = deadline / NS_PER_S,
		.tv_nsec = deadline % NS_PER_S,
	};

	syscall(SYS_futex, &here.place->bell, FUTEX_WAIT_BITSET, seen, &at,
		NULL, FUTEX_BITSET_MATCH_ANY);
}

/* Of the first few of them that are not there. */
static enum xr_status
missing(const struct meet *m, struct xr_value *const *got, struct xr_error *err)
{
	char list[100] = "";
	size_t len = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < here.place->count; i++) {
		if (got[i] != NULL)
			continue;
		count++;
		if (len < sizeof(list) - 16)
			len += (size_t)snprintf(list + len, sizeof(list) - len,
				"%s%u", len > 0 ? ", " : "", i);
	}
	return fail(err, XR_E_TIMEOUT,
		"rendezvous %.60s: rank%s %s did not come in time", m->tag,
		count > 1 ? "s" : "", list);
}

enum xr_status
meet_rank_ended(const struct meet *m, uint32_t index, struct xr_error *err)
{
	return fail(err, XR_E_PEER_LOST,
		"rendezvous %.60s: rank %u ended before it came", m->tag,
		index);
}

/* A rank leaves its record before it ends: the record is looked for once more. */
static enum xr_status
meet_check_ranks(const struct meet *m, struct xr_value **got,
	struct xr_error *err)
{
	for (uint32_t i = 0; i < here.place->count; i++) {
		pid_t pid = atomic_load(&here.place->rank[i].pid);

		if (got[i] != NULL || pid == 0 || !rank_process_ended(pid))
			continue;
		if (find(m, i, &got[i], err) == XR_E_NOTFOUND)
			return meet_rank_ended(m, i, err);
		xr_value_unref(got[i]);
		got[i] = NULL; /* collect() counts it */
	}
	return XR_OK;
}

static enum xr_status
collect(const struct meet *m, struct xr_value **got, struct xr_error *err)
{
	enum xr_status status;
	uint32_t there = 0, seen;
	int64_t now;

	for (;;) {
		seen = atomic_load(&here.place->bell);
		for (uint32_t i = 0; i < here.place->count; i++) {
			if (got[i] != NULL)
				continue;
			status = find(m, i, &got[i], err);
			if (status == XR_OK)
				there++;
			else if (status != XR_E_NOTFOUND)
				return status;
		}
		if (there == here.place->count)
			return XR_OK;
		status = meet_check_ranks(m, got, err);
		if (status != XR_OK)
			return status;
		now = clock_now();
		if (now >= m->deadline)
			return missing(m, got, err);
		sleep_until(seen,
			m->deadline - now < RANK_PROCESS_POLL_NS ?
				m->deadline :
				now + RANK_PROCESS_POLL_NS);
	}
}

enum xr_status
meet_collect(const struct meet *m, struct xr_value **all, struct xr_error *err)
{
	struct xr_value **got =
		calloc(here.place->count, sizeof(struct xr_value *));
	enum xr_status status;

	if (got == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	status = collect(m, got, err);
	if (status == XR_OK) {
		*all = xr_value_new_list_of(got, here.place->count);
		if (*all == NULL)
			status = fail(err, XR_E_NOMEM, "out of memory");
	} else {
		for (uint32_t i = 0; i < here.place->count; i++)
			xr_value_unref(got[i]);
	}
	free(got);
	return status;
}
