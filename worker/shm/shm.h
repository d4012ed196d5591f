/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm.h - the shared memory of this process: what an agent does with it.
 *
 * There is one a process, opened once and kept until it ends: the segment of the
 * job, or one of its own outside of a job; a slot of it; a bell; and the arena.
 * The carrier "shm" moves messages over it (xrun/transport.h, carrier.h), and is
 * opened and closed as agents come and go.
 *
 *	shm_open_segment(&shm, &err);
 *	shm_alive(shm);                 on the thread that lives longest
 *	shm_carrier.open(&host, ...);
 *
 *	waiting, by one thread at a time:
 *		wait_begin(&w, shm_env(shm), shm_cpu_of(shm, peer), &site);
 *		while (!done) {
 *			if (shm_poll(shm) > 0) {
 *				wait_again(&w);
 *				continue;
 *			}
 *			switch (wait_turn(&w)) {
 *			case WAIT_LOOK: deadlines
 *			case WAIT_SLEEP: if (shm_arm(shm))
 *						 shm_sleep(shm, until);
 *					 wait_woken(&w, shm_disarm(shm));
 *
 * After fork() the child has none: what is asked of it is refused, and what is
 * freed stays.
 */
#ifndef WORKER_SHM_SHM_H
#define WORKER_SHM_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/transport.h>

struct shm;
struct wait_env;
struct segment_bell;

#define SHM_NO_SLOT UINT32_MAX

/*
 * shm_open_segment() - this process's shared memory; the same at each call.
 *
 * Within a job it is the segment that XRUN_SEGMENT_FD names, and the slot of
 * XRUN_LOCAL_RANK, or a spare one if another process of the rank has that.
 * Outside, or if the job has none, it is a new one.
 *
 * Returns  XR_OK; XR_E_NODEV: this machine or its limits have no room for it, or
 *          no slot is free; XR_E_STATE: in a child of fork()
 * Thread   any.  Blocks: no; 0.2 ms.
 */
enum xr_status shm_open_segment(struct shm **shm, struct xr_error *err);

/* shm_alive() - the calling thread's end is the end of this process for others:
 * they know within a millisecond. See alive.h for what it must not do. */
bool shm_alive(struct shm *shm);
void shm_alive_end(struct shm *shm); /* by the same thread, before it ends */

/* shm_fd() - of the segment, borrowed: for children that shall join it. */
int shm_fd(const struct shm *shm);
uint32_t shm_slot(const struct shm *shm);

/* --- waiting -------------------------------------------------------------- */

/* shm_poll() - progress() of the carrier that is open; 0: the host was told
 * nothing. Not within deliver(). */
uint32_t shm_poll(struct shm *shm);

/* shm_arm() - about to sleep; false: there is something to poll, or somebody
 * died; stay awake. Either way shm_disarm() follows. */
bool shm_arm(struct shm *shm);

/* shm_sleep() - until rung, until somebody died, or until @until (ns of
 * CLOCK_MONOTONIC; INT64_MAX: never). Returns 0, maybe early; ETIMEDOUT. */
int shm_sleep(struct shm *shm, int64_t until);
int64_t shm_disarm(struct shm *shm); /* bell_disarm() */

/* shm_busy() - is there something to poll, for who arms the bell itself? */
bool shm_busy(struct shm *shm);

/* shm_look_everywhere() - the next shm_poll() looks at what others do not do
 * often, too; for who arms the bell itself. */
void shm_look_everywhere(struct shm *shm);

/* shm_ring() - who sleeps in this process looks; any thread. */
void shm_ring(struct shm *shm);

/* shm_ring_slot() - the same in another. */
void shm_ring_slot(struct shm *shm, uint32_t slot);

struct wait_env *shm_env(struct shm *shm);

/* shm_cpu_of() - the word where a peer says on which CPU it waits, for
 * wait_begin(); NULL: no such slot. */
const _Atomic uint32_t *shm_cpu_of(struct shm *shm, uint32_t slot);

/* shm_link_slot() - the slot at the other end of a link of the carrier. */
uint32_t shm_link_slot(const struct xr_link *link);

/* --- memory that can be handed over --------------------------------------- */

/*
 * shm_alloc() - @len bytes in the arena, aligned to 64, with one reference.
 *
 * @own: for shm_free()
 * NULL: there is no room; a private buffer will do, too.
 */
void *shm_alloc(struct shm *shm, size_t len, void **own);

/* shm_free() - of what shm_alloc(), shm_loan_take() or body_take() gave: one
 * reference less. Any thread. */
void shm_free(struct shm *shm, const void *data, void *own);

/* shm_buffer_unref() - buffer_unref() of the carrier: as shm_free(). */
void shm_buffer_unref(struct xr_body_buffer *buffer);

/* shm_ref() - one more. */
void shm_ref(struct shm *shm, const void *data, void *own);

/*
 * shm_can_lend() - can @data be a loan of a message over @link?
 *
 * It can if it lies in a block of this process, or in one that was borrowed over
 * the same link.
 */
bool shm_can_lend(struct xr_link *link, const void *data, size_t len);

/* shm_is_of() - is it memory of who is at the other end of @link, in the arena? */
bool shm_is_of(const struct xr_link *link, const void *data, size_t len);

/*
 * shm_loan_take() - keep a loan that came with the body that is being delivered,
 * until shm_free(). NULL: no memory, or no such loan.
 */
const void *shm_loan_take(struct shm *shm, const struct xr_body *body,
	uint32_t index, size_t *len, void **own);

/* The carrier. */
extern const struct xr_carrier shm_carrier;

#endif /* WORKER_SHM_SHM_H */
