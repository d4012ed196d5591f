/* SPDX-License-Identifier: Apache-2.0 */
/* hall.c - see hall.h: memory that is made, found, mapped, and left. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/status.h"
#include "worker/queue/hall.h"
#include "worker/queue/trail.h"
#include "worker/queue/user.h"
#include "worker/queue/vigil.h"
#include "worker/shm/gauge.h"

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hall_list all = LIST_HEAD_INITIALIZER(all);
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* --- where what lies ---------------------------------------------------------------- */

static uint64_t
round_to(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static bool
is_in_range(const struct hall_plan *p)
{
	return p->items >= 1 && p->items <= XR_QUEUE_ITEMS_MAX &&
		p->lanes >= 1 && p->lanes <= XR_QUEUE_LANES_MAX &&
		p->blocks >= 1 && p->blocks <= HALL_BLOCKS &&
		p->block >= HALL_BLOCK && p->block % 64 == 0 &&
		p->lot <= HALL_LOT && p->lot % HALL_PAGE == 0 &&
		p->kind <= XR_QUEUE_P2P && p->mode <= XR_ENC_SHARE;
}

bool
hall_plan_of(struct hall_plan *p)
{
	if (!is_in_range(p))
		return false;
	p->cells_at = sizeof(struct lane_head);
	p->owners_at = p->cells_at + (uint64_t)p->items * sizeof(struct cell);
	p->next_at = p->owners_at + (uint64_t)p->blocks * 8;
	p->data_at = round_to(p->next_at + (uint64_t)p->blocks * 4, HALL_PAGE);
	p->lane_size = round_to(p->data_at + (uint64_t)p->blocks * p->block,
		HALL_PAGE);
	p->lanes_at = HALL_USERS_AT + HALL_USERS * sizeof(struct user);
	p->mapped = p->lanes_at + p->lanes * p->lane_size;
	p->lots_at = p->mapped;
	p->size = p->lots_at + HALL_LOTS * p->lot;
	return true;
}

static void
read_plan(const struct hall_head *head, struct hall_plan *p)
{
	*p = (struct hall_plan){
		.kind = head->kind,
		.mode = head->mode,
		.redeliver = head->redeliver != 0,
		.items = head->items,
		.lanes = head->lanes,
		.blocks = head->blocks,
		.block = head->block,
		.lot = head->lot,
	};
}

static void
write_head(struct hall_head *head, const struct hall_plan *p, uint64_t space)
{
	head->version = HALL_VERSION;
	head->kind = p->kind;
	head->mode = p->mode;
	head->redeliver = p->redeliver;
	head->items = p->items;
	head->lanes = p->lanes;
	head->blocks = p->blocks;
	head->block = p->block;
	head->lot = p->lot;
	head->size = p->size;
	head->space = space;
	head->magic = HALL_MAGIC;
}

static bool
are_short(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* The first one of each machine has the same number: so that of its boot, too. Where there is
 * no /proc, all are one. */
uint64_t
hall_space(void)
{
	static const struct hash_seed seed;
	struct {
		char boot[40];
		uint64_t inode;
	} of = { 0 };
	struct stat st;

	errno = 0;
	if (host_boot(of.boot, sizeof(of.boot))[0] == '\0' && are_short(errno))
		return 0;
	if (stat("/proc/self/ns/pid", &st) == 0)
		of.inode = st.st_ino;
	return hash_bytes(&seed, &of, sizeof(of));
}

static enum xr_status
no_space(struct xr_error *err)
{
	return fail(err, XR_E_SYS, "the machine's boot_id: %s",
		strerror(errno));
}

/* --- all that this process has -------------------------------------------------------- */

static void
before_fork(void)
{
	pthread_mutex_lock(&all_lock);
	vigil_before_fork();
}

static void
in_parent(void)
{
	vigil_in_parent();
	pthread_mutex_unlock(&all_lock);
}

/* It is nobody yet, and has got nothing; a lock may have been held by a thread that is
 * not here. */
static void
in_child(void)
{
	struct hall *h;

	LIST_FOREACH(h, &all, list)
	{
		atomic_store(&h->me, 0);
		atomic_store(&h->followed, 0);
		h->heard = false;
		h->hand_count = 0;
		LIST_INIT(&h->lent); /* its parent keeps that */
		h->gauge = NULL;
		atomic_store(&h->trail.is_on, false);
		if (h->is_ward)
			hall_mute(h);
		pthread_mutex_init(&h->lock, NULL);
	}
	vigil_in_child();
	pthread_mutex_unlock(&all_lock);
}

static void
watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static void
enlist(struct hall *h)
{
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&all_lock);
	LIST_INSERT_HEAD(&all, h, list);
	pthread_mutex_unlock(&all_lock);
}

void
hall_each(void (*fn)(struct hall *h, void *ctx), void *ctx)
{
	struct hall *h;

	pthread_mutex_lock(&all_lock);
	LIST_FOREACH(h, &all, list)
	fn(h, ctx);
	pthread_mutex_unlock(&all_lock);
}

/* --- making one -------------------------------------------------------------------- */

static void
find_lanes(struct hall *h)
{
	const struct hall_plan *p = &h->plan;

	h->users = (void *)(h->base + HALL_USERS_AT);
	for (uint32_t i = 0; i < p->lanes; i++) {
		char *at = h->base + p->lanes_at + i * p->lane_size;

		h->lane[i] = (struct lane){
			.ends = (void *)at,
			.cell = (void *)(at + p->cells_at),
			.owner = (void *)(at + p->owners_at),
			.next = (void *)(at + p->next_at),
			.data = (void *)(at + p->data_at),
		};
	}
	if ((p->items & (p->items - 1)) == 0)
		h->shift = (uint32_t)__builtin_ctz(p->items);
}

static struct hall *
hall_empty(const struct hall_plan *plan)
{
	struct hall *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->plan = *plan;
	h->keeps = plan->redeliver;
	h->fd = h->ear = -1;
	atomic_init(&h->mouth, -1);
	atomic_init(&h->refs, 1);
	atomic_init(&h->roles, XR_QUEUE_WRITER | XR_QUEUE_READER);
	pthread_mutex_init(&h->lock, NULL);
	LIST_INIT(&h->lent);
	h->lane = calloc(plan->lanes, sizeof(*h->lane));
	if (h->lane == NULL) {
		free(h);
		return NULL;
	}
	return h;
}

static void
hall_discard(struct hall *h)
{
	if (h->base != NULL)
		munmap(h->base, h->plan.mapped);
	fd_close(h->fd);
	fd_close(h->ear);
	fd_close(atomic_load(&h->mouth));
	pthread_mutex_destroy(&h->lock);
	free(h->hand);
	free(h->lane);
	free(h);
}

static enum xr_status
map(struct hall *h, struct xr_error *err)
{
	void *base = mmap(NULL, h->plan.mapped, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_NORESERVE, h->fd, 0);

	if (base == MAP_FAILED)
		return fail(err, XR_E_NOMEM, "mmap of a queue: %s",
			strerror(errno));
	madvise(base, h->plan.mapped, MADV_DONTDUMP);
	h->base = base;
	h->head = base;
	find_lanes(h);
	return XR_OK;
}

/* RLIM_INFINITY, which no size exceeds, if there is none. */
uint64_t
hall_file_limit(void)
{
	struct rlimit most;

	return getrlimit(RLIMIT_FSIZE, &most) == 0 ? most.rlim_cur :
						     RLIM_INFINITY;
}

/* What a file may have here, for what is too long for a lane. */
static void
fit_lots(struct hall_plan *p)
{
	uint64_t most = hall_file_limit();
	uint64_t rest = most > p->mapped ? most - p->mapped : 0;
	uint64_t lot = rest / HALL_LOTS / HALL_PAGE * HALL_PAGE;

	p->lot = lot < HALL_LOT ? lot : HALL_LOT;
	hall_plan_of(p);
}

/* Beyond the limit, ftruncate() would end the process: SIGXFSZ. */
static int
set_size(int fd, uint64_t size)
{
	if (size <= hall_file_limit())
		return ftruncate(fd, (off_t)size);
	errno = EFBIG;
	return -1;
}

static enum xr_status
make_memory(struct hall *h, struct xr_error *err)
{
	h->fd = memfd_create("xrun-queue", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (h->fd == -1 || set_size(h->fd, h->plan.size) == -1 ||
		fcntl(h->fd, F_ADD_SEALS,
			F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == -1)
		return fail(err, XR_E_SYS, "memory of a queue: %s",
			strerror(errno));
	return map(h, err);
}

static enum xr_status
make_pipe(struct hall *h, struct xr_error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == -1)
		return fail(err, XR_E_SYS, "pipe of a queue: %s",
			strerror(errno));
	h->ear = ends[0];
	atomic_store(&h->mouth, ends[1]);
	return XR_OK;
}

enum xr_status
hall_new(const struct hall_plan *plan, struct hall **hall, struct xr_error *err)
{
	struct hall_plan whole = *plan;
	uint64_t space = hall_space();
	enum xr_status status;
	struct hall *h;

	if (!hall_plan_of(&whole))
		return fail(err, XR_E_RANGE, "no queue is that large");
	if (space == 0)
		return no_space(err);
	fit_lots(&whole);
	h = hall_empty(&whole);
	if (h == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	status = make_memory(h, err);
	if (status == XR_OK)
		status = make_pipe(h, err);
	if (status != XR_OK) {
		hall_discard(h);
		return status;
	}
	write_head(h->head, &h->plan, space);
	enlist(h);
	*hall = h;
	return XR_OK;
}

/* --- finding one -------------------------------------------------------------------- */

/* Sealed, so that it stays as long as it is; it says what it is, and that fits. */
static enum xr_status
check(int fd, struct hall_plan *plan, struct xr_error *err)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct hall_head head;
	uint64_t space;
	struct stat st;

	if (seals == -1 || (seals & F_SEAL_SHRINK) == 0 ||
		fstat(fd, &st) == -1 ||
		pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
		head.magic != HALL_MAGIC)
		return fail(err, XR_E_INVAL, "it is no queue");
	if (head.version != HALL_VERSION)
		return fail(err, XR_E_VERSION,
			"a queue of version %u, where there is %u",
			head.version, HALL_VERSION);
	read_plan(&head, plan);
	if (!hall_plan_of(plan) || (uint64_t)st.st_size < plan->size)
		return fail(err, XR_E_INVAL, "it is no whole queue");
	space = hall_space();
	if (space == 0)
		return no_space(err);
	if (head.space != space)
		return fail(err, XR_E_NOTFOUND,
			"a queue of other process ids than ours");
	return XR_OK;
}

/* Another open file of the same pipe. */
static int
reopen(int fd, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC | O_NONBLOCK);
}

static bool
is_pipe(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* The reading end first, before which there may be no writer to open; and the writing end
 * in any case: who opened when there was none is not told that there is none. */
static enum xr_status
adopt_pipe(struct hall *h, int pipe, struct xr_error *err)
{
	if (!is_pipe(pipe))
		return fail(err, XR_E_INVAL, "it is no pipe of a queue");
	h->ear = reopen(pipe, O_RDONLY);
	if (h->ear != -1)
		atomic_store(&h->mouth, reopen(h->ear, O_WRONLY));
	if (atomic_load(&h->mouth) == -1)
		return fail(err, XR_E_SYS, "pipe of a queue: %s",
			strerror(errno));
	return XR_OK;
}

enum xr_status
hall_adopt(const int fds[XR_QUEUE_FDS], struct hall **hall,
	struct xr_error *err)
{
	struct hall_plan plan;
	enum xr_status status = check(fds[0], &plan, err);
	struct hall *h;

	if (status != XR_OK)
		return status;
	h = hall_empty(&plan);
	if (h == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	h->fd = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	if (h->fd == -1)
		status = fail(err, XR_E_SYS, "dup: %s", strerror(errno));
	if (status == XR_OK)
		status = map(h, err);
	if (status == XR_OK)
		status = adopt_pipe(h, fds[1], err);
	if (status != XR_OK) {
		hall_discard(h);
		return status;
	}
	enlist(h);
	*hall = h;
	return XR_OK;
}

/* --- telling ------------------------------------------------------------------------ */

_Static_assert(offsetof(struct gauge_lane, put) ==
			offsetof(struct lane_head, tail) &&
		offsetof(struct gauge_lane, got) ==
			offsetof(struct lane_head, head) &&
		XR_QUEUE_LANES_MAX <= GAUGE_PARTS_MAX,
	"the supervisor looks at it, too");

void
hall_tell(struct hall *h)
{
	const struct hall_plan *p = &h->plan;
	const struct gauge_of of = {
		.kind = GAUGE_QUEUE,
		.name = "queue",
		.fd = h->fd,
		.parts = p->lanes,
		.room = p->items,
		.at = p->lanes_at,
		.stride = p->lane_size,
	};

	h->gauge = gauge_new(&of);
	trail_begin(h);
}

/* What others do with it is not told any more. */
static void
untell(struct hall *h)
{
	for (uint32_t i = 0; h->gauge != NULL && i < h->plan.lanes; i++) {
		gauge_add(&h->gauge->put, atomic_load(&h->lane[i].ends->tail));
		gauge_add(&h->gauge->got, atomic_load(&h->lane[i].ends->head));
	}
	gauge_free(h->gauge);
}

struct hall *
hall_ref(struct hall *h)
{
	atomic_fetch_add(&h->refs, 1);
	return h;
}

void
hall_unref(struct hall *h)
{
	struct vigil *v;

	if (h == NULL || atomic_fetch_sub(&h->refs, 1) != 1)
		return;
	pthread_mutex_lock(&all_lock);
	LIST_REMOVE(h, list);
	v = vigil_forget(h, LIST_EMPTY(&all));
	pthread_mutex_unlock(&all_lock);
	vigil_end(v);
	trail_end(h);
	untell(h);
	user_leave(h);
	lent_reap(h, true);
	hall_discard(h);
}
