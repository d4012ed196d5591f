/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c - see prepare.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/cmd/prepare.h"
#include "launcher/cmd/program.h"
#include "launcher/job/outcome.h"
#include "place/mask.h"
#include "proc/elf.h"

#define PRELOAD "libxrun-preload.so"

extern char **environ;

static enum xr_status
change_directory(const char *dir, struct xr_error *err)
{
	if (dir == NULL || chdir(dir) == 0)
		return XR_OK;
	return fail(err, XR_E_SYS, "--chdir: %s: %s", dir, strerror(errno));
}

static enum xr_status
choose_devices(struct job *job, struct prepared *p, struct xr_error *err)
{
	enum xr_status status;

	status = platform_choose(job->opt.platform, environ, &p->platform, err);
	if (status == XR_OK && mask_needs_driver(job->opt.devices))
		status = platform_list(&p->platform, err);
	return status;
}

static enum xr_status
make_plan(struct job *job, struct prepared *p, struct xr_error *err)
{
	struct plan_facts facts = {
		.ranks = job->opt.ranks,
		.any_ranks = job->opt.any_ranks,
		.nodes = 1,
		.host = p->host,
		.devices = job->opt.devices,
		.found = p->platform.devices,
		.found_count = p->platform.count,
		.most = p->platform.most,
		.vars = environ,
	};

	return plan_make(&job->plan, &facts, err);
}

/* The program is looked for where the ranks will be. */
static enum xr_status
find_program(struct job *job, struct prepared *p, struct xr_error *err)
{
	struct program program;
	enum xr_status status;

	status =
		program_find(&program, job->argv[0], job->plan.local_size, err);
	job->program = program.path;
	if (status != XR_OK)
		p->exit_status = program.exit_status;
	return status;
}

enum xr_status
prepare_plan(struct job *job, struct prepared *p, struct xr_error *err)
{
	enum xr_status status;

	p->exit_status = EXIT_XRUN;
	p->master.fd = p->mesh.fd = -1;
	host_name(p->host, sizeof(p->host));
	status = change_directory(job->opt.chdir, err);
	if (status == XR_OK)
		status = choose_devices(job, p, err);
	if (status == XR_OK)
		status = make_plan(job, p, err);
	if (status == XR_OK)
		status = find_program(job, p, err);
	return status;
}

/* Beside this program, installed or in the build tree; NULL if it is not. */
static char *
find_preload(void)
{
	char exe[PATH_MAX], *slash, *path = NULL;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	static const char *const places[] = { "../worker/" PRELOAD,
		XRUN_LIBDIR_FROM_BIN "/xrun/" PRELOAD };

	exe[n < 0 ? 0 : n] = '\0';
	slash = strrchr(exe, '/');
	for (unsigned i = 0; slash != NULL && path == NULL && i < 2; i++) {
		path = xasprintf("%.*s/%s", (int)(slash - exe), exe, places[i]);
		if (access(path, R_OK) == -1) {
			free(path);
			path = NULL;
		}
	}
	if (path == NULL && access(XRUN_LIBDIR "/xrun/" PRELOAD, R_OK) == 0)
		path = xstrdup(XRUN_LIBDIR "/xrun/" PRELOAD);
	return path;
}

static void
choose_preload(struct job *job, struct prepared *p, struct elf_facts *facts)
{
	enum elf_verdict verdict;

	p->no_preload = "";
	verdict = elf_probe(AT_FDCWD, job->program, getenv("PATH"), facts);
	if (job->opt.buffer == BUFFER_FULL)
		return;
	if (verdict != ELF_FITS) {
		p->no_preload = elf_verdict_text(verdict);
		return;
	}
	p->preload = find_preload();
	if (p->preload == NULL)
		p->no_preload = PRELOAD " is not where xrun is";
}

/* A person who asks for threads wants more than a core for a rank. */
static bool
asks_for_threads(const struct job *job)
{
	static const char name[] = "OMP_NUM_THREADS=";
	const char *value = getenv("OMP_NUM_THREADS");

	for (size_t i = 0; i < job->opt.env.n; i++)
		if (strncmp(job->opt.env.items[i], name, sizeof(name) - 1) == 0)
			value = job->opt.env.items[i] + sizeof(name) - 1;
	return value != NULL && strcmp(value, "1") != 0;
}

/* Does "auto" bind? One rank has nobody near whom it should be. */
static bool
gains_by_binding(const struct job *job, const struct elf_facts *facts)
{
	return facts->needs_xrun && job_size(job) > 1 && !asks_for_threads(job);
}

/* A lease a processor, where that many descriptors are left. */
static enum xr_status
choose_processors(struct job *job, struct prepared *p,
	const struct elf_facts *facts, struct xr_error *err)
{
	struct processors *mine = &job->processors;
	enum xr_status status;

	if (!processors_wanted(job->opt.bind, gains_by_binding(job, facts)))
		return XR_OK;
	status = processors_bind(mine, job->opt.bind, job_size(job),
		job->files_max / 2, err);
	job->files_max -= mine->lease_count;
	for (uint32_t i = 0; i < mine->bind.count; i++)
		if (i == 0 || mine->bind.sets[i].cores < p->env.threads)
			p->env.threads = mine->bind.sets[i].cores;
	return status;
}

static enum xr_status
choose_profiles(struct job *job, struct prepared *p, struct xr_error *err)
{
	struct profile_facts facts = {
		.worker_list = job->plan.workers.present,
		.tpu = strcmp(p->platform.plugin->name, "tpu") == 0 &&
			!job->plan.devices_none,
	};
	enum xr_status status;

	status =
		profiles_parse(job->opt.env_profile, &facts, &p->profiles, err);
	if (status != XR_OK || (p->profiles & 1u << ENV_PJRT) == 0)
		return status;
	status = tpu_facts_of_vars(&p->tpu, environ, err);
	if (status == XR_OK)
		status =
			pjrt_make(&p->pjrt, &p->tpu, job->plan.local_size, err);
	if (status == XR_OK)
		p->env.pjrt = &p->pjrt;
	return status;
}

static enum xr_status
hold(const struct job *job, const struct port_limits *limits, bool needed,
	struct port *port, struct xr_error *err)
{
	enum xr_status status;

	if (!needed)
		return XR_OK;
	status = port_hold(port, limits, err);
	if (status == XR_OK && job->opt.port_hold == PORT_HOLD_NEVER)
		port_release(port);
	return status;
}

static enum xr_status
hold_ports(struct job *job, struct prepared *p, struct xr_error *err)
{
	struct env_needs needs = env_needs(&p->env);
	static struct port_limits limits;
	enum xr_status status;

	if (needs.master_port || needs.mesh_port)
		port_limits_read(&limits);
	status = hold(job, &limits, needs.master_port, &p->master, err);
	if (status == XR_OK)
		status = hold(job, &limits, needs.mesh_port, &p->mesh, err);
	p->env.master_port = p->master.number;
	p->env.mesh_port = p->mesh.number;
	return status;
}

/* torch's @record writes error.json into the folder of its rank, which must be
 * there then. Only Python programs do. */
static bool
is_python(const struct job *job)
{
	const char *slash = strrchr(job->argv[0], '/');
	const char *name = slash == NULL ? job->argv[0] : slash + 1;
	size_t len = strlen(name);

	return strncmp(name, "python", 6) == 0 ||
		(len > 3 && strcmp(name + len - 3, ".py") == 0);
}

/* Options and settings of plug-ins: a nested xrun starts clean. */
static bool
is_ours(const void *unused, struct span name)
{
	return options_env_is(unused, name) || platform_is_setting(name);
}

enum xr_status
prepare_env(struct job *job, struct prepared *p, struct xr_error *err)
{
	struct elf_facts facts = { 0 };
	enum xr_status status;

	choose_preload(job, p, &facts);
	p->env.inherited = environ;
	p->env.plan = &job->plan;
	p->env.job = job->state.id;
	p->env.master_addr = "127.0.0.1";
	job->error_files = job->state.attempt != NULL && is_python(job);
	p->env.attempt_dir = job->error_files ? job->state.attempt : NULL;
	p->env.full_buffers = job->opt.buffer == BUFFER_FULL;
	p->env.preload = p->preload;
	p->env.platform = p->platform.plugin->name;
	p->env.is_option = is_ours;
	p->env.user = job->opt.env.items;
	p->env.user_count = job->opt.env.n;
	status = choose_profiles(job, p, err);
	p->env.profiles = p->profiles;
	if (status == XR_OK)
		status =
			platform_give(&p->platform, &job->plan, &p->given, err);
	p->env.given = p->given;
	if (status == XR_OK)
		status = choose_processors(job, p, &facts, err);
	if (status == XR_OK)
		status = hold_ports(job, p, err);
	if (status == XR_OK)
		status = env_new(&job->env, &p->env, err);
	return status;
}

void
prepare_fini(struct prepared *p, struct job *job)
{
	env_free(job->env);
	platform_given_free(p->given, job->plan.deal_count);
	pjrt_fini(&p->pjrt);
	tpu_facts_fini(&p->tpu);
	port_release(&p->master);
	port_release(&p->mesh);
	processors_fini(&job->processors);
	plan_fini(&job->plan);
	platform_fini(&p->platform);
	free(job->program);
	free(p->preload);
}
