/* SPDX-License-Identifier: Apache-2.0 */
/* test_keeper.c - what the keeper does at each event, and what the supervisor leaves. */
#include "tests/unit/keeper_rig.h"

/* --- a job ------------------------------------------------------------------- */

static struct raw_share share;
static int words = -1; /* where stderr goes */

static void
begin(void)
{
	sigset_t all;

	keeper_pid = getpid();
	noted = mmap(NULL, sizeof(*noted), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(noted != MAP_FAILED);
	sigfillset(&all);
	sigdelset(&all, SIGALRM); /* ends what hangs */
	alarm(15);
	NEED(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
	for (int fd = SPAWN_SLOT_IN; fd <= SPAWN_SLOTS; fd++)
		NEED(dup2(STDIN_FILENO, fd) == fd);
	words = memfd_create("words", MFD_CLOEXEC);
	NEED(words != -1 && dup2(words, STDERR_FILENO) == STDERR_FILENO);
	NEED(pipe2(ready, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
	job.page = keeper_page_new();
	NEED(job.page != NULL);
	job.share = &share;
	share.before = 42;
	job.errors = (char *)"E";
	job.report_fd = -1;
	job.plan.local_size = 5;
	job.state.dir_fd = -1;
	snprintf(job.state.id, sizeof(job.state.id), "k7m2");
	job.state.bytes_before = 17;
	job.opt.report = "R";
}

static void
expect_words(const char *text)
{
	char got[2000];
	ssize_t n = pread(words, got, sizeof(got) - 1, 0);

	got[n > 0 ? n : 0] = '\0';
	EXPECT_STR(got, text);
	NEED(ftruncate(words, 0) == 0 && lseek(words, 0, SEEK_SET) == 0);
}

static void
expect_done(const char *by_keeper, const char *by_super)
{
	EXPECT_STR(noted->keeper.text, by_keeper);
	EXPECT_STR(noted->super.text, by_super);
	memset(noted, 0, sizeof(*noted));
}

/* After a supervisor was lost. */
static void
reset(void)
{
	for (int fd = SPAWN_SLOT_IN; fd < SPAWN_SLOTS; fd++)
		NEED(dup2(STDIN_FILENO, fd) == fd);
	NEED(ftruncate(words, 0) == 0 && lseek(words, 0, SEEK_SET) == 0);
	memset(noted, 0, sizeof(*noted));
	job.page->verdict = 0;
}

/* Supervisors that end. The page keeps the pid, for the wrapped ones. */
static int
ends_with_3(struct job *j)
{
	EXPECT(j == &job);
	alarm(15);
	note("job ");
	j->page->again.best = getpid(); /* for the test */
	return 3;
}

static int
ends_without(struct job *j)
{
	ends_with_3(j);
	return KEEPER_NO_VERDICT;
}

static void
raise_real(int sig)
{
	NEED(kill(getpid(), sig) == 0);
}

static int
is_killed(struct job *j)
{
	ends_with_3(j);
	raise_real(SIGKILL);
	return 0;
}

/* One that waits: until it is told to go on. */
static int
waits(struct job *j)
{
	char byte;

	ends_with_3(j);
	NEED(write(ready[1], "", 1) == 1);
	NEED(read(go[0], &byte, 1) == 1);
	return 4;
}

#define BEGUN   "reserve:1005 renew_note timer:1.0,0 "
#define BORN    "mark:xrun-super,18 begin job "
#define JUDGED  BORN "timer:0.0,0 timer:1.0,0 "
#define CLEANED "errors:E record timer:0.1,0 "
#define ALL     JUDGED "note:3,so " CLEANED
#define OVER    "waitid:5 salvage leaf ctl tty "
#define LOST    "waitid:5 tty end:30,0,0 leaf forget:k7m2 drain:5 terminal "
#define ENDED   "note:125,supervisor lost tty errors:E record "
#define SAID    "): all ranks were ended with it"

static void
expect_run(keeper_fn *fn, const char *happens, int status)
{
	script = happens;
	EXPECT_EQ(keeper_run(&job, fn), status);
	EXPECT_STR(script, "");
	while (waitpid(-1, NULL, __WALL) > 0)
		continue; /* an exit that was not waited for */
}

FORKED_TEST(keeper, the_verdict_is_the_exit_status)
{
	begin();
	expect_run(ends_with_3, "!OD", 3);
	expect_done(BEGUN "<O> close_but:3,5 timer:1.0,0 <D> " OVER, ALL);
	EXPECT_EQ(job.page->verdict, KEEPER_VERDICT | 3);
	EXPECT_EQ(job.page->done, 1);
	EXPECT_EQ(job.page->cleaned, 1);
	EXPECT_EQ(job.page->started, 1);
	expect_words("");
	/* An exit that takes long is not waited for. */
	job.page->done = 0;
	expect_run(ends_with_3, "!OO", 3);
	expect_done(BEGUN "<O> close_but:3,5 timer:1.0,0 <O> tty ", ALL);
	expect_run(ends_with_3, "ENB1", 3);
	expect_done(BEGUN "<E> no_timer <N> <B> waitid:4 salvage leaf ctl tty ",
		ALL);
	expect_run(ends_with_3, "B2", 3);
	expect_done(BEGUN "<B> waitid:4 salvage leaf ctl tty ", ALL);
	expect_words("");
}

/* What the keeper has to do still keeps the descriptors open. */
FORKED_TEST(keeper, descriptors_are_closed_early_if_nothing_is_left_to_do)
{
	static const char not_yet[] = BEGUN "<O> timer:1.0,0 <D> " OVER;

	begin();
	job.page->again.restarts = 1;
	expect_run(ends_with_3, "!OD", 3);
	expect_done(not_yet, ALL);
	job.page->again.restarts = 0;
	job.page->ctl.dir = 9;
	expect_run(ends_with_3, "!OD", 3);
	expect_done(not_yet, ALL);
	job.page->ctl.dir = -1;
	job.page->leaves.on = true;
	expect_run(ends_with_3, "!OD", 3);
	expect_done(not_yet, ALL);
	job.page->leaves.on = false;
	share.left = 1;
	expect_run(ends_with_3, "!OD", 3);
	expect_done(not_yet, ALL);
	share.left = 0;
	played.record_stays = true;
	expect_run(ends_with_3, "!OD", 3);
	expect_done(BEGUN "<O> timer:1.0,0 <D> " OVER "errors:E record ", ALL);
	EXPECT_EQ(job.page->cleaned, 0);
	played.record_stays = false;
	played.errors_stay = true;
	expect_run(ends_with_3, "!OD", 3);
	expect_done(BEGUN "<O> timer:1.0,0 <D> " OVER "errors:E record ",
		JUDGED "note:3,so errors:E timer:0.1,0 ");
	EXPECT_EQ(job.page->cleaned, 0);
}

static int
was_silent(struct job *j)
{
	j->page->silent = 1;
	return ends_with_3(j);
}

FORKED_TEST(keeper, the_folder_of_a_silent_job_goes)
{
	begin();
	expect_run(was_silent, "!OD", 3);
	expect_done(BEGUN "<O> close_but:3,5 timer:1.0,0 <D> " OVER,
		JUDGED "remove note:3,so " CLEANED);
	EXPECT_EQ(job.page->removed, 1);
	EXPECT_EQ(job.page->silent, 0);
	job.page->removed = 0;
	played.stays = true;
	expect_run(was_silent, "!OO", 3);
	expect_done(BEGUN "<O> close_but:3,5 timer:1.0,0 <O> tty ",
		JUDGED "remove note:3,so " CLEANED);
	EXPECT_EQ(job.page->removed, 0);
	EXPECT_EQ(job.page->silent, 0);
	job.state.dir_fd = 99;
	expect_run(was_silent, "!OO", 3);
	expect_done(BEGUN "<O> close_but:3,5 timer:1.0,0 <O> tty ",
		JUDGED "remove amend:job.json ,\"exit\": "
		       ",\"end\":\"1970-01-01T00:00:00.000000Z\",\"exit\":3,"
		       "\"reason\":\"so\",\"bytes\":42,\"bytes_before\":17 "
		       "closed note:3,so " CLEANED);
}

FORKED_TEST(keeper, without_a_verdict_everything_is_ended)
{
	begin();
	job.page->done = 0;
	expect_run(ends_without, "D", EXIT_XRUN);
	expect_done(BEGUN "<D> " LOST ENDED, BORN "timer:0.0,0 ");
	expect_words("xrun: the supervisor ended (without a verdict" SAID "\n");
	EXPECT_EQ(job.page->verdict, 0);
	EXPECT_EQ(job.page->removed, 0);
	for (int fd = SPAWN_SLOT_IN; fd < SPAWN_SLOTS; fd++)
		EXPECT_EQ(fcntl(fd, F_GETFD), -1);
	EXPECT(fcntl(SPAWN_SLOT_IN - 1, F_GETFD) != -1);
	EXPECT(fcntl(SPAWN_SLOTS, F_GETFD) != -1);
}

FORKED_TEST(keeper, a_supervisor_that_is_killed_is_told_of)
{
	begin();
	job.page->leaves.on = true;
	job.state.dir_fd = 99;
	job.page->ctl.dir = 9;
	played.leaf_tries = 2;
	played.alive = 2;
	played.lost = "xrun: lost\n";
	snprintf(job.page->where, sizeof(job.page->where), "/w");
	NEED(write(words, "abc", 3) == 3);
	expect_run(is_killed, "D", EXIT_XRUN);
	expect_done(BEGUN
		"<D> waitid:5 tty leaf_kill end:30,0,0 sleep:0.1000000 leaf "
		"ctl drain:5 terminal amend:job.json ,\"exit\": "
		",\"end\":\"1970-01-01T00:00:00.000000Z\",\"exit\":125,"
		"\"reason\":\"supervisor lost\",\"bytes\":42,"
		"\"bytes_before\":17 closed " ENDED,
		BORN);
	EXPECT_EQ(sleeps, 2);
	expect_words(
		"abc\nxrun: the supervisor ended (SIGKILL" SAID
		"; what they wrote is in /w\n"
		"xrun: 2 processes cannot be ended, not even with SIGKILL, and are left\n"
		"xrun: lost\n");
	EXPECT_STR(job.page->where, "/w");
}

FORKED_TEST(keeper, groups_that_stay_are_given_up)
{
	begin();
	played.leaf_tries = 5000;
	NEED(write(words, "abc\n", 4) == 4);
	expect_run(is_killed, "D", EXIT_XRUN);
	EXPECT_EQ(sleeps, 1000);
	EXPECT_EQ(played.leaf_tries, 5000 - 1001);
	expect_words("abc\nxrun: the supervisor ended (SIGKILL" SAID "\n");
}

/* It wrote nothing: there is nothing to be read. */
FORKED_TEST(keeper, the_folder_of_a_lost_job_without_output_goes)
{
	begin();
	share.before = 0;
	snprintf(job.page->where, sizeof(job.page->where), "/w");
	job.state.dir_fd = 99;
	expect_run(is_killed, "D", EXIT_XRUN);
	expect_done(BEGUN "<D> " LOST "remove " ENDED, BORN);
	expect_words("xrun: the supervisor ended (SIGKILL" SAID "\n");
	EXPECT_EQ(job.page->removed, 1);
	EXPECT_STR(job.page->where, "");
	job.state.dir_fd = -1;
	job.page->kept = 1;
	snprintf(job.page->where, sizeof(job.page->where), "/w");
	reset();
	expect_run(is_killed, "D", EXIT_XRUN);
	expect_done(BEGUN "<D> " LOST ENDED, BORN);
	EXPECT_EQ(job.page->removed, 0);
	EXPECT_STR(job.page->where, "/w");
	job.page->kept = 0;
	played.stays = true;
	reset();
	expect_run(is_killed, "D", EXIT_XRUN);
	expect_done(BEGUN "<D> " LOST "remove " ENDED, BORN);
	EXPECT_EQ(job.page->removed, 0);
}

static int
told_5(struct job *j)
{
	j->page->told = KEEPER_VERDICT | 5;
	return is_killed(j);
}

static int
told_0(struct job *j)
{
	j->page->told = KEEPER_VERDICT;
	return is_killed(j);
}

FORKED_TEST(keeper, what_was_begun_to_be_told_is_told_whole)
{
	static const char end[] =
		"salvage leaf ctl note:5,supervisor lost tty errors:E record ";
	char text[500];

	begin();
	snprintf(text, sizeof(text), "%s<D> waitid:5 %s", BEGUN, end);
	expect_run(told_5, "D", 5);
	expect_done(text, BORN);
	EXPECT_EQ(job.page->closed, 1);
	job.report_fd = 50;
	expect_run(told_5, "D", 5); /* it was closed */
	expect_done(text, BORN);
	job.page->closed = 0;
	job.state.dir_fd = 99;
	expect_run(told_5, "D", 5);
	snprintf(text, sizeof(text),
		"%s<D> waitid:5 report amend:job.json ,\"exit\": "
		",\"end\":\"1970-01-01T00:00:00.000000Z\",\"exit\":5,"
		"\"reason\":\"supervisor lost\",\"bytes\":42,"
		"\"bytes_before\":17 closed %s",
		BEGUN, end);
	expect_done(text, BORN);
	EXPECT_EQ(job.page->closed, 1);
	expect_words("");
	job.page->closed = 0;
	job.page->silent = 1;
	played.report_sys = ENOSPC;
	expect_run(told_5, "D", 5);
	snprintf(text, sizeof(text),
		"%s<D> waitid:5 report salvage leaf ctl remove "
		"note:5,supervisor lost tty errors:E record ",
		BEGUN);
	expect_done(text, BORN);
	EXPECT_EQ(job.page->removed, 1);
	expect_words(
		"xrun: --report: R: No space left on device; it is not complete\n");
	job.page->closed = 0;
	job.state.dir_fd = -1;
	expect_run(told_0, "D", EXIT_XRUN);
	snprintf(text, sizeof(text),
		"%s<D> waitid:5 report salvage leaf ctl "
		"note:125,supervisor lost tty errors:E record ",
		BEGUN);
	expect_done(text, BORN);
}

FORKED_TEST(keeper, a_debugger_may_keep_what_is_left_of_it)
{
	begin();
	played.traced = true;
	played.reap_eintr = 2;
	expect_run(ends_without, "D", EXIT_XRUN);
	expect_done(BEGUN
		"<D> waitid:5 tty end:30,1,0 leaf forget:k7m2 drain:5 terminal " ENDED,
		BORN "timer:0.0,0 ");
	expect_words("xrun: the supervisor ended (SIGKILL" SAID "\n");
}

/* --- signals ----------------------------------------------------------------- */

#define PASSED(sig) "send:" #sig ",-1,0 send:18,0,0 "

FORKED_TEST(keeper, signals_that_end_are_passed_on_and_expected_to_be_answered)
{
	begin();
	expect_run(waits, ".StSiShSqSuKtKiKqKuKhG!OD", 4);
	expect_done(BEGUN
		"<S> expect:0 " PASSED(15) "<S> expect:1 " PASSED(2) "<S> expect:1 " PASSED(1) "<S> expect:1 " PASSED(
			3) "<S> send:10,-1,0 <K> <K> <K> <K> <K> expect:1 " PASSED(1) "<O> close_but:3,5 timer:1.0,0 <D> " OVER,
		JUDGED "note:4,so " CLEANED);
	EXPECT_EQ(job.page->again.told, 0);
	job.page->done = 0;
	job.page->verdict = 0;
	job.hup_ignored = true;
	expect_run(waits, ".ShStG!O!St", 4);
	expect_done(BEGUN "<S> " PASSED(1) "<S> expect:0 " PASSED(
			    15) "<O> close_but:3,5 timer:1.0,0 <S> tty ",
		JUDGED "note:4,so " CLEANED);
}

FORKED_TEST(keeper, a_child_that_changes_may_be_the_supervisor_that_stops)
{
	sigset_t mask;

	begin();
	expect_run(waits, ".CG!OD", 4);
	expect_done(BEGUN
		"<C> reap:1,0 <O> close_but:3,5 timer:1.0,0 <D> " OVER,
		JUDGED "note:4,so " CLEANED);
	job.page->done = job.page->verdict = 0;
	keeper_follow_stop(job.page);
	EXPECT_EQ(job.page->follow, 1);
	expect_run(waits, ".CCG!OD", 4);
	expect_done(BEGUN
		"<C> raise:20 mask:1 mask:0 send:18,0,0 reap:1,0 <C> reap:1,0 "
		"<O> close_but:3,5 timer:1.0,0 <D> " OVER,
		JUDGED "note:4,so " CLEANED);
	EXPECT_EQ(job.page->follow, 0);
	NEED(__real_sigprocmask(SIG_BLOCK, NULL, &mask) == 0);
	EXPECT_EQ(sigismember(&mask, SIGTSTP), 1);
}

FORKED_TEST(keeper, a_supervisor_that_sleeps_before_an_exec_is_woken)
{
	begin();
	expect_run(waits, ".OEG!OD", 4);
	expect_done(BEGUN "<O> wake:xrun-super timer:1.0,0 <E> no_timer "
			  "<O> close_but:3,5 timer:1.0,0 <D> " OVER,
		JUDGED "note:4,so " CLEANED);
	job.page->done = job.page->verdict = 0;
	EXPECT_EQ(job.page->started, 1);
	expect_run(waits, ".OEG!OD", 4);
	expect_done(BEGUN "<O> <E> no_timer "
			  "<O> close_but:3,5 timer:1.0,0 <D> " OVER,
		JUDGED "note:4,so " CLEANED);
}

FORKED_TEST(keeper, a_supervisor_that_does_not_answer_is_ended)
{
	begin();
	memcpy(played.missed, (bool[]){ false, true, true, false },
		sizeof(bool[4]));
	expect_run(waits, ".TTD", EXIT_XRUN);
	expect_done(BEGUN
		"<T> missed:0 <T> missed:1 send:9,0,0 soon:0 <D> " LOST ENDED,
		BORN);
	expect_words("xrun: the supervisor does not answer: xrun ends it\n"
		     "xrun: the supervisor ended (SIGKILL" SAID "\n");
	/* One that a debugger keeps: no event tells. */
	reset();
	played.asked = 1;
	played.is_dead = true;
	expect_run(waits, ".T!T", EXIT_XRUN);
	expect_done(BEGUN "<T> missed:1 send:9,0,0 soon:0 "
			  "<T> missed:1 is_dead " LOST ENDED,
		BORN);
	reset();
	played.asked = 1;
	played.is_dead = false;
	expect_run(waits, ".TTTD", EXIT_XRUN);
	expect_done(BEGUN
		"<T> missed:1 send:9,0,0 soon:0 "
		"<T> missed:1 is_dead send:9,0,0 soon:0 "
		"<T> missed:0 is_dead send:9,0,0 soon:0 <D> " LOST ENDED,
		BORN);
	expect_words("xrun: the supervisor does not answer: xrun ends it\n"
		     "xrun: the supervisor ended (SIGKILL" SAID "\n");
	/* It has said its last word. */
	reset();
	played.asked = 1;
	expect_run(ends_with_3, "!T", 3);
	expect_done(BEGUN "<T> missed:1 tty ", ALL);
	job.page->verdict = 0;
	played.asked = 0;
	expect_run(ends_with_3, "!TD", 3);
	expect_done(BEGUN "<T> missed:0 <D> " OVER, ALL);
	expect_words("");
}

/* --- another attempt ---------------------------------------------------------- */

#define AGAIN  "send:9,0,0 salvage leaf renew timer:1.0,0 "
#define HEARD  "reap:1,0 "
#define FIRST  JUDGED
#define SECOND JUDGED "note:3,so " CLEANED

FORKED_TEST(keeper, a_job_may_begin_again)
{
	begin();
	played.late = true;
	played.again = true;
	expect_run(ends_with_3, "D!OD", 3);
	expect_done(BEGUN "<D> waitid:5 " AGAIN HEARD
			  "<O> close_but:3,5 timer:1.0,0 <D> " OVER,
		FIRST SECOND);
	/* Its exit takes long. */
	job.page->done = job.page->verdict = 0;
	played.again = true;
	expect_run(ends_with_3, "!O!OD", 3);
	expect_done(BEGUN "<O> " AGAIN HEARD
			  "<O> close_but:3,5 timer:1.0,0 <D> " OVER,
		FIRST SECOND);
	/* Nobody asks whether it answers, and the next one is not killed. */
	job.page->done = job.page->verdict = 0;
	played.again = true;
	played.missed[0] = played.missed[1] = true;
	expect_run(ends_with_3, "!TD!OD", 3);
	expect_done(BEGUN "<T> missed:1 <D> waitid:5 " AGAIN HEARD
			  "<O> close_but:3,5 timer:1.0,0 <D> " OVER,
		FIRST SECOND);
	expect_words("");
}

static int
was_told(struct job *j)
{
	raise_real(SIGTERM);
	raise_real(SIGUSR1);
	return ends_with_3(j);
}

static int
was_told_nothing(struct job *j)
{
	raise_real(SIGUSR1);
	raise_real(SIGHUP);
	return ends_with_3(j);
}

FORKED_TEST(keeper, what_was_told_between_two_attempts_is_kept)
{
	begin();
	played.late = true;
	played.again = true;
	played.renew_sys = ENOSPC;
	expect_run(was_told, "D", EXIT_XRUN);
	EXPECT_EQ(job.page->again.told, SIGTERM);
	expect_done(BEGUN "<D> waitid:5 send:9,0,0 salvage leaf renew ctl "
			  "note:125,xrun tty errors:E record ",
		FIRST);
	expect_words("xrun: the job cannot begin again: the folder: "
		     "No space left on device\n");
	job.page->verdict = job.page->again.told = 0;
	expect_run(was_told_nothing, "D", EXIT_XRUN);
	EXPECT_EQ(job.page->again.told, SIGHUP);
	memset(noted, 0, sizeof(*noted));
	job.page->verdict = job.page->again.told = 0;
	job.hup_ignored = true;
	job.state.dir_fd = 99;
	expect_run(was_told_nothing, "D", EXIT_XRUN);
	EXPECT_EQ(job.page->again.told, 0);
	expect_done(BEGUN
		"<D> waitid:5 send:9,0,0 salvage leaf renew ctl "
		"amend:job.json ,\"exit\": "
		",\"end\":\"1970-01-01T00:00:00.000000Z\",\"exit\":125,"
		"\"reason\":\"xrun\",\"bytes\":42,\"bytes_before\":17 closed "
		"note:125,xrun tty errors:E record ",
		FIRST);
	/* Without one that begins again nothing is left. */
	job.page->verdict = 0;
	job.hup_ignored = false;
	played.again = false;
	expect_run(was_told, "!OO", 3);
	EXPECT_EQ(job.page->again.told, 0);
}

FORKED_TEST(keeper, signals_between_two_attempts_go_to_the_next)
{
	begin();
	played.late = true;
	played.again = true;
	played.renew_sys = ENOSPC;
	expect_run(ends_with_3, "!StSuKiD", EXIT_XRUN);
	EXPECT_EQ(job.page->again.told, SIGINT);
	expect_done(BEGUN
		"<S> expect:0 " PASSED(
			15) "<S> send:10,-1,0 "
			    "<K> expect:1 " PASSED(
				    2) "<D> waitid:5 send:9,0,0 salvage leaf renew ctl "
				       "note:125,xrun tty errors:E record ",
		FIRST);
	/* The terminal told nobody but us. */
	job.page->verdict = job.page->again.told = 0;
	played.renew_sys = 0;
	expect_run(ends_with_3, "PiPuD!OD", 3);
	expect_done(BEGUN
		"<D> waitid:5 " AGAIN
		"expect:0 " PASSED(2) "send:10,-1,0 " HEARD
				      "<O> close_but:3,5 timer:1.0,0 <D> " OVER,
		FIRST SECOND);
	EXPECT_EQ(job.page->again.told, 0);
}

/* --- none at all -------------------------------------------------------------- */

FORKED_TEST(keeper, without_a_supervisor_there_is_no_job)
{
	struct xr_error err = { 0 };

	begin();
	played.no_signalfd = true;
	expect_run(ends_with_3, "", EXIT_XRUN);
	expect_done("remove errors:E record ", "");
	expect_words("xrun: cannot start the supervisor: signalfd: "
		     "Too many open files\n");
	played.no_signalfd = false;
	played.no_subreaper = true;
	expect_run(ends_with_3, "", EXIT_XRUN);
	expect_done("remove errors:E record ", "");
	expect_words("xrun: cannot start the supervisor: signalfd: "
		     "Operation not permitted\n");
	played.no_subreaper = false;
	played.no_timer = true;
	expect_run(ends_with_3, "", EXIT_XRUN);
	expect_done("remove errors:E record ", "");
	expect_words("xrun: cannot start the supervisor: timerfd_create: "
		     "Too many open files in system\n");
	played.no_timer = false;
	played.no_pidfd = true;
	expect_run(ends_with_3, "", EXIT_XRUN);
	expect_done("remove errors:E record ", "");
	NEED(lseek(words, 0, SEEK_SET) == 0 && ftruncate(words, 0) == 0);
	played.no_pidfd = false;
	NEED(fault_arm("keeper.clone:fail=EAGAIN", &err) == XR_OK);
	expect_run(ends_with_3, "", EXIT_XRUN);
	expect_done(BEGUN "remove errors:E record ", "");
	expect_words("xrun: cannot start the supervisor: clone: "
		     "Resource temporarily unavailable\n");
}

FORKED_TEST(keeper, an_attempt_may_have_no_supervisor)
{
	struct xr_error err = { 0 };

	begin();
	played.again = true;
	NEED(fault_arm("keeper.clone:fail=EAGAIN;nth=2", &err) == XR_OK);
	expect_run(ends_with_3, "D", EXIT_XRUN);
	expect_done(BEGUN "<D> waitid:5 " AGAIN
			  "ctl note:125,xrun tty errors:E record ",
		FIRST);
	expect_words("xrun: the job cannot begin again: clone: "
		     "Resource temporarily unavailable\n");
}

FORKED_TEST(keeper, the_supervisor_sees_that_the_keeper_is_dead)
{
	int fd;
	pid_t child;

	begin();
	child = keeper_fork(&fd);
	NEED(child != -1);
	if (child == 0) {
		alarm(20);
		for (;;)
			pause();
	}
	job.page->keeper = fd;
	EXPECT(!keeper_is_dead(job.page));
	kill(child, SIGKILL);
	NEED(__real_poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, -1) == 1);
	EXPECT(keeper_is_dead(job.page));
	NEED(waitpid(child, NULL, 0) == child);
}
