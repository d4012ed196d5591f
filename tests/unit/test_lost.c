/* SPDX-License-Identifier: Apache-2.0 */
/* test_lost.c - jobs whose xrun was killed: which are ended, and the files of errors
 * of their ranks. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <cjson/cJSON.h>
#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/host.h"
#include "launcher/ctl/errors.h"
#include "launcher/ctl/record.h"
#include "launcher/ctl/root.h"
#include "launcher/keeper/lost.h"
#include "launcher/keeper/orphan.h"
#include "proc/descend.h"
#include "proc/lineage.h"
#include "tests/unit/folder.h"
#include "tests/unit/noted.h"

#define WEEK (7 * 24 * 3600 * NS_PER_S)
#define NOW  (50 * NS_PER_S)

static struct ctl_record_found found; /* the one record that is there */
static char text[1000];
static bool removes; /* what was told of it */

static struct {
	bool not_ended;   /* processes */
	bool not_closed;  /* the record */
	uint64_t lineage; /* of this process */
	bool no_process, exits;
	pid_t asked;
} played;

void __wrap_ctl_record_sweep(ctl_record_fn *fn, void *ctx);
void __wrap_ctl_record_each(bool all, ctl_record_fn *fn, void *ctx);
bool __wrap_stray_end(const struct stray_job *job, int64_t deadline,
	uint32_t *ended);
bool __wrap_orphan_close_recorded(const struct cJSON *record, uint32_t ended);
bool __wrap_proc_stat_read(pid_t pid, struct proc_stat *out);
const char *__wrap_host_boot(char *out, size_t cap);
const char *__wrap_host_name(char *out, size_t cap);
uint64_t __wrap_lineage_of(pid_t pid);
int64_t __wrap_clock_now(void);

void
__wrap_ctl_record_sweep(ctl_record_fn *fn, void *ctx)
{
	removes = fn(ctx, &found);
}

void
__wrap_ctl_record_each(bool all, ctl_record_fn *fn, void *ctx)
{
	note("all:%d ", all);
	removes = fn(ctx, &found);
}

bool
__wrap_stray_end(const struct stray_job *job, int64_t deadline, uint32_t *ended)
{
	note("end:%llx,%llu,%lld ", (unsigned long long)job->lineage,
		(unsigned long long)job->ticks, (long long)(deadline - NOW));
	*ended = 5;
	return !played.not_ended;
}

bool
__wrap_orphan_close_recorded(const struct cJSON *record, uint32_t ended)
{
	cr_expect_not_null(record);
	note("close:%u ", ended);
	return !played.not_closed;
}

bool
__wrap_proc_stat_read(pid_t pid, struct proc_stat *out)
{
	played.asked = pid;
	out->exiting = played.exits;
	return !played.no_process;
}

const char *
__wrap_host_boot(char *out, size_t cap)
{
	snprintf(out, cap, "this-boot");
	return out;
}

const char *
__wrap_host_name(char *out, size_t cap)
{
	snprintf(out, cap, "here");
	return out;
}

uint64_t
__wrap_lineage_of(pid_t pid)
{
	cr_expect_eq(pid, getpid());
	return played.lineage;
}

int64_t
__wrap_clock_now(void)
{
	return NOW;
}

/* The record has these members beside its name. */
static void
record(const char *members)
{
	snprintf(text, sizeof(text), "{\"job\":\"train\"%s%s}",
		members[0] == '\0' ? "" : ",", members);
	found.text = text;
}

#define MARK   "\"lineage\":\"1f\",\"ticks\":77"
#define ELSE   "\"host\":\"there\""
#define HERE   "\"host\":\"here\""
#define BEFORE "\"boot\":\"boot-before\""
#define NOW_ON "\"boot\":\"this-boot\""

/* lost_end_all(); @any and @dying as it told them. */
static void
expect_end(int line, bool any, bool dying, bool removed, const char *did)
{
	bool is_dying = !dying;

	done[0] = '\0';
	cr_expect_eq(lost_end_all(&is_dying), any, "line %d", line);
	cr_expect_eq(is_dying, dying, "line %d", line);
	cr_expect_eq(removes, removed, "line %d", line);
	cr_expect_str_eq(done, did, "line %d: %s", line, done);
}

#define EXPECT_END(...) expect_end(__LINE__, __VA_ARGS__)

TestSuite(lost, .init = folder_make, .fini = folder_remove);

Test(lost, what_it_left_is_ended_and_then_the_record_goes)
{
	record(MARK "," HERE "," NOW_ON);
	EXPECT_END(true, false, true, "end:1f,77,2000000000 close:5 ");
	played.not_ended = true;
	EXPECT_END(true, false, false, "end:1f,77,2000000000 close:5 ");
	played.not_ended = false;
	played.not_closed = true;
	EXPECT_END(true, false, false, "end:1f,77,2000000000 close:5 ");
	played.not_closed = false;
	record(MARK "," BEFORE); /* of processes nothing is left */
	EXPECT_END(true, false, true, "end:0,0,2000000000 close:5 ");
	record(NOW_ON);
	EXPECT_END(true, false, true, "end:0,0,2000000000 close:5 ");
	record("");
	EXPECT_END(true, false, true, "end:0,0,2000000000 close:5 ");
}

Test(lost, of_another_machine_it_goes_when_it_is_old)
{
	static const char *const other[] = { ELSE, ELSE "," BEFORE,
		"\"pid_namespace\":1", "\"pid_namespace\":1," NOW_ON,
		ELSE ",\"pid_namespace\":1" };

	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		record(other[i]);
		found.age = WEEK;
		EXPECT_END(false, false, false, "");
		found.age = WEEK + 1;
		EXPECT_END(false, false, true, "");
	}
	found.age = 0;
	record(ELSE "," NOW_ON); /* it was renamed */
	EXPECT_END(true, false, true, "end:0,0,2000000000 close:5 ");
	/* a boot later there is no such namespace any more */
	record("\"pid_namespace\":1," BEFORE);
	EXPECT_END(true, false, true, "end:0,0,2000000000 close:5 ");
}

Test(lost, what_is_no_record_is_left_alone)
{
	static const char *const bad[] = { "", "[]", "{}", "{\"job\":7}",
		"{\"job\":\"..\"}", "{\"job\":\"train\"",
		"{\"job\":\"train\"} x" };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		found.text = bad[i];
		EXPECT_END(false, false, true, "");
	}
}

Test(lost, a_keeper_that_was_killed_is_dying_until_it_is_gone)
{
	char own[64];
	struct stat st;

	found.held = true;
	record("\"pid\":123," NOW_ON "," MARK);
	EXPECT_END(false, false, false, "");
	cr_expect_eq(played.asked, 123);
	record(MARK);
	EXPECT_END(false, false, false, "");
	cr_expect_eq(played.asked, 0);
	record("\"pid\":123," NOW_ON "," MARK);
	played.exits = true;
	EXPECT_END(false, true, false, "");
	played.exits = false;
	played.no_process = true;
	EXPECT_END(false, true, false, "");
	played.lineage = 0x1f; /* our own job's */
	EXPECT_END(false, false, false, "");
	played.lineage = 0x1e;
	EXPECT_END(false, true, false, "");
	record("\"pid\":123," ELSE);
	EXPECT_END(false, false, false, "");
	record("\"pid\":123,\"pid_namespace\":1");
	EXPECT_END(false, false, false, "");
	cr_assert_eq(stat("/proc/self/ns/pid", &st), 0);
	snprintf(own, sizeof(own), "\"pid_namespace\":%llu",
		(unsigned long long)st.st_ino);
	record(own);
	EXPECT_END(false, true, false, "");
}

Test(lost, who_has_no_mark_has_no_job_of_his_own)
{
	cJSON *json;

	record(NOW_ON);
	json = cJSON_Parse(text);
	cr_expect_not(lost_is_own(json));
	cJSON_Delete(json);
	record(MARK);
	json = cJSON_Parse(text);
	cr_expect_not(lost_is_own(json));
	played.lineage = 0x1f;
	cr_expect(lost_is_own(json));
	cJSON_Delete(json);
}

static void
tell(void *ctx, const struct lost_facts *facts)
{
	cr_expect_eq(ctx, &found);
	cr_expect_not_null(facts->record);
	note("%s,%s,%llx,%llu ", facts->id,
		facts->dir == NULL ? "-" : facts->dir,
		(unsigned long long)facts->job.lineage,
		(unsigned long long)facts->job.ticks);
}

Test(lost, jobs_are_told_of_by_whether_they_run)
{
	record("\"dir\":\"/d\"," MARK);
	lost_each(tell, &found);
	cr_expect_not(removes);
	lost_each_held(tell, &found);
	found.held = true;
	record(HERE);
	lost_each(tell, &found);
	lost_each_held(tell, &found);
	cr_expect_not(removes);
	record(ELSE);
	lost_each_held(tell, &found);
	record("\"pid_namespace\":1");
	lost_each_held(tell, &found);
	found.text = "{}";
	lost_each_held(tell, &found);
	cr_expect_str_eq(done,
		"all:1 train,/d,1f,77 all:0 all:1 all:0 train,-,0,0 all:0 all:0 all:0 ");
}

/* --- errors.h ---------------------------------------------------------------- */

static void
make(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	cr_assert_neq(fd, -1, "%s", name);
	close(fd);
}

static bool
is_there(const char *name)
{
	return access(name, F_OK) == 0;
}

Test(lost, files_of_errors_are_removed_by_their_prefix)
{
	char prefix[PATH_MAX + 32], members[PATH_MAX + 64];

	make(".errors-1-0");
	make(".errors-1-12");
	make(".errors-1");
	make(".errors-10-0");
	make(".errors-2-0");
	make("errors-1-0");
	cr_assert_eq(mkdir(".errors-1-d", 0700), 0);
	snprintf(prefix, sizeof(prefix), "%s/.errors-1", folder);
	cr_expect(errors_remove(prefix));
	cr_expect_not(is_there(".errors-1-0"));
	cr_expect_not(is_there(".errors-1-12"));
	cr_expect_not(is_there(".errors-1-d"));
	cr_expect(is_there(".errors-1"));
	cr_expect(is_there(".errors-10-0"));
	cr_expect(is_there(".errors-2-0"));
	cr_expect(is_there("errors-1-0"));
	cr_expect(errors_remove(prefix));
	snprintf(members, sizeof(members), "\"errors\":\"%s/.errors-2\"",
		folder);
	record(members);
	played.not_closed = true;
	EXPECT_END(true, false, false, "end:0,0,2000000000 close:5 ");
	cr_expect(is_there(".errors-2-0"));
	played.not_closed = false;
	EXPECT_END(true, false, true, "end:0,0,2000000000 close:5 ");
	cr_expect_not(is_there(".errors-2-0"));
}

Test(lost, what_is_no_such_prefix_removes_nothing)
{
	char prefix[PATH_MAX + 32];

	cr_expect(errors_remove(NULL));
	cr_expect(errors_remove(".errors-1"));
	make("errors-1-0");
	make(".error-1-0");
	snprintf(prefix, sizeof(prefix), "%s/errors-1", folder);
	cr_expect(errors_remove(prefix));
	snprintf(prefix, sizeof(prefix), "%s/.error-1", folder);
	cr_expect(errors_remove(prefix));
	cr_expect(is_there("errors-1-0"));
	cr_expect(is_there(".error-1-0"));
	snprintf(prefix, sizeof(prefix), "%s/none/.errors-1", folder);
	cr_expect(errors_remove(prefix)); /* there are none */
	snprintf(prefix, sizeof(prefix), "%s/errors-1-0/.errors-1", folder);
	cr_expect_not(errors_remove(prefix));
	cr_assert_eq(symlink(folder, "link"), 0);
	snprintf(prefix, sizeof(prefix), "%s/link/.errors-1", folder);
	cr_expect_not(errors_remove(prefix));
}

Test(lost, what_cannot_be_removed_is_told_and_the_rest_goes)
{
	char prefix[PATH_MAX + 32];

	make(".errors-1-0");
	make(".errors-1-2");
	cr_assert_eq(mkdir(".errors-1-1", 0700), 0);
	make(".errors-1-1/file");
	snprintf(prefix, sizeof(prefix), "%s/.errors-1", folder);
	cr_expect_not(errors_remove(prefix));
	cr_expect_not(is_there(".errors-1-0"));
	cr_expect_not(is_there(".errors-1-2"));
	cr_expect(is_there(".errors-1-1/file"));
}

Test(lost, a_prefix_is_in_the_folder_and_another_one_each_time)
{
	struct ctl_root root = { .dir = -1, .path = "/folder" };
	char *one = errors_prefix_new(&root), *other = errors_prefix_new(&root);

	cr_expect_eq(strncmp(one, "/folder/.errors-", 16), 0, "%s", one);
	cr_expect_eq(strlen(one), 16 + 16);
	cr_expect_eq(strspn(one + 16, "0123456789abcdef"), 16);
	cr_expect_str_neq(one, other);
	free(one);
	free(other);
}
