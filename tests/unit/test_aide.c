/* SPDX-License-Identifier: Apache-2.0 */
/* test_aide.c - processes of the supervisor that are no ranks: how each is started,
 * told to end, and reaped. */
#include <poll.h>
#include <stdlib.h>

#include <sys/resource.h>

#include "base/clock.h"
#include "base/fault.h"
#include "event/child.h"
#include "launcher/job/sup.h"
#include "launcher/tell/aide.h"
#include "tests/unit/forked.h"
#include "tests/unit/noted.h"
#include "tests/unit/short_memory.h"

#define S   NS_PER_S
#define MS  NS_PER_MS
#define IN  40 /* descriptors of whoever starts it */
#define OUT 41
#define ERR 42

struct watch {
	watch_fn *fn;
	void *ctx;
	int fd;
	bool open;
};

struct timer {
	timer_fn *fn;
	void *ctx;
	int64_t ns; /* -1: not armed */
	bool open;
};

/* Of the aides, in their order. */
static struct watch watches[4];
static struct timer timers[4];
static unsigned watch_count, timer_count;

static struct {
	bool no_timer, no_watch, no_spawn;
	enum spawn_slot no_slot;
	bool unreaped; /* a debugger has it */
	int status;
} played;

static struct sup sup;
static struct job job = { .sup = &sup };
static struct spawn spawned;
static pid_t next_pid = 500;

struct timer *__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx);
void __wrap_timer_arm(struct timer *t, int64_t ns);
void __wrap_timer_close(struct timer *t);
struct watch *__wrap_watch_open(struct loop *loop, int fd, bool write,
	watch_fn *fn, void *ctx);
void __wrap_watch_pause(struct watch *w);
void __wrap_watch_close(struct watch *w);
int __wrap_spawn_slot_set(enum spawn_slot slot, int fd);
bool __wrap_spawn_start(struct spawn *s);
bool __wrap_child_reap(int pidfd, pid_t pid, int *status, struct rusage *usage);
int __wrap_kill(pid_t pid, int sig);
int __wrap_poll(struct pollfd *p, nfds_t count, int timeout);

struct timer *
__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx)
{
	struct timer *t = &timers[timer_count];

	EXPECT(loop == sup.loop);
	if (played.no_timer)
		return NULL;
	timer_count++;
	*t = (struct timer){ fn, ctx, -1, true };
	return t;
}

void
__wrap_timer_arm(struct timer *t, int64_t ns)
{
	t->ns = ns;
}

void
__wrap_timer_close(struct timer *t)
{
	if (t != NULL)
		t->open = false;
}

struct watch *
__wrap_watch_open(struct loop *loop, int fd, bool write, watch_fn *fn,
	void *ctx)
{
	struct watch *w = &watches[watch_count];

	EXPECT(loop == sup.loop);
	EXPECT(!write);
	if (played.no_watch)
		return NULL;
	watch_count++;
	*w = (struct watch){ fn, ctx, fd, true };
	return w;
}

void
__wrap_watch_pause(struct watch *w)
{
	EXPECT(w->open);
	note("pause ");
}

void
__wrap_watch_close(struct watch *w)
{
	if (w != NULL)
		w->open = false;
}

int
__wrap_spawn_slot_set(enum spawn_slot slot, int fd)
{
	note("%d<%d ", (int)slot, fd);
	if (slot == played.no_slot) {
		errno = EMFILE;
		return -1;
	}
	return 0;
}

bool
__wrap_spawn_start(struct spawn *s)
{
	note("start ");
	spawned = *s;
	s->pid = played.no_spawn ? 0 : next_pid++;
	s->pidfd = played.no_spawn ? -1 : open("/dev/null", O_RDONLY);
	s->sys = played.no_spawn ? ENOEXEC : 0;
	return !played.no_spawn;
}

bool
__wrap_child_reap(int pidfd, pid_t pid, int *status, struct rusage *usage)
{
	(void)usage;
	EXPECT(fcntl(pidfd, F_GETFD) != -1);
	note("reap:%d ", (int)pid);
	*status = played.status;
	return !played.unreaped;
}

int
__wrap_kill(pid_t pid, int sig)
{
	note("%d:%s ", (int)pid,
		sig == SIGKILL         ? "KILL" :
			sig == SIGTERM ? "TERM" :
			sig == SIGCONT ? "CONT" :
					 "?");
	return 0;
}

int
__wrap_poll(struct pollfd *p, nfds_t count, int timeout)
{
	EXPECT_EQ(count, 1);
	EXPECT_EQ(p->events, POLLIN);
	EXPECT(fcntl(p->fd, F_GETFD) != -1);
	note("await:%d ", timeout);
	return 1;
}

/* --- the rig ----------------------------------------------------------------- */

static char *argv[] = { (char *)"program", NULL };
static char *envp[] = { (char *)"A=1", NULL };
static struct aide_config config = { .path = "/program",
	.argv = argv,
	.envp = envp,
	.in = IN,
	.out = OUT,
	.err = ERR };
static int heard_by;

static void
hear(int status, bool late, void *ctx)
{
	EXPECT(ctx == &heard_by);
	note("heard:%d,%d ", status, late);
}

/* The slots are there, and the descriptors behind them are free. */
static void
begin(void)
{
	alarm(20); /* ends what hangs */
	job.limits.files = (struct rlimit){ 77, 88 };
	config.fn = hear;
	config.ctx = &heard_by;
	for (int fd = SPAWN_SLOT_IN; fd < SPAWN_SLOTS; fd++)
		EXPECT(dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), fd) == fd);
	for (int fd = SPAWN_SLOTS; fd < FORKED_FD_MIN; fd++)
		close(fd);
}

/* The next aide, and nothing else was done. */
static struct aide *
start(void)
{
	struct aide *a = aide_start(&job, &config);

	EXPECT(a != NULL);
	done[0] = '\0';
	return a;
}

static void
expect_done(int line, const char *want)
{
	if (strcmp(done, want) != 0)
		forked_note(line, "%s instead of %s", done, want);
	done[0] = '\0';
}

#define EXPECT_DONE(want) expect_done(__LINE__, want)

/* No descriptor, timer or watch is left. */
static void
expect_clean(void)
{
	for (int fd = SPAWN_SLOTS; fd < FORKED_FD_MIN; fd++)
		EXPECT(fcntl(fd, F_GETFD) == -1);
	for (unsigned i = 0; i < 4; i++) {
		EXPECT(!timers[i].open);
		EXPECT(!watches[i].open);
	}
	EXPECT(!aide_any(&job));
}

static void
die(unsigned i)
{
	watches[i].fn(watches[i].fd, watches[i].ctx);
}

/* --- the start --------------------------------------------------------------- */

FORKED_TEST(aide, it_has_slots_of_a_rank_for_a_moment)
{
	struct aide *a;

	begin();
	EXPECT(!aide_any(&job));
	a = aide_start(&job, &config);
	EXPECT(a != NULL);
	EXPECT_DONE("3<40 4<41 5<42 start 3<10 4<11 5<12 ");
	EXPECT(strcmp(spawned.path, "/program") == 0);
	EXPECT(spawned.argv == argv);
	EXPECT(spawned.envp == envp);
	EXPECT_EQ(spawned.in, SPAWN_SLOT_IN);
	EXPECT_EQ(spawned.out, SPAWN_SLOT_OUT);
	EXPECT_EQ(spawned.err, SPAWN_SLOT_ERR);
	EXPECT_EQ(spawned.life, -1);
	EXPECT_EQ(spawned.control, -1);
	EXPECT_EQ(spawned.files.rlim_cur, 77);
	EXPECT_EQ(spawned.files.rlim_max, 88);
	EXPECT_EQ(spawned.rank, FAULT_ANY);
	EXPECT_EQ(aide_pid(a), 500);
	EXPECT(aide_any(&job));
	EXPECT(aide_is(&job, 500));
	EXPECT(!aide_is(&job, 501));
	EXPECT_EQ(timers[0].ns, -1);
	EXPECT_EQ(watches[0].fd, 13);
	played.status = 3 << 8;
	die(0);
	EXPECT_DONE("-500:KILL reap:500 heard:768,0 ");
	EXPECT(!aide_is(&job, 500));
	expect_clean();
}

FORKED_TEST(aide, what_cannot_be_started_leaves_nothing)
{
	static const char *const tried[] = { "3<40 4<41 5<42 4<10 5<11 ",
		"3<40 4<41 5<42 3<10 5<11 ", "3<40 4<41 5<42 3<10 4<11 " };

	begin();
	for (int i = 0; i < 3; i++) {
		played.no_slot = SPAWN_SLOT_IN + (unsigned)i;
		EXPECT(aide_start(&job, &config) == NULL);
		EXPECT_EQ(errno, EMFILE);
		EXPECT_DONE(tried[i]);
		expect_clean();
	}
	played.no_slot = 0;
	played.no_spawn = true;
	EXPECT(aide_start(&job, &config) == NULL);
	EXPECT_EQ(errno, ENOEXEC);
	EXPECT_DONE("3<40 4<41 5<42 start 3<10 4<11 5<12 ");
	expect_clean();
	played.no_spawn = false;
	played.no_timer = true;
	EXPECT(aide_start(&job, &config) == NULL);
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_DONE("");
	expect_clean();
	until_short = 1;
	EXPECT(aide_start(&job, &config) == NULL);
	EXPECT_DONE("");
}

FORKED_TEST(aide, what_cannot_be_watched_is_reaped_at_the_end)
{
	begin();
	played.no_watch = true;
	EXPECT(aide_start(&job, &config) == NULL);
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_DONE("3<40 4<41 5<42 start 3<10 4<11 5<12 -500:KILL ");
	EXPECT(aide_is(&job, 500));
	aide_end_all(&job);
	EXPECT_DONE("-500:KILL await:100 reap:500 ");
	expect_clean();
}

/* --- the end ----------------------------------------------------------------- */

FORKED_TEST(aide, it_is_told_to_end_and_ended_a_second_later)
{
	struct aide *a;

	begin();
	aide_end(NULL);
	a = start();
	aide_end(a);
	EXPECT_DONE("-500:TERM -500:CONT ");
	EXPECT_EQ(timers[0].ns, 1 * S);
	timers[0].ns = -1;
	aide_end(a);
	EXPECT_DONE("");
	timers[0].fn(timers[0].ctx);
	EXPECT_DONE("-500:KILL -500:CONT ");
	EXPECT_EQ(timers[0].ns, -1);
	die(0);
	EXPECT_DONE("-500:KILL reap:500 "); /* its owner hears no more */
	expect_clean();
}

FORKED_TEST(aide, so_it_is_when_its_time_is_over)
{
	begin();
	config.time_ns = 1;
	start();
	EXPECT_EQ(timers[0].ns, 1);
	timers[0].fn(timers[0].ctx);
	EXPECT_DONE("-500:TERM -500:CONT ");
	EXPECT_EQ(timers[0].ns, 1 * S);
	played.status = SIGTERM;
	die(0);
	EXPECT_DONE("-500:KILL reap:500 heard:15,1 ");
	expect_clean();
}

FORKED_TEST(aide, what_a_debugger_has_is_looked_for_again)
{
	struct aide *a;

	begin();
	a = start();
	played.unreaped = true;
	die(0);
	EXPECT_DONE("-500:KILL reap:500 pause ");
	EXPECT_EQ(timers[0].ns, 50 * MS);
	aide_end(a);
	EXPECT_DONE(""); /* it is dead */
	timers[0].ns = -1;
	timers[0].fn(timers[0].ctx);
	EXPECT_DONE("-500:KILL reap:500 pause ");
	EXPECT_EQ(timers[0].ns, 50 * MS);
	EXPECT(aide_is(&job, 500));
	played.unreaped = false;
	timers[0].fn(timers[0].ctx);
	EXPECT_DONE("-500:KILL reap:500 ");
	expect_clean();
}

FORKED_TEST(aide, at_the_end_of_the_job_all_are_killed_and_reaped)
{
	begin();
	start();
	start();
	start();
	EXPECT(aide_is(&job, 500) && aide_is(&job, 501) && aide_is(&job, 502));
	die(1);
	EXPECT_DONE("-501:KILL reap:501 heard:0,0 ");
	EXPECT(aide_is(&job, 500) && !aide_is(&job, 501) && aide_is(&job, 502));
	aide_end_all(&job);
	EXPECT_DONE(
		"-502:KILL -500:KILL await:100 reap:502 await:100 reap:500 ");
	expect_clean();
}
