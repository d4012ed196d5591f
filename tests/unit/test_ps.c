/* SPDX-License-Identifier: Apache-2.0 */
/* test_ps.c - xrun ps: the list of jobs, and the ranks, pools and queues of one. */
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/ps_pools.h"
#include "launcher/cmd/table.h"
#include "launcher/stat/usage.h"
#include "proc/descend.h"
#include "tests/unit/verb_rig.h"

#define T0 (INT64_C(1795227240) * NS_PER_S) /* 2026-11-21T02:14:00Z */

#define NO_SUCH_JOB "there is no such job"

int64_t __wrap_clock_wall(void);
struct cJSON *__wrap_dial_status_now(const struct which *job);
enum xr_status __wrap_dial_status(struct which *job, struct cJSON **json,
	struct xr_error *err);
bool __wrap_dial_is_stuck(const char *id);
bool __wrap_proc_stat_read(pid_t pid, struct proc_stat *st);
void __wrap_usage_add(struct cJSON *status);
uint32_t __wrap_table_columns(void);
uint32_t __real_table_columns(void);

static const char
	*status_now;      /* of a job that runs; NULL: it does not answer */
static const char *stuck; /* the job whose supervisor does not answer */
static char keeper_state = 'S';
static uint32_t columns;
static bool no_thread;

int64_t
__wrap_clock_wall(void)
{
	return T0;
}

struct cJSON *
__wrap_dial_status_now(const struct which *job)
{
	(void)job;
	return status_now != NULL ? cJSON_Parse(status_now) : NULL;
}

enum xr_status
__wrap_dial_status(struct which *job, struct cJSON **json, struct xr_error *err)
{
	if (!job->running || status_now == NULL)
		return fail(err, XR_E_CLOSED, NO_SUCH_JOB);
	*json = cJSON_Parse(status_now);
	return XR_OK;
}

bool
__wrap_dial_is_stuck(const char *id)
{
	return stuck != NULL && strcmp(id, stuck) == 0;
}

bool
__wrap_proc_stat_read(pid_t pid, struct proc_stat *st)
{
	st->state = keeper_state;
	return pid <= 1 || pid == 4711;
}

void
__wrap_usage_add(struct cJSON *status)
{
	cJSON_AddBoolToObject(status, "used", true);
}

uint32_t
__wrap_table_columns(void)
{
	return columns;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg);

int
__wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg)
{
	return no_thread ? EAGAIN :
			   __real_pthread_create(thread, attr, fn, arg);
}

TestSuite(ps, .init = verb_rig_make, .fini = folder_remove, .timeout = 60);

#define AT(second) "\"2026-11-21T02:" second ".000000Z\""
#define HEAD       "JOB      RANKS  STATE    TIME     EXIT  COMMAND\n"

/* --- the list --------------------------------------------------------------- */

static void
make_some(void)
{
	job_make("runs", true,
		"{\"job\":\"runs\",\"ranks\":8,\"start\":" AT(
			"13:00") ",\"argv\":[\"a\",\"b c\",7],\"exit\":3,\"rank\":[{}]}");
	job_make("young", true, NULL);
	job_make("ok", false,
		"{\"ranks\":1,\"start\":" AT("10:00") ",\"end\":" AT(
			"10:05") ",\"exit\":0,\"reason\":\"ok\",\"argv\":[\"true\"]}");
	job_make("bad", false,
		"{\"ranks\":12345,\"start\":" AT("09:00") ",\"end\":" AT(
			"11:00") ",\"exit\":3,\"reason\":\"failure\",\"argv\":[\"false\"]}");
}

Test(ps, jobs_that_run)
{
	CALL("ps");
	EXPECT_SAID(0, "", "");
	make_some();
	CALL("ps");
	EXPECT_SAID(0,
		HEAD "runs         8  running  1 min          a b c\n"
		     "young        -  running  -\n",
		"");
	CALL("ps", "-q");
	EXPECT_SAID(0, "runs\nyoung\n", "");
	status_now = "{\"ranks\":2,\"start\":" AT("13:58") ",\"argv\":[\"x\"]}";
	no_thread = true;
	CALL("ps");
	EXPECT_SAID(0,
		HEAD "runs         8  running  1 min          a b c\n"
		     "young        2  running  2 s            x\n",
		"");
	columns = 41;
	CALL("ps");
	EXPECT_SAID(0,
		"JOB      RANKS  STATE    TIME     EXIT  C\n"
		"runs         8  running  1 min          a\n"
		"young        2  running  2 s            x\n",
		"");
}

Test(ps, jobs_that_have_ended)
{
	make_some();
	job_make("sig", false,
		"{\"ranks\":1,\"start\":" AT("08:00") ",\"end\":" AT(
			"08:00") ",\"exit\":143,\"reason\":\"signal\"}");
	job_make("lost", false,
		"{\"ranks\":1,\"start\":" AT("07:00") ",\"end\":" AT(
			"06:00") ",\"exit\":125,\"reason\":\"supervisor lost\"}");
	job_make("time", false,
		"{\"ranks\":1,\"start\":" AT(
			"06:00") ",\"reason\":\"timeout\"}");
	job_make("gone", false, "{\"start\":" AT("05:00") "}");
	past_make(
		"{\"job\":\"past\",\"ranks\":3,\"exit\":0,\"reason\":\"ok\",\"start\":" AT(
			"04:00") ",\"end\":" AT("04:01") "}");
	CALL("ps", "-a");
	EXPECT_SAID(0,
		HEAD "past         3  done     1 s         0\n"
		     "gone         -  lost     -\n"
		     "time         1  timeout  -\n"
		     "lost         1  lost     -         125\n"
		     "sig          1  stopped  0 s       143\n"
		     "bad      12345  failed   2 min       3  false\n"
		     "ok           1  done     5 s         0  true\n"
		     "runs         8  running  1 min          a b c\n"
		     "young        -  running  -\n",
		"");
	CALL("ps", "-aq");
	EXPECT_SAID(0, "past\ngone\ntime\nlost\nsig\nbad\nok\nruns\nyoung\n",
		"");
}

Test(ps, a_supervisor_that_does_not_answer)
{
	static const char words[] =
		"xrun: runs: the supervisor does not answer   try: xrun stop runs\n";

	make_some();
	stuck = "runs";
	CALL("ps");
	EXPECT_SAID(0,
		HEAD "runs         8  stuck    1 min          a b c\n"
		     "young        -  running  -\n",
		words);
	CALL("ps", "-q");
	EXPECT_SAID(0, "runs\nyoung\n", "");
	no_thread = true;
	CALL("ps", "--json");
	EXPECT_SAID(0,
		"[{\"job\":\"runs\",\"ranks\":8,\"start\":" AT(
			"13:00") ",\"argv\":[\"a\",\"b c\",7],\"exit\":3,\"running\":true,\"stuck\":true},"
				 "{\"job\":\"young\",\"running\":true}]\n",
		words);
	/* It is asked nothing. */
	stuck = "young";
	status_now = "{\"ranks\":2}";
	CALL("ps", "--json");
	cr_expect(
		strstr(said.out,
			"{\"job\":\"young\",\"running\":true,\"stuck\":true}]") !=
			NULL,
		"%s", said.out);
}

Test(ps, a_job_that_was_suspended)
{
	job_make("k7m2", true,
		"{\"job\":\"k7m2\",\"ranks\":1,\"pid\":4711,\"start\":" AT(
			"13:59") "}");
	stuck = "k7m2";
	keeper_state = 'T';
	CALL("ps");
	EXPECT_SAID(0,
		"JOB      RANKS  STATE     TIME     EXIT  COMMAND\n"
		"k7m2         1  suspended 1 s\n",
		"");
	CALL("ps", "--json");
	cr_expect(strstr(said.out, "\"running\":true,\"suspended\":true}]") !=
			NULL,
		"%s", said.out);
	folder_write(job_path("k7m2", "job.json"), "{\"pid\":1}", 0600);
	CALL("ps");
	cr_expect(strstr(said.out, " stuck ") != NULL, "%s", said.out);
	folder_write(job_path("k7m2", "job.json"), "{\"pid\":4711}", 0600);
	keeper_state = 'S';
	CALL("ps");
	EXPECT_SAID(0, HEAD "k7m2         -  stuck    -\n",
		"xrun: k7m2: the supervisor does not answer   try: xrun stop k7m2\n");
}

Test(ps, of_a_name_that_runs_again_the_history_is_not_meant)
{
	job_make("k7m2", true, NULL);
	past_make("{\"job\":\"k7m2\",\"ranks\":3,\"start\":" AT("10:00") "}");
	CALL("ps", "-a");
	EXPECT_SAID(0, HEAD "k7m2         -  running  -\n", "");
}

Test(ps, a_job_that_waits_for_the_disk_makes_the_column_wider)
{
	job_make("k7m2", true,
		"{\"ranks\":1,\"start\":" AT("13:59") ",\"waiting\":\"disk\"}");
	job_make("b", true, "{\"ranks\":1,\"start\":" AT("13:58") "}");
	CALL("ps");
	EXPECT_SAID(0,
		"JOB      RANKS  STATE         TIME     EXIT  COMMAND\n"
		"b            1  running       2 s\n"
		"k7m2         1  waiting: disk 1 s\n",
		"");
}

Test(ps, operands)
{
	CALL("ps", "a", "b");
	EXPECT_SAID(125, "",
		"xrun: ps: 'b' is one word too many   try: xrun ps -h\n");
	CALL("ps", "a");
	EXPECT_SAID(125, "", "xrun: there is no job 'a'   try: xrun ps -a\n");
	job_make("a", true, NULL);
	CALL("ps", "a", "-q");
	EXPECT_SAID(125, "", "xrun: ps: -q is for a list of jobs\n");
	CALL("ps", "a");
	EXPECT_SAID(125, "", "xrun: " NO_SUCH_JOB "\n");
}

/* --- the ranks of a job ------------------------------------------------------- */

#define RANKS \
	" RANK      PID STATE     TIME        CPU    RSS    OUT  DEVICE   STEP\n"

static void
ask_of(const char *json)
{
	status_now = json;
	CALL("ps", "k7m2");
}

Test(ps, ranks_of_a_job_that_runs)
{
	job_make("k7m2", true, NULL);
	ask_of("{\"ranks\":2,\"start\":" AT(
		"13:00") ",\"host\":\"h\",\"phase\":\"stopping\",\"attempt\":2,\"argv\":[\"a\",\"b\"],\"rank\":["
			 "{\"rank\":0,\"pid\":17,\"state\":\"running\",\"seconds\":60.0,\"cpu_seconds\":30,\"rss_bytes\":2048,\"stdout_bytes\":700,\"stderr_bytes\":299,\"device\":\"gpu0\","
			 "\"progress\":{\"step\":120,\"total\":500,\"metrics\":{\"loss\":0.25,\"x\":\"no\",\"acc\":0.5}}},"
			 "{\"rank\":1,\"pid\":18,\"exit\":3,\"seconds\":0.0,\"ready\":true}]}");
	EXPECT_SAID(0,
		"job k7m2: stopping, 1 min, 2 ranks on h, attempt 2\n"
		"  a b\n\n" RANKS
		"    0       17 running   1 min       50%   2.0K   999B  gpu0     120/500  loss 0.25, acc 0.5\n"
		"    1       18 exit 3    0 s           -     0B     0B  -        ready\n",
		"");
}

Test(ps, states_of_ranks)
{
	job_make("k7m2", true, NULL);
	ask_of("{\"ranks\":1,\"start\":" AT(
		"14:01") ",\"rank\":["
			 "{\"rank\":0,\"signal\":\"SIGSEGV\",\"exit\":1,\"seconds\":2,\"cpu_user\":1,\"cpu_system\":0.5,\"rss_peak_bytes\":1023488},"
			 "{\"rank\":1,\"progress\":{\"step\":7,\"slow\":true,\"step_seconds\":1.5}},"
			 "{\"rank\":2,\"state\":\"ready\",\"progress\":{\"total\":7}}]}");
	EXPECT_SAID(0,
		"job k7m2: running, 1 rank\n\n\n" RANKS
		"    0        0 SIGSEGV   2 s         75%   1.0M     0B  -\n"
		"    1        0 new       0 s           -     0B     0B  -        7  slow: 1.5 s a step\n"
		"    2        0 ready     0 s           -     0B     0B  -\n",
		"");
	ask_of("{\"ranks\":1,\"waiting\":\"disk\",\"exit\":0,\"rank\":[{\"rank\":0,\"waiting\":\"disk\",\"state\":\"running\"}]}");
	EXPECT_SAID(0,
		"job k7m2: waiting: disk, 1 rank\n\n\n"
		" RANK      PID STATE         TIME        CPU    RSS    OUT  DEVICE   STEP\n"
		"    0        0 waiting: disk 0 s           -     0B     0B  -\n",
		"");
}

Test(ps, bytes_have_three_digits)
{
	static const struct {
		const char *bytes, *text;
	} rows[] = { { "999", "999B" }, { "999.4", "999B" },
		{ "999.5", "1.0K" }, { "1024", "1.0K" }, { "10188", "9.9K" },
		{ "10189", "10K" }, { "1023487", "999K" },
		{ "1023488", "1.0M" }, { "5368709120", "5.0G" },
		{ "5497558138880", "5.0T" }, { "5629499534213120", "5.0P" },
		{ "5764607523034234880", "5120P" } };
	char json[200], text[32];

	job_make("k7m2", true, NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(json, sizeof(json),
			"{\"rank\":[{\"rank\":0,\"rss_bytes\":%s}]}",
			rows[i].bytes);
		ask_of(json);
		snprintf(text, sizeof(text), " %6s     0B ", rows[i].text);
		cr_expect(strstr(said.out, text) != NULL, "%s: %s",
			rows[i].text, said.out);
	}
}

Test(ps, a_job_that_has_ended)
{
	job_make("k7m2", false,
		"{\"ranks\":1,\"exit\":3,\"reason\":\"failure\",\"waiting\":\"disk\",\"start\":" AT(
			"10:00") ",\"end\":" AT("10:04") ",\"argv\":[7]}");
	CALL("ps", "k7m2");
	EXPECT_SAID(0,
		"job k7m2: ended with 3 (failure), 4 s, 1 rank\n  ?\n\n" RANKS,
		"");
	CALL("ps", "k7m2", "--json");
	EXPECT_SAID(0,
		"{\"ranks\":1,\"exit\":3,\"reason\":\"failure\",\"waiting\":\"disk\",\"start\":" AT(
			"10:00") ",\"end\":" AT("10:04") ",\"argv\":[7],\"used\":true,\"running\":false}\n",
		"");
	job_make("lost", false, "{\"ranks\":0}");
	CALL("ps", "lost");
	EXPECT_SAID(0, "job lost: lost, 0 ranks\n\n\n" RANKS, "");
	job_make("odd", false, "{\"exit\":0}");
	CALL("ps", "odd");
	EXPECT_SAID(0, "job odd: ended with 0 (-), 0 ranks\n\n\n" RANKS, "");
	job_make("none", false, NULL);
	CALL("ps", "none");
	EXPECT_SAID(125, "", "xrun: none has ended, and left no files\n");
	job_make("over", true, NULL);
	status_now = "{\"exit\":0,\"ranks\":1,\"reason\":\"ok\"}";
	CALL("ps", "over");
	cr_expect_eq(strncmp(said.out, "job over: ended with 0 (ok), 1 rank\n",
			     36),
		0, "%s", said.out);
	CALL("ps", "over", "--json");
	EXPECT_SAID(0,
		"{\"exit\":0,\"ranks\":1,\"reason\":\"ok\",\"used\":true,\"running\":true}\n",
		"");
}

Test(ps, calls_of_agents)
{
	job_make("k7m2", true, NULL);
	ask_of("{\"ranks\":3,\"rank\":[{\"rank\":0},"
	       "{\"rank\":1,\"rpc\":{\"calls\":4,\"served\":5,\"errors\":1,\"bytes_out\":2048,\"bytes_in\":10,\"seconds\":2,\"p50\":0.0000005,\"p99\":0.25}},"
	       "{\"rank\":2,\"rpc\":{\"served\":6,\"seconds\":2}}]}");
	cr_expect_eq(said.status, 0);
	cr_expect(
		strstr(said.out,
			"\n\n RANK     CALLS    SERVED  ERRORS   SENT    GOT    MEAN    P50    P99\n"
			"    1         4         5       1   2.0K    10B   500ms  500ns  250ms\n"
			"    2         0         6       0     0B     0B\n") !=
			NULL,
		"%s", said.out);
}

Test(ps, pools_and_queues)
{
	job_make("k7m2", true, NULL);
	ask_of("{\"ranks\":2,\"rank\":[{\"rank\":0,\"unlisted\":2,"
	       "\"pools\":[{\"name\":\"p\",\"workers\":2,\"waiting\":3,\"running\":4,\"done\":5,\"failed\":6,\"busy\":0.5,\"timed\":4,\"task_seconds\":2,\"p50\":1,\"p99\":12},"
	       "{\"name\":\"a long name of it\",\"done\":1}]},"
	       "{\"rank\":1,\"unlisted\":0,\"queues\":[{\"items\":1,\"room\":2,\"put\":3,\"got\":4},{\"name\":\"q\"}]}]}");
	cr_expect_eq(said.status, 0);
	cr_expect(
		strstr(said.out,
			"\n\n RANK POOL         WORKERS WAITING RUNNING      DONE  FAILED  BUSY   MEAN    P50    P99\n"
			"    0 p                  2       3       4         5       6   50%  500ms   1.0s    12s\n"
			"    0 a long name of it       -       -       -         1       -    0%\n"
			"\n RANK QUEUE            ITEMS      ROOM          PUT          GOT\n"
			"    1 ?                    1         2            3            4\n"
			"    1 q                    -         -            -            -\n"
			"\n    0 2 more, for which there is no room\n") != NULL,
		"%s", said.out);
	columns = 20;
	ask_of("{\"ranks\":2,\"rank\":[{\"rank\":1,\"queues\":[{\"name\":\"q\"}]}]}");
	cr_expect(strstr(said.out, "\n RANK QUEUE\n    1 q\n") != NULL, "%s",
		said.out);
}

/* --- pieces ------------------------------------------------------------------- */

Test(ps, short_times)
{
	static const struct {
		double seconds;
		const char *text;
	} rows[] = { { 0, "    0ns" }, { 999e-9, "  999ns" },
		{ 999.4e-9, "  999ns" }, { 999.6e-9, "  1.0us" },
		{ 0.9994, "  999ms" }, { 0.9995, "   1.0s" },
		{ 9.94e-6, "  9.9us" }, { 9.95e-6, "   10us" },
		{ 999e-6, "  999us" }, { 5e-3, "  5.0ms" }, { 1, "   1.0s" },
		{ 999.4, "   999s" }, { 5000, "  5000s" } };
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&out);
		ps_put_short(&out, rows[i].seconds);
		cr_expect_str_eq(buf_text(&out), rows[i].text);
	}
	buf_fini(&out);
}

static void
expect_row(const char *text, uint32_t cols, const char *want)
{
	struct buf out = { 0 };

	buf_put_text(&out, "x ");
	buf_put_text(&out, text);
	table_end_row(&out, 2, cols);
	cr_expect_eq(strncmp(buf_text(&out), "x ", 2), 0);
	cr_expect_str_eq(buf_text(&out) + 2, want);
	buf_fini(&out);
}

Test(ps, rows_end_where_the_terminal_does)
{
	expect_row("abc", 0, "abc\n");
	expect_row("abc  ", 0, "abc\n");
	expect_row("   ", 0, "\n");
	expect_row("", 3, "\n");
	expect_row("abc", 3, "abc\n");
	expect_row("abcd", 3, "abc\n");
	expect_row("ab cd", 3, "ab\n");
	expect_row("\303\244bc", 3, "\303\244bc\n");
	expect_row("\303\244bcd", 3, "\303\244bc\n");
	expect_row("\342\202\254b", 3, "\342\202\254b\n");
	expect_row("\342\202\254bc", 3, "\342\202\254b\n");
	expect_row("\342\202\254", 1, "\n");
	expect_row("\377bc", 2, "\377b\n");
}

Test(ps, a_word_of_a_row_is_tame)
{
	struct buf out = { 0 };

	table_put_word(&out, "");
	cr_expect_eq(out.len, 0);
	buf_put_text(&out, "\t");
	table_put_word(&out, "a\tb\nc\033d");
	cr_expect_str_eq(buf_text(&out), "\ta?b?c?d");
	out.bad = XR_E_NOMEM;
	table_put_word(&out, "e");
	table_end_row(&out, 0, 1);
	cr_expect_eq(out.len, 8);
	buf_fini(&out);
	out = (struct buf){ .bad = XR_E_NOMEM };
	table_put_word(&out, "e");
	cr_expect_null(out.data);
	cr_expect_eq(out.len, 0);
}

Test(ps, what_is_no_terminal_has_no_columns)
{
	CALL("ps");
	cr_expect_eq(__real_table_columns(), 0);
}
