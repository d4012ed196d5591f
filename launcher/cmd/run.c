/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - see run.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/span.h"
#include "base/status.h"
#include "base/utf8.h"
#include "launcher/cmd/detach.h"
#include "launcher/cmd/part.h"
#include "launcher/cmd/prepare.h"
#include "launcher/cmd/run.h"
#include "launcher/cmd/show.h"
#include "launcher/cmd/terminal.h"
#include "launcher/ctl/errors.h"
#include "launcher/ctl/root.h"
#include "launcher/host/check.h"
#include "launcher/host/normal.h"
#include "launcher/job/job.h"
#include "launcher/job/outcome.h"
#include "launcher/job/words.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/orphan.h"
#include "launcher/keeper/own_tty.h"
#include "launcher/log/piece.h"
#include "launcher/log/reserve.h"
#include "launcher/sup/detach.h"
#include "launcher/sup/hear.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/hook.h"
#include "launcher/tell/http.h"
#include "launcher/tell/metrics_file.h"
#include "launcher/tell/report.h"

#define RANKS_TEXT_MAX 32

/* The number of a descriptor of ours that @path names; -1: it is a file. To
 * open it by its name would begin a file that stdout stands in anew. */
static int
own_descriptor(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	char *end = NULL;
	long fd = -1;

	if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (int i = 0; i < 2; i++)
		if (strncmp(path, folders[i], strlen(folders[i])) == 0)
			fd = strtol(path + strlen(folders[i]), &end, 10);
	return end != NULL && *end == '\0' && fd >= 0 && fd <= INT_MAX ?
		(int)fd :
		-1;
}

/* Descriptors are moved above those of ranks: EINVAL where none may be. */
static enum xr_status
opening_failed(const char *what, struct xr_error *err)
{
	int sys = errno;
	struct rlimit files;

	if ((sys == EINVAL || sys == EMFILE) &&
		getrlimit(RLIMIT_NOFILE, &files) == 0)
		return fail(err, XR_E_SYS,
			"ulimit -n is %llu: too few descriptors for xrun itself\tulimit -n 1024",
			(unsigned long long)files.rlim_cur);
	return fail(err, XR_E_SYS, "%s: %s", what, strerror(sys));
}

/* Of a FIFO that nobody reads: it waits for a reader, which is said. */
static int
open_waiting(const char *option, const char *path, int flags)
{
	struct stat st;
	int fd;

	if (stat(path, &st) == 0 && S_ISFIFO(st.st_mode)) {
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd != -1) {
			fcntl(fd, F_SETFL, 0);
			return fd;
		}
		if (errno == ENXIO)
			words_line("%s: %s: waits for somebody who reads it",
				option, path);
	}
	return open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | flags,
		0666);
}

/* Above the slots, which normal_init() takes; below them for the refusal. */
static enum xr_status
open_output(int *out, const char *option, const char *path, int flags,
	struct xr_error *err)
{
	char what[200];
	int own, fd;

	if (path == NULL)
		return XR_OK;
	own = own_descriptor(path);
	fd = own != -1 ? own : open_waiting(option, path, flags);
	if (fd != -1)
		*out = fcntl(fd, F_DUPFD_CLOEXEC, SPAWN_SLOTS);
	if (*out != -1) {
		if (fd != own)
			fd_close(fd);
		return XR_OK;
	}
	snprintf(what, sizeof(what), "%s: %s", option, path);
	if (fd != own)
		*out = fd;
	return opening_failed(what, err);
}

static bool
only_asks(const struct run_options *opt)
{
	return opt->dry_run || opt->show_env;
}

/* -d leaves none of them. */
static enum xr_status
check_output(const struct job *job, const char *option, const char *path,
	struct xr_error *err)
{
	if (job->detach == NULL || path == NULL || own_descriptor(path) == -1)
		return XR_OK;
	return fail(err, XR_E_INVAL,
		"%s: %s: with -d it can only be a file\tthe name of a file",
		option, path);
}

/* One would write over the other. Through a descriptor of xrun's caller they
 * share its place in the file. */
static enum xr_status
check_apart(struct job *job, struct xr_error *err)
{
	const struct run_options *opt = &job->opt;
	struct stat report, events;

	if (job->report_fd == -1 || job->events_fd == -1 ||
		own_descriptor(opt->report) != -1 ||
		own_descriptor(opt->events) != -1 ||
		fstat(job->report_fd, &report) == -1 ||
		fstat(job->events_fd, &events) == -1 ||
		!S_ISREG(report.st_mode) || report.st_dev != events.st_dev ||
		report.st_ino != events.st_ino)
		return XR_OK;
	fd_close(job->report_fd); /* it may be full of events */
	job->report_fd = -1;
	return fail(err, XR_E_INVAL,
		"--events: %s: this is the file of --report, too\tanother file for one of them",
		opt->events);
}

/* Found to be writable before the first rank, where xrun was started. Several
 * jobs may append to one file of events. */
static enum xr_status
open_outputs(struct job *job, struct xr_error *err)
{
	enum xr_status status;

	if (only_asks(&job->opt))
		return XR_OK;
	status = check_output(job, "--report", job->opt.report, err);
	if (status == XR_OK)
		status = open_output(&job->report_fd, "--report",
			job->opt.report, 0, err);
	if (status == XR_OK)
		status = check_output(job, "--events", job->opt.events, err);
	if (status == XR_OK)
		status = open_output(&job->events_fd, "--events",
			job->opt.events, O_APPEND, err);
	if (status == XR_OK)
		status = check_apart(job, err);
	if (status == XR_OK && job->opt.metrics_file != NULL)
		status = metrics_file_check(job->opt.metrics_file, err);
	return status;
}

/* Many ranks on a terminal: where everybody's standard error is in the other
 * stream, both are shown. */
static const char *
show_of(const struct run_options *opt)
{
	return opt->merge_stderr && strcmp(opt->show, "auto") == 0 ? "all" :
								     opt->show;
}

static uint32_t
part_of(const void *ctx, uint32_t local)
{
	const struct job *job = ctx;

	return job_part_index(job, job_part(job, local));
}

static enum xr_status
compile_route(struct job *job, const char *host, struct xr_error *err)
{
	bool out = isatty(STDOUT_FILENO), errs = isatty(STDERR_FILENO);
	struct route_config c = {
		.ranks = job_size(job),
		.first = job->plan.first,
		.size = job->plan.size,
		.show = show_of(&job->opt),
		.prefix = job->opt.prefix,
		.timestamps = job->opt.timestamps,
		.host = host,
		.job = job->state.id,
		.part = part_of,
		.ctx = job,
		.tty = { out, errs },
		.color = { terminal_wants_color(job->opt.color, out),
			terminal_wants_color(job->opt.color, errs) },
		.utf8 = utf8_spoken(),
		.narrow = { out && utf8_narrow(STDOUT_FILENO),
			errs && utf8_narrow(STDERR_FILENO) },
		.escapes = terminal_takes_escapes(),
		.collapse = job->opt.collapse != COLLAPSE_OFF,
		.everywhere = job->opt.collapse == COLLAPSE_ON,
	};
	enum xr_status status;

	job->errors_are_tty = errs;
	job->on_tty = out || errs;
	job->utf8 = c.utf8;
	status = route_compile(&job->route, &c, err);
	if (status != XR_OK)
		return status;
	if (job->detach != NULL) /* nobody to show it to */
		memset(job->route.shown, 0,
			job_size(job) * RAW_STREAMS *
				sizeof(*job->route.shown));
	job->interactive = job->opt.pty && !job->route.lines && out &&
		job->input_rank != JOB_NOBODY && own_tty_is_stdin();
	job->hints = errs && terminal_takes_escapes() && !job->opt.quiet &&
		!job->interactive;
	return XR_OK;
}

static enum xr_status
out_of_memory(struct xr_error *err)
{
	return fail(err, XR_E_NOMEM, "no memory for %s: %s", "the job",
		strerror(errno));
}

/* Everything two processes will share, and one table of ranks. */
static enum xr_status
make_shared(struct job *job, struct xr_error *err)
{
	job->page = keeper_page_new();
	job->share = raw_share_new(job_size(job), job->plan.first,
		job->state.attempt_fd);
	job->rank = calloc(job_size(job), sizeof(*job->rank));
	if (job->page == NULL || job->share == NULL || job->rank == NULL)
		return out_of_memory(err);
	if (job->opt.log_rotate != NULL)
		piece_rule_parse(job->opt.log_rotate, &job->share->rule);
	reserve_parse(job->opt.log_reserve, &job->share->reserve);
	for (uint32_t i = 0; i < job_size(job); i++) {
		job->rank[i].pidfd = job->rank[i].tty = -1;
		job->rank[i].step = job->rank[i].total = -1;
	}
	if (job->state.attempt != NULL)
		snprintf(job->page->where, sizeof(job->page->where), "%s",
			job->state.attempt);
	return XR_OK;
}

/* "0 to 7"; "0" if that is all. */
static const char *
ranks_text(uint32_t first, uint32_t n, char out[static RANKS_TEXT_MAX])
{
	int len = snprintf(out, RANKS_TEXT_MAX, "%u", first);

	if (n > 1)
		snprintf(out + len, RANKS_TEXT_MAX - (size_t)len, " to %u",
			first + n - 1);
	return out;
}

static int
answer(struct job *job, const struct prepared *p)
{
	uint32_t rank = (uint32_t)job->opt.show_env_rank;
	char ranks[RANKS_TEXT_MAX];

	if (!job->opt.show_env)
		return show_plan(job, p);
	if (job->opt.show_env_rank < job->plan.first ||
		job->opt.show_env_rank >= job->plan.first + job_size(job)) {
		words_line("--show-env: there is no rank %lld here, only %s",
			(long long)job->opt.show_env_rank,
			ranks_text(job->plan.first, job_size(job), ranks));
		return EXIT_XRUN;
	}
	return show_env(job, rank);
}

/* Who has standard input. Of a rank on another machine, nobody here. */
static enum xr_status
choose_input(struct job *job, struct xr_error *err)
{
	const char *text = job->opt.input;
	char ranks[RANKS_TEXT_MAX];
	uint32_t rank = 0;

	job->input_rank = JOB_NOBODY;
	/* Of a job that is left alone, who attaches to its terminal. */
	if (job->detach != NULL && !job->opt.pty)
		return XR_OK;
	job->input_all = strcmp(text, "all") == 0;
	if (job->input_all && job->opt.pty)
		return fail(err, XR_E_INVAL,
			"--stdin all: with --pty each rank's standard input is its own terminal\t--stdin RANK, or --no-pty");
	if (job->input_all || strcmp(text, "none") == 0)
		return XR_OK;
	if (!number_parse(span_of(text), UINT32_MAX, &rank) ||
		rank >= job->plan.size)
		return fail(err, XR_E_INVAL,
			"--stdin: '%.*s' is not all, none or a rank, %s",
			QUOTED(span_of(text)),
			ranks_text(0, job->plan.size, ranks));
	if (rank >= job->plan.first && rank - job->plan.first < job_size(job))
		job->input_rank = rank - job->plan.first;
	return XR_OK;
}

/* The id that Slurm's own tools know it by. */
static const char *
batch_job(void)
{
	const char *id = getenv("SLURM_JOB_ID");

	/* Room for what tells several apart. */
	return id != NULL && state_name_valid(id) &&
			strlen(id) < STATE_ID_MAX / 2 ?
		id :
		NULL;
}

/* Other jobs have these files in the folder of the attempt. */
static void
open_errors(struct job *job, const struct ctl_root *root,
	const struct xr_error *trouble)
{
	if (root->dir != -1)
		job->errors = errors_prefix_new(root);
	if (job->errors == NULL && !job->opt.quiet)
		words_line(
			"%s: there is no folder for error files of ranks: TORCHELASTIC_ERROR_FILE is not set",
			trouble->text[0] != '\0' ? trouble->text :
						   strerror(errno));
}

/* A disk without room for a folder is no reason not to run: the output is displayed.
 * A folder that was asked for by name has to be there. */
static enum xr_status
prepare_folder(struct job *job, struct state_wish *wish, struct xr_error *err)
{
	enum xr_status status = state_open(&job->state, wish, err);

	if (status == XR_OK || !state_is_full(err) || job->detach != NULL ||
		wish->name != NULL || wish->log_dir != NULL)
		return status;
	words_line("warning: %.*s; the output of this job is not stored",
		(int)strcspn(err->text, "\t"), err->text);
	job->opt.logs = wish->logs = false;
	return state_open(&job->state, wish, err);
}

/* The plan, and whether the limits of this process allow it. */
static enum xr_status
prepare_limits(struct job *job, struct prepared *p, struct xr_error *err)
{
	enum xr_status status;

	limit_read(&job->limits);
	status = prepare_plan(job, p, err);
	if (status == XR_OK)
		status = choose_input(job, err);
	limit_count(&job->limits, job_size(job), check_files(job_size(job)));
	if (job->input_all)
		job->limits.held += job_size(job); /* a pipe a rank */
	if (job->detach != NULL)
		job->limits.held += 2;
	if (status == XR_OK)
		status = check_limits(&job->limits, job_size(job), err);
	job->spare_files = check_spare(&job->limits, job_size(job));
	job->files_max =
		check_files_max(&job->limits, job_size(job), job->spare_files);
	return status;
}

static enum xr_status
prepare(struct job *job, struct prepared *p, struct xr_error *err)
{
	struct state_wish wish = {
		.name = job->opt.job,
		.batch = batch_job(),
		.log_dir = job->opt.log_dir,
		.lost = orphan_end,
		.logs = job->opt.logs && !only_asks(&job->opt),
	};
	struct ctl_root root = { .dir = -1 };
	struct xr_error trouble = { 0 };
	enum xr_status status;

	status = prepare_limits(job, p, err);
	if (status == XR_OK)
		status = prepare_folder(job, &wish, err);
	if (status != XR_OK)
		return status;
	if (only_asks(&job->opt)) {
		hear_promise(job);
	} else {
		hear_open(job);
		ctl_root_open(&root, true, &trouble);
		if (!job->opt.logs)
			open_errors(job, &root, &trouble);
	}
	status = compile_route(job, p->host, err);
	if (status == XR_OK)
		status = prepare_env(job, p, err);
	if (status == XR_OK)
		status = make_shared(job, err);
	if (status == XR_OK && !only_asks(&job->opt))
		status = record_open(job, &root, &trouble, err);
	if (status == XR_OK && !only_asks(&job->opt))
		status = http_open(job, err);
	if (status == XR_OK && !only_asks(&job->opt))
		status = hook_open(job, err);
	if (status == XR_OK && job->detach != NULL)
		status = detach_open(job, err);
	fd_close(root.dir);
	if (status != XR_OK) {
		http_close(job);
		state_remove(&job->state);
		if (job->page != NULL)
			record_remove(job);
	}
	return status;
}

/* What the keeper holds to its end, and nobody needs then. */
static void
release(struct job *job, struct prepared *p)
{
	parts_fini(job); /* their environments borrow from the rest */
	prepare_fini(p, job);
	http_free(job);
	hook_free(job);
	route_fini(&job->route);
	state_fini(&job->state);
	errors_remove(job->errors);
	free(job->errors);
	record_free(job);
	free(job->rank);
}

void
cmd_refused(const struct run_options *opt, const char *why)
{
	struct job job = {
		.opt = *opt,
		.begun_wall = clock_wall(),
		.report_fd = -1,
	};

	if (!only_asks(opt) &&
		open_output(&job.report_fd, "--report", opt->report, 0, NULL) ==
			XR_OK &&
		job.report_fd != -1)
		report_refused(&job, EXIT_XRUN, why);
	fd_close(job.report_fd);
}

/* Its supervisor has the last word, unless it had none. */
static int
run(struct job *job)
{
	int status = keeper_run(job, supervise);

	http_close(job);
	free(job->errors);
	job->errors = NULL;
	if (job->report_fd != -1 && job->page->closed == 0)
		report_refused(job, status,
			"xrun itself could not go on; its words on stderr say why");
	leave(status);
	return status;
}

int
cmd_run(const struct run_options *opt, const struct options_found *found)
{
	struct job job = {
		.opt = *opt,
		.hear_fd = -1,
		.tcpstore_fd = -1,
		.report_fd = -1,
		.events_fd = -1,
	};
	struct prepared p = { .master.fd = -1, .mesh.fd = -1 };
	struct xr_error err = { 0 };
	struct normal normal;
	enum xr_status status;

	if (opt->json && !only_asks(opt) &&
		opt_source(&found->opts, "json") == OPT_ARGV)
		words_line(
			"--json is for --dry-run and --show-env; a job's account as JSON: --report FILE");
	if (opt->detach && !only_asks(opt) &&
		detach_call(opt, &job.detach, &p.exit_status))
		return p.exit_status;
	job.begun_ns = clock_now();
	job.begun_wall = clock_wall();
	parts_init(&job, found);
	p.exit_status = EXIT_XRUN;
	/* First: the file may be a descriptor that is taken next. */
	status = open_outputs(&job, &err);
	if (status == XR_OK && normal_init(&normal) == -1)
		status = opening_failed("/dev/null", &err);
	if (status == XR_OK) {
		job.hup_ignored = normal.hup_ignored || job.detach != NULL;
		status = prepare(&job, &p, &err);
	}
	if (status != XR_OK) {
		options_blame(found, &err);
		words_error(&err);
	}
	if (status != XR_OK && job.report_fd != -1)
		report_refused(&job, p.exit_status, err.text);
	else if (status == XR_OK)
		p.exit_status = only_asks(opt) ? answer(&job, &p) : run(&job);
	release(&job, &p);
	return p.exit_status;
}
