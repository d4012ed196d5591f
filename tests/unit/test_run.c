/* SPDX-License-Identifier: Apache-2.0 */
/* test_run.c - what xrun makes of its options before the first process of a job. */
#include <signal.h>
#include <stdint.h>

#include <sys/inotify.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/ctl/root.h"
#include "launcher/job/detach.h"
#include "launcher/job/job.h"
#include "launcher/keeper/keeper.h"
#include "launcher/log/piece.h"
#include "launcher/log/raw.h"
#include "launcher/log/reserve.h"
#include "proc/spawn.h"
#include "tests/unit/verb_rig.h"

int __wrap_keeper_run(struct job *job, keeper_fn *fn);
int __wrap_isatty(int fd);
bool __wrap_own_tty_is_stdin(void);
enum xr_status __real_state_open(struct state *state,
	const struct state_wish *wish, struct xr_error *err);
enum xr_status __wrap_state_open(struct state *state,
	const struct state_wish *wish, struct xr_error *err);
bool __real_ctl_root_open(struct ctl_root *root, bool make,
	struct xr_error *trouble);
bool __wrap_ctl_root_open(struct ctl_root *root, bool make,
	struct xr_error *trouble);
bool __wrap_state_is_full(const struct xr_error *err);

static bool tty[3], our_tty;
static bool closes = true; /* the account is written */
static int full;           /* attempts to make a folder that find no room */
static bool no_root;       /* for sockets */
static const char *why;    /* there is none */
static bool not_full;      /* and fail for another reason */

int
__wrap_isatty(int fd)
{
	return fd >= 0 && fd < 3 && tty[fd];
}

bool
__wrap_own_tty_is_stdin(void)
{
	return our_tty;
}

enum xr_status
__wrap_state_open(struct state *state, const struct state_wish *wish,
	struct xr_error *err)
{
	if (full-- > 0)
		return fail(err, XR_E_SYS, "there is no room\tmake some");
	return __real_state_open(state, wish, err);
}

bool
__wrap_state_is_full(const struct xr_error *err)
{
	(void)err;
	return !not_full;
}

bool
__wrap_ctl_root_open(struct ctl_root *root, bool make, struct xr_error *trouble)
{
	if (!no_root)
		return __real_ctl_root_open(root, make, trouble);
	if (why != NULL)
		fail(trouble, XR_E_INVAL, "%s", why);
	errno = ENOSPC;
	return false;
}

static int facts_fd;

static void
put_descriptors(const struct job *job)
{
	dprintf(facts_fd, "report=%d events=%d\n",
		job->report_fd == -1 ? -1 : job->report_fd >= SPAWN_SLOTS,
		job->events_fd == -1 ? -1 : job->events_fd >= SPAWN_SLOTS);
	if (job->report_fd != -1)
		dprintf(job->report_fd, "the report\n");
	if (job->events_fd != -1)
		dprintf(job->events_fd, "an event\n");
}

static void
put_input(const struct job *job)
{
	if (job->input_rank == JOB_NOBODY)
		dprintf(facts_fd, "input=nobody ");
	else
		dprintf(facts_fd, "input=%u ", job->input_rank);
	dprintf(facts_fd, "all=%d\n", job->input_all);
}

static void
put_route(const struct job *job)
{
	const struct route_config *c = &job->route.config;
	unsigned shown = 0;

	for (uint32_t i = 0; i < RAW_STREAMS * job_size(job); i++)
		shown += job->route.shown[i];
	dprintf(facts_fd, "route=%u,%u,%u,%s,%s,%d,%s shown=%u\n", c->ranks,
		c->first, c->size, c->show, c->prefix, c->timestamps,
		strcmp(c->job, job->state.id) == 0 ? "id" : c->job, shown);
	dprintf(facts_fd, "tty=%d%d color=%d%d utf8=%d%d escapes=%d\n",
		c->tty[0], c->tty[1], c->color[0], c->color[1], c->utf8,
		job->utf8, c->escapes);
	dprintf(facts_fd, "collapse=%d%d errors_are_tty=%d on_tty=%d\n",
		c->collapse, c->everywhere, job->errors_are_tty, job->on_tty);
	dprintf(facts_fd, "interactive=%d hints=%d parts=", job->interactive,
		job->hints);
	for (uint32_t i = 0; i < job_size(job); i++)
		dprintf(facts_fd, "%u", c->part(c->ctx, i));
	dprintf(facts_fd, "\n");
}

static void
put_shared(const struct job *job)
{
	bool fresh = true;

	for (uint32_t i = 0; i < job_size(job); i++)
		fresh &= job->rank[i].pidfd == -1 && job->rank[i].tty == -1 &&
			job->rank[i].step == -1 && job->rank[i].total == -1;
	dprintf(facts_fd, "fresh=%d rotate=%llu,%u reserve=%s%lld where=%d\n",
		fresh, (unsigned long long)job->share->rule.size,
		job->share->rule.count,
		job->share->reserve == RESERVE_AUTO ? "auto" : "",
		job->share->reserve == RESERVE_AUTO ?
			0LL :
			(long long)job->share->reserve,
		job->state.attempt == NULL ?
			job->page->where[0] == '\0' :
			strcmp(job->page->where, job->state.attempt) == 0);
	dprintf(facts_fd, "logs=%d errors=%s hup=%d hear=%d page=%d\n",
		job->opt.logs, job->errors == NULL ? "none" : "some",
		job->hup_ignored, job->hear_fd != -1, job->page->closed);
	dprintf(facts_fd, "held=%llu spare=%d files=%d\n",
		(unsigned long long)job->limits.held, job->spare_files,
		job->files_max > 0);
	dprintf(facts_fd, "begun=%d ended=%lld\n",
		job->begun_wall <= clock_wall() &&
			job->begun_wall > clock_wall() - 100 * NS_PER_S &&
			job->begun_ns <= clock_now() &&
			job->begun_ns > clock_now() - 100 * NS_PER_S,
		(long long)job->ended_ns);
}

int
__wrap_keeper_run(struct job *job, keeper_fn *fn)
{
	(void)fn;
	facts_fd = open("facts", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dprintf(facts_fd, "id=%s\n", job->state.id);
	put_descriptors(job);
	put_input(job);
	put_route(job);
	put_shared(job);
	job->page->closed = closes;
	state_fini(&job->state);
	return 77;
}

TestSuite(run, .init = verb_rig_make, .fini = folder_remove, .timeout = 60);

/* Of jobs. */
static int
folders(void)
{
	DIR *dir = opendir(ROOT);
	struct dirent *d;
	int n = 0;

	while (dir != NULL && (d = readdir(dir)) != NULL)
		n += d->d_name[0] != '.' && strcmp(d->d_name, "latest") != 0;
	closedir(dir);
	return n;
}

static char facts[4096]; /* of the job that was begun last */

/* Returns true if the job was begun, and "@name=@value" was said of it. */
static bool
has(const char *text)
{
	const char *at = facts;

	facts[0] = '\0';
	if (said.status != 77)
		return false;
	verb_rig_read("facts", facts, sizeof(facts));
	for (; (at = strstr(at, text)) != NULL; at++)
		if ((at == facts || at[-1] == '\n' || at[-1] == ' ') &&
			strchr(" \n", at[strlen(text)]) != NULL)
			return true;
	return false;
}

#define EXPECT_HAS(text) cr_expect(has(text), "%s: %s%s", text, facts, said.err)

/* The program is not begun; the error is @text. */
static void
expect_refused(const char *text)
{
	cr_expect_eq(said.status, 125, "%d", said.status);
	cr_expect_str_eq(said.err, text);
}

/* The report in the file @name says @text. */
static void
expect_reported(const char *name, const char *text)
{
	verb_rig_read(name, facts, sizeof(facts));
	cr_expect(strstr(facts, text) != NULL, "%s: %s", text, facts);
}

Test(run, a_job_without_options)
{
	CALL("true");
	EXPECT_HAS("report=-1 events=-1");
	EXPECT_HAS("input=0 all=0");
	EXPECT_HAS("route=1,0,1,auto,auto,0,id shown=2");
	EXPECT_HAS("tty=00 color=00 utf8=00 escapes=0");
	EXPECT_HAS("collapse=10 errors_are_tty=0 on_tty=0");
	EXPECT_HAS("interactive=0 hints=0 parts=0");
	EXPECT_HAS("fresh=1 rotate=0,0 reserve=auto0 where=1");
	EXPECT_HAS("logs=1 errors=none hup=0 hear=1 page=0");
	EXPECT_HAS("spare=1 files=1");
	EXPECT_HAS("begun=1 ended=0");
	cr_expect_str_eq(said.err, "");
	cr_expect_eq(folders(), 1, "%d", folders());
}

Test(run, files_of_report_and_events_are_opened_before_the_first_rank)
{
	folder_write("r", "old and longer than the new one\n", 0644);
	folder_write("e", "old\n", 0644);
	CALL("--report", "r", "--events", "e", "true");
	EXPECT_HAS("report=1 events=1");
	folder_expect("e", "old\nan event\n");
	CALL("--report", "new", "--events", "none/e", "true");
	expect_refused("xrun: --events: none/e: No such file or directory\n");
	CALL("--report", "none/r", "true");
	expect_refused("xrun: --report: none/r: No such file or directory\n");
	cr_expect_str_eq(said.out, "");
}

static void
open_nine(void)
{
	dup2(open("nine", O_RDWR | O_CREAT | O_APPEND, 0600), 9);
}

Test(run, a_descriptor_of_the_caller_is_taken_as_it_is)
{
	CALL("--report", "-", "--events", "/dev/stderr", "true");
	EXPECT_HAS("report=1 events=1");
	cr_expect_str_eq(said.out, "the report\n");
	cr_expect_str_eq(said.err, "an event\n");
	CALL("--report", "/dev/stdout", "--events", "/dev/fd/2", "true");
	cr_expect_str_eq(said.out, "the report\n");
	cr_expect_str_eq(said.err, "an event\n");
	verb_rig_first = open_nine;
	CALL("--report", "/dev/fd/9", "--events", "/proc/self/fd/9", "true");
	EXPECT_HAS("report=1 events=1");
	folder_expect("nine", "the report\nan event\n");
	CALL("--report", "/dev/fd/0", "true");
	EXPECT_HAS("report=1 events=-1");
	CALL("--report", "/dev/fd/9x", "true");
	expect_refused(
		"xrun: --report: /dev/fd/9x: No such file or directory\n");
	CALL("--report", "/dev/fd/-1", "true");
	expect_refused(
		"xrun: --report: /dev/fd/-1: No such file or directory\n");
	CALL("--report", "/dev/fd/10", "true");
	expect_refused("xrun: --report: /dev/fd/10: Bad file descriptor\n");
	CALL("--report", "/proc/self/fd/10", "true");
	expect_refused(
		"xrun: --report: /proc/self/fd/10: Bad file descriptor\n");
	CALL("--report", "/dev/fd/4294967305", "true");
	expect_refused(
		"xrun: --report: /dev/fd/4294967305: No such file or directory\n");
	CALL("--report", "/dev/fd/2147483647", "true");
	expect_refused(
		"xrun: --report: /dev/fd/2147483647: Bad file descriptor\n");
}

static void
few_descriptors(void)
{
	const struct rlimit few = { 5, 5 };

	setrlimit(RLIMIT_NOFILE, &few);
}

Test(run, too_few_descriptors_are_named)
{
	verb_rig_first = few_descriptors;
	CALL("--report", "r", "true");
	expect_refused(
		"xrun: ulimit -n is 5: too few descriptors for xrun itself   try: ulimit -n 1024\n");
	expect_reported("r",
		"\"exit\":125,\"reason\":\"refused\",\"error\":\"ulimit -n is 5: too few descriptors for xrun itself\"}");
}

Test(run, report_and_events_are_files_apart)
{
	CALL("--report", "one", "--events", "one", "true");
	expect_refused(
		"xrun: --events: one: this is the file of --report, too   try: another file for one of them\n");
	folder_expect("one", "");
	cr_assert_eq(symlink("one", "same"), 0);
	CALL("--report", "one", "--events", "same", "true");
	expect_refused(
		"xrun: --events: same: this is the file of --report, too   try: another file for one of them\n");
	CALL("--report", "one", "--events", "two", "true");
	EXPECT_HAS("report=1 events=1");
	CALL("--report", "/dev/null", "--events", "/dev/null", "true");
	EXPECT_HAS("report=1 events=1");
	CALL("--report", "said-out", "--events", "/dev/fd/1", "true");
	EXPECT_HAS("report=1 events=1");
	CALL("--report", "/dev/fd/1", "--events", "said-out", "true");
	EXPECT_HAS("report=1 events=1");
}

Test(run, who_reads_a_fifo_already_is_not_waited_for)
{
	char text[32] = "";
	int fd, held;

	cr_assert_eq(mkfifo("fifo", 0600), 0);
	fd = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	held = open("fifo", O_WRONLY | O_CLOEXEC);
	CALL("--report", "fifo", "true");
	EXPECT_HAS("report=1 events=-1");
	cr_expect_str_eq(said.err, "");
	cr_expect_eq(read(fd, text, sizeof(text) - 1), 11);
	cr_expect_str_eq(text, "the report\n");
	close(fd);
	close(held);
}

/* Reads the FIFO, once xrun has said that it waits for somebody to do so. Beside xrun,
 * so that it must not talk to Criterion. */
static void
read_when_told(int inotify)
{
	char event[4096], text[32] = "";
	int fd = open("said-err", O_RDONLY | O_CLOEXEC);

	alarm(VERB_RIG_S);
	while (pread(fd, text, 1, 0) == 0 &&
		read(inotify, event, sizeof(event)) > 0)
		continue;
	fd = open("fifo", O_RDONLY | O_CLOEXEC);
	_exit(read(fd, text, sizeof(text) - 1) == 11 &&
				strcmp(text, "the report\n") == 0 ?
			0 :
			1);
}

Test(run, a_fifo_that_nobody_reads_is_waited_for)
{
	int how = -1, inotify = inotify_init1(IN_CLOEXEC);
	pid_t pid;

	cr_assert_eq(mkfifo("fifo", 0600), 0);
	folder_write("said-err", "", 0600);
	cr_assert_neq(inotify_add_watch(inotify, "said-err", IN_MODIFY), -1);
	pid = fork();
	if (pid == 0)
		read_when_told(inotify);
	CALL("--report", "fifo", "true");
	EXPECT_HAS("report=1 events=-1");
	cr_expect_str_eq(said.err,
		"xrun: --report: fifo: waits for somebody who reads it\n");
	cr_assert_eq(waitpid(pid, &how, 0), pid);
	cr_expect_eq(how, 0);
}

Test(run, in_the_background_there_are_files_only)
{
	CALL("-d", "--report", "-", "true");
	expect_refused(
		"xrun: --report: -: with -d it can only be a file   try: the name of a file\n");
	CALL("-d", "--events", "/dev/stderr", "true");
	expect_refused(
		"xrun: --events: /dev/stderr: with -d it can only be a file   try: the name of a file\n");
	CALL("-d", "--report", "r", "true");
	cr_expect_eq(said.status, 77);
	cr_expect_str_eq(said.out, "");
	EXPECT_HAS("input=nobody all=0");
	EXPECT_HAS("route=1,0,1,auto,auto,0,id shown=0");
	EXPECT_HAS("logs=1 errors=none hup=1 hear=1 page=0");
	folder_expect("r", "the report\n");
	CALL("-d", "--pty", "true");
	EXPECT_HAS("input=0 all=0");
}

Test(run, a_file_of_metrics_is_checked_before)
{
	CALL("--metrics-file", "none/m", "true");
	cr_expect_eq(said.status, 125);
	cr_expect(strstr(said.err, "--metrics-file: none/m") != NULL, "%s",
		said.err);
	CALL("--metrics-file", "m", "true");
	cr_expect_eq(said.status, 77, "%s", said.err);
}

Test(run, what_is_only_asked_for_opens_nothing)
{
	CALL("--dry-run", "--report", "r", "--events", "e", "true");
	cr_expect_eq(said.status, 0);
	cr_expect_eq(access("r", F_OK), -1);
	cr_expect_eq(access("e", F_OK), -1);
	cr_expect_eq(folders(), 0, "%d", folders());
	cr_expect_eq(folder_entries("run"), 0);
	CALL("--show-env", "--report", "r", "true");
	cr_expect_eq(said.status, 0);
	cr_expect_eq(access("r", F_OK), -1);
	cr_expect(strstr(said.out, "XRUN_CONTROL_FD=") != NULL);
	/* Nor if it is refused. */
	CALL("--dry-run", "--report", "r", "--stdin", "9", "true");
	expect_refused(
		"xrun: --report does nothing with --dry-run: nothing is started\nxrun: --stdin: '9' is not all, none or a rank, 0\n");
	cr_expect_eq(access("r", F_OK), -1);
}

Test(run, a_rank_whose_variables_are_shown_has_to_be_here)
{
	CALL("-n", "3", "--show-env=2", "true");
	cr_expect_eq(said.status, 0);
	cr_expect(strstr(said.out, "XRUN_RANK=2\n") != NULL);
	CALL("-n", "3", "--show-env=3", "true");
	expect_refused(
		"xrun: --show-env: there is no rank 3 here, only 0 to 2\n");
	cr_expect_str_eq(said.out, "");
	CALL("--show-env=1", "true");
	expect_refused("xrun: --show-env: there is no rank 1 here, only 0\n");
}

Test(run, standard_input_is_that_of_one_rank_of_all_or_of_none)
{
	CALL("-n", "3", "true");
	EXPECT_HAS("input=0 all=0");
	CALL("-n", "3", "--stdin", "2", "true");
	EXPECT_HAS("input=2 all=0");
	CALL("-n", "3", "--stdin", "none", "true");
	EXPECT_HAS("input=nobody all=0");
	CALL("-n", "3", "--stdin", "all", "true");
	EXPECT_HAS("input=nobody all=1");
	CALL("-n", "3", "--stdin", "3", "true");
	expect_refused(
		"xrun: --stdin: '3' is not all, none or a rank, 0 to 2\n");
	CALL("-n", "2", "--stdin", "some", "true");
	expect_refused("xrun: --stdin: 'some' is not all, none or a rank\n");
	CALL("--pty", "--stdin", "all", "true");
	expect_refused(
		"xrun: --stdin all: with --pty each rank's standard input is its own terminal   try: --stdin RANK, or --no-pty\n");
	CALL("--pty", "--stdin", "none", "true");
	EXPECT_HAS("input=nobody all=0");
}

static unsigned long long
held(void)
{
	const char *at;

	EXPECT_HAS("begun=1 ended=0");
	at = strstr(facts, "held=");
	return at == NULL ? 0 : strtoull(at + 5, NULL, 10);
}

Test(run, standard_input_of_all_takes_a_descriptor_a_rank)
{
	unsigned long long one;

	CALL("-n", "5", "true");
	one = held();
	CALL("-n", "5", "--stdin", "all", "true");
	cr_expect_eq(held(), one + 5, "%llu", held());
	CALL("-n", "5", "-d", "true");
	cr_expect_eq(held(), one + 2, "%llu", held());
}

Test(run, one_terminal_is_a_window_to_the_rank_that_has_the_keyboard)
{
	tty[0] = tty[1] = our_tty = true;
	CALL("--pty", "true");
	EXPECT_HAS("interactive=1 hints=0 parts=0");
	EXPECT_HAS("tty=10 color=00 utf8=00 escapes=0");
	EXPECT_HAS("collapse=10 errors_are_tty=0 on_tty=1");
	CALL("--pty", "--stdin", "none", "true");
	EXPECT_HAS("interactive=0 hints=0 parts=0");
	CALL("true");
	EXPECT_HAS("interactive=0 hints=0 parts=0");
	CALL("--pty", "-n", "2", "true");
	EXPECT_HAS("interactive=0 hints=0 parts=00");
	our_tty = false;
	CALL("--pty", "true");
	EXPECT_HAS("interactive=0 hints=0 parts=0");
	our_tty = true;
	tty[1] = false;
	CALL("--pty", "true");
	EXPECT_HAS("interactive=0 hints=0 parts=0");
}

Test(run, hints_are_shown_where_lines_can_be_erased)
{
	tty[2] = true;
	setenv("TERM", "xterm", 1);
	CALL("true");
	EXPECT_HAS("interactive=0 hints=1 parts=0");
	EXPECT_HAS("tty=01 color=01 utf8=00 escapes=1");
	EXPECT_HAS("collapse=10 errors_are_tty=1 on_tty=1");
	CALL("-q", "true");
	EXPECT_HAS("interactive=0 hints=0 parts=0");
	tty[0] = tty[1] = our_tty = true;
	CALL("--pty", "true");
	EXPECT_HAS("interactive=1 hints=0 parts=0");
	EXPECT_HAS("tty=11 color=11 utf8=00 escapes=1");
	setenv("TERM", "dumb", 1);
	tty[1] = false;
	CALL("true");
	EXPECT_HAS("interactive=0 hints=0 parts=0");
	EXPECT_HAS("tty=01 color=00 utf8=00 escapes=0");
}

Test(run, output_goes_where_the_options_say)
{
	setenv("LC_ALL", "C.UTF-8", 1);
	CALL("-n", "3", "--show", "1", "--prefix", "{rank}:", "--timestamps",
		"--collapse", "on", "--color", "always", "true");
	EXPECT_HAS("route=3,0,3,1,{rank}:,1,id shown=2");
	EXPECT_HAS("tty=00 color=11 utf8=11 escapes=0");
	EXPECT_HAS("collapse=11 errors_are_tty=0 on_tty=0");
	CALL("-n", "3", "--collapse", "off", "true");
	EXPECT_HAS("collapse=00 errors_are_tty=0 on_tty=0");
	CALL("-n", "3", "--show", "7", "true");
	cr_expect_eq(said.status, 125);
	CALL("--log-rotate", "2M,3", "--log-reserve", "5M", "true");
	EXPECT_HAS("fresh=1 rotate=2097152,3 reserve=5242880 where=1");
	CALL("-n", "2", "true", ":", "-n", "1", "true");
	EXPECT_HAS("interactive=0 hints=0 parts=001");
	/* Nothing is left of a job that was refused. */
	cr_expect_eq(folders(), 4, "%d", folders());
}

Test(run, errors_that_go_where_output_does_are_shown_with_it)
{
	tty[1] = true;
	CALL("-n", "20", "--merge-stderr", "true");
	EXPECT_HAS("route=20,0,20,all,auto,0,id shown=40");
	CALL("-n", "20", "--merge-stderr", "--show", "first", "true");
	EXPECT_HAS("route=20,0,20,first,auto,0,id shown=2");
	CALL("-n", "20", "true");
	EXPECT_HAS("route=20,0,20,auto,auto,0,id shown=21");
}

Test(run, a_job_of_a_batch_bears_its_name)
{
	char name[STATE_ID_MAX + 2];

	setenv("SLURM_JOB_ID", "4711", 1);
	CALL("true");
	EXPECT_HAS("begun=1 ended=0");
	cr_expect_eq(strncmp(facts, "id=4711", 7), 0, "%s", facts);
	memset(name, 'a', sizeof(name));
	name[STATE_ID_MAX / 2 - 1] = '\0';
	setenv("SLURM_JOB_ID", name, 1);
	CALL("true");
	EXPECT_HAS("begun=1 ended=0");
	cr_expect(strstr(facts, name) != NULL, "%s", facts);
	name[STATE_ID_MAX / 2 - 1] = 'a';
	name[STATE_ID_MAX / 2] = '\0';
	setenv("SLURM_JOB_ID", name, 1);
	CALL("true");
	EXPECT_HAS("begun=1 ended=0");
	cr_expect(strstr(facts, name) == NULL, "%s", facts);
	setenv("SLURM_JOB_ID", "../x", 1);
	CALL("true");
	EXPECT_HAS("begun=1 ended=0");
	cr_expect_neq(strncmp(facts, "id=../x", 7), 0, "%s", facts);
}

Test(run, without_a_folder_for_sockets_error_files_have_none)
{
	CALL("--no-logs", "true");
	EXPECT_HAS("logs=0 errors=some hup=0 hear=1 page=0");
	EXPECT_HAS("fresh=1 rotate=0,0 reserve=auto0 where=1");
	cr_expect_str_eq(said.err, "");
	CALL("true");
	EXPECT_HAS("logs=1 errors=none hup=0 hear=1 page=0");
	no_root = true;
	CALL("--no-logs", "true");
	EXPECT_HAS("logs=0 errors=none hup=0 hear=1 page=0");
	cr_expect_str_eq(said.err,
		"xrun: No space left on device: there is no folder for error files of ranks: TORCHELASTIC_ERROR_FILE is not set\n");
	CALL("--no-logs", "-q", "true");
	EXPECT_HAS("logs=0 errors=none hup=0 hear=1 page=0");
	cr_expect_str_eq(said.err, "");
	why = "it is mine";
	CALL("--no-logs", "true");
	cr_expect_str_eq(said.err,
		"xrun: it is mine: there is no folder for error files of ranks: TORCHELASTIC_ERROR_FILE is not set\nxrun: it is mine: there is no folder for a control socket: verbs do not reach this job\n");
}

Test(run, where_there_is_no_room_output_is_shown_and_not_stored)
{
	full = 1;
	CALL("true");
	EXPECT_HAS("logs=0 errors=some hup=0 hear=1 page=0");
	cr_expect_str_eq(said.err,
		"xrun: warning: there is no room; the output of this job is not stored\n");
	cr_expect_eq(folders(), 0, "%d", folders());
	full = 2;
	CALL("true");
	cr_expect_eq(said.status, 125);
	cr_expect_str_eq(said.err,
		"xrun: warning: there is no room; the output of this job is not stored\nxrun: there is no room   try: make some\n");
	/* Nor if it was asked for by name, or something else is wrong. */
	full = 1;
	CALL("--job", "a", "true");
	expect_refused("xrun: there is no room   try: make some\n");
	CALL("--log-dir", "logs", "true");
	expect_refused("xrun: there is no room   try: make some\n");
	CALL("-d", "true");
	expect_refused("xrun: there is no room   try: make some\n");
	not_full = true;
	CALL("true");
	expect_refused("xrun: there is no room   try: make some\n");
}

Test(run, a_refusal_is_told_in_the_report)
{
	CALL("--report", "r", "--stdin", "4", "true");
	expect_refused("xrun: --stdin: '4' is not all, none or a rank, 0\n");
	expect_reported("r",
		"\"exit\":125,\"reason\":\"refused\",\"error\":\"--stdin: '4' is not all, none or a rank, 0\"}\n");
	/* The status is that of a program that is not there. */
	CALL("--report", "r", "no-such-program");
	cr_expect_eq(said.status, 127);
	expect_reported("r", "\"exit\":127,\"reason\":\"refused\"");
	/* Of options that are not read to their end, too. */
	CALL("--report", "r2", "--no-such-option", "true");
	cr_expect_eq(said.status, 125);
	expect_reported("r2", "\"exit\":125,\"reason\":\"refused\"");
	expect_reported("r2", "\"start\":\"20");
}

Test(run, a_supervisor_without_last_words_is_told_in_the_report)
{
	closes = false;
	CALL("true");
	cr_expect_str_eq(said.err, "");
	CALL("--report", "r", "true");
	expect_reported("r",
		"\"exit\":77,\"reason\":\"refused\",\"error\":\"xrun itself could not go on; its words on stderr say why\"}\n");
}

static void
ignore_hup(void)
{
	sigaction(SIGHUP, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
}

Test(run, nohup_is_seen)
{
	verb_rig_first = ignore_hup;
	CALL("true");
	EXPECT_HAS("logs=1 errors=none hup=1 hear=1 page=0");
}

Test(run, json_is_for_what_is_only_asked)
{
	static const char line[] =
		"xrun: --json is for --dry-run and --show-env; a job's account as JSON: --report FILE\n";

	CALL("--json", "true");
	EXPECT_HAS("begun=1 ended=0");
	cr_expect_str_eq(said.err, line);
	CALL("--json", "--dry-run", "true");
	cr_expect_eq(said.status, 0);
	cr_expect_str_eq(said.err, "");
	setenv("XRUN_JSON", "1", 1);
	CALL("true");
	EXPECT_HAS("begun=1 ended=0");
	cr_expect_str_eq(said.err, "");
}
