/* SPDX-License-Identifier: Apache-2.0 */
/* test_env.c - what every rank is told, and what it is spared. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "place/env.h"
#include "place/environ.h"

#define VARS(...) \
	(char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}
#define LIST "XRT_TPU_CONFIG=c;0;h:8470|d;1;i:8470"

static struct xr_error err;
static struct plan plan;
static struct env *env;
static struct env_facts facts;

/* A job of @ranks with the inherited environment @vars. */
static void
begin(char *const *vars, int64_t ranks)
{
	struct profile_facts about = { 0 };

	plan_fini(&plan);
	cr_assert(plan_make(&plan,
			  &(struct plan_facts){
				  .ranks = ranks,
				  .host = "node7",
				  .vars = vars,
			  },
			  &err) == XR_OK,
		"%s", err.text);
	about.worker_list = plan.workers.present;
	facts = (struct env_facts){
		.inherited = vars,
		.plan = &plan,
		.job = "k7m2",
		.master_addr = "127.0.0.1",
		.master_port = 61234,
		.mesh_port = 61235,
	};
	cr_assert(profiles_parse("auto", &about, &facts.profiles, &err) ==
		XR_OK);
}

static enum xr_status
build(void)
{
	env_free(env);
	env = NULL;
	err = (struct xr_error){ 0 };
	return env_new(&env, &facts, &err);
}

static void
finish(void)
{
	env_free(env);
	plan_fini(&plan);
}

TestSuite(env, .fini = finish);

/* The variable as local rank @rank has it; "(none)" if it has none. */
static char *
of(uint32_t rank, const char *name)
{
	char *const *vars =
		env_of_rank(env, &(struct env_rank){ .local_rank = rank });
	const char *value = environ_get(vars, name);
	int count = 0;

	for (char *const *v = vars; *v != NULL; v++)
		count += span_is(environ_name(*v), name);
	cr_expect(le(i32, count, 1), "%s is there twice", name);
	return value == NULL ? "(none)" : (char *)value;
}

/* --- room ------------------------------------------------------------------ */

/* What was allocated while the environment was made. */
static struct {
	const void *at;
	size_t size;
} rooms[1000];
static unsigned room_count;
static bool watches;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void __real_free(void *p);
void __wrap_free(void *p);
char *__wrap_xasprintf(const char *fmt, ...);

#define TAIL 64 /* bytes behind each room that are to stay as they are */

void *
__wrap_calloc(size_t n, size_t size)
{
	char *p = __real_calloc(1, n * size + TAIL);

	memset(p + n * size, 0x55, TAIL);
	if (watches && room_count < sizeof(rooms) / sizeof(rooms[0])) {
		rooms[room_count].at = p;
		rooms[room_count++].size = n * size;
	}
	return p;
}

void
__wrap_free(void *p)
{
	for (unsigned i = 0; p != NULL && i < room_count; i++)
		if (rooms[i].at == p)
			rooms[i].at = NULL;
	__real_free(p);
}

__attribute__((format(printf, 1, 2))) char *
__wrap_xasprintf(const char *fmt, ...)
{
	char *text = NULL, *copy;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	cr_assert(n >= 0);
	copy = __wrap_calloc(1, (size_t)n + 1);
	memcpy(copy, text, (size_t)n);
	__real_free(text);
	return copy;
}

static void
expect_tails(void)
{
	static const char tail[TAIL] = { [0 ... TAIL - 1] = 0x55 };

	for (unsigned i = 0; i < room_count; i++)
		cr_expect(rooms[i].at == NULL ||
				memcmp((const char *)rooms[i].at +
						rooms[i].size,
					tail, TAIL) == 0,
			"room %u of %zu bytes", i, rooms[i].size);
}

static void
build_watched(void)
{
	enum xr_status status;

	room_count = 0;
	watches = true;
	status = build();
	watches = false;
	cr_assert(status == XR_OK, "%s", err.text);
	expect_tails();
}

/* The texts of @rank are not longer than their rooms; returns how many have one. */
static unsigned
texts_in_rooms(const struct env_rank *rank)
{
	char *const *vars = env_of_rank(env, rank);
	unsigned n = 0;

	for (; *vars != NULL; vars++)
		for (unsigned i = 0; i < room_count; i++)
			if (rooms[i].at == *vars) {
				cr_expect(lt(sz, strlen(*vars), rooms[i].size),
					"%s", *vars);
				n++;
			}
	return n;
}

Test(env, every_text_has_the_room_that_it_takes_at_most)
{
	char stdio[STDIO_TAG_MAX], segment[ENV_SEGMENT_MAX];
	char folder[40] = "/tmp/k7m2/0";
	struct env_rank rank = { .attempt = UINT32_MAX,
		.stdio = stdio,
		.segment = segment };

	memset(stdio, '9', sizeof(stdio));
	stdio[sizeof(stdio) - 1] = '\0';
	memset(segment, '9', sizeof(segment));
	segment[sizeof(segment) - 1] = '\0';
	begin(VARS(LIST), 8);
	facts.attempt_dir = folder;
	facts.join = "/";
	facts.segment = true;
	facts.control = "97:4711";
	build_watched();
	snprintf(folder, sizeof(folder), "/tmp/k7m2/4294967295");
	for (rank.local_rank = 0; rank.local_rank < 8; rank.local_rank++)
		cr_expect(gt(u32, texts_in_rooms(&rank), 40));
	rank.local_rank = 0;
	cr_assert(eq(str, of(0, "XRUN_STORE"), "control:"));
	cr_assert(eq(str, of(0, "XRUN_CONTROL_FD"), "97:4711"));
	cr_assert(eq(str, of(0, "XRUN_SEGMENT_FD"), "(none)"));
	cr_assert(eq(str,
		(char *)environ_get(env_of_rank(env, &rank), "XRUN_SEGMENT_FD"),
		segment));
}

/* --- what a rank is told --------------------------------------------------- */

Test(env, a_rank_knows_its_place)
{
	begin(VARS("HOME=/root"), 4);
	cr_assert(build() == XR_OK);
	for (uint32_t r = 0; r < 4; r++) {
		char rank[2] = { (char)('0' + r), '\0' };

		cr_assert(eq(str, of(r, "XRUN_RANK"), rank));
		cr_assert(eq(str, of(r, "XRUN_LOCAL_RANK"), rank));
		cr_assert(eq(str, of(r, "XRUN_PART_RANK"), rank));
		cr_assert(eq(str, of(r, "RANK"), rank));
		cr_assert(eq(str, of(r, "LOCAL_RANK"), rank));
		cr_assert(eq(str, of(r, "ROLE_RANK"), rank));
	}
	cr_assert(eq(str, of(0, "XRUN_JOB"), "k7m2"));
	cr_assert(eq(str, of(0, "XRUN_ATTEMPT"), "0"));
	cr_assert(eq(str, of(0, "XRUN_SIZE"), "4"));
	cr_assert(eq(str, of(0, "XRUN_LOCAL_SIZE"), "4"));
	cr_assert(eq(str, of(0, "XRUN_NODE"), "0"));
	cr_assert(eq(str, of(0, "XRUN_NODES"), "1"));
	cr_assert(eq(str, of(0, "XRUN_HOST"), "node7"));
	cr_assert(eq(str, of(0, "XRUN_PART"), "0"));
	cr_assert(eq(str, of(0, "XRUN_PART_SIZE"), "4"));
	cr_assert(eq(str, of(0, "XRUN_DEVICE"), "cpu"));
	cr_assert(eq(str, of(0, "HOME"), "/root"));
	cr_assert(eq(str, of(0, "XRUN_STDIO"), "(none)"));
}

Test(env, the_torch_profile_has_all_its_rows)
{
	begin(VARS("HOME=/root"), 2);
	facts.attempt_dir = "/tmp/x/k7m2/0";
	facts.join = "/";
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(1, "WORLD_SIZE"), "2"));
	cr_assert(eq(str, of(1, "LOCAL_WORLD_SIZE"), "2"));
	cr_assert(eq(str, of(1, "GROUP_RANK"), "0"));
	cr_assert(eq(str, of(1, "GROUP_WORLD_SIZE"), "1"));
	cr_assert(eq(str, of(1, "ROLE_NAME"), "default"));
	cr_assert(eq(str, of(1, "ROLE_WORLD_SIZE"), "2"));
	cr_assert(eq(str, of(1, "MASTER_ADDR"), "127.0.0.1"));
	cr_assert(eq(str, of(1, "MASTER_PORT"), "61234"));
	cr_assert(eq(str, of(1, "TORCHELASTIC_RUN_ID"), "k7m2"));
	cr_assert(eq(str, of(1, "TORCHELASTIC_RESTART_COUNT"), "0"));
	cr_assert(eq(str, of(1, "TORCHELASTIC_MAX_RESTARTS"), "0"));
	cr_assert(eq(str, of(1, "TORCHELASTIC_USE_AGENT_STORE"), "False"));
	cr_assert(eq(str, of(1, "TORCHELASTIC_ERROR_FILE"),
		"/tmp/x/k7m2/0/rank-0001.error.json"));
	cr_assert(eq(str, of(1, "TORCH_NCCL_ASYNC_ERROR_HANDLING"), "1"));
	cr_assert(eq(str, of(1, "OMP_NUM_THREADS"), "1"));
	cr_assert(eq(str, of(1, "PYTHONUNBUFFERED"), "1"));
}

Test(env, ranks_get_as_many_threads_as_cores_they_are_bound_to)
{
	begin(VARS("A=b"), 2);
	facts.threads = 12;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(1, "OMP_NUM_THREADS"), "12"));
	begin(VARS("A=b"), 1);
	facts.threads = 12;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "OMP_NUM_THREADS"), "(none)"));
}

Test(env, soft_rows_leave_what_the_user_exported)
{
	begin(VARS("OMP_NUM_THREADS=6",
		      "PYTHONUNBUFFERED=", "TORCH_NCCL_ASYNC_ERROR_HANDLING=3"),
		2);
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "OMP_NUM_THREADS"), "6"));
	cr_assert(eq(str, of(0, "PYTHONUNBUFFERED"), ""));
	cr_assert(eq(str, of(0, "TORCH_NCCL_ASYNC_ERROR_HANDLING"), "3"));
	begin(VARS("A=b"), 1);
	facts.full_buffers = true;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "OMP_NUM_THREADS"), "(none)"));
	cr_assert(eq(str, of(0, "PYTHONUNBUFFERED"), "(none)"));
}

Test(env, rows_without_a_value_are_left_out)
{
	begin(VARS("MASTER_ADDR=stale", "TORCHELASTIC_ERROR_FILE=/stale"), 1);
	facts.master_addr = NULL;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "MASTER_ADDR"), "stale"));
	cr_assert(eq(str, of(0, "MASTER_PORT"), "(none)"));
	cr_assert(eq(str, of(0, "TORCHELASTIC_ERROR_FILE"), "(none)"));
}

Test(env, a_port_of_0_is_none)
{
	begin(VARS(LIST), 8);
	facts.mesh_port = 0;
	facts.master_port = 0;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "XRT_MESH_SERVICE_ADDRESS"), "(none)"));
	cr_assert(eq(str, of(0, "MASTER_PORT"), "(none)"));
	facts.mesh_port = 1;
	facts.master_port = 1;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "XRT_MESH_SERVICE_ADDRESS"), "localhost:1"));
	cr_assert(eq(str, of(0, "MASTER_PORT"), "1"));
}

Test(env, a_restarted_rank_knows_its_attempt)
{
	struct env_rank rank = { .attempt = 3, .stdio = "12:3456,12:7;line" };

	begin(VARS("A=b"), 1);
	facts.max_restarts = 5;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str,
		(char *)environ_get(env_of_rank(env, &rank), "XRUN_ATTEMPT"),
		"3"));
	cr_assert(eq(str,
		(char *)environ_get(env_of_rank(env, &rank),
			"TORCHELASTIC_RESTART_COUNT"),
		"3"));
	cr_assert(eq(str,
		(char *)environ_get(env_of_rank(env, &rank), "XRUN_STDIO"),
		"12:3456,12:7;line"));
	cr_assert(eq(str, of(0, "TORCHELASTIC_MAX_RESTARTS"), "5"));
}

Test(env, long_and_short_numbers_take_turns)
{
	begin(VARS("A=b"), 12000);
	facts.attempt_dir = "d";
	facts.join = "/";
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(11999, "XRUN_RANK"), "11999"));
	cr_assert(eq(str, of(3, "XRUN_RANK"), "3"));
	cr_assert(eq(str, of(11999, "TORCHELASTIC_ERROR_FILE"),
		"d/rank-11999.error.json"));
	cr_assert(eq(str, of(7, "TORCHELASTIC_ERROR_FILE"),
		"d/rank-0007.error.json"));
}

Test(env, other_launchers_variables_are_scrubbed)
{
	static const char *const gone[] = { "PMI_FD", "PMIX_RANK",
		"OMPI_COMM_WORLD_RANK", "OMPI_MCA_ess", "OMPI_MCA_ess_base",
		"OMPI_MCA_orte_hnp_uri", "OMPI_MCA_pmix", "PRTE_LAUNCHED",
		"MV2_COMM_WORLD_SIZE", "HYDI_X", "MPI_LOCALRANKID",
		"TORCHELASTIC_X", "HOROVOD_RANK", "HOROVOD_SIZE",
		"HOROVOD_LOCAL_RANK", "HOROVOD_CROSS_SIZE", "TF_CONFIG",
		"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_PROCID", "SLURM_LOCALID",
		"SLURM_NODEID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_ID",
		"SLURM_TASK_PID", "SLURM_GTIDS", "SLURM_STEPID",
		"SLURM_SRUN_COMM_HOST", "SLURM_SRUN_COMM_PORT",
		"SLURM_LAUNCH_NODE_IPADDR", "SLURM_DISTRIBUTION",
		"SLURM_CPU_BIND", "SLURM_CPU_BIND_LIST", "SLURM_TASKS_PER_NODE",
		"SLURM_NTASKS_PER_NODE", "XRUN_CONTROL_FD", "XRUN_SEGMENT_FD",
		"XRUN_BELL_FD", "XRUN_STORE" };
	static const char *const kept[] = { "OMPI_MCA_btl", "NCCL_DEBUG",
		"SLURM_JOB_NAME", "SLURM_JOB_NODELIST", "SLURM_CPUS_ON_NODE",
		"SLURM_CPUS_PER_TASK", "HOROVOD_FUSION", "ROLE_ARN",
		"GROUP_NAME", "RANKS", "XRUN_DEBUG", "PMI", "XRT_SHARD_ORDINAL",
		"=strange", "no_value" };
	enum { GONE = sizeof(gone) / sizeof(gone[0]) };
	enum { KEPT = sizeof(kept) / sizeof(kept[0]) };
	char *vars[GONE + KEPT + 1] = { 0 };

	for (int i = 0; i < GONE; i++)
		cr_assert(asprintf(&vars[i], "%s=1", gone[i]) > 0);
	for (int i = 0; i < KEPT; i++)
		cr_assert(asprintf(&vars[GONE + i], "%s=1", kept[i]) > 0);
	begin(vars, 1);
	cr_assert(build() == XR_OK);
	for (int i = 0; i < GONE; i++)
		cr_expect(eq(str, of(0, gone[i]), "(none)"), "%s", gone[i]);
	for (int i = 0; i < KEPT; i++)
		cr_expect(ne(str, of(0, kept[i]), "(none)"), "%s", kept[i]);
	for (int i = 0; i < GONE + KEPT; i++)
		free(vars[i]);
}

Test(env, without_the_torch_profile_stale_ranks_are_gone)
{
	begin(VARS("RANK=5", "WORLD_SIZE=6", "LOCAL_RANK=7", "GROUP_RANK=8"),
		1);
	facts.profiles = 1u << ENV_XRUN;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "RANK"), "(none)"));
	cr_assert(eq(str, of(0, "WORLD_SIZE"), "(none)"));
	cr_assert(eq(str, of(0, "GROUP_RANK"), "(none)"));
	cr_assert(eq(str, of(0, "XRUN_RANK"), "0"));
}

static bool
is_option(const void *arg, struct span name)
{
	return span_is(name, arg);
}

Test(env, options_of_xrun_do_not_reach_ranks)
{
	begin(VARS("XRUN_RANKS=8", "XRUN_MINE=1"), 1);
	facts.is_option = is_option;
	facts.is_option_arg = "XRUN_RANKS";
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "XRUN_RANKS"), "(none)"));
	cr_assert(eq(str, of(0, "XRUN_MINE"), "1"));
}

/* --env as the only one. */
static enum xr_status
user(const char *text)
{
	begin(VARS("A=old", "MASTER_PORT=1"), 1);
	facts.user = &text;
	facts.user_count = 1;
	return build();
}

Test(env, AC_L17_identity_cannot_be_set)
{
	static const char *const bad[] = { "XRUN_RANK=3", "XRUN_ANYTHING=1",
		"RANK=1", "WORLD_SIZE=1", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=1",
		"XRT_SHARD_ORDINAL=0", "XRT_TPU_CONFIG=" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct span name = environ_name(bad[i]);
		char text[100];

		cr_assert(user(bad[i]) == XR_E_INVAL, "%s", bad[i]);
		snprintf(text, sizeof(text),
			"--env: %.*s is what xrun tells its ranks and cannot be set",
			(int)name.len, name.at);
		cr_assert(eq(str, err.text, text));
	}
	cr_assert(user("RANKS=1") == XR_OK);
	cr_assert(user("XRTX=1") == XR_OK);
	cr_assert(user("MASTER_ADDR=h") == XR_OK);
}

Test(env, AC_L18_what_has_no_value_is_refused)
{
	cr_assert(user("FOO") == XR_E_INVAL);
	cr_assert(eq(str, err.text,
		"--env: 'FOO' is not NAME=VALUE\t--env FOO=VALUE"));
	cr_assert(user("") == XR_E_INVAL);
	cr_assert(user("=x") == XR_E_INVAL);
	cr_assert(eq(str, err.text, "--env: '=x' has no name"));
	cr_assert(user("A B=1") == XR_E_INVAL);
	cr_assert(eq(str, err.text, "--env: 'A B' is no name of a variable"));
	cr_assert(user("A\n=1") == XR_E_INVAL);
	cr_assert(user("FOO=") == XR_OK);
	cr_assert(eq(str, of(0, "FOO"), ""));
}

Test(env, option_values_are_bytes_and_win)
{
	static const char *const texts[] = { "A=1", "B=x=y\n\xff{rank} $HOME",
		"MASTER_PORT=29500", "A=2", "ROLE_NAME=r" };

	begin(VARS("A=old", "A=older", "MASTER_PORT=1"), 2);
	facts.user = texts;
	facts.user_count = 5;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(1, "A"), "2"));
	cr_assert(eq(str, of(1, "B"), "x=y\n\xff{rank} $HOME"));
	cr_assert(eq(str, of(1, "MASTER_PORT"), "29500"));
	cr_assert(eq(str, of(1, "ROLE_NAME"), "r"));
	cr_assert(not(env_needs(&facts).master_port));
}

Test(env, a_value_of_a_megabyte_passes)
{
	size_t len = 1 << 20;
	char *big = malloc(len + 3);

	memset(big, 'x', len + 2);
	memcpy(big, "B=", 2);
	big[len + 2] = '\0';
	begin(VARS(big), 1);
	cr_assert(build() == XR_OK);
	cr_assert(eq(sz, strlen(of(0, "B")), len));
	free(big);
}

Test(env, the_first_of_two_inherited_ones_counts)
{
	begin(VARS("A=1", "B=2", "A=3"), 1);
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "A"), "1"));
	cr_assert(eq(str, of(0, "B"), "2"));
}

Test(env, AC_L5_every_child_sees_the_size_of_the_world)
{
	begin(VARS(LIST, "XRT_LOCAL_WORKER=c:0", "XRT_SHARD_WORLD_SIZE=2"), 8);
	cr_assert(build() == XR_OK);
	for (uint32_t r = 0; r < 8; r++) {
		cr_assert(eq(str, of(r, "XRT_SHARD_WORLD_SIZE"), "16"));
		cr_assert(eq(str, of(r, "XRUN_SIZE"), "16"));
	}
	begin(VARS(LIST), 8);
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(7, "XRT_SHARD_WORLD_SIZE"), "8"));
}

Test(env, the_worked_example_of_two_hosts)
{
	begin(VARS(LIST, "XRT_LOCAL_WORKER=c_tpu_worker:1",
		      "XRT_SHARD_WORLD_SIZE=2"),
		0);
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(3, "XRT_SHARD_ORDINAL"), "11"));
	cr_assert(eq(str, of(3, "XRT_SHARD_LOCAL_ORDINAL"), "3"));
	cr_assert(eq(str, of(3, "XRT_MULTI_PROCESSING_DEVICE"), "TPU:11"));
	cr_assert(eq(str, of(3, "XRT_SHARD_WORLD_SIZE"), "16"));
	cr_assert(eq(str, of(3, "XRT_TPU_CONFIG"), "(none)"));
	cr_assert(eq(str, of(3, "XRUN_RANK"), "11"));
	cr_assert(eq(str, of(3, "XRUN_NODE"), "1"));
}

Test(env, AC_L6_exactly_rank_0_of_the_job_keeps_the_list)
{
	char local[] = "XRT_LOCAL_WORKER=c:0";
	int seen = 0;

	for (uint32_t host = 0; host < 2; host++) {
		local[sizeof(local) - 2] = (char)('0' + host);
		begin(VARS(LIST, local, "XRT_SHARD_WORLD_SIZE=2"), 8);
		cr_assert(build() == XR_OK);
		for (uint32_t r = 0; r < 8; r++) {
			bool has =
				strcmp(of(r, "XRT_TPU_CONFIG"), "(none)") != 0;

			cr_expect(eq(i32, has, host == 0 && r == 0));
			seen += has;
		}
	}
	cr_assert(eq(i32, seen, 1));
	begin(VARS(LIST), 8);
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "XRT_TPU_CONFIG"),
		(char *)strchr(LIST, '=') + 1));
}

Test(env, AC_L7_the_local_worker_is_derived_for_all_ranks)
{
	begin(VARS(LIST), 8);
	cr_assert(build() == XR_OK);
	for (uint32_t r = 0; r < 8; r++)
		cr_assert(eq(str, of(r, "XRT_LOCAL_WORKER"), "c:0"));
	begin(VARS(LIST, "XRT_LOCAL_WORKER=mine:0"), 8);
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(5, "XRT_LOCAL_WORKER"), "mine:0"));
}

Test(env, AC_L9_the_service_address_is_kept_or_replaced)
{
	begin(VARS(LIST, "XRT_MESH_SERVICE_ADDRESS=h:8477"), 8);
	cr_assert(not(env_needs(&facts).mesh_port));
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(1, "XRT_MESH_SERVICE_ADDRESS"), "h:8477"));
	begin(VARS(LIST, "XRT_MESH_SERVICE_ADDRESS="), 8);
	cr_assert(env_needs(&facts).mesh_port);
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(1, "XRT_MESH_SERVICE_ADDRESS"),
		"localhost:61235"));
	begin(VARS(LIST), 8);
	cr_assert(env_needs(&facts).mesh_port);
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(1, "XRT_MESH_SERVICE_ADDRESS"),
		"localhost:61235"));
	begin(VARS("A=b"), 8);
	cr_assert(not(env_needs(&facts).mesh_port));
	cr_assert(env_needs(&facts).master_port);
}

Test(env, an_xrun_inside_of_an_xrt_rank_starts_clean)
{
	begin(VARS("XRT_MULTI_PROCESSING_DEVICE=TPU:3", "XRT_SHARD_ORDINAL=3",
		      "XRT_SHARD_WORLD_SIZE=16", "XRT_LOCAL_WORKER=w:1",
		      "XRUN_RANK=3"),
		2);
	cr_assert(eq(u32, plan.size, 2));
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "XRT_SHARD_ORDINAL"), "(none)"));
	cr_assert(eq(str, of(0, "XRT_LOCAL_WORKER"), "(none)"));
	cr_assert(eq(str, of(0, "XRT_MULTI_PROCESSING_DEVICE"), "(none)"));
	cr_assert(eq(str, of(0, "XRUN_RANK"), "0"));
}

/* Two deals of a platform's variables, one of them with one more. */
static const struct env_given given[] = {
	{ (const struct env_var[]){ { "MASK", "0" }, { "ORDER", "PCI" } }, 2 },
	{ (const struct env_var[]){ { "MASK", "11" } }, 1 },
};

Test(env, ranks_get_what_the_platform_gives_to_their_deal)
{
	struct xr_device two[2] = {
		{ .size = sizeof(two[0]), .id = "0", .platform = "cuda" },
		{ .size = sizeof(two[0]),
			.id = "11",
			.index = 11,
			.platform = "cuda" },
	};
	struct plan_facts about = {
		.ranks = 4,
		.found = two,
		.found_count = 2,
	};

	begin(VARS("MASK=0,11"), 1);
	plan_fini(&plan);
	cr_assert(plan_make(&plan, &about, &err) == XR_OK);
	facts.given = given;
	facts.platform = "cuda";
	cr_assert(build() == XR_OK);
	for (uint32_t r = 0; r < 4; r++) {
		cr_assert(eq(str, of(r, "MASK"), r % 2 == 0 ? "0" : "11"));
		cr_assert(eq(str, of(r, "ORDER"),
			r % 2 == 0 ? "PCI" : "(none)"));
		cr_assert(eq(str, of(r, "XRUN_DEVICE"),
			r % 2 == 0 ? "cuda:0" : "cuda:11"));
	}
	build_watched();
	for (uint32_t r = 0; r < 2; r++)
		cr_expect(gt(u32,
			texts_in_rooms(&(struct env_rank){ .local_rank = r }),
			20));
}

/* As many variables as there are, and more than all others together. */
Test(env, there_is_room_for_all_that_a_platform_gives)
{
	static struct env_var vars[1000];
	static char names[1000][8], values[1000][8];
	const struct env_given all = { vars, 1000 };

	for (int i = 0; i < 1000; i++) {
		snprintf(names[i], sizeof(names[i]), "V%d", i);
		snprintf(values[i], sizeof(values[i]), "%d", 1000 - i);
		vars[i] = (struct env_var){ names[i], values[i] };
	}
	begin(VARS("A=b"), 2);
	cr_assert(eq(u32, plan.deal_count, 1));
	facts.given = &all;
	build_watched();
	for (int i = 0; i < 1000; i++)
		cr_assert(eq(str, of(0, names[i]), values[i]));
}

static void
expect_no_room_left(void)
{
	build_watched();
	cr_expect(gt(u32, room_count, 30));
	env_free(env);
	env = NULL;
	for (unsigned i = 0; i < room_count; i++)
		cr_expect(eq(ptr, (void *)rooms[i].at, NULL),
			"%zu bytes are left", rooms[i].size);
}

Test(env, all_memory_is_given_back)
{
	static const char *const mine = "B=1";

	begin(VARS("A=1", "PMI_FD=5"), 2);
	facts.user = &mine;
	facts.user_count = 1;
	cr_assert(eq(u32, plan.deal_count, 1));
	facts.given = given;
	facts.preload = "/agent.so";
	facts.python = "/lib/python";
	expect_no_room_left();
	begin(VARS(LIST), 8);
	expect_no_room_left();
}

Test(env, a_program_of_several_is_told_its_place_among_all_hosts)
{
	begin(VARS("XRT_LOCAL_WORKER=w:1", "XRT_SHARD_WORLD_SIZE=2",
		      "TPU_NUM_DEVICES=5"),
		5);
	facts.part = (struct env_part){ .index = 1, .first = 2, .size = 3 };
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(2, "XRUN_RANK"), "7"));
	cr_assert(eq(str, of(2, "XRUN_PART"), "1"));
	cr_assert(eq(str, of(2, "XRUN_PART_RANK"), "3"));
	cr_assert(eq(str, of(4, "XRUN_PART_RANK"), "5"));
	cr_assert(eq(str, of(4, "XRUN_PART_SIZE"), "6"));
	cr_assert(eq(str, of(4, "XRUN_LOCAL_SIZE"), "5"));
}

Test(env, only_what_passes_is_inherited)
{
	static const char *const globs[] = { "NCCL_*,M?NE", "XRT_NO" };

	begin(VARS("NCCL_DEBUG=1", "MINE=2", "MIINE=3", "OTHER=4", "LC_ALL=C",
		      "PATH=/bin", "OMP_NUM_THREADS=9", "RANK=7"),
		2);
	facts.pass = globs;
	facts.pass_count = 2;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "NCCL_DEBUG"), "1"));
	cr_assert(eq(str, of(0, "MINE"), "2"));
	cr_assert(eq(str, of(0, "MIINE"), "(none)"));
	cr_assert(eq(str, of(0, "OTHER"), "(none)"));
	cr_assert(eq(str, of(0, "LC_ALL"), "C"));
	cr_assert(eq(str, of(0, "PATH"), "/bin"));
	cr_assert(eq(str, of(0, "OMP_NUM_THREADS"), "1"));
	cr_assert(eq(str, of(0, "RANK"), "0"));
}

Test(env, a_mesh_address_that_does_not_pass_is_not_relied_upon)
{
	static const char *const none[] = { "NONE" };

	begin(VARS("XRT_MESH_SERVICE_ADDRESS=host:1", "XRT_LOCAL_WORKER=w:0"),
		8);
	cr_assert(not(env_needs(&facts).mesh_port));
	facts.pass = none;
	facts.pass_count = 1;
	cr_assert(env_needs(&facts).mesh_port);
}

Test(env, pjrt_rows_of_four_chips)
{
	struct xr_device chips[4];
	struct tpu_facts slice = { 0 };
	struct pjrt pjrt = { 0 };
	char *const vars[] = { "TPU_ACCELERATOR_TYPE=v4-8",
		"TPU_HOST_BOUNDS=1,1,1", "TPU_CHIPS_PER_HOST_BOUNDS=2,2,1",
		NULL };

	for (uint32_t i = 0; i < 4; i++) {
		chips[i] = (struct xr_device){ .index = i, .platform = "tpu" };
		snprintf(chips[i].id, sizeof(chips[i].id), "%u", i);
	}
	begin(vars, 1);
	plan_fini(&plan);
	cr_assert(plan_make(&plan,
			  &(struct plan_facts){ .found = chips,
				  .found_count = 4,
				  .most = 1 },
			  &err) == XR_OK);
	cr_assert(tpu_facts_of_vars(&slice, vars, &err) == XR_OK);
	cr_assert(pjrt_make(&pjrt, &slice, plan.local_size, &err) == XR_OK);
	facts.profiles |= 1u << ENV_PJRT;
	facts.platform = "tpu";
	facts.pjrt = &pjrt;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(3, "PJRT_DEVICE"), "TPU"));
	cr_assert(eq(str, of(3, "PJRT_LOCAL_PROCESS_RANK"), "3"));
	cr_assert(eq(str, of(3, "PJRT_LOCAL_PROCESS_COUNT"), "4"));
	cr_assert(eq(str, of(3, "TPU_VISIBLE_CHIPS"), "3"));
	cr_assert(eq(str, of(3, "TPU_CHIPS_PER_PROCESS_BOUNDS"), "1,1,1"));
	cr_assert(eq(str, of(3, "TPU_PROCESS_BOUNDS"), "2,2,1"));
	cr_assert(eq(str, of(3, "TPU_PROCESS_ADDRESSES"),
		"localhost:8476,localhost:8477,localhost:8478,localhost:8479"));
	cr_assert(eq(str, of(3, "TPU_PROCESS_PORT"), "8479"));
	cr_assert(eq(str, of(3, "CLOUD_TPU_TASK_ID"), "3"));
	build_watched();
	cr_expect(gt(u32, texts_in_rooms(&(struct env_rank){ .local_rank = 3 }),
		20));
	pjrt_fini(&pjrt);
}

Test(env, an_agent_goes_behind_the_users_libraries)
{
	static const char *const mine = "LD_PRELOAD=/opt/mine.so";

	begin(VARS("A=b"), 1);
	facts.preload = "/lib/agent.so";
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "LD_PRELOAD"), "/lib/agent.so"));
	cr_assert(eq(str, of(0, "ASAN_OPTIONS"), "verify_asan_link_order=0"));
	begin(VARS("LD_PRELOAD=/a.so", "ASAN_OPTIONS=a=1"), 1);
	facts.preload = "/lib/agent.so";
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "LD_PRELOAD"), "/a.so:/lib/agent.so"));
	cr_assert(eq(str, of(0, "ASAN_OPTIONS"),
		"a=1:verify_asan_link_order=0"));
	facts.user = &mine;
	facts.user_count = 1;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "LD_PRELOAD"), "/opt/mine.so:/lib/agent.so"));
}

/* Only the very same item of the user's list is the agent. */
Test(env, an_agent_is_in_the_users_list_once)
{
	static const struct {
		const char *before, *after;
	} rows[] = {
		{ "LD_PRELOAD=/lib/agent.so", "/lib/agent.so" },
		{ "LD_PRELOAD=/lib/agent.so:/a", "/lib/agent.so:/a" },
		{ "LD_PRELOAD=/a::/lib/agent.so", "/a::/lib/agent.so" },
		{ "LD_PRELOAD=/lib/other.so", "/lib/other.so:/lib/agent.so" },
		{ "LD_PRELOAD=/lib/agent.s", "/lib/agent.s:/lib/agent.so" },
		{ "LD_PRELOAD=/lib/agent.so2", "/lib/agent.so2:/lib/agent.so" },
		{ "LD_PRELOAD=//lib/agent.so", "//lib/agent.so:/lib/agent.so" },
		{ "LD_PRELOAD=", "/lib/agent.so" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(VARS((char *)rows[i].before), 1);
		facts.preload = "/lib/agent.so";
		cr_assert(build() == XR_OK);
		cr_expect(eq(str, of(0, "LD_PRELOAD"), (char *)rows[i].after));
	}
}

Test(env, the_python_module_goes_behind_the_users_folders)
{
	static const char *const mine = "PYTHONPATH=/opt/mine:/lib/python";

	begin(VARS("A=b"), 1);
	facts.python = "/lib/python";
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "PYTHONPATH"), "/lib/python"));
	begin(VARS("PYTHONPATH=/a:/lib/python2"), 1);
	facts.python = "/lib/python";
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "PYTHONPATH"), "/a:/lib/python2:/lib/python"));
	facts.user = &mine;
	facts.user_count = 1;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "PYTHONPATH"), "/opt/mine:/lib/python"));
	facts.user_count = 0;
	facts.profiles = 0;
	cr_assert(build() == XR_OK);
	cr_assert(eq(str, of(0, "PYTHONPATH"), "/a:/lib/python2"));
}

static void
put_item(void *arg, const struct env_item *item)
{
	buf_fmt(arg, "%.*s=%s (%s%s%s)\n", (int)item->name.len, item->name.at,
		item->value, item->source, item->hides ? ", hides " : "",
		item->hides ? item->hides : "");
}

static void
put_removed(void *arg, const struct env_removed *removed)
{
	buf_fmt(arg, "%.*s=%s: %s\n", (int)removed->name.len, removed->name.at,
		removed->value, removed->rule->pattern);
}

Test(env, every_variable_has_its_origin)
{
	static const char *const mine = "B=2";
	struct buf out = { 0 };

	begin(VARS("A=1", "B=1", "MASTER_PORT=29500", "PMI_FD=5",
		      "TF_CONFIG={}", "XRUN_RANKS=2", "A=9"),
		2);
	facts.user = &mine;
	facts.user_count = 1;
	facts.is_option = is_option;
	facts.is_option_arg = "XRUN_RANKS";
	facts.preload = "/agent.so";
	cr_assert(build() == XR_OK);
	env_each(env, &(struct env_rank){ .local_rank = 1 }, put_item, &out);
	cr_assert(strstr(out.data, "A=1 (inherited)\n") == out.data);
	cr_assert(strstr(out.data, "B=2 (--env, hides 1)\n") != NULL);
	cr_assert(strstr(out.data,
			  "MASTER_PORT=61234 (profile torch, hides 29500)\n") !=
		NULL);
	cr_assert(strstr(out.data, "\nXRUN_RANK=1 (xrun)\n") != NULL);
	cr_assert(strstr(out.data, "LD_PRELOAD=/agent.so (xrun)\n") != NULL);
	buf_clear(&out);
	env_each_removed(env, put_removed, &out);
	cr_assert(eq(str, out.data,
		"PMI_FD=5: PMI_*\nTF_CONFIG={}: TF_CONFIG\nXRUN_RANKS=2: XRUN_*\nA=9: *\n"));
	buf_fini(&out);
}

static void
count_item(void *arg, const struct env_item *item)
{
	(*(uint32_t *)arg)++;
}

Test(env, show_env_and_exec_agree_on_what_there_is)
{
	begin(VARS(LIST, "A=1", "B=1"), 8);
	cr_assert(build() == XR_OK);
	for (uint32_t r = 0; r < 8; r++) {
		struct env_rank rank = { .local_rank = r };
		uint32_t shown = 0, had = 0;

		env_each(env, &rank, count_item, &shown);
		for (char *const *v = env_of_rank(env, &rank); *v; v++)
			had++;
		cr_assert(eq(u32, shown, had));
	}
}

Test(env, profiles)
{
	static const unsigned base = 1u << ENV_XRUN | 1u << ENV_TORCH;
	static const struct {
		const char *text;
		struct profile_facts facts;
		unsigned bits;
	} rows[] = {
		{ "auto", { 0 }, base },
		{ "auto", { .tpu = true }, base | 1u << ENV_PJRT },
		{ "auto", { .tpu = true, .worker_list = true },
			base | 1u << ENV_XRT },
		{ "none", { .tpu = true }, 1u << ENV_XRUN },
		{ "torch", { 0 }, base },
		{ "xrun", { 0 }, 1u << ENV_XRUN },
		{ "auto,xla", { 0 }, base | 1u << ENV_PJRT },
		{ "xla", { .worker_list = true },
			1u << ENV_XRUN | 1u << ENV_PJRT | 1u << ENV_XRT },
	};
	unsigned bits = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert(profiles_parse(rows[i].text, &rows[i].facts, &bits,
				  &err) == XR_OK);
		cr_assert(eq(u32, bits, rows[i].bits), "%s", rows[i].text);
	}
	cr_assert(profiles_parse("torch,jaxx", &rows[0].facts, &bits, &err) ==
		XR_E_INVAL);
	cr_assert(eq(str, err.text,
		"--env-profile: 'jaxx' is not one of auto|none|torch|xla|xrt|pjrt|xrun"));
	cr_assert(profiles_parse("", &rows[0].facts, &bits, &err) ==
		XR_E_INVAL);
	cr_assert(profiles_parse("xrt", &rows[0].facts, &bits, &err) ==
		XR_E_INVAL);
}

Test(env, names_that_xrun_gives_out_are_listed_once)
{
	int count = 0;

	for (; env_output_names[count] != NULL; count++)
		for (int i = 0; i < count; i++)
			cr_expect(ne(str, (char *)env_output_names[i],
				(char *)env_output_names[count]));
	cr_assert(gt(i32, count, 50));
	/* Those of an outer xrun are none of the ranks'. */
	for (int i = 0; i < count; i++)
		if (strncmp(env_output_names[i], "XRUN_", 5) == 0)
			cr_expect_not_null(env_scrub_find(
				span_of(env_output_names[i]), false));
}

Test(env, fields_of_all_rows_exist)
{
	for (const struct env_row *row = env_rows; row->name != NULL; row++) {
		for (const char *p = row->value; (p = strchr(p, '{')); p++) {
			struct span name = { p + 1, strcspn(p + 1, "}") };

			cr_expect(ne(i32, env_field_find(name), FIELD_COUNT),
				"%s", row->name);
		}
	}
}
