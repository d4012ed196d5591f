/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.h - from options to everything a rank will get: program, devices,
 * plan, ports, environment. Nothing of it starts a process or leaves a trace,
 * so --dry-run and --show-env end right after it.
 */
#ifndef LAUNCHER_CMD_PREPARE_H
#define LAUNCHER_CMD_PREPARE_H

#include "launcher/host/platform.h"
#include "launcher/job/job.h"
#include "place/env.h"
#include "place/pjrt.h"
#include "place/port.h"

struct prepared {
	struct platform_choice platform;
	struct env_given *given;
	struct tpu_facts tpu;
	struct pjrt pjrt;
	unsigned profiles;
	struct port master, mesh; /* held till the end of the job */
	struct env_facts env;
	char host[256];
	int exit_status; /* of xrun, on failure */
};

/* prepare_plan() - program, devices, ranks: what can be wrong, is wrong here.
 * Fills job->plan and, but for their environment, job->parts. */
enum xr_status prepare_plan(struct job *job, struct prepared *p,
	struct xr_error *err);

/* prepare_env() - ports and environment, once the job has its id. */
enum xr_status prepare_env(struct job *job, struct prepared *p,
	struct xr_error *err);

/* prepare_fini() - free all of it, ports included. */
void prepare_fini(struct prepared *p, struct job *job);

#endif /* LAUNCHER_CMD_PREPARE_H */
