/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - see body.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/prctl.h>

#include <xrun/spawn.h>

#include "base/status.h"
#include "worker/job/last.h"
#include "worker/job/life.h"
#include "worker/job/slot.h"
#include "worker/proc/body.h"
#include "worker/proc/final.h"
#include "worker/proc/report.h"
#include "worker/proc/target.h"

/* What exit(3) in the function still has to do. */
static struct {
	pid_t owner;
	const struct card *card;
	int fd;
} cleaning;

void
body_bind(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(125); /* it died before the line above */
}

/* Has a function of the card gone well? */
static bool
do_part(const struct card *card, int fd, enum card_text which)
{
	const struct target *t = target_find(card->text[which]);
	struct xr_value *report = NULL;
	struct xr_error err = { 0 };
	enum xr_status status;
	struct run run = {
		.func = card->text[which],
		.name = card->text[CARD_NAME],
		.started = card->started,
		.ordinal = card->ordinal,
		.arg = card->arg,
	};

	XR_ASSERT(t != NULL);
	run.fn = t->fn;
	run.ctx = t->ctx;
	status = run_do(&run, &err, &report);
	if (status == XR_OK)
		return true;
	if (report != NULL)
		card_report(fd, report);
	xr_value_unref(report);
	if (card->flags & CARD_TELLS)
		last_words(status, &card->ordinal, &err);
	return false;
}

static bool
clean(void)
{
	const struct card *card = cleaning.card;

	if (card == NULL || cleaning.owner != getpid())
		return true;
	cleaning.card = NULL;
	return do_part(card, cleaning.fd, CARD_CLEANER);
}

static void
clean_at_exit(void)
{
	clean();
}

/* Of stdio only what is written here is left: its parent's was flushed. What
 * exit(3) calls belongs to who registered it, which was the parent. */
static void __attribute__((noreturn))
leave_with(int code, bool executed)
{
	if (executed)
		exit(code);
	final_run_all();
	fflush(NULL);
	_exit(code);
}

/* As XR_E_NO_FUNCTION, which nobody was there to return. */
static void
report_unknown(const struct card *card, int fd, const char *func)
{
	struct xr_failure f = {
		.size = sizeof(f),
		.status = XR_E_NO_FUNCTION,
		.text = "no function of that name is registered there",
		.func = func,
		.worker = card->text[CARD_NAME],
		.worker_id = (uint32_t)getpid(),
	};
	struct xr_value *report = xr_value_new_error(&f);

	if (report != NULL)
		card_report(fd, report);
	xr_value_unref(report);
}

static bool
is_known(const struct card *card, int fd, enum card_text which)
{
	const char *func = card->text[which];

	if (which == CARD_CLEANER && func[0] == '\0')
		return true;
	if (target_find(func) != NULL)
		return true;
	report_unknown(card, fd, func);
	return false;
}

void
body_run(const struct card *card, int fd, bool executed)
{
	bool good;

	slot_init();
	life_init();
	if (!is_known(card, fd, CARD_FUNC) || !is_known(card, fd, CARD_CLEANER))
		leave_with(XR_EXIT_RANK_FAILED, executed);
	if (card->text[CARD_CLEANER][0] != '\0') {
		cleaning.owner = getpid();
		cleaning.card = card;
		cleaning.fd = fd;
		atexit(clean_at_exit);
	}
	good = do_part(card, fd, CARD_FUNC);
	good = clean() && good;
	leave_with(good ? XR_EXIT_OK : XR_EXIT_RANK_FAILED, executed);
}
