/* SPDX-License-Identifier: Apache-2.0 */
/* part.c - see part.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/cmd/part.h"
#include "launcher/cmd/program.h"
#include "launcher/host/own_file.h"
#include "launcher/job/outcome.h"
#include "launcher/job/words.h"
#include "launcher/tell/slots.h"
#include "proc/elf.h"

#define PRELOAD   "libxrun-preload.so"
#define PYTHON    "python/xrun.py"
#define CRASH     "libxrun-crash.so"
#define NOT_THERE " is not where xrun is"

static char *
env_source(const struct options_found *found, const struct opts *opts,
	const struct run_options *opt)
{
	static const struct span name = { .at = "env", .len = 3 };

	if (opt->env.n == 0)
		return NULL;
	return options_origin(found, opts, opt_find(run_options, name));
}

void
parts_init(struct job *job, const struct options_found *found)
{
	job->part_count = 1 + found->more_count;
	job->parts = xcalloc(job->part_count, sizeof(*job->parts));
	job->parts[0].opt = &job->opt;
	job->parts[0].argv = found->argv;
	job->parts[0].env_source = env_source(found, &found->opts, &job->opt);
	for (uint32_t i = 1; i < job->part_count; i++) {
		job->parts[i].opt = &found->more[i - 1].opt;
		job->parts[i].argv = found->more[i - 1].argv;
		job->parts[i].env_source = env_source(found,
			&found->more[i - 1].opts, job->parts[i].opt);
	}
}

void
parts_fini(struct job *job)
{
	for (uint32_t i = 0; i < job->part_count; i++) {
		free(job->parts[i].program);
		free(job->parts[i].dir);
		free(job->parts[i].env_source);
		env_free(job->parts[i].env);
		args_free(job->parts[i].args);
	}
	free(job->parts);
	free(job->preload);
	free(job->python);
}

static int64_t
ranks_of(const struct part *part)
{
	return part->opt->ranks == 0 ? 1 : part->opt->ranks;
}

int64_t
parts_ranks(const struct job *job)
{
	int64_t sum = 0;

	if (job->part_count == 1)
		return job->opt.ranks;
	for (uint32_t i = 0; i < job->part_count; i++)
		sum += ranks_of(&job->parts[i]);
	return sum;
}

static void
number_ranks(struct job *job)
{
	uint32_t next = 0;

	if (job->part_count == 1)
		job->parts[0].size = job->plan.local_size;
	for (uint32_t i = 0; job->part_count > 1 && i < job->part_count; i++) {
		job->parts[i].first = next;
		job->parts[i].size = (uint32_t)ranks_of(&job->parts[i]);
		next += job->parts[i].size;
	}
}

/* Beside this program, installed or in the build tree: the agent, and the one
 * that tells of crashes, as LD_PRELOAD has several. False if one is not there. */
static bool
find_preload(struct job *job, struct part *part, bool crashes)
{
	char *agent, *crash = NULL;

	if (job->preload != NULL)
		return true;
	agent = own_file(PRELOAD, "../worker");
	if (crashes)
		crash = own_file(CRASH, "../worker");
	if (agent != NULL && crash != NULL)
		job->preload = xasprintf("%s:%s", agent, crash);
	else if (agent != NULL && !crashes)
		job->preload = xstrdup(agent);
	else
		part->no_preload =
			agent == NULL ? PRELOAD NOT_THERE : CRASH NOT_THERE;
	free(agent);
	free(crash);
	return job->preload != NULL;
}

/* By its name: it may be a script of a version manager. */
static bool
part_is_python(const char *program)
{
	const char *slash = strrchr(program, '/');

	return strncmp(slash == NULL ? program : slash + 1, "python", 6) == 0;
}

/* The module of Python's option -m, behind other options of Python: python3 -um NAME.
 * -c and the name of a script end the options. NULL if there is none. */
static const char *
part_python_module(char *const *arg)
{
	for (; *arg != NULL && **arg == '-'; arg++) {
		const char *letter = *arg + strcspn(*arg, "cmWX");

		if ((*arg)[1] == '-' || *letter == '\0')
			continue;
		if (*letter == 'c')
			return NULL;
		if (letter[1] != '\0' && *letter == 'm')
			return letter + 1;
		if (letter[1] == '\0' && *++arg == NULL)
			return NULL;
		if (*letter == 'm')
			return *arg;
	}
	return NULL;
}

/* python3 -m mpi4py, or a module in that package. */
static bool
part_runs_mpi4py(const struct part *part)
{
	static const char name[] = "mpi4py";
	const char *module = NULL;

	if (part_is_python(part->argv[0]))
		module = part_python_module(part->argv + 1);
	return module != NULL && strncmp(module, name, sizeof(name) - 1) == 0 &&
		(module[sizeof(name) - 1] == '\0' ||
			module[sizeof(name) - 1] == '.');
}

static void
choose_preload(struct job *job, struct part *part)
{
	bool crashes = options_stacks_on(&job->opt) & STACKS_ON_CRASH;
	struct elf_facts facts = { 0 };
	enum elf_verdict verdict;

	part->no_preload = "";
	verdict = elf_probe(AT_FDCWD, part->program, getenv("PATH"), &facts);
	part->needs_xrun = facts.needs_xrun;
	part->python =
		part_is_python(part->argv[0]) || part_is_python(facts.name);
	memcpy(part->mpi, facts.mpi, sizeof(part->mpi));
	if (part_runs_mpi4py(part))
		snprintf(part->mpi, sizeof(part->mpi), "mpi4py");
	if (part->opt->buffer == BUFFER_FULL && !crashes)
		return;
	if (verdict != ELF_FITS)
		part->no_preload = elf_verdict_text(verdict);
	else if (find_preload(job, part, crashes))
		part->preload = job->preload;
	if (crashes && part->preload == NULL)
		words_line("--stacks-on crash: %s cannot tell of a crash: %s%s",
			part->argv[0], verdict != ELF_FITS ? "it is " : "",
			part->no_preload);
}

/* The folder with the Python module. */
static void
find_python(struct job *job)
{
	char *file = own_file(PYTHON, "../plugins"), *slash;

	slash = file == NULL ? NULL : strrchr(file, '/');
	if (slash != NULL) {
		*slash = '\0';
		job->python = file;
	} else {
		free(file);
	}
}

/* The program is looked for where its ranks will be. */
static enum xr_status
find_one(struct job *job, struct part *part, int *exit_status,
	struct xr_error *err)
{
	const char *dir = part->opt->chdir;
	struct program program;
	char cwd[PATH_MAX];
	enum xr_status status;

	if (dir != NULL && chdir(dir) == -1)
		return fail(err, XR_E_SYS, "--chdir: %s: %s", dir,
			strerror(errno));
	if (dir != NULL)
		part->dir = xstrdup(getcwd(cwd, sizeof(cwd)) ? cwd : dir);
	status = program_find(&program, part->argv[0], part->size, err);
	part->program = program.path;
	if (status == XR_OK)
		choose_preload(job, part);
	else
		*exit_status = program.exit_status;
	return status;
}

/* xrun does not serve MPI: each rank would initialise as a job of its own, and all
 * would succeed with wrong results. */
static enum xr_status
parts_check_mpi(const struct job *job, struct xr_error *err)
{
	const struct part *first = NULL;
	uint32_t ranks = 0;

	for (uint32_t i = 0; i < job->part_count; i++) {
		const struct part *part = &job->parts[i];

		if (part->mpi[0] == '\0')
			continue;
		first = first == NULL ? part : first;
		ranks += part->size;
	}
	if (ranks <= 1 || job->opt.mpi == MPI_SINGLETONS)
		return XR_OK;
	return fail(err, XR_E_INVAL,
		"%s needs %s, and xrun does not serve MPI: each of %u ranks would be an MPI job of its own\tmpiexec -n %u %s, or --mpi singletons",
		first->argv[0], first->mpi, ranks, ranks, first->argv[0]);
}

enum xr_status
parts_find(struct job *job, int *exit_status, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	int home = -1;

	number_ranks(job);
	find_python(job);
	for (uint32_t i = 0; i < job->part_count && status == XR_OK; i++) {
		struct part *part = &job->parts[i];

		if (part->opt->chdir != NULL && home == -1)
			home = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		status = find_one(job, part, exit_status, err);
		if (part->dir != NULL && fchdir(home) == -1 && status == XR_OK)
			status = fail(err, XR_E_SYS,
				"--chdir: cannot go back: %s", strerror(errno));
	}
	fd_close(home);
	return status == XR_OK ? parts_check_mpi(job, err) : status;
}

/* Returns true if ranks of the program must not initialise MPI. A program that is
 * linked with MPI has passed parts_check_mpi(): on one machine, it is the only one
 * and has one rank. */
static bool
part_forbids_mpi(const struct job *job, const struct part *part)
{
	return job->plan.size > 1 && job->opt.mpi != MPI_SINGLETONS &&
		(part->mpi[0] == '\0' || job->plan.nodes > 1);
}

/* What the options of the program add. */
static struct env_facts
facts_of(const struct job *job, const struct part *part,
	const struct env_facts *common)
{
	struct env_facts facts = *common;

	facts.part = (struct env_part){
		.index = job_part_index(job, part),
		.first = part->first,
		.size = part->size,
	};
	facts.max_restarts = (uint32_t)job->opt.restarts;
	facts.attempt_dir =
		job->errors != NULL ? job->errors : job->state.attempt;
	facts.join = job->errors != NULL ? "-" : "/";
	facts.control = job->hear_name[0] == '\0' ? NULL : job->hear_name;
	facts.segment = slots_wanted(job);
	facts.full_buffers = part->opt->buffer == BUFFER_FULL;
	facts.no_mpi = part_forbids_mpi(job, part);
	facts.preload = part->preload;
	facts.python = job->python;
	facts.user = part->opt->env.items;
	facts.user_count = part->opt->env.n;
	facts.pass = part->opt->env_pass.items;
	facts.pass_count = part->opt->env_pass.n;
	facts.user_source = part->env_source;
	return facts;
}

struct env_needs
parts_needs(const struct job *job, const struct env_facts *common)
{
	struct env_needs all = { 0 };

	for (uint32_t i = 0; i < job->part_count; i++) {
		struct env_facts facts = facts_of(job, &job->parts[i], common);
		struct env_needs one = env_needs(&facts);

		all.master_port |= one.master_port;
		all.mesh_port |= one.mesh_port;
	}
	return all;
}

static enum xr_status
make_args(struct part *part, const struct env_facts *env, struct xr_error *err)
{
	struct args_facts facts = {
		.argv = part->argv,
		.plan = env->plan,
		.job = env->job,
		.part = env->part,
	};

	return args_new(&part->args, &facts, err);
}

enum xr_status
parts_env(struct job *job, const struct env_facts *common, struct xr_error *err)
{
	enum xr_status status = XR_OK;

	for (uint32_t i = 0; i < job->part_count && status == XR_OK; i++) {
		struct part *part = &job->parts[i];
		struct env_facts facts;

		facts = facts_of(job, part, common);
		status = env_new(&part->env, &facts, err);
		if (status == XR_OK && part->opt->template)
			status = make_args(part, &facts, err);
	}
	return status;
}
