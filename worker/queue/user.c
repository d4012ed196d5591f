/* SPDX-License-Identifier: Apache-2.0 */
/* user.c - see user.h: who there is. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "base/fd.h"
#include "base/status.h"
#include "worker/queue/user.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define START_FIELD 20 /* of those behind the name and the state */

/* user := state << 60 | gen << 32 | pid */
static uint64_t
user_word(enum user_state state, uint32_t gen, uint32_t pid)
{
	return (uint64_t)state << 60 | (uint64_t)(gen & GEN_MASK) << 32 | pid;
}

static enum user_state
state_of(uint64_t word)
{
	return (enum user_state)(word >> 60);
}

static uint32_t
gen_of(uint64_t word)
{
	return (uint32_t)(word >> 32) & GEN_MASK;
}

uint64_t
user_start(uint32_t pid)
{
	char path[32], text[512], *at;
	uint64_t start = 0;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	errno = 0;
	fd_read_small(path, text, sizeof(text));
	at = strrchr(text, ')'); /* a name may have one, too */
	for (int i = 0; at != NULL && i < START_FIELD; i++) {
		at = strchr(at, ' ');
		at = at == NULL ? NULL : at + 1;
	}
	if (at != NULL)
		start = strtoull(at, NULL, 10);
	return start;
}

bool
user_is_gone(int error)
{
	return error == 0 || error == ENOENT || error == ESRCH ||
		error == ENXIO;
}

/* --- who is there ------------------------------------------------------------------- */

bool
user_at(const struct hall *h, uint32_t user, struct user_id *id)
{
	const struct user *u = &h->users[user % HALL_USERS];
	uint64_t word = atomic_load(&u->word);

	/* One that comes has not written it yet. */
	id->start = state_of(word) == USER_THERE ? atomic_load(&u->start) : 0;
	id->pid = (uint32_t)word;
	id->who = who_word(user, gen_of(word));
	return state_of(word) != USER_FREE && atomic_load(&u->word) == word;
}

uint32_t
user_pid(const struct hall *h, uint32_t who)
{
	uint64_t word = atomic_load(&h->users[who_user(who) % HALL_USERS].word);

	return state_of(word) == USER_THERE &&
			gen_of(word) == (who & GEN_MASK) ?
		(uint32_t)word :
		0;
}

void
user_text(const struct hall *h, uint32_t who, char text[USER_TEXT])
{
	const struct user *u = &h->users[who_user(who) % HALL_USERS];
	uint64_t name[USER_NAME / 8];

	for (size_t i = 0; i < USER_NAME / 8; i++)
		name[i] =
			atomic_load_explicit(&u->name[i], memory_order_relaxed);
	if (name[0] != 0)
		snprintf(text, USER_TEXT, "worker %.*s", USER_NAME,
			(const char *)name);
	else
		snprintf(text, USER_TEXT, "process %u", user_pid(h, who));
}

/* Not this one, which needs no look. */
static bool
is_us(const struct user_id *id)
{
	return id->pid == (uint32_t)getpid();
}

int
user_open(const struct user_id *id, bool *is_dead)
{
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)id->pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t start;

	if (fd == -1) {
		*is_dead = errno == ESRCH;
		return -1;
	}
	/* Of who has the number now; it keeps that as long as fd is there. */
	start = user_start(id->pid);
	*is_dead = poll(&p, 1, 0) == 1 ||
		(start != 0 && id->start != 0 && start != id->start);
	if (!*is_dead)
		return fd;
	close(fd);
	return -1;
}

static bool
is_dead(const struct user_id *id)
{
	int saved = errno;
	bool dead = false;

	if (!is_us(id))
		fd_close(user_open(id, &dead));
	errno = saved;
	return dead;
}

void
user_check(struct hall *h, uint32_t who)
{
	struct user_id id;

	if (user_pid(h, who) != 0 && user_at(h, who_user(who), &id) &&
		is_dead(&id))
		user_sweep(h, who_user(who), &id);
}

void
user_check_all(struct hall *h)
{
	struct user_id id;

	for (uint32_t i = 1; i < HALL_USERS; i++) {
		if (user_at(h, i, &id) && is_dead(&id))
			user_sweep(h, i, &id);
	}
}

/* --- coming and going ---------------------------------------------------------------- */

/* Those who sleep, or poll, have to hear of its end, before it claims anything. */
static void
announce(struct hall *h)
{
	atomic_fetch_add(&h->head->roll, 1);
	hall_wake(h);
	hall_light(h);
}

static bool
take_number(struct hall *h, uint32_t i, uint32_t *who)
{
	struct user *u = &h->users[i];
	uint64_t word = atomic_load(&u->word), name[USER_NAME / 8];
	uint32_t pid = (uint32_t)getpid(), gen = gen_of(word);

	if (state_of(word) != USER_FREE ||
		!atomic_compare_exchange_strong(&u->word, &word,
			user_word(USER_COMING, gen, pid)))
		return false;
	memcpy(name, h->name, sizeof(name));
	for (size_t n = 0; n < USER_NAME / 8; n++)
		atomic_store_explicit(&u->name[n], name[n],
			memory_order_relaxed);
	atomic_store(&u->start, user_start(pid));
	announce(h);
	atomic_store(&u->word, user_word(USER_THERE, gen, pid));
	*who = who_word(i, gen);
	return true;
}

static uint32_t
come(struct hall *h)
{
	uint32_t who = 0;

	for (int turn = 0; turn < 2; turn++) {
		for (uint32_t i = 1; i < HALL_USERS; i++)
			if (take_number(h, i, &who))
				return who;
		user_check_all(h);
	}
	return 0;
}

enum xr_status
user_self(struct hall *h, uint32_t *who, struct xr_error *err)
{
	*who = atomic_load_explicit(&h->me, memory_order_relaxed);
	if (__builtin_expect(*who != 0, true))
		return XR_OK;
	pthread_mutex_lock(&h->lock);
	*who = atomic_load(&h->me);
	if (*who == 0) {
		*who = come(h);
		atomic_store(&h->me, *who);
	}
	pthread_mutex_unlock(&h->lock);
	if (*who == 0)
		return fail(err, XR_E_RANGE,
			"a queue is used by %u processes already",
			XR_QUEUE_USERS_MAX);
	return XR_OK;
}

void
user_free(struct hall *h, uint32_t user, const struct user_id *id)
{
	struct user *u = &h->users[user];
	uint64_t word = atomic_load(&u->word);

	if (state_of(word) != USER_FREE && (uint32_t)word == id->pid &&
		gen_of(word) == (id->who & GEN_MASK))
		atomic_compare_exchange_strong(&u->word, &word,
			user_word(USER_FREE, gen_of(word) + 1, 0));
}

void
user_leave(struct hall *h)
{
	uint32_t who = atomic_load(&h->me);
	struct user_id id;

	if (who != 0 && user_at(h, who_user(who), &id) && is_us(&id))
		user_sweep(h, who_user(who), &id);
}
