/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - ranks come to life: pipes, environment, program; 16 a turn. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/stdio_tag.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/own_tty.h"
#include "launcher/keeper/record.h"
#include "launcher/sup/detach.h"
#include "launcher/sup/hang.h"
#include "launcher/sup/hear.h"
#include "launcher/sup/stdin_all.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/report.h"
#include "launcher/tell/slots.h"

#define A_TURN       16
#define RETRY_NS     (50 * NS_PER_MS) /* between tries at a full table */
#define RETRY_MAX_NS (5 * NS_PER_S)

/* The write end goes to the child's slot, the read end to the logs. */
static bool
open_stream(struct job *job, uint32_t stream, enum spawn_slot slot,
	struct stdio_pipe *tag)
{
	struct stat st;
	int fd[2];

	if (fault(FAULT_SPAWN_PIPE, stream / RAW_STREAMS) != 0 ||
		pipe2(fd, O_CLOEXEC) == -1)
		return false;
	if (fstat(fd[1], &st) == -1 || spawn_slot_set(slot, fd[1]) == -1 ||
		!logs_add(job->sup->logs, stream, fd[0])) {
		fd_close(fd[0]);
		fd_close(fd[1]);
		return false;
	}
	fd_close(fd[1]);
	*tag = (struct stdio_pipe){ .dev = st.st_dev, .ino = st.st_ino };
	return true;
}

/* One terminal instead of the two pipes. */
static bool
open_terminal(struct job *job, uint32_t r, struct stdio_tag *tag)
{
	bool own = r == job->input_rank && own_tty_is_stdin();
	bool typed = own || (r == job->input_rank && job->detach != NULL);
	int slave = pty_open(job, r, typed);
	struct stat st;

	if (slave == -1)
		return false;
	if (fstat(slave, &st) == -1 ||
		spawn_slot_set(SPAWN_SLOT_OUT, slave) == -1 ||
		!logs_add_tty(job->sup->logs, r * RAW_STREAMS,
			job->rank[r].tty)) {
		pty_close(job, r);
		fd_close(slave);
		return false;
	}
	fd_close(slave);
	tag->out.dev = tag->err.dev = st.st_dev;
	tag->out.ino = tag->err.ino = st.st_ino;
	if (own)
		job->sup->tty_in = tty_in_open_pty(job, job->rank[r].tty);
	return true;
}

/* Standard error is standard output. */
static bool
one_stream(const struct job *job)
{
	return job->opt.pty || job->opt.merge_stderr;
}

/* What the rank's output goes through; its names in @tag. */
static bool
open_output(struct job *job, uint32_t r, struct stdio_tag *tag)
{
	uint32_t stream = r * RAW_STREAMS;
	bool one = one_stream(job), opened;

	if (job->opt.pty)
		opened = open_terminal(job, r, tag);
	else
		opened = open_stream(job, stream + RAW_OUT, SPAWN_SLOT_OUT,
			&tag->out);
	if (one)
		tag->err = tag->out;
	else
		opened = opened &&
			open_stream(job, stream + RAW_ERR, SPAWN_SLOT_ERR,
				&tag->err);
	if (opened)
		job->rank[r].open = one ? 1 : RAW_STREAMS;
	return opened;
}

/* A rank that is tried again has its pipe in the slot already. */
static bool
open_input(struct job *job, uint32_t r)
{
	struct stdin_all *all = job->sup->stdin_all;
	bool done;
	int fd;

	if (all == NULL || stdin_all_has(all, r))
		return true;
	fd = stdin_all_add(all, r);
	done = fd != -1 && spawn_slot_set(SPAWN_SLOT_IN, fd) == 0;
	fd_close(fd);
	return done;
}

/* A pipe or file is inherited as it is; what a terminal says is copied. */
static int
input_of(struct job *job, uint32_t r)
{
	struct sup *sup = job->sup;
	int fd;

	if (job->input_all)
		return SPAWN_SLOT_IN;
	if (r != job->input_rank)
		return job->opt.pty ? SPAWN_SLOT_OUT : SPAWN_SLOT_NULL;
	if (job->opt.pty && (job->detach != NULL || own_tty_is_stdin()))
		return SPAWN_SLOT_OUT;
	if (!own_tty_is_stdin())
		return STDIN_FILENO;
	if (sup->tty_in == NULL) {
		sup->tty_in = tty_in_open(job, &fd);
		if (sup->tty_in == NULL)
			return SPAWN_SLOT_NULL;
		spawn_slot_set(SPAWN_SLOT_IN, fd);
		fd_close(fd);
	}
	return SPAWN_SLOT_IN;
}

/* The highest descriptor the rank may have, for lifeline.h. */
static void
give_lifeline(struct job *job, uint32_t r, struct spawn *s)
{
	rlim_t limit = s->files.rlim_cur;
	int fd;

	s->life = -1;
	s->life_at = limit > LIFELINE_FD ? LIFELINE_FD : (int)limit - 1;
	if (job->sup->lifelines == NULL || s->life_at < SPAWN_SLOTS)
		return;
	fd = lifelines_add(job->sup->lifelines, r);
	if (fd == -1)
		return;
	if (spawn_slot_set(SPAWN_SLOT_LIFE, fd) == 0)
		s->life = SPAWN_SLOT_LIFE;
	fd_close(fd);
}

static const enum stdio_mode modes[] = {
	[BUFFER_LINE] = STDIO_LINE,
	[BUFFER_FULL] = STDIO_FULL,
	[BUFFER_NONE] = STDIO_NONE,
};

static void
give_processors(const struct job *job, uint32_t r, struct spawn *s)
{
	const struct bind_set *set = bind_of(&job->processors.bind, r);

	if (set == NULL)
		return;
	s->cpus = set->cpus.word;
	s->cpus_len = set->cpus.size / 8;
}

/* None where it cannot be made: that ends the job no less. */
static void
give_group(struct job *job, uint32_t r, struct spawn *s)
{
	int fd = -1;

	if (job->page->leaves.on && !job->sup->no_leaves)
		fd = leaf_make(&job->page->leaves, job_rank(job, r));
	s->group = fd == -1 ? 0 : fd;
}

static bool
spawn_rank(struct job *job, uint32_t r, struct spawn *s)
{
	const struct part *part = job_part(job, r);
	/* Of a rank that is tried again: what it has, it has already. */
	static struct stdio_tag tag;
	struct env_rank env = {
		.local_rank = r,
		.attempt = job->state.number,
	};
	char text[STDIO_TAG_MAX];
	bool runs;

	*s = (struct spawn){
		.dir = part->dir,
		.path = part->program,
		.argv = job_argv(job, r),
		.in = input_of(job, r),
		.out = SPAWN_SLOT_OUT,
		.err = one_stream(job) ? SPAWN_SLOT_OUT : SPAWN_SLOT_ERR,
		.tty = job->opt.pty,
		.files = job->limits.files,
	};
	if (!open_input(job, r)) {
		s->step = SPAWN_STDIO;
		s->sys = errno;
		return false;
	}
	if (job->rank[r].open == 0 && !open_output(job, r, &tag)) {
		s->step = job->opt.pty ? SPAWN_TERMINAL : SPAWN_STDIO;
		s->sys = errno;
		return false;
	}
	give_lifeline(job, r, s);
	s->control_at = HEAR_FD;
	s->control = job->hear_fd != -1 && s->files.rlim_cur > HEAR_FD ?
		SPAWN_SLOT_CONTROL :
		-1;
	s->segment_at = SLOTS_FD;
	s->segment = job->segment[0] != '\0' && s->files.rlim_cur > SLOTS_FD ?
		SPAWN_SLOT_SEGMENT :
		-1;
	give_processors(job, r, s);
	give_group(job, r, s);
	tag.mode = modes[part->opt->buffer];
	stdio_tag_format(&tag, text);
	env.stdio = text;
	env.segment = job->segment[0] != '\0' ? job->segment : NULL;
	s->envp = env_of_rank(part->env, &env);
	s->rank = r;
	job->rank[r].started_ns = clock_now();
	runs = spawn_start(s);
	if (s->group != 0)
		fd_close(s->group);
	return runs;
}

/* The pipes of a rank that will never be have no writer any more. */
static void
close_slots(void)
{
	spawn_slot_set(SPAWN_SLOT_IN, -1);
	spawn_slot_set(SPAWN_SLOT_OUT, -1);
	spawn_slot_set(SPAWN_SLOT_ERR, -1);
	spawn_slot_set(SPAWN_SLOT_LIFE, -1);
}

static void
started(struct job *job, uint32_t r, const struct spawn *s)
{
	struct rank *rank = &job->rank[r];

	fault(FAULT_SPAWN_AFTER, r);
	rank->pid = s->pid;
	rank->pidfd = s->pidfd;
	job->started++;
	slots_started(job, r);
	step_rank(job, r, RANK_EV_EXECED);
	bus_tell(job->sup->bus, BUS_RANK_START, r);
	if (fault(FAULT_SPAWN_WATCH, r) == 0 &&
		children_add(job->sup->children, s->pidfd, r))
		return;
	stop_fail(job, "rank %u cannot be watched: %s", job_rank(job, r),
		strerror(errno));
	death_look_for(job, r);
}

/* The program itself cannot be run: the same for every rank, said once. */
static void
refused(struct job *job, uint32_t r, const struct spawn *s)
{
	struct rank *rank = &job->rank[r];

	close_slots();
	rank->failed_step = s->step;
	rank->failed_sys = s->sys;
	job->started++;
	bus_tell(job->sup->bus, BUS_RANK_ERROR, r);
	step_rank(job, r, RANK_EV_EXEC_FAILED);
	if (job->opt.on_failure == ON_FAILURE_STOP)
		stop_job(job, CAUSE_FAILURE);
}

/* No process, thread or memory for it now: others may end. True: there will be
 * another try; @since is when the first one failed. */
static bool
may_retry(struct job *job, int64_t *since, int sys)
{
	if (sys != EAGAIN && sys != ENOMEM)
		return false;
	if (*since == 0)
		*since = clock_now();
	if (clock_now() - *since >= RETRY_MAX_NS)
		return false;
	timer_arm(job->sup->start, RETRY_NS);
	return true;
}

/* Of a process that was refused the kernel keeps to itself which limit it was.
 * The job is over: /proc may be read. */
static void
put_error(struct buf *out, int sys)
{
	buf_put_text(out, strerror(sys));
	if (sys == EAGAIN)
		limit_put_why(out, "");
	if (sys == ENOSPC)
		buf_put_text(out, " (/proc/sys/kernel/pty/max)");
}

static void
cannot_start(struct job *job, uint32_t r, const struct spawn *s)
{
	struct buf why = { 0 };

	put_error(&why, s->sys);
	stop_fail(job,
		"rank %u could not be started: %s: %s; %u ranks were started and are stopped",
		job_rank(job, r), spawn_step_name(s->step), buf_text(&why),
		job->started);
	buf_fini(&why);
}

static void
cannot_move_output(struct job *job, int sys)
{
	struct buf why = { 0 };

	put_error(&why, sys);
	stop_fail(job, "no thread for the output: %s", buf_text(&why));
	buf_fini(&why);
}

/* False: not now, or never. */
static bool
start_one(struct job *job, uint32_t r)
{
	struct sup *sup = job->sup;
	struct spawn s;

	if (spawn_rank(job, r, &s)) {
		started(job, r, &s);
		sup->retry_ns = 0;
		return true;
	}
	if (s.step == SPAWN_CLONE && may_retry(job, &sup->retry_ns, s.sys))
		return false;
	/* A group that may be made and not be entered is no reason either. */
	if (s.step == SPAWN_GROUP) {
		sup->no_leaves = true;
		return start_one(job, r);
	}
	/* Nobody asked to be bound: a sandbox or a shrunk cpuset is no reason
	 * not to run. */
	if (s.step == SPAWN_AFFINITY && job->processors.unasked) {
		bind_fini(&job->processors.bind);
		return start_one(job, r);
	}
	if (s.step == SPAWN_EXEC) {
		refused(job, r, &s);
		return true;
	}
	cannot_start(job, r, &s);
	return false;
}

/* Told to stop before all were started: the rest never will be. */
static void
skip_rest(struct job *job)
{
	close_slots();
	for (uint32_t r = 0; r < job_size(job); r++)
		if (job->rank[r].state == RANK_NEW)
			step_rank(job, r, RANK_EV_STOP);
	finish_if_over(job);
}

/* Where processes are refused, threads are, too. */
static void
start_threads(struct job *job)
{
	struct sup *sup = job->sup;
	int sys = logs_start(sup->logs);

	if (sys == 0) {
		watch_close(sup->output);
		sup->output = NULL;
		sup->unread_ns = 0;
		return;
	}
	if (sup->output != NULL)
		watch_pause(sup->output);
	if (!may_retry(job, &sup->unread_ns, sys))
		cannot_move_output(job, sys);
}

bool
start_lacks_output(const struct job *job)
{
	int64_t since = job->sup->unread_ns;

	return since != 0 && clock_now() - since < RETRY_MAX_NS;
}

/* Not before a rank writes: many say nothing, or nothing for a while. */
void
start_output(int fd, void *ctx)
{
	struct job *job = ctx;
	uint32_t ended[LOGS_PEEK], n;
	bool bytes = logs_peek(job->sup->logs, ended, &n);

	(void)fd;
	for (uint32_t i = 0; i < n; i++)
		step_eof(job, ended[i]);
	if (bytes)
		start_threads(job);
	/* Now, while the ranks work, and not when they are done. */
	if (bytes && job->state.dir_fd != -1)
		report_latest(job);
	finish_if_over(job);
}

/* Input flows once nothing of ours holds the ranks' ends of it. */
static void
all_started(struct job *job)
{
	int sys;

	close_slots();
	detach_started(job);
	hang_begin(job);
	if (job->sup->stdin_all == NULL || job->sup->input_flows)
		return;
	sys = stdin_all_start(job->sup->stdin_all, job->opt.restarts > 0);
	job->sup->input_flows = sys == 0;
	if (sys != 0 && !may_retry(job, &job->sup->unfed_ns, sys))
		stop_fail(job, "no thread for --stdin all: %s", strerror(sys));
}

void
start_turn(void *ctx)
{
	struct job *job = ctx;
	struct sup *sup = job->sup;
	uint32_t last = job->started + A_TURN;

	while (job->stop_ns == 0 && job->started < job_size(job) &&
		job->started < last)
		if (!start_one(job, job->started))
			break;
	if (sup->output != NULL)
		watch_resume(sup->output);
	else if (logs_first(sup->logs) == -1)
		start_threads(job);
	if (job->stop_ns != 0 || job->started == job_size(job)) {
		keeper_all_started(job->page);
		record_search(job);
	}
	if (job->stop_ns != 0)
		skip_rest(job);
	else if (job->started == job_size(job))
		all_started(job);
	else if (!timer_armed(sup->start))
		timer_arm(sup->start, 0);
}
