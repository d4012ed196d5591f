/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_list.h - the variables that torch_xla's XRT launcher was told by.
 *
 * XRT_TPU_CONFIG lists the workers of a TPU job, one a host:
 *
 *	config := worker ( '|' worker )*
 *	worker := name ';' ordinal ';' host ':' port
 *
 * name is word characters, ordinal and port are digits, host is letters,
 * digits, '_', '.' and '-'; nothing may stand before or after. XRT_LOCAL_WORKER
 * is name:index and says which host this is. Every error names the variable,
 * the piece and, in a list, the byte where it begins.
 *
 * Spans borrow from the text that was parsed.
 */
#ifndef PLACE_WORKER_LIST_H
#define PLACE_WORKER_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>

#include "base/buf.h"

#define WORKER_DEVICES 8     /* of a host, when TPU_NUM_DEVICES is unset */
#define WORKER_MAX     65536 /* hosts, and devices of a host */

struct worker {
	struct span name, host;
	uint32_t ordinal;
	uint16_t port;
};

struct worker_list {
	struct worker *workers;
	uint32_t count; /* 0: nothing parsed */
};

/*
 * worker_list_parse() - all of @text, which came from @variable.
 *
 * Returns  XR_OK; XR_E_INVAL; XR_E_EXISTS (name:ordinal twice); @err has
 *          "VARIABLE: 'piece' (byte N) what is wrong"
 */
enum xr_status worker_list_parse(struct worker_list *list, const char *variable,
	const char *text, struct xr_error *err);
void worker_list_fini(struct worker_list *list);

/* worker_local_parse() - name:index into @local, which gets no host. */
enum xr_status worker_local_parse(struct worker *local, const char *variable,
	const char *text, struct xr_error *err);

/* What the environment says about such a job. */
struct worker_env {
	bool present;            /* there is one; the rest counts only then */
	struct worker_list list; /* empty without XRT_TPU_CONFIG */
	struct worker local;     /* name.at NULL without XRT_LOCAL_WORKER */
	uint32_t host, hosts;    /* index of this host, number of hosts */
	uint32_t devices;        /* of one host */
};

/*
 * worker_env_detect() - is this a host of such a job?
 *
 * It is if XRT_TPU_CONFIG or XRT_LOCAL_WORKER exists, even empty; but not if
 * XRT_MULTI_PROCESSING_DEVICE does, which only ranks have: an xrun inside of a
 * rank starts a job of its own.
 */
bool worker_env_detect(char *const *vars);

/*
 * worker_env_read() - detect, and read all of it.
 *
 * Returns  XR_OK; XR_E_INVAL, XR_E_EXISTS, XR_E_RANGE with the variable and its
 *          text in @err. Memory is taken only with XR_OK; worker_env_fini().
 */
enum xr_status worker_env_read(struct worker_env *env, char *const *vars,
	struct xr_error *err);
void worker_env_fini(struct worker_env *env);

/*
 * worker_ordinal() - the global index of the @i-th of @started processes.
 *
 * torch_xla multiplied with the number of devices, not of processes; the two
 * differ where one process is started on each of several hosts, whose index
 * then lay outside of the world.
 */
uint32_t worker_ordinal(uint32_t host, uint32_t started, uint32_t i);

#endif /* PLACE_WORKER_LIST_H */
