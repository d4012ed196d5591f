/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c - see prepare.h. */
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/host.h"
#include "launcher/cmd/part.h"
#include "launcher/cmd/prepare.h"
#include "launcher/job/outcome.h"
#include "launcher/tcpstore/tcpstore_server.h"

extern char **environ;

static enum xr_status
choose_devices(struct job *job, struct prepared *p, struct xr_error *err)
{
	enum xr_status status;

	status = platform_choose(job->opt.platform, environ, &p->platform, err);
	if (status == XR_OK && options_need_driver(&job->opt))
		status = platform_list(&p->platform, err);
	return status;
}

static enum xr_status
make_plan(struct job *job, struct prepared *p, struct xr_error *err)
{
	struct plan_facts facts = {
		.ranks = parts_ranks(job),
		.parts = job->part_count,
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

enum xr_status
prepare_plan(struct job *job, struct prepared *p, struct xr_error *err)
{
	enum xr_status status;

	p->exit_status = EXIT_XRUN;
	p->master.fd = p->mesh.fd = -1;
	host_name(p->host, sizeof(p->host));
	status = choose_devices(job, p, err);
	if (status == XR_OK)
		status = make_plan(job, p, err);
	if (status == XR_OK)
		status = parts_find(job, &p->exit_status, err);
	return status;
}

/* A person who asks for threads wants more than a core for a rank. */
static bool
asks_for_threads(const struct part *part)
{
	static const char name[] = "OMP_NUM_THREADS=";
	const struct opt_list *env = &part->opt->env;
	const char *value = getenv("OMP_NUM_THREADS");

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->items[i], name, sizeof(name) - 1) == 0)
			value = env->items[i] + sizeof(name) - 1;
	return value != NULL && strcmp(value, "1") != 0;
}

/* Does "auto" bind? One rank has nobody near whom it should be; and all programs
 * of a job are bound, or none. */
static bool
gains_by_binding(const struct job *job)
{
	for (uint32_t i = 0; i < job->part_count; i++)
		if (!job->parts[i].needs_xrun ||
			asks_for_threads(&job->parts[i]))
			return false;
	return job_size(job) > 1;
}

/* A lease a processor, where that many descriptors are left. */
static enum xr_status
choose_processors(struct job *job, struct prepared *p, struct xr_error *err)
{
	struct processors *mine = &job->processors;
	enum xr_status status;

	if (!processors_wanted(job->opt.bind, gains_by_binding(job)))
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

/* Returns true if xrun serves the store of PyTorch at MASTER_PORT. */
static bool
serves_tcpstore(const struct job *job)
{
	for (uint32_t i = 0; i < job->part_count; i++)
		if (job->parts[i].python &&
			job->opt.port_hold == PORT_HOLD_AUTO)
			return true;
	return job->opt.port_hold == PORT_HOLD_SERVE;
}

/* If the port cannot be served, rank 0 serves it, as under --port-hold always. */
static void
serve_tcpstore(struct job *job, struct prepared *p)
{
	p->env.agent_store = p->master.number != 0 && serves_tcpstore(job);
	if (!p->env.agent_store || job->opt.dry_run || job->opt.show_env)
		return;
	job->tcpstore_fd = tcpstore_server_listen(p->master.number);
	p->env.agent_store = job->tcpstore_fd != -1;
}

static enum xr_status
hold_ports(struct job *job, struct prepared *p, struct xr_error *err)
{
	struct env_needs needs = parts_needs(job, &p->env);
	static struct port_limits limits;
	enum xr_status status;

	if (needs.master_port || needs.mesh_port)
		port_limits_read(&limits);
	status = hold(job, &limits, needs.master_port, &p->master, err);
	if (status == XR_OK)
		status = hold(job, &limits, needs.mesh_port, &p->mesh, err);
	p->env.master_port = p->master.number;
	p->env.mesh_port = p->mesh.number;
	if (status == XR_OK)
		serve_tcpstore(job, p);
	return status;
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
	enum xr_status status;

	p->env.inherited = environ;
	p->env.plan = &job->plan;
	p->env.job = job->state.id;
	p->env.master_addr = "127.0.0.1";
	p->env.platform = p->platform.plugin->name;
	p->env.is_option = is_ours;
	status = choose_profiles(job, p, err);
	p->env.profiles = p->profiles;
	if (status == XR_OK)
		status =
			platform_give(&p->platform, &job->plan, &p->given, err);
	p->env.given = p->given;
	if (status == XR_OK)
		status = choose_processors(job, p, err);
	if (status == XR_OK)
		status = hold_ports(job, p, err);
	if (status == XR_OK)
		status = parts_env(job, &p->env, err);
	return status;
}

void
prepare_fini(struct prepared *p, struct job *job)
{
	platform_given_free(p->given, job->plan.deal_count);
	pjrt_fini(&p->pjrt);
	tpu_facts_fini(&p->tpu);
	fd_close(job->tcpstore_fd);
	port_release(&p->master);
	port_release(&p->mesh);
	processors_fini(&job->processors);
	plan_fini(&job->plan);
	platform_fini(&p->platform);
}
