/* SPDX-License-Identifier: Apache-2.0 */
/* lead_inner.h - what lead.c and lead_crew.c share; see lead.h. */
#ifndef WORKER_RPC_LEAD_INNER_H
#define WORKER_RPC_LEAD_INNER_H

#include <pthread.h>

#include "worker/rpc/lead.h"

#define LEAD_SOURCES_MAX 16
#define LEAD_THREADS_MAX 8
#define LEAD_LOOKS       64 /* turns that brought something, from look to look */

TAILQ_HEAD(waiter_list, waiter);

extern struct lead {
	struct lead_place place;
	struct wait_env own_env, *env;
	/* Of @place; read without the lead, and kept when that goes. */
	bool (*_Atomic help)(void *ctx);
	struct segment_bell *_Atomic bell;
	_Atomic uint32_t *_Atomic awaits;
	_Atomic uint32_t asked; /* answers that nobody may be looking for */
	struct bell armed;      /* by who leads, or is about to stop */
	_Atomic bool shared;
	struct lead_source source[LEAD_SOURCES_MAX];
	_Atomic uint32_t sources;
	struct lead_thread_source thread[LEAD_THREADS_MAX];
	_Atomic uint32_t threads;
	bool abandoned; /* this is a child of the process that reads */

	uint32_t turns; /* of who leads, one after the other */

	_Alignas(64) _Atomic uint32_t taken;
	_Atomic uint32_t claimed;  /* somebody is to have it, and no other */
	_Atomic uint32_t watched;  /* one of the crew keeps watch */
	_Atomic uint32_t sleepers; /* of the crew, beside it */
	_Atomic uint32_t stirred;  /* a futex: what they sleep on */
	_Atomic int64_t due;       /* INT64_MAX: nothing is */

	pthread_mutex_t lock;
	_Atomic uint32_t follower_count;
	struct waiter_list followers;
} lead;

extern __thread struct lead_thread {
	bool leads;
	bool in_short; /* runs what may not wait */
	uint32_t delivers;
	struct waiter *leads_for;
	struct later *first, **last;
} lead_me __attribute__((tls_model("initial-exec")));

/* lead_try() - this thread leads, unless another does; lead_stop() - nobody does,
 * and who would have to be told is not. */
bool lead_try(void);
void lead_stop(void);

/* lead_drop() - nobody leads from now on: what comes rings, and what came before
 * that is read, unless there is always more. */
void lead_drop(void);

/* lead_pass_baton() - to the follower that came first, who is to lead, or to
 * lead_decline(). False: there is none. */
bool lead_pass_baton(void);

/* Of who leads. */
void lead_silence(void);
uint32_t lead_read(void);

/* lead_arm_and_read() - from now on what comes rings; what came before is read now,
 * all of it. */
uint32_t lead_arm_and_read(void);

/* lead_look_around() - for what is due by @now, and for who has died. */
void lead_look_around(int64_t now);

/* lead_run_later() - what was put off, unless this is within it. */
void lead_run_later(void);

#endif /* WORKER_RPC_LEAD_INNER_H */
