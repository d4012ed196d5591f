/* SPDX-License-Identifier: Apache-2.0 */
/* plane.c - see shm.h and plane.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/fd.h"
#include "base/span.h"
#include "base/status.h"
#include "segment/owner.h"
#include "worker/shm/cma.h"
#include "worker/shm/link.h"
#include "worker/shm/mark.h"
#include "worker/shm/own.h"
#include "worker/shm/shm.h"
#include "worker/shm/span.h"

#define POLL_BUDGET 64 /* messages */
#define SWEEP_SPANS 16 /* at a time: others wait meanwhile */

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static struct shm *opened;
static _Atomic bool forked;

bool
plane_closed(void)
{
	return atomic_load_explicit(&forked, memory_order_relaxed);
}

static void
in_child(void)
{
	atomic_store(&forked, true);
}

/* --- the segment ---------------------------------------------------------- */

/* That of the job, which the environment names. */
static bool
join_job(struct shm *shm, uint32_t *rank)
{
	const char *text = getenv("XRUN_LOCAL_RANK");
	struct segment_tag tag;

	if (!segment_tag_parse(getenv("XRUN_SEGMENT_FD"), &tag) ||
		!number_parse(span_of(text == NULL ? "" : text), UINT32_MAX - 1,
			rank) ||
		!segment_map(&tag, &shm->map) || *rank >= shm->map.ranks)
		return false;
	shm->fd = tag.fd;
	shm->inode = tag.inode;
	shm->of_job = true;
	return true;
}

/* A job of one: others can join it who are given the descriptor. */
static bool
make_own(struct shm *shm)
{
	const struct segment_wish wish = {
		.job = "",
		.ranks = 1,
		.spare = segment_spare(),
	};
	struct segment_tag tag = { .fd = segment_create(&wish) };
	struct stat st;

	if (tag.fd != -1 && fstat(tag.fd, &st) == 0) {
		tag.inode = st.st_ino;
		shm->fd = tag.fd;
		shm->inode = tag.inode;
		shm->own = true;
		if (segment_map(&tag, &shm->map))
			return true;
	}
	fd_close(tag.fd);
	return false;
}

/* The rank's slot, else a spare one. */
static bool
hold_slot(struct shm *shm, uint32_t rank)
{
	if (segment_hold(segment_slot(&shm->map, rank)) == 0) {
		shm->slot = rank;
		return true;
	}
	for (uint32_t i = shm->map.ranks; i < shm->map.plan.slots; i++)
		if (segment_hold(segment_slot(&shm->map, i)) == 0) {
			shm->slot = i;
			return true;
		}
	return false;
}

static void
read_boot(struct shm *shm)
{
	size_t len = fd_read_small("/proc/sys/kernel/random/boot_id", shm->boot,
		sizeof(shm->boot));

	while (len > 0 && (unsigned char)shm->boot[len - 1] <= ' ')
		shm->boot[--len] = '\0';
}

static enum xr_status
prepare(struct shm *shm, struct xr_error *err)
{
	uint32_t rank = 0;

	if (!join_job(shm, &rank)) {
		rank = 0;
		if (!make_own(shm))
			return fail(err, XR_E_NODEV, "no shared memory: %s",
				strerror(errno));
	}
	if (!hold_slot(shm, rank))
		return fail(err, XR_E_NODEV,
			"all slots of the segment are held");
	shm->mine = segment_slot(&shm->map, shm->slot);
	shm->gen = segment_gen(atomic_load(&shm->mine->claim));
	segment_keep();
	shm->attached = calloc(shm->map.plan.slots, sizeof(*shm->attached));
	read_boot(shm);
	bell_init(&shm->bell, &shm->mine->bell, true);
	wait_env_init(&shm->wait, &shm->map, shm->slot);
	cma_offer(shm->mine);
	pthread_mutex_init(&shm->lock, NULL);
	if (shm->attached == NULL ||
		!arena_init(&shm->arena, &shm->map, shm->slot, shm->gen))
		return fail(err, XR_E_NOMEM, "shm: out of memory");
	return XR_OK;
}

/* What a process mapped stays, so nothing is undone: it is tried again. */
enum xr_status
shm_open_segment(struct shm **shm, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct shm *made;

	if (plane_closed())
		return fail(err, XR_E_STATE, "shm: not in a child of fork()");
	pthread_mutex_lock(&opening);
	if (opened == NULL) {
		made = aligned_alloc(64, segment_round(sizeof(*made), 64));
		if (made != NULL) {
			memset(made, 0, sizeof(*made));
			status = prepare(made, err);
		} else {
			status = fail(err, XR_E_NOMEM, "shm: out of memory");
		}
		if (status == XR_OK) {
			pthread_atfork(NULL, NULL, in_child);
			opened = made;
		}
	}
	if (status == XR_OK)
		*shm = opened;
	pthread_mutex_unlock(&opening);
	return status;
}

bool
shm_alive(struct shm *shm)
{
	return alive_take(&shm->alive, shm->mine);
}

void
shm_alive_end(struct shm *shm)
{
	alive_leave(&shm->alive);
}

int
shm_fd(const struct shm *shm)
{
	return shm->fd;
}

uint32_t
shm_slot(const struct shm *shm)
{
	return shm->slot;
}

uint32_t
plane_open(struct shm *shm, struct carrier *c)
{
	uint32_t plane = 0;

	pthread_mutex_lock(&shm->lock);
	if (shm->carrier == NULL) {
		shm->carrier = c;
		shm->opened = shm->opened % 255 + 1;
		plane = shm->gen << 8 | shm->opened;
		atomic_store(&shm->mine->plane, plane);
	}
	pthread_mutex_unlock(&shm->lock);
	return plane;
}

bool
plane_refuse(struct shm *shm, uint32_t writer, uint64_t word)
{
	bool sweep = segment_ring_drop(&shm->map, shm->slot, writer, word);

	/* A later life of the writer may wait until it can make a ring. */
	shm_ring_slot(shm, writer);
	return sweep;
}

/* Rings that came and were not looked at: nobody will. */
static bool
refuse_rings(struct shm *shm)
{
	bool sweep = false;

	for (uint32_t i = 0; i < shm->map.plan.slots; i++) {
		uint64_t word =
			atomic_load(segment_dir(&shm->map, shm->slot, i));

		if (word != 0 && word != atomic_load(&shm->attached[i]))
			sweep |= plane_refuse(shm, i, word);
	}
	return sweep;
}

enum plane_swept
plane_sweep(struct shm *shm)
{
	struct segment_swept swept =
		span_sweep(&shm->map, shm->slot, shm->gen, SWEEP_SPANS);

	if (swept.more)
		return PLANE_MORE;
	for (uint32_t i = 0; i < shm->map.plan.slots; i++) {
		const struct segment_slot *s = segment_slot(&shm->map, i);

		if (alive_ended(s) &&
			segment_state(atomic_load(&s->claim)) == SEGMENT_HELD)
			return PLANE_LATER;
	}
	return PLANE_CLEAN;
}

void
plane_close(struct shm *shm, bool sweep)
{
	pthread_mutex_lock(&shm->lock);
	atomic_store(&shm->mine->plane, 0);
	shm->carrier = NULL;
	pthread_mutex_unlock(&shm->lock);
	if (refuse_rings(shm) || sweep)
		span_sweep(&shm->map, shm->slot, shm->gen, UINT32_MAX);
}

/* --- waiting -------------------------------------------------------------- */

uint32_t
shm_poll(struct shm *shm)
{
	return shm->carrier == NULL ?
		0 :
		carrier_progress(shm->carrier, POLL_BUDGET);
}

bool
shm_busy(struct shm *shm)
{
	return shm->carrier != NULL && carrier_busy(shm->carrier);
}

bool
shm_arm(struct shm *shm)
{
	bell_arm(&shm->bell);
	return !shm_busy(shm);
}

int
shm_sleep(struct shm *shm, int64_t until)
{
	struct bell_word words[ALIVE_WATCHED];
	uint32_t count =
		alive_watch(&shm->map, shm->slot, words, ALIVE_WATCHED);

	MARK(MARK_ARMED);
	return bell_sleep(&shm->bell, words, count, until);
}

void
shm_look_everywhere(struct shm *shm)
{
	if (shm->carrier != NULL)
		shm->carrier->turn = UINT32_MAX;
}

/* What rang may be one of those things that are not looked at each turn. */
int64_t
shm_disarm(struct shm *shm)
{
	shm_look_everywhere(shm);
	return bell_disarm(&shm->bell);
}

void
shm_ring(struct shm *shm)
{
	bell_ring(&shm->mine->bell, NULL, true);
}

void
shm_ring_slot(struct shm *shm, uint32_t slot)
{
	if (slot < shm->map.plan.slots)
		bell_ring(&segment_slot(&shm->map, slot)->bell, NULL, true);
}

struct wait_env *
shm_env(struct shm *shm)
{
	return &shm->wait;
}

const _Atomic uint32_t *
shm_cpu_of(struct shm *shm, uint32_t slot)
{
	return slot < shm->map.plan.slots ?
		&segment_slot(&shm->map, slot)->cpu :
		NULL;
}

uint32_t
shm_link_slot(const struct xr_link *link)
{
	return link->slot;
}

/* --- memory --------------------------------------------------------------- */

void *
shm_alloc(struct shm *shm, size_t len, void **own)
{
	void *data = plane_closed() ? NULL : arena_alloc(&shm->arena, len);

	if (data != NULL)
		*own = own_word(data, OWN_BLOCK);
	return data;
}

void
shm_free(struct shm *shm, const void *data, void *own)
{
	if (!plane_closed())
		own_unref(shm, own);
}

/* A buffer is there, so this was opened. */
void
shm_buffer_unref(struct xr_body_buffer *buffer)
{
	shm_free(opened, NULL, buffer);
}

void
shm_ref(struct shm *shm, const void *data, void *own)
{
	if (!plane_closed())
		own_ref(shm, own);
}
