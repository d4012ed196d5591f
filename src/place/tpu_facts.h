/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tpu_facts.h - what is known about the TPU slice this host belongs to.
 *
 * Two sources, both pure and read alike: variables (GKE, and whoever sets
 * TPU_SKIP_MDS_QUERY), and the text of the metadata key tpu-env, which is
 * lines of KEY: 'value'. What is malformed is refused by its name.
 *
 * Source   torch_xla, torch_xla/_internal/tpu.py, 41398bf (April 2026)
 */
#ifndef PLACE_TPU_FACTS_H
#define PLACE_TPU_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>

#define TPU_WORKERS_MAX 65536

/* x,y,z, and the variable that said so; NULL if none did. */
struct tpu_bounds {
	uint32_t at[3];
	const char *name;
};

struct tpu_facts {
	const char *type;          /* "v4-16"; NULL: nothing is known */
	uint32_t version;          /* 4 */
	struct tpu_bounds process; /* hosts of the slice */
	struct tpu_bounds chips;   /* chips of one host */
	bool worker_known;
	uint32_t worker;       /* index of this host */
	const char *workers;   /* comma list of hosts; NULL: only this one */
	bool endpoints;        /* each is name:uid:address */
	const char *addresses; /* TPU_PROCESS_ADDRESSES as preset, or NULL */
	char *owned;           /* what the texts above may point into */
};

/*
 * tpu_facts_of_vars() - from the environment, whose texts are borrowed.
 *
 * Returns  XR_OK; XR_E_INVAL naming variable and value. Release with
 *          tpu_facts_fini().
 */
enum xr_status tpu_facts_of_vars(struct tpu_facts *facts, char *const *vars,
	struct xr_error *err);

/*
 * tpu_facts_of_metadata() - from the texts of the metadata keys.
 *
 * @tpu_env:   "tpu-env": lines KEY: 'value'; unknown keys are passed over
 * @endpoints: "worker-network-endpoints", borrowed, or NULL
 * @worker:    "agent-worker-number", or NULL; WORKER_ID of tpu-env wins
 */
enum xr_status tpu_facts_of_metadata(struct tpu_facts *facts,
	const char *tpu_env, const char *endpoints, const char *worker,
	struct xr_error *err);
void tpu_facts_fini(struct tpu_facts *facts);

#endif /* PLACE_TPU_FACTS_H */
