/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c - see foreign.h. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "launcher/job/foreign.h"

#define TORCH  "torchrun"
#define HYDRA  "mpiexec"
#define OMPI   "mpirun"
#define SRUN   "srun"
#define ONE    "without it: all ranks are on this machine"
#define RANKS  "-n N"
#define ENV    "--env NAME=VALUE; ranks inherit what xrun was started with"
#define PREFIX "without it: lines bear their rank"
#define CROWD  "without it: any number of ranks is started"
#define FILES  "--log-dir DIR; all output is kept anyway"
#define PORT   "--env MASTER_PORT=N; xrun finds a free one"

/* clang-format off */

/* After the manuals of torchrun, accelerate, deepspeed, horovodrun, MPICH's
 * mpiexec, Open MPI's mpirun and srun. */
const struct foreign foreign_options[] = {
	{ "nproc-per-node", TORCH, RANKS },
	{ "nnodes", TORCH, ONE },
	{ "node-rank", TORCH, ONE },
	{ "master-addr", TORCH, ONE },
	{ "master-port", TORCH, PORT },
	{ "standalone", TORCH, ONE },
	{ "rdzv-backend", TORCH, ONE },
	{ "rdzv-endpoint", TORCH, ONE },
	{ "rdzv-id", TORCH, ONE },
	{ "rdzv-conf", TORCH, ONE },
	{ "redirects", TORCH, FILES },
	{ "tee", TORCH, FILES },
	{ "no-python", TORCH, "without it: any program is run as it is" },
	{ "m", TORCH, "python3 -m MODULE behind xrun's options" },
	{ "module", TORCH, "python3 -m MODULE behind xrun's options" },
	{ "max-restarts", TORCH, "--restarts N" },
	{ "num-processes", "accelerate", RANKS },
	{ "num-gpus", "deepspeed", RANKS },
	{ "num-proc", "horovodrun", RANKS },

	{ "n-per-node", HYDRA, RANKS },
	{ "ppn", HYDRA, RANKS },
	{ "genv", HYDRA, ENV },
	{ "genvall", HYDRA, "without it: ranks inherit all variables" },
	{ "genvnone", HYDRA, "env -i xrun ..." },
	{ "genvlist", HYDRA, ENV },
	{ "envall", HYDRA, "without it: ranks inherit all variables" },
	{ "envnone", HYDRA, "env -i xrun ..." },
	{ "envlist", HYDRA, ENV },
	{ "prepend-rank", HYDRA, PREFIX },
	{ "outfile-pattern", HYDRA, FILES },
	{ "errfile-pattern", HYDRA, FILES },
	{ "print-all-exitcodes", HYDRA, "--report FILE, or -v" },
	{ "wdir", HYDRA, "--chdir DIR" },
	{ "wd", HYDRA, "--chdir DIR" },
	{ "bind-to", HYDRA, "--bind core" },
	{ "map-by", HYDRA, "--bind core" },
	{ "l", HYDRA, PREFIX },

	{ "H", OMPI, ONE },
	{ "host", OMPI, ONE },
	{ "x", OMPI, ENV },
	{ "mca", OMPI, "--env OMPI_MCA_NAME=VALUE" },
	{ "oversubscribe", OMPI, CROWD },
	{ "use-hwthread-cpus", OMPI, CROWD },
	{ "allow-run-as-root", OMPI, "without it: root needs no leave" },
	{ "report-bindings", OMPI, "--dry-run" },
	{ "display-map", OMPI, "--dry-run" },
	{ "tag-output", OMPI, PREFIX },
	{ "output-filename", OMPI, FILES },
	{ "cpus-per-proc", OMPI, "--bind LIST" },

	{ "N", SRUN, ONE },
	{ "c", SRUN, "--bind LIST" },
	{ "cpus-per-task", SRUN, "--bind LIST" },
	{ "K", SRUN, "without it: a failure stops the others; --on-failure continue" },
	{ "t", SRUN, "--timeout TIME" },
	{ "time", SRUN, "--timeout TIME" },
	{ "o", SRUN, FILES },
	{ "u", SRUN, "--buffer none" },
	{ "p", SRUN, ONE },
	{ "ntasks", SRUN, RANKS },
	{ "ntasks-per-node", SRUN, RANKS },
	{ "nodes", SRUN, ONE },
	{ "label", SRUN, PREFIX },
	{ "kill-on-bad-exit", SRUN, "without it: a failure stops the others; --on-failure continue" },
	{ "export", SRUN, ENV },
	{ "unbuffered", SRUN, "--buffer none" },
	{ "cpu-bind", SRUN, "--bind core" },
	{ "gpus", SRUN, "--devices LIST" },
	{ "gres", SRUN, "--devices LIST" },
	{ "overcommit", SRUN, CROWD },
	{ "output", SRUN, FILES },
	{ "error", SRUN, FILES },

	{ "e", "docker", ENV },
	{ "log", "others", "--log-dir DIR" },
	{ "cwd", "others", "--chdir DIR" },
	{ "workdir", "others", "--chdir DIR" },
	{ "kill-after", "timeout", "--grace TIME" },
	{ "jobs", "parallel", RANKS },
	{ "j", "parallel", RANKS },
	{ 0 },
};

/* After docker, kubectl, ray, Slurm's commands, systemctl and pm2. Checked only if
 * no program has the name. */
const struct foreign_verb foreign_verbs[] = {
	{ "run", "xrun -n N PROGRAM" },
	{ "launch", "xrun -n N PROGRAM" },
	{ "start", "xrun -n N PROGRAM" },
	{ "exec", "xrun -n N PROGRAM" },
	{ "submit", "xrun -d -n N PROGRAM" },
	{ "sbatch", "xrun -d -n N PROGRAM" },
	{ "list", "xrun ps" },
	{ "jobs", "xrun ps" },
	{ "ls", "xrun ps" },
	{ "status", "xrun ps" },
	{ "squeue", "xrun ps" },
	{ "info", "xrun doctor" },
	{ "check", "xrun doctor" },
	{ "inspect", "xrun ps JOB" },
	{ "show", "xrun ps JOB" },
	{ "describe", "xrun ps JOB" },
	{ "log", "xrun logs JOB" },
	{ "cancel", "xrun stop JOB" },
	{ "scancel", "xrun stop JOB" },
	{ "kill", "xrun stop JOB" },
	{ "terminate", "xrun stop JOB" },
	{ "end", "xrun stop JOB" },
	{ "follow", "xrun logs -f JOB" },
	{ "join", "xrun attach JOB" },
	{ "reload", "xrun restart JOB" },
	{ "env", "xrun --show-env PROGRAM" },
	{ 0 },
};
/* clang-format on */

const char *
foreign_find_verb(const char *word)
{
	for (const struct foreign_verb *v = foreign_verbs; v->name != NULL; v++)
		if (strcmp(word, v->name) == 0)
			return v->instead;
	return NULL;
}

/* Returns true if the name of @word, up to its value, is @name. '_' counts as '-'. */
static bool
is_name(const char *word, const char *name)
{
	for (; *name != '\0' && *word != '\0' && *word != '='; name++, word++)
		if (*word != *name && !(*word == '_' && *name == '-'))
			return false;
	return *name == '\0' && (*word == '\0' || *word == '=');
}

const struct foreign *
foreign_find(const char *word)
{
	word += strspn(word, "-");
	for (const struct foreign *f = foreign_options; f->name != NULL; f++)
		if (is_name(word, f->name))
			return f;
	return NULL;
}
