/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c - see ledger.h. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include <xrun/pool.h>

#include "base/fd.h"
#include "base/status.h"
#include "segment/gauge.h"
#include "worker/pool/ledger.h"

#define MAGIC UINT64_C(0x316c6f6f706e7278) /* "xrnpool1" */

static const struct ledger_who nobody;

static uint64_t
size_of(uint32_t places, uint32_t tasks)
{
	return 64 + (uint64_t)places * sizeof(struct ledger_place) +
		(uint64_t)tasks * sizeof(struct ledger_task);
}

_Static_assert(sizeof(struct ledger_head) <= 64, "the head's line");
_Static_assert(sizeof(struct ledger_place) == GAUGE_LINE &&
		sizeof(struct ledger_task) == GAUGE_LINE &&
		offsetof(struct ledger_place, since) == GAUGE_SINCE_AT &&
		offsetof(struct ledger_task, word) == 0 &&
		(int)LEDGER_WAITING == (int)GAUGE_TASK_WAITING &&
		(int)LEDGER_RUNNING == (int)GAUGE_TASK_RUNNING &&
		(int)LEDGER_ANSWERED == (int)GAUGE_TASK_ANSWERED &&
		(int)LEDGER_LENT == (int)GAUGE_TASK_LENT &&
		XR_POOL_WORKERS_MAX <= GAUGE_PARTS_MAX &&
		XR_POOL_TASKS_MAX <= GAUGE_TASKS_MAX,
	"the supervisor looks at it, too");

static enum xr_status
map(struct ledger *b, struct xr_error *err)
{
	void *at;

	b->size = size_of(b->places, b->tasks);
	at = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (at == MAP_FAILED)
		return fail(err, XR_E_SYS, "mmap: %s", strerror(errno));
	b->head = at;
	b->place = (struct ledger_place *)((char *)at + 64);
	b->task = (struct ledger_task *)(b->place + b->places);
	return XR_OK;
}

enum xr_status
ledger_new(struct ledger *b, uint32_t places, uint32_t tasks,
	struct xr_error *err)
{
	enum xr_status status;

	*b = (struct ledger){ .places = places, .tasks = tasks };
	b->fd = memfd_create("xrun-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (b->fd == -1)
		return fail(err, XR_E_SYS, "memfd_create: %s", strerror(errno));
	if (ftruncate(b->fd, (off_t)size_of(places, tasks)) == -1 ||
		fcntl(b->fd, F_ADD_SEALS,
			F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == -1)
		return fail(err, XR_E_SYS, "ftruncate: %s", strerror(errno));
	status = map(b, err);
	if (status != XR_OK)
		return status;
	b->head->magic = MAGIC;
	b->head->places = places;
	b->head->tasks = tasks;
	return XR_OK;
}

static bool
is_ledger(const struct ledger_head *h, uint64_t size)
{
	return h->magic == MAGIC && h->places <= XR_POOL_WORKERS_MAX &&
		h->tasks <= XR_POOL_TASKS_MAX &&
		size_of(h->places, h->tasks) == size;
}

enum xr_status
ledger_open(struct ledger *b, int fd, struct xr_error *err)
{
	struct ledger_head h;
	struct stat st;

	*b = (struct ledger){ .fd = -1 };
	if (fstat(fd, &st) == -1 ||
		pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
		!is_ledger(&h, (uint64_t)st.st_size))
		return fail(err, XR_E_PROTO, "descriptor %d is no pool's", fd);
	b->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (b->fd == -1)
		return fail(err, XR_E_SYS, "dup: %s", strerror(errno));
	b->places = h.places;
	b->tasks = h.tasks;
	return map(b, err);
}

void
ledger_fini(struct ledger *b)
{
	if (b->head != NULL)
		munmap(b->head, b->size);
	fd_close(b->fd);
	*b = (struct ledger){ .fd = -1 };
}

/* --- tasks ------------------------------------------------------------------- */

static bool
turn(struct ledger *b, uint32_t index, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong(&b->task[index].word, &from, to);
}

void
ledger_post(struct ledger *b, uint32_t index, uint32_t gen)
{
	atomic_store(&b->task[index].word,
		ledger_word(LEDGER_WAITING, gen, nobody));
}

bool
ledger_take(struct ledger *b, uint32_t index, uint32_t gen,
	struct ledger_who who)
{
	return index < b->tasks &&
		turn(b, index, ledger_word(LEDGER_WAITING, gen, nobody),
			ledger_word(LEDGER_RUNNING, gen, who));
}

void
ledger_answer(struct ledger *b, uint32_t index, uint32_t gen,
	struct ledger_who who, bool lent)
{
	turn(b, index, ledger_word(LEDGER_RUNNING, gen, who),
		ledger_word(lent ? LEDGER_LENT : LEDGER_ANSWERED, gen, who));
}

bool
ledger_end(struct ledger *b, uint32_t index, uint32_t gen)
{
	uint64_t word;

	if (index >= b->tasks)
		return false;
	word = atomic_load(&b->task[index].word);
	while (ledger_gen(word) == (gen & LEDGER_GEN_MASK) &&
		ledger_phase(word) >= LEDGER_RUNNING)
		if (atomic_compare_exchange_weak(&b->task[index].word, &word,
			    ledger_word(LEDGER_FREE, gen, nobody)))
			return true;
	return false;
}

bool
ledger_drop(struct ledger *b, uint32_t index, uint32_t gen)
{
	return turn(b, index, ledger_word(LEDGER_WAITING, gen, nobody),
		ledger_word(LEDGER_FREE, gen, nobody));
}

bool
ledger_bury(struct ledger *b, uint32_t index, struct ledger_who who,
	uint32_t *gen)
{
	uint64_t word = atomic_load(&b->task[index].word);

	*gen = ledger_gen(word);
	return ledger_phase(word) == LEDGER_RUNNING &&
		ledger_is_of(word, who) &&
		turn(b, index, word, ledger_word(LEDGER_FREE, *gen, nobody));
}
