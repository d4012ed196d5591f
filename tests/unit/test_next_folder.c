/* SPDX-License-Identifier: Apache-2.0 */
/* test_next_folder.c - the folder of the next attempt: made beside the loop, and waited for. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "launcher/job/words.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/next.h"
#include "launcher/sup/next_folder.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/report.h"
#include "tests/unit/noted.h"

static struct sup sup;
static struct keeper_page page;
static struct job job = { .sup = &sup, .page = &page };
static work_fn *make;
static int made; /* its descriptor, or -errno */
static bool no_memory, waits, no_room;

bool __wrap_work_post(struct work *work, work_fn *fn, void *ctx);
bool __wrap_report_wait(struct job *j);
int __wrap_state_make_next(const struct state *state);
const char *__wrap_report_lost_text(const struct job *j, int sys);
bool __wrap_words_have_room(void);
void __wrap_words_line(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
void __wrap_next_cannot(struct job *j, const char *why);

bool
__wrap_work_post(struct work *work, work_fn *fn, void *ctx)
{
	cr_expect_eq(work, (struct work *)&job);
	cr_expect_eq(ctx, &job);
	cr_expect_eq(page.next, -ETIMEDOUT);
	make = fn;
	note("post ");
	return !no_memory;
}

bool
__wrap_report_wait(struct job *j)
{
	cr_expect_eq(j, &job);
	note("wait ");
	return waits;
}

int
__wrap_state_make_next(const struct state *state)
{
	cr_expect_eq(state, &job.state);
	errno = made < 0 ? -made : 0;
	return made < 0 ? -1 : made;
}

const char *
__wrap_report_lost_text(const struct job *j, int sys)
{
	static char text[20];

	cr_expect_eq(j, &job);
	snprintf(text, sizeof(text), "errno %d", sys);
	return text;
}

bool
__wrap_words_have_room(void)
{
	return !no_room;
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

void
__wrap_next_cannot(struct job *j, const char *why)
{
	cr_expect_eq(j, &job);
	note("cannot:%s ", why);
}

static void
begin(void)
{
	sup.work = (struct work *)&job;
	page.again.due = 1;
	page.next = -1;
	job.state.dir_fd = 5;
	job.state.number = 3;
	job.state.dir = (char *)"/k7m2";
	waits = true;
}

TestSuite(next_folder, .init = begin);

static void
expect_known(bool known, const char *text)
{
	done[0] = '\0';
	cr_expect_eq(next_folder_known(&job), known);
	cr_expect_str_eq(done, text);
	cr_expect_eq(sup.next_folder,
		known ? NEXT_FOLDER_KNOWN : NEXT_FOLDER_ASKED);
}

#define WHY(n) \
	"the job cannot begin again: the folder of attempt 4 in /k7m2: errno " n

Test(next_folder, it_is_waited_for)
{
	expect_known(false, "post wait ");
	made = 7;
	make(&job);
	cr_expect_eq(page.next, 7);
	expect_known(true, "");
	expect_known(true, "");
}

Test(next_folder, the_first_descriptor_is_one)
{
	expect_known(false, "post wait ");
	made = 0;
	make(&job);
	expect_known(true, "");
}

Test(next_folder, a_folder_that_cannot_be_made_ends_the_job)
{
	char want[500];

	expect_known(false, "post wait ");
	made = -EEXIST;
	make(&job);
	cr_expect_eq(page.next, -EEXIST);
	snprintf(want, sizeof(want), "[%s%d] cannot:%s%d ", WHY(""), EEXIST,
		WHY(""), EEXIST);
	expect_known(true, want);
	expect_known(true, ""); /* it is said once */
}

Test(next_folder, a_disk_that_hangs_is_given_up)
{
	char want[500];

	expect_known(false, "post wait ");
	snprintf(want, sizeof(want), "cannot:%s%d ", WHY(""), ETIMEDOUT);
	no_room = true; /* for words */
	expect_known(true, want);
}

Test(next_folder, without_memory_there_is_none)
{
	char want[500];

	no_memory = true;
	snprintf(want, sizeof(want), "post [%s%d] cannot:%s%d ", WHY(""),
		ENOMEM, WHY(""), ENOMEM);
	expect_known(true, want);
	cr_expect_eq(page.next, -ENOMEM);
}

Test(next_folder, nobody_may_be_there_to_wait)
{
	char want[500];

	waits = false;
	snprintf(want, sizeof(want), "post wait [%s%d] cannot:%s%d ", WHY(""),
		ETIMEDOUT, WHY(""), ETIMEDOUT);
	expect_known(true, want);
}

Test(next_folder, none_is_made_if_none_is_wanted)
{
	page.again.due = 0;
	expect_known(true, "");
	sup.next_folder = NEXT_FOLDER_UNASKED;
	page.again.due = 1;
	job.state.dir_fd = -1;
	expect_known(true, "");
	cr_expect_eq(page.next, -1);
}
