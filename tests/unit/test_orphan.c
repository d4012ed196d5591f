/* SPDX-License-Identifier: Apache-2.0 */
/* test_orphan.c - jobs whose xrun was killed: which of them the next one ends, and what
 * it writes (launcher/keeper/orphan.c, lost.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/mem.h"
#include "launcher/keeper/lost.h"
#include "launcher/keeper/orphan.h"
#include "launcher/state/jobs.h"
#include "launcher/state/state.h"
#include "proc/lineage.h"
#include "tests/unit/ctl_sys.h"

#define ROOT "state/xrun"
#define DAY  (24 * 3600)

static char here[256], boot[64], namespace[32], own[16];

static void
prepare(void)
{
	struct stat st;

	ctl_sys_begin();
	host_name(here, sizeof(here));
	host_boot(boot, sizeof(boot));
	cr_assert_eq(stat("/proc/self/ns/pid", &st), 0);
	snprintf(namespace, sizeof(namespace), "%llu",
		(unsigned long long)st.st_ino);
	cr_assert_eq(state_make_parents(ROOT "/.live/x"), 0);
	cr_assert_eq(mkdir("xrun", 0700), 0);
}

TestSuite(orphan, .init = prepare, .fini = folder_remove);

static long
only_inside(int nr, const long arg[5])
{
	return is_outside(nr, arg) ? -EACCES : 0;
}

/* The folders of other tests and jobs are not looked at. */
static void
hide_outside(void)
{
	sys_trap(SYS_openat);
	sys_hook = only_inside;
}

/* @form with HOST, BOOT, SPACE and OWN replaced by those of this process. */
static const char *
filled(const char *form)
{
	static char out[1024];
	size_t len = 0;

	while (*form != '\0') {
		const char *word = NULL;
		size_t skip = 4;

		if (strncmp(form, "HOST", 4) == 0)
			word = here;
		else if (strncmp(form, "BOOT", 4) == 0)
			word = boot;
		else if (strncmp(form, "SPACE", 5) == 0)
			word = namespace;
		else if (strncmp(form, "OWN", 3) == 0)
			word = own;
		skip = skip + (word == namespace) - (word == own);
		if (word == NULL)
			out[len++] = *form++;
		else
			form += skip;
		if (word != NULL)
			len += (size_t)snprintf(out + len, sizeof(out) - len,
				"%s", word);
	}
	out[len] = '\0';
	return out;
}

static void
age(const char *path, int seconds)
{
	const struct timespec when = { .tv_sec = time(NULL) - seconds };

	NEED(utimensat(AT_FDCWD, path, (struct timespec[]){ when, when }, 0) ==
		0);
}

/* --- records of running jobs ----------------------------------------------------- */

struct record_row {
	const char *text;
	bool ours;    /* a job of this machine */
	bool strange; /* no record */
};

static const struct record_row record_rows[] = {
	{ "{\"job\":\"a\"}", true, false },
	{ "{\"job\":\"a\",\"host\":\"HOST\"}", true, false },
	{ "{\"job\":\"a\",\"host\":\"other\"}", false, false },
	{ "{\"job\":\"a\",\"host\":\"other\",\"boot\":\"BOOT\"}", true, false },
	{ "{\"job\":\"a\",\"host\":\"other\",\"boot\":\"no\"}", false, false },
	{ "{\"job\":\"a\",\"host\":\"HOST\",\"boot\":\"no\"}", true, false },
	{ "{\"job\":\"a\",\"pid_namespace\":SPACE}", true, false },
	{ "{\"job\":\"a\",\"pid_namespace\":0}", true, false },
	{ "{\"job\":\"a\",\"pid_namespace\":-1}", true, false },
	{ "{\"job\":\"a\",\"boot\":\"BOOT\",\"pid_namespace\":5}", false,
		false },
	{ "{\"job\":\"a/b\"}", false, true },
	{ "{\"job\":5}", false, true },
	{ "{\"host\":\"HOST\"}", false, true },
	{ "{\"job\":\"a\"", false, true },
	{ "x", false, true },
};

#define RECORD_ROWS (sizeof(record_rows) / sizeof(record_rows[0]))

static unsigned met;
static struct lost_facts facts;

static void
note_lost(void *ctx, const struct lost_facts *f)
{
	(void)ctx;
	met++;
	facts = *f;
	EXPECT_STR(f->id, "a");
}

FORKED_TEST(orphan, a_job_is_lost_if_it_is_of_this_machine_and_not_locked)
{
	hide_outside();
	for (size_t i = 0; i < RECORD_ROWS; i++) {
		folder_write("xrun/.job-1", filled(record_rows[i].text), 0600);
		met = 0;
		lost_each(note_lost, NULL);
		if (met != record_rows[i].ours)
			forked_note(__LINE__, "%s", record_rows[i].text);
		lost_each_held(note_lost, NULL);
		EXPECT_EQ(met, record_rows[i].ours);
	}
}

FORKED_TEST(orphan, a_job_whose_record_is_locked_runs)
{
	int fd;

	hide_outside();
	for (size_t i = 0; i < RECORD_ROWS; i++) {
		folder_write("xrun/.job-1", filled(record_rows[i].text), 0600);
		fd = open("xrun/.job-1", O_RDWR | O_CLOEXEC);
		NEED(flock(fd, LOCK_EX | LOCK_NB) == 0);
		met = 0;
		lost_each_held(note_lost, NULL);
		if (met != record_rows[i].ours)
			forked_note(__LINE__, "%s", record_rows[i].text);
		lost_each(note_lost, NULL);
		EXPECT_EQ(met, record_rows[i].ours);
		close(fd);
	}
}

FORKED_TEST(orphan, the_mark_of_a_lost_job_counts_in_its_own_boot_only)
{
	hide_outside();
	folder_write("xrun/.job-1",
		filled("{\"job\":\"a\",\"lineage\":\"1f\",\"ticks\":7,\"boot\":\"BOOT\",\"dir\":\"/d\"}"),
		0600);
	lost_each(note_lost, NULL);
	EXPECT_EQ(met, 1);
	EXPECT_EQ(facts.job.lineage, 0x1f);
	EXPECT_EQ(facts.job.ticks, 7);
	folder_write("xrun/.job-1",
		"{\"job\":\"a\",\"lineage\":\"1f\",\"ticks\":7,\"boot\":\"no\"}",
		0600);
	lost_each(note_lost, NULL);
	EXPECT_EQ(met, 2);
	EXPECT_EQ(facts.job.lineage, 0);
	EXPECT(facts.dir == NULL);
}

FORKED_TEST(orphan, a_record_goes_with_its_job_or_a_week_after_its_machine)
{
	bool dying, any, gone;

	hide_outside();
	for (size_t i = 0; i < RECORD_ROWS; i++)
		for (int days = 6; days <= 8; days += 2) {
			folder_write("xrun/.job-1", filled(record_rows[i].text),
				0600);
			age("xrun/.job-1", days * DAY);
			any = lost_end_all(&dying);
			gone = access("xrun/.job-1", F_OK) == -1;
			if (any != record_rows[i].ours || dying ||
				gone !=
					(record_rows[i].ours ||
						record_rows[i].strange ||
						days == 8))
				forked_note(__LINE__, "%s: %d days: %d",
					record_rows[i].text, days, gone);
		}
}

FORKED_TEST(orphan, a_keeper_that_is_gone_and_holds_the_record_is_dying)
{
	static const struct {
		const char *form;
		bool dying;
	} rows[] = {
		{ "{\"job\":\"a\",\"pid\":4194305}", true },
		{ "{\"job\":\"a\",\"pid\":OWN}", false },
		{ "{\"job\":\"a\",\"pid\":4194305,\"host\":\"other\"}", false },
		{ "{\"job\":\"a\",\"pid\":4194305,\"pid_namespace\":5}",
			false },
		{ "x", false },
	};
	bool dying;
	int fd;

	hide_outside();
	snprintf(own, sizeof(own), "%d", getpid());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		folder_write("xrun/.job-1", filled(rows[i].form), 0600);
		fd = open("xrun/.job-1", O_RDWR | O_CLOEXEC);
		NEED(flock(fd, LOCK_EX | LOCK_NB) == 0);
		EXPECT(!lost_end_all(&dying));
		if (dying != rows[i].dying)
			forked_note(__LINE__, "%s", rows[i].form);
		EXPECT_EQ(access("xrun/.job-1", F_OK), 0);
		close(fd);
	}
}

/* --- folders --------------------------------------------------------------------- */

struct folder_row {
	const char *text;  /* of job.json; NULL: there is none */
	int attempts;      /* folders of attempts */
	bool closed, told; /* by orphan_run_now(), orphan_each() */
	int attempt;       /* in job.json then; -1: the text is as before */
};

static const struct folder_row folder_rows[] = {
	{ NULL, 1, true, true, 0 },
	{ NULL, 0, true, true, 0 },
	{ NULL, 3, true, true, 2 },
	{ "{\"attempt\":0,\"host\":\"HOST\",\"waiting\":1}", 1, true, true, 0 },
	{ "{\"attempt\":0,\"host\":\"HOST\"}", 2, true, true, 1 },
	{ "{\"attempt\":1,\"host\":\"HOST\"}", 2, true, true, 1 },
	{ "{\"attempt\":7,\"host\":\"HOST\"}", 2, true, true, 7 },
	{ "{\"attempt\":\"x\",\"pid\":1}", 2, true, true, -2 },
	{ "{\"attempt\":0,\"host\":\"other\"}", 1, false, false, -1 },
	{ "{\"attempt\":0,\"exit\":0}", 1, true, false, -1 },
	{ "{\"attempt\":0", 1, false, false, -1 },
	{ "", 1, false, false, -1 },
};

#define FOLDER_ROWS (sizeof(folder_rows) / sizeof(folder_rows[0]))

static unsigned told;

static void
note_orphan(void *ctx, const struct orphan_facts *f)
{
	(void)ctx;
	told++;
	EXPECT_STR(f->id, "a");
	EXPECT_STR(f->dir, ROOT "/a");
	EXPECT_EQ(f->job.lineage, 0);
	EXPECT_EQ(f->groups, false);
}

/* The folder of a job that nobody closed. */
static void
put_folder(const struct folder_row *row)
{
	char path[64];

	NEED(mkdir(ROOT "/a", 0700) == 0);
	folder_write(ROOT "/a/lock", "", 0600);
	NEED(link(ROOT "/a/lock", ROOT "/.live/a") == 0);
	for (int i = 0; i < row->attempts; i++) {
		snprintf(path, sizeof(path), ROOT "/a/%d", i);
		NEED(mkdir(path, 0700) == 0);
		snprintf(path, sizeof(path), ROOT "/a/%d/stdout", i);
		folder_write(path, "0123456789", 0600);
	}
	if (row->text != NULL)
		folder_write(ROOT "/a/job.json", filled(row->text), 0600);
	age(ROOT "/a", 1000);
}

static void
remove_folder(void)
{
	nftw(ROOT "/a", folder_forget, 16, FTW_DEPTH | FTW_PHYS);
	unlink(ROOT "/.live/a");
}

static void
expect_closed(const struct folder_row *row)
{
	cJSON *json = jobs_read(ROOT "/a");
	struct stat st;

	EXPECT_EQ(jobs_number(json, "exit", -1), 125);
	NEED(jobs_text(json, "reason") != NULL);
	EXPECT_STR(jobs_text(json, "reason"), "supervisor lost");
	EXPECT(jobs_text(json, "end") != NULL);
	EXPECT_EQ(jobs_number(json, "left_behind", -1), 0);
	EXPECT(!cJSON_HasObjectItem(json, "waiting"));
	EXPECT_EQ(jobs_number(json, "attempt", -2), row->attempt);
	if (row->attempts > 0 && row->attempt == row->attempts - 1) {
		EXPECT(jobs_number(json, "bytes", -1) > 0);
		EXPECT_EQ(jobs_number(json, "bytes_before", 0) > 0,
			row->attempt > 0);
	}
	EXPECT(row->attempts > 0 || jobs_number(json, "bytes", -1) == 0);
	NEED(stat(ROOT "/a", &st) == 0);
	EXPECT(time(NULL) - st.st_mtime >= 1000);
	cJSON_Delete(json);
}

FORKED_TEST(orphan,
	a_folder_that_nobody_closed_is_closed_if_it_is_of_this_machine)
{
	struct stat lock;

	hide_outside();
	for (size_t i = 0; i < FOLDER_ROWS; i++) {
		const struct folder_row *row = &folder_rows[i];

		put_folder(row);
		told = 0;
		orphan_each(ROOT, note_orphan, NULL);
		if (told != row->told)
			forked_note(__LINE__, "row %zu: %u", i, told);
		NEED(stat(ROOT "/a/lock", &lock) == 0);
		EXPECT_EQ(lock.st_size, 0);
		orphan_run_now();
		NEED(stat(ROOT "/a/lock", &lock) == 0);
		if ((lock.st_size == 1) != row->closed ||
			(access(ROOT "/.live/a", F_OK) == -1) != row->closed)
			forked_note(__LINE__, "row %zu: %d", i,
				(int)lock.st_size);
		if (row->attempt != -1)
			expect_closed(row);
		else
			folder_expect(ROOT "/a/job.json", filled(row->text));
		remove_folder();
	}
}

/* What is changed about a folder that would be closed otherwise. */
static void
open_to_all(void)
{
	NEED(chmod(ROOT "/a", 0777) == 0);
}

static void
job_is_folder(void)
{
	NEED(mkdir(ROOT "/a/job.json", 0700) == 0);
}

static void
job_is_link(void)
{
	NEED(symlink("none", ROOT "/a/job.json") == 0);
}

static void
lock_is_fifo(void)
{
	NEED(unlink(ROOT "/a/lock") == 0);
	NEED(mkfifo(ROOT "/a/lock", 0600) == 0);
}

static void
lock_is_link(void)
{
	NEED(rename(ROOT "/a/lock", ROOT "/a/other") == 0);
	NEED(symlink("other", ROOT "/a/lock") == 0);
}

static void
lock_is_closed(void)
{
	folder_write(ROOT "/a/lock", "x", 0600);
}

static void
lock_is_others(void)
{
	NEED(geteuid() != 0 || chown(ROOT "/a/lock", 12345, -1) == 0);
}

/* --- who has the lock ------------------------------------------------------------ */

/* This process; a child of it that is gone; this one, but /proc/locks cannot be read. */
enum holder { HERE, GONE, HIDDEN };

static int held = -1; /* the lock */
static unsigned pauses;
static bool hidden;    /* /proc/locks */
static int64_t frozen; /* not 0: what time it is, which passes in pauses only */

/* The linker gives what is tested this one for its own (--wrap). */
int64_t __real_clock_now(void);
int64_t __wrap_clock_now(void);

int64_t
__wrap_clock_now(void)
{
	return frozen != 0 ? frozen : __real_clock_now();
}

/* The lock becomes free during the first pause; there is no other call to wait. */
static long
let_go(int nr, const long arg[5])
{
	if (nr == SYS_openat &&
		strcmp((const char *)arg[1], "/proc/locks") == 0)
		return hidden ? -EACCES : 0;
	if (nr == SYS_openat)
		return only_inside(nr, arg);
	pauses++;
	frozen += NS_PER_S / 16;
	close(held);
	held = -1;
	return -EINTR;
}

/* The lock of the folder; this process has it, or a child of it that is gone. */
static void
hold_lock(bool gone)
{
	pid_t pid = gone ? fork() : 0;
	int status = 0;

	if (gone && pid > 0) {
		NEED(waitpid(pid, &status, 0) == pid);
		EXPECT_EQ(status, 0);
		return;
	}
	status = flock(held, LOCK_EX | LOCK_NB) == 0 ? 0 : 1;
	if (gone)
		_exit(status);
	EXPECT_EQ(status, 0);
}

/* It is waited for as long as it can only be that of an xrun that was killed. */
FORKED_TEST(orphan, a_lock_of_who_is_gone_is_waited_for)
{
	static const struct {
		const char *text; /* of job.json; NULL: there is none */
		enum holder holder;
		bool waits;
	} rows[] = {
		{ NULL, GONE, true },
		{ NULL, HERE, false },
		{ NULL, HIDDEN, true },
		{ "{\"attempt\":0,\"pid\":OWN}", HIDDEN, false },
		{ "{\"attempt\":0}", GONE, true },
		{ "{\"attempt\":0,\"pid\":0}", GONE, true },
		{ "{\"attempt\":0,\"pid\":4194305}", GONE, true },
		{ "{\"attempt\":0,\"pid\":4194305}", HERE, false },
		{ "{\"attempt\":0,\"pid\":OWN}", GONE, false },
		{ "{\"attempt\":0,\"pid\":OWN}", HERE, false },
		{ "{\"attempt\":0,\"lineage\":\"5eed1\"}", GONE,
			false }, /* its own */
		{ "{\"attempt\":0,\"lineage\":\"5eed2\"}", GONE, true },
	};
	struct folder_row row = { .attempts = 1 };
	struct stat st;

	NEED(lineage_set(0x5eed1));
	hide_outside();
	sys_trap(SYS_clock_nanosleep);
	snprintf(own, sizeof(own), "%d", getpid());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		row.text = rows[i].text;
		put_folder(&row);
		held = open(ROOT "/a/lock", O_RDWR | O_CLOEXEC);
		hold_lock(rows[i].holder == GONE);
		pauses = 0;
		hidden = rows[i].holder == HIDDEN;
		frozen = NS_PER_S;
		sys_hook = let_go;
		orphan_run_now();
		sys_hook = only_inside;
		frozen = 0;
		NEED(stat(ROOT "/a/lock", &st) == 0);
		if ((pauses > 0) != rows[i].waits ||
			(st.st_size != 0) != rows[i].waits)
			forked_note(__LINE__, "row %zu: %u, %lld", i, pauses,
				(long long)st.st_size);
		if (held != -1)
			close(held);
		remove_folder();
	}
}

FORKED_TEST(orphan, a_folder_that_could_be_anothers_is_left_alone)
{
	static void (*const changes[])(void) = { open_to_all, job_is_folder,
		job_is_link, lock_is_fifo, lock_is_link, lock_is_closed,
		lock_is_others };
	struct stat st;

	hide_outside();
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		if (changes[i] == lock_is_others && geteuid() != 0)
			continue;
		put_folder(&folder_rows[0]);
		changes[i]();
		told = 0;
		orphan_each(ROOT, note_orphan, NULL);
		EXPECT_EQ(told, 0);
		orphan_run_now();
		if (lstat(ROOT "/a/job.json", &st) == 0 && S_ISREG(st.st_mode))
			forked_note(__LINE__, "change %zu", i);
		remove_folder();
	}
}

static long
job_is_unknown(int nr, const long arg[5])
{
	const char *path = (const char *)arg[1];
	size_t len = path == NULL ? 0 : strlen(path);

	if (nr == SYS_newfstatat && len > 9 &&
		strcmp(path + len - 9, "/job.json") == 0)
		return -EIO;
	return nr == SYS_openat ? only_inside(nr, arg) : 0;
}

FORKED_TEST(orphan, a_job_whose_file_may_exist_is_left_alone)
{
	put_folder(&folder_rows[0]);
	unlink(ROOT "/a/job.json");
	hide_outside();
	sys_trap(SYS_newfstatat);
	sys_hook = job_is_unknown;
	orphan_run_now();
	sys_hook = only_inside;
	EXPECT_EQ(access(ROOT "/a/job.json", F_OK), -1);
	orphan_run_now();
	EXPECT_EQ(access(ROOT "/a/job.json", F_OK), 0);
}

/* --- what a record closes ---------------------------------------------------------- */

static unsigned
history_lines(void)
{
	FILE *f = fopen(ROOT "/.history", "re");
	unsigned lines = 0;
	int c;

	while (f != NULL && (c = getc(f)) != EOF)
		lines += c == '\n';
	if (f != NULL)
		fclose(f);
	return lines;
}

static bool
close_recorded(const char *text)
{
	cJSON *record = cJSON_Parse(text);
	bool closed;

	NEED(record != NULL);
	closed = orphan_close_recorded(record, 3);
	cJSON_Delete(record);
	return closed;
}

FORKED_TEST(orphan, a_job_with_a_folder_elsewhere_gets_a_line_of_the_history)
{
#define R "\"root\":\"" ROOT "\","
	static const struct {
		const char *text;
		bool line;
	} rows[] = {
		{ "{" R "\"job\":\"a\",\"start\":\"1\"}", true },
		{ "{" R "\"job\":\"a\",\"start\":\"1\"}", false }, /* has it */
		{ "{" R "\"job\":\"b\",\"start\":\"1\"}", true },
		{ "{" R "\"job\":\"a\",\"start\":\"2\"}", true },
		{ "{" R "\"job\":\"a\"}", true },
		{ "{" R "\"job\":\"a\",\"start\":\"2\"}", true },
		{ "{\"job\":\"a\",\"start\":\"3\"}", false }, /* no root */
		{ "{" R "\"job\":\"a\",\"dir\":\"" ROOT "/a\"}", false },
		{ "{" R "\"job\":\"a\",\"dir\":\"" ROOT "/a/b\"}", true },
		{ "{" R "\"job\":\"a\",\"dir\":\"" ROOT "-b\"}", true },
		{ "{" R "\"job\":\"a\",\"dir\":\"away/a\"}", true },
	};
#undef R
	char *text = NULL;
	unsigned lines = 0;
	size_t len;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		EXPECT(close_recorded(rows[i].text));
		lines += rows[i].line;
		if (history_lines() != lines)
			forked_note(__LINE__, "%s", rows[i].text);
	}
	EXPECT_EQ(fd_read_file(ROOT "/.history", 1 << 20, &text, &len, NULL),
		XR_OK);
	EXPECT(text != NULL && strstr(text, "\"exit\":125,") != NULL &&
		strstr(text, "\"reason\":\"supervisor lost\"") != NULL &&
		strstr(text, "\"left_behind\":3}\n") != NULL);
	free(text);
}

#define RECORD \
	"{\"job\":\"a\",\"dir\":\"" ROOT "/a\",\"root\":\"" ROOT \
	"\",\"pid\":5,\"ranks\":2,\"argv\":[\"x\"],\"boot\":\"b\",\"start\":\"s\",\"other\":1,\"attempt\":%d}"

FORKED_TEST(orphan, a_folder_says_what_the_record_says)
{
	char text[512];
	cJSON *json;

	snprintf(text, sizeof(text), RECORD, 0);
	put_folder(&folder_rows[0]);
	EXPECT(close_recorded(text));
	json = jobs_read(ROOT "/a");
	EXPECT_EQ(jobs_number(json, "pid", 0), 5);
	EXPECT_EQ(jobs_number(json, "ranks", 0), 2);
	EXPECT_EQ(jobs_number(json, "left_behind", 0), 3);
	EXPECT(cJSON_HasObjectItem(json, "argv"));
	EXPECT(cJSON_HasObjectItem(json, "boot"));
	EXPECT(!cJSON_HasObjectItem(json, "other"));
	NEED(jobs_text(json, "start") != NULL);
	EXPECT_STR(jobs_text(json, "start"), "s");
	cJSON_Delete(json);
	EXPECT_EQ(history_lines(), 0);
	/* Closed before: nothing is written. */
	NEED(unlink(ROOT "/a/job.json") == 0);
	EXPECT(close_recorded(text));
	EXPECT_EQ(access(ROOT "/a/job.json", F_OK), -1);
}

FORKED_TEST(orphan, a_folder_that_is_locked_is_closed_later_unless_it_goes_on)
{
	char text[512];
	int fd;

	put_folder(&folder_rows[2]); /* three attempts */
	fd = open(ROOT "/a/lock", O_RDWR | O_CLOEXEC);
	NEED(flock(fd, LOCK_EX | LOCK_NB) == 0);
	snprintf(text, sizeof(text), RECORD, 2);
	EXPECT(!close_recorded(text));
	snprintf(text, sizeof(text), RECORD, 1);
	EXPECT(close_recorded(text));
	EXPECT_EQ(access(ROOT "/a/job.json", F_OK), -1);
	close(fd);
	NEED(unlink(ROOT "/a/lock") == 0);
	NEED(mkdir(ROOT "/a/lock", 0700) == 0);
	EXPECT(!close_recorded(text)); /* cannot be opened */
	NEED(rmdir(ROOT "/a/lock") == 0);
	EXPECT(close_recorded(text)); /* no job has it any more */
	EXPECT_EQ(access(ROOT "/a/job.json", F_OK), -1);
}
