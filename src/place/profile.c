/* SPDX-License-Identifier: Apache-2.0 */
/* profile.c - the tables of variables; see profile.h. */
#include <string.h>

#include "base/span.h"
#include "base/status.h"
#include "place/profile.h"

/* clang-format off */

/* R(profile, name, value, when) */
#define ENV_ROWS(R) \
	R(XRUN, "XRUN_JOB", "{job}", ALWAYS) \
	R(XRUN, "XRUN_ATTEMPT", "{attempt}", ALWAYS) \
	R(XRUN, "XRUN_RANK", "{rank}", ALWAYS) \
	R(XRUN, "XRUN_SIZE", "{size}", ALWAYS) \
	R(XRUN, "XRUN_LOCAL_RANK", "{local_rank}", ALWAYS) \
	R(XRUN, "XRUN_LOCAL_SIZE", "{local_size}", ALWAYS) \
	R(XRUN, "XRUN_NODE", "{node}", ALWAYS) \
	R(XRUN, "XRUN_NODES", "{nodes}", ALWAYS) \
	R(XRUN, "XRUN_HOST", "{host}", ALWAYS) \
	R(XRUN, "XRUN_PART", "{part}", ALWAYS) \
	R(XRUN, "XRUN_PART_RANK", "{part_rank}", ALWAYS) \
	R(XRUN, "XRUN_PART_SIZE", "{part_size}", ALWAYS) \
	R(XRUN, "XRUN_DEVICE", "{device}", ALWAYS) \
	R(XRUN, "XRUN_CONTROL_FD", "{control}", ALWAYS) \
	R(XRUN, "XRUN_STORE", "{store}", ALWAYS) \
	R(XRUN, "XRUN_SEGMENT_FD", "{segment}", ALWAYS) \
	R(XRUN, "XRUN_STDIO", "{stdio}", ALWAYS) \
	R(XRUN, "XRUN_NO_MPI", "{no_mpi}", ALWAYS) \
	\
	R(TORCH, "RANK", "{rank}", ALWAYS) \
	R(TORCH, "WORLD_SIZE", "{size}", ALWAYS) \
	R(TORCH, "LOCAL_RANK", "{local_rank}", ALWAYS) \
	R(TORCH, "LOCAL_WORLD_SIZE", "{local_size}", ALWAYS) \
	R(TORCH, "GROUP_RANK", "{node}", ALWAYS) \
	R(TORCH, "GROUP_WORLD_SIZE", "{nodes}", ALWAYS) \
	R(TORCH, "ROLE_NAME", "default", ALWAYS) \
	R(TORCH, "ROLE_RANK", "{rank}", ALWAYS) \
	R(TORCH, "ROLE_WORLD_SIZE", "{size}", ALWAYS) \
	R(TORCH, "MASTER_ADDR", "{master_addr}", ALWAYS) \
	R(TORCH, "MASTER_PORT", "{master_port}", ALWAYS) \
	R(TORCH, "TORCHELASTIC_RUN_ID", "{job}", ALWAYS) \
	R(TORCH, "TORCHELASTIC_RESTART_COUNT", "{attempt}", ALWAYS) \
	R(TORCH, "TORCHELASTIC_MAX_RESTARTS", "{max_restarts}", ALWAYS) \
	R(TORCH, "TORCHELASTIC_USE_AGENT_STORE", "{agent_store}", ALWAYS) \
	R(TORCH, "TORCHELASTIC_ERROR_FILE", \
		"{attempt_dir}{join}rank-{rank4}.error.json", ALWAYS) \
	R(TORCH, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1", UNSET) \
	R(TORCH, "OMP_NUM_THREADS", "{threads}", CROWD) \
	R(TORCH, "PYTHONUNBUFFERED", "1", LINES) \
	\
	R(XRT, "XRT_LOCAL_WORKER", "{local_worker}", UNSET) \
	R(XRT, "XRT_TPU_CONFIG", "{tpu_config}", ALWAYS) \
	R(XRT, "XRT_MESH_SERVICE_ADDRESS", "localhost:{mesh_port}", EMPTY) \
	R(XRT, "XRT_SHARD_WORLD_SIZE", "{size}", ALWAYS) \
	R(XRT, "XRT_SHARD_ORDINAL", "{rank}", ALWAYS) \
	R(XRT, "XRT_SHARD_LOCAL_ORDINAL", "{local_rank}", ALWAYS) \
	R(XRT, "XRT_MULTI_PROCESSING_DEVICE", "TPU:{rank}", ALWAYS) \
	\
	R(PJRT, "PJRT_DEVICE", "{pjrt_device}", UNSET) \
	R(PJRT, "PJRT_LOCAL_PROCESS_RANK", "{local_rank}", ALWAYS) \
	R(PJRT, "PJRT_LOCAL_PROCESS_COUNT", "{local_size}", ALWAYS) \
	R(PJRT, "TPU_VISIBLE_CHIPS", "{tpu_chips}", ALWAYS) \
	R(PJRT, "TPU_CHIPS_PER_PROCESS_BOUNDS", "{tpu_chip_bounds}", ALWAYS) \
	R(PJRT, "TPU_PROCESS_BOUNDS", "{tpu_process_bounds}", ALWAYS) \
	R(PJRT, "TPU_PROCESS_ADDRESSES", "{tpu_addresses}", ALWAYS) \
	R(PJRT, "TPU_PROCESS_PORT", "{tpu_port}", ALWAYS) \
	R(PJRT, "CLOUD_TPU_TASK_ID", "{tpu_task}", ALWAYS)

/* Names that are fixed though no row sets them yet. */
#define ENV_LATER \
	"XRUN_BELL_FD"

const struct env_row env_rows[] = {
#define R(profile, name, value, when) \
	{ ENV_##profile, ENV_##when, name, value },
	ENV_ROWS(R)
#undef R
	{ ENV_INHERITED, ENV_ALWAYS, NULL, NULL },
};

const char *const env_output_names[] = {
#define R(profile, name, value, when) name,
	ENV_ROWS(R)
#undef R
	ENV_LATER,
	NULL,
};

static const struct {
	const char *name;
	bool per_rank;
} fields[] = {
#define F(name, per_rank) { #name, per_rank },
	ENV_FIELDS(F)
#undef F
};

#define MPI   "the ranks of another MPI launcher"
#define TORCH "the ranks of another torch launcher"
#define HVD   "the ranks of another horovodrun"
#define STEP  "the step xrun runs in, not its ranks"
#define INNER "the rank xrun runs in"

/*
 * Of GROUP_* and ROLE_* only torchrun's names: ROLE_ARN and the like belong
 * to people. The rest after flux-core's spectrum.lua and the environment
 * pages of torchrun, horovodrun and srun.
 */
const struct env_scrub env_scrub_rules[] = {
	{ "PMI_*", MPI, false },
	{ "PMIX_*", MPI, false },
	{ "OMPI_COMM_WORLD_*", MPI, false },
	{ "OMPI_MCA_ess*", MPI, false },
	{ "OMPI_MCA_orte_*", MPI, false },
	{ "OMPI_MCA_pmix*", MPI, false },
	{ "PRTE_LAUNCHED", MPI, false },
	{ "MV2_COMM_WORLD_*", MPI, false },
	{ "HYDI_*", MPI, false },
	{ "MPI_LOCAL*", MPI, false },
	{ "RANK", TORCH, false },
	{ "LOCAL_RANK", TORCH, false },
	{ "WORLD_SIZE", TORCH, false },
	{ "LOCAL_WORLD_SIZE", TORCH, false },
	{ "GROUP_RANK", TORCH, false },
	{ "GROUP_WORLD_SIZE", TORCH, false },
	{ "ROLE_NAME", TORCH, false },
	{ "ROLE_RANK", TORCH, false },
	{ "ROLE_WORLD_SIZE", TORCH, false },
	{ "TORCHELASTIC_*", TORCH, false },
	{ "HOROVOD_RANK", HVD, false },
	{ "HOROVOD_SIZE", HVD, false },
	{ "HOROVOD_LOCAL_*", HVD, false },
	{ "HOROVOD_CROSS_*", HVD, false },
	{ "TF_CONFIG", "the task of another cluster", false },
	{ "SLURM_JOB_ID", STEP, false }, /* JAX takes it for a whole step */
	{ "SLURM_JOBID", STEP, false },
	{ "SLURM_PROCID", STEP, false },
	{ "SLURM_LOCALID", STEP, false },
	{ "SLURM_NODEID", STEP, false },
	{ "SLURM_NTASKS", STEP, false },
	{ "SLURM_NPROCS", STEP, false },
	{ "SLURM_STEP_*", STEP, false },
	{ "SLURM_STEPID", STEP, false },
	{ "SLURM_SRUN_COMM_*", STEP, false },
	{ "SLURM_LAUNCH_NODE_IPADDR", STEP, false },
	{ "SLURM_DISTRIBUTION", STEP, false },
	{ "SLURM_CPU_BIND*", STEP, false },
	{ "SLURM_TASKS_PER_NODE", STEP, false },
	{ "SLURM_NTASKS_PER_NODE", STEP, false },
	{ "SLURM_TASK_PID", STEP, false },
	{ "SLURM_GTIDS", STEP, false },
	{ "XRT_MULTI_PROCESSING_DEVICE", INNER, true },
	{ "XRT_SHARD_*", INNER, true },
	{ "XRT_LOCAL_WORKER", INNER, true },
	{ "XRT_TPU_CONFIG", INNER, true },
	{ NULL, NULL, false },
};

static const struct env_scrub outer = {
	"XRUN_*", "the job xrun runs in", false
};

const struct env_scrub env_scrub_option = {
	"XRUN_*", "an option of xrun; an xrun in a rank starts clean", false
};

const struct env_scrub env_scrub_pass = { "*", "not among --env-pass", false };

static const char *const basics[] = { "PATH", "HOME", "USER", "LOGNAME",
	"SHELL", "TMPDIR", "TZ", "LANG", "LC_*", "TERM", "LD_LIBRARY_PATH" };

static const struct {
	const char *word;
	unsigned bits;
} words[] = {
	{ "xrun", 1u << ENV_XRUN },
	{ "torch", 1u << ENV_TORCH },
	{ "xrt", 1u << ENV_XRT },
	{ "pjrt", 1u << ENV_PJRT },
	{ "none", 0 },
};

/* clang-format on */

enum env_field
env_field_find(struct span name)
{
	enum env_field field = 0;

	while (field < FIELD_COUNT && !span_is(name, fields[field].name))
		field++;
	return field;
}

bool
env_field_per_rank(enum env_field field)
{
	return fields[field].per_rank;
}

static bool
fits(const char *pattern, struct span name)
{
	size_t len = strlen(pattern);

	if (pattern[len - 1] != '*')
		return span_is(name, pattern);
	return name.len >= len - 1 && memcmp(name.at, pattern, len - 1) == 0;
}

const struct env_scrub *
env_scrub_find(struct span name, bool inner)
{
	const struct env_scrub *rule = env_scrub_rules;

	if (fits("XRUN_*", name)) {
		for (int i = 0; env_output_names[i] != NULL; i++)
			if (span_is(name, env_output_names[i]))
				return &outer;
		return NULL;
	}
	for (; rule->pattern != NULL; rule++)
		if (name.len > 0 && *rule->pattern == *name.at &&
			(inner || !rule->inner) && fits(rule->pattern, name))
			return rule;
	return NULL;
}

bool
env_basic(struct span name)
{
	for (size_t i = 0; i < sizeof(basics) / sizeof(basics[0]); i++)
		if (fits(basics[i], name))
			return true;
	return false;
}

bool
env_identity(struct span name)
{
	return fits("XRUN_*", name) || fits("LOCAL_*", name) ||
		fits("XRT_*", name) || span_is(name, "RANK") ||
		span_is(name, "WORLD_SIZE");
}

static unsigned
auto_bits(const struct profile_facts *facts)
{
	unsigned bits = 1u << ENV_XRUN | 1u << ENV_TORCH;

	/* PJRT_DEVICE would turn torch_xla away from the list it was given. */
	if (facts->worker_list)
		return bits | 1u << ENV_XRT;
	return facts->tpu ? bits | 1u << ENV_PJRT : bits;
}

static enum xr_status
add_word(struct span word, const struct profile_facts *facts, unsigned *bits,
	struct xr_error *err)
{
	if (span_is(word, "auto")) {
		*bits |= auto_bits(facts);
		return XR_OK;
	}
	if (span_is(word, "xla")) {
		*bits |= 1u << ENV_PJRT;
		if (facts->worker_list)
			*bits |= 1u << ENV_XRT;
		return XR_OK;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!span_is(word, words[i].word))
			continue;
		*bits |= words[i].bits;
		return XR_OK;
	}
	return fail(err, XR_E_INVAL,
		"'%.*s' is not one of auto|none|torch|xla|xrt|pjrt|xrun",
		QUOTED(word));
}

enum xr_status
profiles_parse(const char *text, const struct profile_facts *facts,
	unsigned *profiles, struct xr_error *err)
{
	struct span rest = span_of(text);
	unsigned bits = 1u << ENV_XRUN;
	enum xr_status status = XR_OK;
	struct xr_error why = { 0 };

	while (rest.at != NULL && status == XR_OK)
		status = add_word(span_next(&rest, ','), facts, &bits, &why);
	if (status != XR_OK)
		return fail(err, status, "--env-profile: %s", why.text);
	if ((bits & 1u << ENV_XRT) != 0 && !facts->worker_list)
		return fail(err, XR_E_INVAL,
			"--env-profile: xrt needs a worker list, XRT_TPU_CONFIG or XRT_LOCAL_WORKER");
	*profiles = bits;
	return XR_OK;
}

enum xr_status
profiles_check(const char *text, struct xr_error *err)
{
	static const struct profile_facts none;
	struct span rest = span_of(text);
	enum xr_status status = XR_OK;
	unsigned bits = 0;

	while (rest.at != NULL && status == XR_OK)
		status = add_word(span_next(&rest, ','), &none, &bits, err);
	return status;
}
