/* SPDX-License-Identifier: Apache-2.0 */
/* test_keeper_record.c - what the record of a running job says, and its line of the history. */
#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/host.h"
#include "base/span.h"
#include "launcher/ctl/root.h"
#include "launcher/job/job.h"
#include "launcher/job/words.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/record.h"
#include "launcher/log/raw.h"
#include "launcher/state/history.h"
#include "proc/lineage.h"
#include "tests/unit/noted.h"
#include "tests/unit/state_folder.h"

static struct {
	int make_sys, name_sys; /* of the file; 0: it works */
	bool no_root;           /* ctl_root_open() finds none */
	bool others;
	bool no_mark;
	bool no_boot;
} played;

int __wrap_ctl_record_make(struct ctl_record *r, const struct ctl_root *root,
	uint64_t number, struct span text);
int __wrap_ctl_record_name(struct ctl_record *r, struct span text);
bool __wrap_ctl_record_others(const struct ctl_record *own);
void __wrap_ctl_record_write(const struct ctl_record *r, struct span text);
bool __wrap_ctl_record_remove(const struct ctl_record *r);
void __wrap_ctl_record_free(struct ctl_record *r);
bool __wrap_ctl_root_open(struct ctl_root *root, bool make,
	struct xr_error *trouble);
const char *__wrap_ctl_root_where(const struct ctl_root *root, char *out);
void __wrap_words_line(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
int __wrap_history_add(const char *root, const char *text, size_t len);
uint64_t __wrap_lineage_new(void);
uint64_t __wrap_lineage_ticks(void);
bool __wrap_lineage_set(uint64_t lineage);
const char *__wrap_host_name(char *out, size_t cap);
const char *__wrap_host_boot(char *out, size_t cap);
int64_t __wrap_clock_wall(void);

static struct part part;
static struct job job;

static bool
is_own(const struct ctl_record *r)
{
	return r == &job.page->record.file;
}

int
__wrap_ctl_record_make(struct ctl_record *r, const struct ctl_root *root,
	uint64_t number, struct span text)
{
	cr_expect(is_own(r));
	note("make:%d,%llx,%.*s ", root->dir, (unsigned long long)number,
		(int)text.len, text.at);
	errno = played.make_sys;
	r->fd = 7;
	return played.make_sys != 0 ? -1 : 0;
}

int
__wrap_ctl_record_name(struct ctl_record *r, struct span text)
{
	cr_expect(is_own(r));
	note("name:%.*s ", (int)text.len, text.at);
	errno = played.name_sys;
	return played.name_sys != 0 ? -1 : 0;
}

bool
__wrap_ctl_record_others(const struct ctl_record *own)
{
	cr_expect(is_own(own));
	note("others ");
	return played.others;
}

void
__wrap_ctl_record_write(const struct ctl_record *r, struct span text)
{
	cr_expect(is_own(r));
	note("write:%.*s ", (int)text.len, text.at);
}

bool
__wrap_ctl_record_remove(const struct ctl_record *r)
{
	cr_expect(is_own(r));
	note("remove ");
	return played.others;
}

void
__wrap_ctl_record_free(struct ctl_record *r)
{
	cr_expect(is_own(r));
	note("free ");
}

bool
__wrap_ctl_root_open(struct ctl_root *root, bool make, struct xr_error *trouble)
{
	cr_expect(!make && trouble == NULL);
	root->dir = -1;
	root->kind = CTL_ROOT_USER;
	return !played.no_root;
}

const char *
__wrap_ctl_root_where(const struct ctl_root *root, char *out)
{
	snprintf(out, CTL_WHERE_MAX, "root%d", root->kind);
	return out;
}

void
__wrap_words_line(const char *fmt, ...)
{
	char text[500];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("[%s] ", text);
}

int
__wrap_history_add(const char *root, const char *text, size_t len)
{
	note("history:%s,%.*s", root, (int)len, text);
	return 0;
}

uint64_t
__wrap_lineage_new(void)
{
	return 0xabc;
}

uint64_t
__wrap_lineage_ticks(void)
{
	return 99;
}

bool
__wrap_lineage_set(uint64_t lineage)
{
	note("set:%llx ", (unsigned long long)lineage);
	return !played.no_mark;
}

const char *
__wrap_host_name(char *out, size_t cap)
{
	snprintf(out, cap, "h");
	return out;
}

const char *
__wrap_host_boot(char *out, size_t cap)
{
	snprintf(out, cap, "%s", played.no_boot ? "" : "b");
	return out;
}

int64_t
__wrap_clock_wall(void)
{
	return 0;
}

/* --- a job -------------------------------------------------------------------- */

static struct raw_share share = { .before = 0 };
static char *short_argv[] = { (char *)"prog", (char *)"a b", NULL };

static void
begin(void)
{
	state_folder_make();
	job.page = keeper_page_new();
	cr_assert_not_null(job.page);
	job.share = &share;
	part.argv = short_argv;
	job.parts = &part;
	job.part_count = 1;
	job.plan.local_size = 4;
	job.state.number = 2;
	job.begun_wall = 1000000000;
	snprintf(job.state.id, sizeof(job.state.id), "k7m2");
}

TestSuite(keeper_record, .init = begin, .fini = folder_remove);

static void
expect_done(const char *text)
{
	cr_expect_str_eq(done, text);
	done[0] = '\0';
}

#define HEAD \
	"{\"v\":1,\"job\":\"k7m2\",\"attempt\":2,\"host\":\"h\",\"pid\":%d," \
	"\"ranks\":4,\"argv\":[\"prog\",\"a b\"]," \
	"\"start\":\"1970-01-01T00:00:01.000000Z\"," \
	"\"lineage\":\"0000000000000abc\",\"ticks\":99"

Test(keeper_record, it_says_how_to_find_the_processes)
{
	const struct ctl_root root = { .dir = 5, .kind = CTL_ROOT_RUNTIME };
	struct xr_error trouble = { 0 };
	char want[1000];

	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	cr_expect_eq(job.page->record.lineage, 0xabc);
	cr_expect_eq(job.page->record.ticks, 99);
	snprintf(want, sizeof(want),
		"make:5,abc," HEAD ",\"root\":\"%s/xrun\",\"no_logs\":true} ",
		getpid(), in_folder("state"));
	expect_done(want);
	cr_expect_eq(job.record_len, strlen(want) - strlen("make:5,abc,} "));
	cr_expect_str_eq(job.record_root, in_folder("state/xrun"));
	/* It was made. */
	cr_expect_eq(folder_entries(in_folder("state/xrun")), 0);
	record_free(&job);
	expect_done("free ");
	cr_expect_null(job.record_text);
	cr_expect_null(job.record_root);
	cr_expect_eq(job.record_len, 0);
	job.page = NULL;
	record_free(&job);
	expect_done("");
}

Test(keeper_record, it_names_the_folders_of_the_job)
{
	const struct ctl_root root = { .dir = 5, .kind = CTL_ROOT_RUNTIME };
	struct xr_error trouble = { 0 };
	char want[1000];
	struct stat folder_of;

	job.state.root = (char *)in_folder("elsewhere");
	job.state.dir = (char *)"/logs/k7m2";
	job.errors = (char *)"/e/x-";
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	snprintf(want, sizeof(want),
		"make:5,abc," HEAD
		",\"root\":\"%s\",\"errors\":\"/e/x-\",\"dir\":\"/logs/k7m2\"} ",
		getpid(), job.state.root);
	expect_done(want);
	/* A root of a job with a folder is there. */
	cr_expect_eq(stat(job.state.root, &folder_of), -1);
	record_free(&job);
	done[0] = '\0';
	job.state.root = NULL;
	cr_expect_eq(mkdir(in_folder("state"), 0755), 0);
	cr_expect_eq(mkdir(in_folder("state/xrun"), 0750), 0);
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	cr_expect_eq(stat(in_folder("state/xrun"), &folder_of), 0);
	cr_expect_eq(folder_of.st_mode & 0777, 0750);
	record_free(&job);
}

Test(keeper_record, its_folder_is_the_users_alone)
{
	const struct ctl_root root = { .dir = 5, .kind = CTL_ROOT_RUNTIME };
	struct xr_error trouble = { 0 };
	struct stat st_;

	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	cr_expect_eq(stat(in_folder("state/xrun"), &st_), 0);
	cr_expect_eq(st_.st_mode & 0777, 0700);
	record_free(&job);
}

/* A line of the history is one write. */
Test(keeper_record, of_a_long_command_it_has_the_beginning)
{
	const struct ctl_root root = { .dir = 5, .kind = CTL_ROOT_RUNTIME };
	struct xr_error trouble = { 0 };
	static char word[2001];
	char *argv[] = { word, (char *)"x", (char *)"y", NULL };

	part.argv = argv;
	memset(word, 'w', 1999);
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	cr_expect_not_null(strstr(job.record_text, "www\",\"x\",\"...\"]"));
	record_free(&job);
	word[1999] = 'w';
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	cr_expect_not_null(strstr(job.record_text, "www\",\"...\"]"));
	record_free(&job);
}

Test(keeper_record, a_folder_that_is_not_used_is_told_of)
{
	struct ctl_root root = { .dir = 5, .kind = CTL_ROOT_TMP };
	struct xr_error trouble = { 0 }, no = { 0 };

	snprintf(trouble.text, sizeof(trouble.text), "/run is not ours");
	played.make_sys = EROFS;
	job.opt.quiet = true;
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	done[5] = '\0';
	expect_done("make:");
	record_free(&job);
	done[0] = '\0';
	job.opt.quiet = false;
	played.make_sys = 0;
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	cr_expect_eq(strncmp(done,
			     "[/run is not ours: the control socket is in "
			     "root2 instead] make:5,",
			     66),
		0, "%s", done);
	record_free(&job);
	done[0] = '\0';
	/* Where verbs look only if they are told to. */
	job.opt.quiet = true;
	root.kind = CTL_ROOT_STATE;
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	cr_expect_eq(strncmp(done,
			     "[/run is not ours: the control socket is in "
			     "root3 instead] make:5,",
			     66),
		0, "%s", done);
	record_free(&job);
	done[0] = '\0';
	root.dir = -1;
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	expect_done("[/run is not ours: there is no folder for a control "
		    "socket: verbs do not reach this job] ");
	record_free(&job);
	done[0] = '\0';
	root.kind = CTL_ROOT_TMP;
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	expect_done("[/run is not ours: there is no folder for a control "
		    "socket: verbs do not reach this job] ");
	record_free(&job);
	done[0] = '\0';
	cr_expect_eq(record_open(&job, &root, &no, &err), XR_OK);
	expect_done("");
	record_free(&job);
}

Test(keeper_record, in_the_background_a_job_has_to_be_reached)
{
	struct ctl_root root = { .dir = 5, .kind = CTL_ROOT_STATE };
	struct xr_error trouble = { 0 };

	job.detach = (struct detach *)&job;
	snprintf(trouble.text, sizeof(trouble.text), "/run is not ours");
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_E_STATE);
	cr_expect_str_eq(err.text,
		"-d: /run is not ours: verbs might not reach the job"
		"\tXDG_RUNTIME_DIR=DIR, a folder of yours with mode 0700");
	expect_done("");
	record_free(&job);
	root = (struct ctl_root){ .dir = -1, .kind = CTL_ROOT_USER };
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_E_STATE);
	record_free(&job);
	done[0] = '\0';
	root.dir = 5;
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	cr_expect_eq(strncmp(done, "[/run is not ours: the", 22), 0);
	record_free(&job);
}

#define NONE \
	"no record of this job could be made: %s: should xrun be killed, " \
	"nothing ends its processes] "

static void
expect_none(int sys)
{
	char want[300];
	const char *said = strstr(done, "[root");

	snprintf(want, sizeof(want), "[root1: " NONE, strerror(sys));
	cr_assert_not_null(said, "%s", done);
	cr_expect_str_eq(said, want);
	done[0] = '\0';
}

Test(keeper_record, one_that_cannot_be_made_is_told_of)
{
	const struct ctl_root root = { .dir = 5, .kind = CTL_ROOT_RUNTIME };
	struct xr_error trouble = { 0 };

	played.make_sys = EROFS;
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	expect_none(EROFS);
	record_free(&job);
	done[0] = '\0';
	played.no_root = true;
	cr_expect_eq(record_open(&job, &root, &trouble, &err), XR_OK);
	cr_expect_null(strstr(done, "[root"), "%s", done);
	record_free(&job);
	/* Before the first rank it gets its name. */
	job.record_text = strdup("{\"v\":1}");
	job.record_len = 6;
	played.no_root = false;
	done[0] = '\0';
	job.page->record.file.fd = -1;
	record_begin(&job);
	expect_done("");
	job.page->record.file.fd = 7;
	job.page->record.file.is_named = true;
	record_begin(&job);
	expect_done("");
	job.page->record.file.is_named = false;
	record_begin(&job);
	expect_done("name:{\"v\":1} ");
	played.name_sys = ENOSPC;
	record_begin(&job);
	expect_none(ENOSPC);
	record_free(&job);
}

Test(keeper_record, other_jobs_are_searched_for_once)
{
	record_search(&job);
	cr_expect(!job.state.others);
	expect_done("others ");
	played.others = true;
	record_search(&job);
	cr_expect(job.state.others);
	expect_done("others ");
	played.others = false;
	record_search(&job);
	cr_expect(job.state.others);
	expect_done("");
	cr_expect(!record_remove(&job));
	played.others = true;
	cr_expect(record_remove(&job));
	expect_done("remove remove ");
}

Test(keeper_record, a_mark_that_cannot_be_set_is_told_of_once)
{
	job.page->record.lineage = 0xdef;
	record_mark(&job);
	expect_done("set:def ");
	played.no_mark = true;
	record_mark(&job);
	expect_done(
		"set:def [RLIMIT_RTTIME and RLIMIT_LOCKS cannot be set: if "
		"xrun is killed, the next xrun does not find the processes of "
		"this job   try: ulimit -R unlimited] ");
	job.page->again.restarts = 1;
	record_mark(&job);
	expect_done("set:def ");
	job.page->again.restarts = 0;
	job.opt.quiet = true;
	record_mark(&job);
	expect_done("set:def ");
}

Test(keeper_record, what_takes_time_is_added_later)
{
	struct stat ns;
	char want[200];

	record_complete(&job);
	expect_done("");
	cr_assert_eq(stat("/proc/self/ns/pid", &ns), 0);
	job.record_text = (char *)"{\"v\":1}";
	job.record_len = 6;
	record_complete(&job);
	snprintf(want, sizeof(want),
		"write:{\"v\":1,\"boot\":\"b\",\"pid_namespace\":%llu} ",
		(unsigned long long)ns.st_ino);
	expect_done(want);
	played.no_boot = true;
	record_complete(&job);
	snprintf(want, sizeof(want), "write:{\"v\":1,\"pid_namespace\":%llu} ",
		(unsigned long long)ns.st_ino);
	expect_done(want);
}

#define LINE \
	"history:/r,{\"v\":1,\"end\":\"1970-01-01T00:00:00.000000Z\"," \
	"\"exit\":3,\"reason\":\"failure\",\"bytes\":0}\n"

/* True if the history has a line of it. */
static bool
is_noted(void)
{
	bool noted;

	done[0] = '\0';
	job.page->record.noted = 0;
	record_note(&job, 3, "failure");
	noted = strcmp(done, LINE) == 0;
	cr_expect(noted || done[0] == '\0', "%s", done);
	cr_expect_eq(job.page->record.noted, noted);
	return noted;
}

Test(keeper_record, a_job_without_a_folder_has_a_line_of_the_history)
{
	job.record_text = (char *)"{\"v\":1}";
	job.record_len = 6;
	job.record_root = (char *)"/r";
	cr_expect(is_noted());
	done[0] = '\0';
	record_note(&job, 3, "failure"); /* once */
	expect_done("");
	job.state.root = (char *)"/r";
	cr_expect(is_noted());
	job.state.dir = (char *)"/r/k7m2";
	cr_expect(!is_noted());
	job.page->removed = 1;
	cr_expect(is_noted());
	job.page->removed = 0;
	job.state.root = NULL; /* --log-dir */
	cr_expect(is_noted());
	job.record_root = NULL;
	cr_expect(!is_noted());
	job.record_root = (char *)"/r";
	job.record_text = NULL;
	cr_expect(!is_noted());
}

Test(keeper_record, a_line_of_the_history_is_bounded)
{
	static char text[8192];

	memset(text, 't', sizeof(text));
	job.record_text = text;
	job.record_root = (char *)"/r";
	job.record_len = sizeof(text) - 256;
	record_note(&job, 3, "failure");
	cr_expect_eq(job.page->record.noted, 1);
	cr_expect_eq(strncmp(done, "history:/r,tttt", 15), 0);
	done[0] = '\0';
	job.page->record.noted = 0;
	job.record_len++;
	record_note(&job, 3, "failure");
	cr_expect_eq(job.page->record.noted, 0);
	expect_done("");
}
