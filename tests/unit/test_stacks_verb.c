/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_verb.c - xrun stacks: of which ranks, for how long, and where it goes. */
#include <signal.h>
#include <stdint.h>

#include <sys/prctl.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/table.h"
#include "launcher/stacks/differ.h"
#include "launcher/stacks/gather.h"
#include "launcher/stacks/merge.h"
#include "launcher/stacks/put.h"
#include "tests/unit/verb_rig.h"

#define T0 (INT64_C(1795227240) * NS_PER_S) /* 2026-11-21T02:14:00Z */

enum xr_status __wrap_dial_status(struct which *job, struct cJSON **json,
	struct xr_error *err);
int __wrap_gather_stacks(struct stacks *s, const struct gather *settings);
void __wrap_merge_stacks(struct stacks *s);
void __wrap_put_table(struct buf *out, const struct stacks *s, uint32_t cols,
	uint32_t groups);
void __wrap_put_full(struct buf *out, const struct stacks *s);
void __wrap_put_first(struct buf *out, const struct stacks *s);
void __wrap_put_json(struct buf *out, const struct stacks *s, const char *job);
bool __wrap_differ_put(struct buf *out, const struct stacks *s,
	uint32_t *majority);
uint32_t __wrap_table_columns(void);
int64_t __wrap_clock_wall(void);

static const char *status_now; /* NULL: the job does not answer */
static int ends;               /* the signal that ends it; 0 */
static uint32_t columns;
static const char *input; /* file of standard input, or NULL */

enum xr_status
__wrap_dial_status(struct which *job, struct cJSON **json, struct xr_error *err)
{
	if (status_now == NULL)
		return fail(err, XR_E_CLOSED, "%s does not answer", job->id);
	*json = cJSON_Parse(status_now);
	return XR_OK;
}

/* To standard error: whom it looks at. */
int
__wrap_gather_stacks(struct stacks *s, const struct gather *settings)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	char name[17] = "";
	sigset_t set;

	sigprocmask(SIG_BLOCK, NULL, &set);
	for (int i = 0; i < 4; i++)
		if (sigismember(&set, signals[i]) != 1)
			dprintf(STDERR_FILENO, "not blocked: %d\n", i);
	if (sigismember(&set, SIGUSR1) != 0 ||
		(fcntl(settings->signals, F_GETFL) & O_NONBLOCK) == 0)
		dprintf(STDERR_FILENO, "signals: %d\n", settings->signals);
	raise(SIGHUP);
	if (read(settings->signals, &set, sizeof(set)) == -1 && errno != EINVAL)
		dprintf(STDERR_FILENO, "no signal is read\n");
	prctl(PR_GET_NAME, name);
	dprintf(STDERR_FILENO,
		"%s %lld ms:", strcmp(name, "xrun-stacks") == 0 ? "named" : "-",
		(long long)(settings->patience / NS_PER_MS));
	for (uint32_t i = 0; i < s->ranks; i++)
		dprintf(STDERR_FILENO, " %u=%d", s->rank[i].rank,
			(int)s->rank[i].pid);
	dprintf(STDERR_FILENO, "\n");
	return ends;
}

void
__wrap_merge_stacks(struct stacks *s)
{
	s->took_ns = 77;
}

void
__wrap_put_table(struct buf *out, const struct stacks *s, uint32_t cols,
	uint32_t groups)
{
	buf_fmt(out, "table %lld %u %u\n", (long long)s->took_ns, cols, groups);
}

void
__wrap_put_full(struct buf *out, const struct stacks *s)
{
	buf_fmt(out, "full %lld\n", (long long)s->took_ns);
}

void
__wrap_put_first(struct buf *out, const struct stacks *s)
{
	buf_fmt(out, "first %lld\n", (long long)s->took_ns);
}

void
__wrap_put_json(struct buf *out, const struct stacks *s, const char *job)
{
	buf_fmt(out, "json %lld %s\n", (long long)s->took_ns,
		job == NULL ? "-" : job);
}

bool
__wrap_differ_put(struct buf *out, const struct stacks *s, uint32_t *majority)
{
	buf_fmt(out, "differ %lld\n", (long long)s->took_ns);
	*majority = 0;
	return true;
}

uint32_t
__wrap_table_columns(void)
{
	return columns;
}

int64_t
__wrap_clock_wall(void)
{
	return T0;
}

static void
take_input(void)
{
	if (input != NULL)
		cr_assert_not_null(freopen(input, "r", stdin));
}

static void
begin(void)
{
	verb_rig_make();
	verb_rig_first = take_input;
}

TestSuite(stacks_verb, .init = begin, .fini = folder_remove, .timeout = 60);

#define THREE \
	"{\"ranks\":3,\"rank\":[{\"rank\":0,\"pid\":10},{\"rank\":1,\"pid\":11,\"exit\":0},{\"rank\":2,\"pid\":12}]}"

Test(stacks_verb, all_ranks_or_those_that_are_named)
{
	job_make("k7m2", true, NULL);
	status_now = THREE;
	CALL("stacks", "k7m2");
	EXPECT_SAID(0, "table 77 0 0\n", "- 5000 ms: 0=10 1=0 2=12\n");
	CALL("stacks", "k7m2", "-r", "1-2", "--patience", "7ms");
	EXPECT_SAID(0, "table 77 0 0\n", "- 7 ms: 1=0 2=12\n");
	CALL("stacks", "k7m2", "-r", "3");
	EXPECT_SAID(125, "", "xrun: '3': the ranks are 0 to 2\n");
	status_now =
		"{\"ranks\":2,\"rank\":[{\"rank\":0,\"pid\":10,\"signal\":\"SIGSEGV\"},{\"rank\":1},{\"rank\":2,\"pid\":12},{\"pid\":13}]}";
	CALL("stacks");
	EXPECT_SAID(0, "table 77 0 0\n",
		"xrun: job k7m2\n- 5000 ms: 0=0 1=0\n");
	status_now = NULL;
	CALL("stacks", "k7m2");
	EXPECT_SAID(125, "", "xrun: k7m2 does not answer\n");
	CALL("stacks", "x");
	EXPECT_SAID(125, "", "xrun: there is no job 'x'   try: xrun ps -a\n");
	CALL("stacks", "x", "y");
	EXPECT_SAID(125, "",
		"xrun: stacks: 'y' is one word too many   try: xrun stacks -h\n");
}

Test(stacks_verb, what_is_printed)
{
	job_make("k7m2", true, NULL);
	status_now = THREE;
	CALL("stacks", "k7m2", "--full");
	cr_expect_str_eq(said.out, "table 77 0 0\nfull 77\n");
	CALL("stacks", "k7m2", "--json", "--full");
	cr_expect_str_eq(said.out, "json 77 k7m2\n");
	CALL("stacks", "k7m2", "--title", "why");
	cr_expect_str_eq(said.out, "differ 77\ntable 77 0 0\n");
	columns = 80;
	CALL("stacks", "k7m2");
	cr_expect_str_eq(said.out, "table 77 80 20\n");
	CALL("stacks", "k7m2", "-f");
	cr_expect_str_eq(said.out, "table 77 80 0\nfull 77\n");
}

Test(stacks_verb, a_signal_ends_it)
{
	job_make("k7m2", true, NULL);
	status_now = THREE;
	ends = SIGTERM;
	CALL("stacks", "k7m2");
	cr_expect_eq(said.status, 128 + SIGTERM);
	cr_expect_str_eq(said.out, "");
}

Test(stacks_verb, all_of_it_goes_to_the_end_of_a_file)
{
	struct stat st;

	job_make("k7m2", true, NULL);
	status_now = THREE;
	columns = 80;
	CALL("stacks", "k7m2", "--save", "file");
	cr_expect_eq(said.status, 0);
	cr_expect_str_eq(said.out, "first 77\n");
	folder_expect("file",
		"2026-11-21T02:14:00.000000Z: table 77 0 0\nfull 77\n\n");
	cr_assert_eq(stat("file", &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	CALL("stacks", "k7m2", "--save", "file", "--title", "hang", "--json");
	cr_expect_str_eq(said.out, "first 77\n");
	folder_expect("file",
		"2026-11-21T02:14:00.000000Z: table 77 0 0\nfull 77\n\n"
		"2026-11-21T02:14:00.000000Z hang: table 77 0 0\nfull 77\n\n");
	cr_assert_eq(symlink("file", "link"), 0);
	CALL("stacks", "k7m2", "--save", "link");
	cr_expect_eq(said.status, 125);
	cr_expect_str_eq(said.out, "");
	cr_expect(
		strstr(said.err,
			"xrun: stacks: link: Too many levels of symbolic links\n") !=
			NULL,
		"%s", said.err);
}

Test(stacks_verb, processes_of_no_job)
{
	input = "pids";
	folder_write("pids", "0 10\n1 11 \n7 12\n", 0600);
	CALL("stacks", "--pids");
	EXPECT_SAID(0, "table 77 0 0\n", "named 5000 ms: 0=10 1=11 7=12\n");
	CALL("stacks", "--pids", "--json");
	cr_expect_str_eq(said.out, "json 77 -\n");
	CALL("stacks", "--pids", "k7m2");
	EXPECT_SAID(125, "",
		"xrun: stacks: --pids is for processes of no job\n");
	folder_write("pids", "", 0600);
	CALL("stacks", "--pids");
	EXPECT_SAID(125, "",
		"xrun: stacks: --pids: standard input has no line\n");
	folder_write("pids", "0 10\n1 x\n", 0600);
	CALL("stacks", "--pids");
	EXPECT_SAID(125, "", "xrun: --pids: '1 x' is not RANK PID\n");
	folder_write("pids", "0 0\n", 0600);
	CALL("stacks", "--pids");
	EXPECT_SAID(125, "", "xrun: --pids: '0 0' is not RANK PID\n");
	folder_write("pids", "0 1", 0600);
	CALL("stacks", "--pids");
	EXPECT_SAID(0, "table 77 0 0\n", "named 5000 ms: 0=1\n");
	folder_write("pids", "0 1 2\n", 0600);
	CALL("stacks", "--pids");
	EXPECT_SAID(125, "", "xrun: --pids: '0 1 2' is not RANK PID\n");
}
