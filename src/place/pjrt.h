/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pjrt.h - the shape of a TPU job, as torch_xla and JAX want to be told.
 *
 * Pure: from the facts about the slice and the number of ranks here come the
 * values every process is given. One process a chip, so process bounds are
 * the host's bounds times its chips, element by element, and chip bounds are
 * 1,1,1.
 *
 * What does not add up is refused with the sum written out, before a rank
 * exists: libtpu would wait for the missing processes for ever.
 *
 * Source   torch_xla, torch_xla/_internal/tpu.py, 41398bf (April 2026)
 */
#ifndef PLACE_PJRT_H
#define PLACE_PJRT_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>

#include "place/tpu_facts.h"

#define PJRT_PORT 8476 /* of local rank 0; torch_xla's and JAX's */

/* What all processes of this host are told; texts are NULL where unknown. */
struct pjrt {
	char *process_bounds;    /* "2,2,2" */
	const char *chip_bounds; /* "1,1,1" */
	char *addresses;         /* "host:8476,host:8477,..." */
	uint32_t first_task;     /* CLOUD_TPU_TASK_ID of local rank 0 */
	uint16_t *ports; /* TPU_PROCESS_PORT, one a local rank; or NULL */
};

/*
 * pjrt_make() - the values for @local_size processes on this host.
 *
 * One process gets one chip and both bounds 1,1,1, whatever the facts. More
 * of them on a host of unknown shape get no bounds: the runtime then asks the
 * metadata server itself.
 *
 * Returns  XR_OK; XR_E_INVAL with the arithmetic in @err
 */
enum xr_status pjrt_make(struct pjrt *pjrt, const struct tpu_facts *facts,
	uint32_t local_size, struct xr_error *err);
void pjrt_fini(struct pjrt *pjrt);

#endif /* PLACE_PJRT_H */
