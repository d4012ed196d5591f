/* SPDX-License-Identifier: Apache-2.0 */
/* test_queue_user.c - the processes that use a queue: the words that say who is there, how one
 * comes and goes, and when it is dead. */
#include <stdarg.h>

#include <sys/syscall.h>

#include "tests/unit/queue_rig.h"
#include "worker/queue/user.h"

TestSuite(queue_user, .timeout = 60);

#define PID   1234u
#define START 99

static struct xr_queue *queue;
static struct hall *h;

/* --- what is called ------------------------------------------------------------------------- */

static struct {
	uint32_t user;
	struct user_id id;
} swept[8];

static unsigned sweeps, wakes, lights;
static uint32_t roll_then; /* when all were woken */
static bool there_then;
static int pidfd_error; /* 0: the kernel's */

void __wrap_user_sweep(struct hall *of, uint32_t user,
	const struct user_id *id);
void __wrap_hall_wake(struct hall *of);
void __wrap_hall_light(struct hall *of);
long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, ...);

void
__wrap_user_sweep(struct hall *of, uint32_t user, const struct user_id *id)
{
	EXPECT(of == h);
	if (sweeps < ROWS(swept)) {
		swept[sweeps].user = user;
		swept[sweeps].id = *id;
	}
	sweeps++;
}

void
__wrap_hall_wake(struct hall *of)
{
	EXPECT(of == h);
	wakes++;
	roll_then = atomic_load(&h->head->roll);
	there_then = user_pid(h, who_word(1, 0)) != 0;
}

void
__wrap_hall_light(struct hall *of)
{
	EXPECT(of == h);
	EXPECT_EQ(wakes, 1);
	lights++;
}

long
__wrap_syscall(long nr, ...)
{
	long a, b, c, d, e, f;
	va_list ap;

	va_start(ap, nr);
	a = va_arg(ap, long);
	b = va_arg(ap, long);
	c = va_arg(ap, long);
	d = va_arg(ap, long);
	e = va_arg(ap, long);
	f = va_arg(ap, long);
	va_end(ap);
	if (nr != SYS_pidfd_open)
		return __real_syscall(nr, a, b, c, d, e, f);
	EXPECT_EQ((uint32_t)b, 0);
	if (pidfd_error == 0)
		return __real_syscall(nr, a, 0);
	errno = pidfd_error;
	return -1;
}

static void
begin(void)
{
	queue = QUEUE(.items = 4);
	h = queue->hall;
	sweeps = wakes = lights = 0;
	pidfd_error = 0;
}

static uint64_t
word_of(enum user_state state, uint32_t gen, uint32_t pid)
{
	return (uint64_t)state << 60 | (uint64_t)gen << 32 | pid;
}

static void
set(uint32_t user, enum user_state state, uint32_t gen, uint32_t pid)
{
	atomic_store(&h->users[user].word, word_of(state, gen, pid));
	atomic_store(&h->users[user].start, START);
}

/* --- words ----------------------------------------------------------------------------------- */

FORKED_TEST(queue_user, a_word_says_who_is_there)
{
	struct user_id id;

	begin();
	for (uint32_t user = 5; user <= 5 + HALL_USERS; user += HALL_USERS) {
		set(5, USER_THERE, 7, PID);
		EXPECT(user_at(h, user, &id));
		EXPECT_EQ(id.pid, PID);
		EXPECT_EQ(id.start, START);
		EXPECT_EQ(id.who, who_word(user, 7));
		set(5, USER_COMING, 7, PID);
		EXPECT(user_at(h, user, &id));
		EXPECT_EQ(id.pid, PID);
		EXPECT_EQ(id.start, 0);
		set(5, USER_FREE, 7, PID);
		EXPECT(!user_at(h, user, &id));
	}
	xr_queue_free(queue);
}

FORKED_TEST(queue_user, a_process_has_a_number_while_it_is_there)
{
	begin();
	set(5, USER_THERE, 7, PID);
	EXPECT_EQ(user_pid(h, who_word(5, 7)), PID);
	EXPECT_EQ(user_pid(h, who_word(5, 8)), 0);
	EXPECT_EQ(user_pid(h, who_word(6, 7)), 0);
	set(5, USER_THERE, GEN_MASK, PID);
	EXPECT_EQ(user_pid(h, who_word(5, GEN_MASK)), PID);
	set(5, USER_COMING, 7, PID);
	EXPECT_EQ(user_pid(h, who_word(5, 7)), 0);
	set(5, USER_FREE, 7, PID);
	EXPECT_EQ(user_pid(h, who_word(5, 7)), 0);
	xr_queue_free(queue);
}

FORKED_TEST(queue_user, a_user_is_a_worker_by_its_name_or_a_process)
{
	char text[USER_TEXT], name[USER_NAME], want[USER_TEXT];
	uint64_t words[USER_NAME / 8];

	begin();
	set(5, USER_THERE, 7, PID);
	user_text(h, who_word(5, 7), text);
	EXPECT_STR(text, "process 1234");
	user_text(h, who_word(5, 8), text);
	EXPECT_STR(text, "process 0");
	memset(name, 'n', sizeof(name));
	name[USER_NAME - 1] = 'e';
	memcpy(words, name, sizeof(words));
	for (size_t i = 0; i < ROWS(words); i++)
		atomic_store(&h->users[5].name[i], words[i]);
	user_text(h, who_word(5, 7), text);
	snprintf(want, sizeof(want), "worker %.*s", USER_NAME, name);
	EXPECT_STR(text, want);
	xr_queue_free(queue);
}

FORKED_TEST(queue_user, a_number_is_free_for_the_next_generation)
{
	struct user_id id = { .pid = PID, .who = who_word(5, GEN_MASK) };
	_Atomic uint64_t *word;

	begin();
	word = &h->users[5].word;
	set(5, USER_THERE, GEN_MASK, PID + 1);
	user_free(h, 5, &id);
	EXPECT_EQ(*word, word_of(USER_THERE, GEN_MASK, PID + 1));
	set(5, USER_THERE, 1, PID);
	user_free(h, 5, &id);
	EXPECT_EQ(*word, word_of(USER_THERE, 1, PID));
	set(5, USER_FREE, GEN_MASK, PID);
	user_free(h, 5, &id);
	EXPECT_EQ(*word, word_of(USER_FREE, GEN_MASK, PID));
	set(5, USER_COMING, GEN_MASK, PID);
	user_free(h, 5, &id);
	EXPECT_EQ(*word, word_of(USER_FREE, 0, 0));
	id.who = who_word(5, 1);
	set(5, USER_THERE, 1, PID);
	user_free(h, 5, &id);
	EXPECT_EQ(*word, word_of(USER_FREE, 2, 0));
	xr_queue_free(queue);
}

/* --- when a process began ---------------------------------------------------------------------- */

static uint64_t
start_of_us(void)
{
	unsigned long long start = 0;
	FILE *f = fopen("/proc/self/stat", "re");

	NEED(f != NULL);
	NEED(fscanf(f,
		     "%*d (%*[^)]) %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
		     &start) == 1);
	fclose(f);
	return start;
}

FORKED_TEST(queue_user, a_process_began_when_the_kernel_says)
{
	uint64_t start = start_of_us();

	EXPECT(start > 0);
	EXPECT(user_start((uint32_t)getpid()) == start);
	prctl(PR_SET_NAME, "1) 2 3 (4");
	EXPECT(user_start((uint32_t)getpid()) == start);
	errno = 0;
	EXPECT_EQ(user_start(0x7fffffff), 0);
	EXPECT_EQ(errno, ENOENT);
}

/* --- the dead ---------------------------------------------------------------------------------- */

/* @gone: also for its parent. */
static uint32_t
make_dead(bool gone)
{
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	NEED(pid > 0);
	NEED(waitid(P_PID, (id_t)pid, &info, WEXITED | (gone ? 0 : WNOWAIT)) ==
		0);
	return (uint32_t)pid;
}

static void
expect_open(const struct user_id *id, bool opens, bool dead)
{
	bool is_dead = !dead;
	int lowest = lowest_fd(), fd = user_open(id, &is_dead);

	EXPECT_EQ(is_dead, dead);
	EXPECT_EQ(fd != -1, opens);
	if (fd != -1)
		close(fd);
	EXPECT_EQ(lowest_fd(), lowest);
}

FORKED_TEST(queue_user, one_is_dead_that_has_ended_or_began_at_another_time)
{
	struct user_id id = { .pid = (uint32_t)getpid() };

	expect_open(&id, true, false);
	id.start = user_start(id.pid);
	expect_open(&id, true, false);
	id.start++;
	expect_open(&id, false, true);
	id.start--;
	pidfd_error = EMFILE;
	expect_open(&id, false, false);
	pidfd_error = ESRCH;
	expect_open(&id, false, true);
	pidfd_error = 0;
	id.pid = make_dead(false);
	id.start = user_start(id.pid);
	EXPECT(id.start > 0);
	expect_open(&id, false, true);
	NEED(waitpid((pid_t)id.pid, NULL, 0) > 0);
	expect_open(&id, false, true);
}

static void
expect_swept(unsigned i, uint32_t user, uint32_t pid)
{
	EXPECT(i < sweeps);
	EXPECT_EQ(swept[i].user, user);
	EXPECT_EQ(swept[i].id.pid, pid);
	EXPECT_EQ(swept[i].id.who, who_word(user, 7));
}

FORKED_TEST(queue_user, what_the_dead_had_is_swept)
{
	uint32_t dead = make_dead(true), parent = (uint32_t)getppid();

	begin();
	set(1, USER_THERE, 7, dead);
	set(2, USER_THERE, 7, (uint32_t)getpid()); /* whenever it began */
	set(3, USER_THERE, 7, parent);
	atomic_store(&h->users[3].start, user_start(parent));
	set(HALL_USERS - 1, USER_COMING, 7, dead);
	set(0, USER_THERE, 7, dead);
	errno = ENOSPC;
	for (uint32_t user = 2; user <= 4; user++)
		user_check(h, who_word(user, 7));
	user_check(h, who_word(1, 6));
	EXPECT_EQ(sweeps, 0);
	user_check(h, who_word(1, 7));
	EXPECT_EQ(sweeps, 1);
	expect_swept(0, 1, dead);
	sweeps = 0;
	user_check_all(h);
	EXPECT_EQ(sweeps, 2);
	expect_swept(0, 1, dead);
	expect_swept(1, HALL_USERS - 1, dead);
	EXPECT_EQ(errno, ENOSPC);
	xr_queue_free(queue);
}

/* --- coming and going --------------------------------------------------------------------------- */

FORKED_TEST(queue_user, who_comes_has_a_number_and_is_announced)
{
	const uint32_t us = (uint32_t)getpid();
	uint32_t who = 0;

	begin();
	memset(h->name, 'n', USER_NAME);
	EXPECT_EQ(user_self(h, &who, &err), XR_OK);
	EXPECT_EQ(who, who_word(1, 0));
	EXPECT_EQ(wakes, 1);
	EXPECT_EQ(lights, 1);
	EXPECT_EQ(roll_then, 1);
	EXPECT(!there_then);
	EXPECT_EQ(h->users[1].word, word_of(USER_THERE, 0, us));
	EXPECT(h->users[1].start == start_of_us());
	for (size_t i = 0; i < USER_NAME / 8; i++)
		EXPECT_EQ(h->users[1].name[i], UINT64_C(0x6e6e6e6e6e6e6e6e));
	who = 0;
	EXPECT_EQ(user_self(h, &who, &err), XR_OK);
	EXPECT_EQ(who, who_word(1, 0));
	EXPECT_EQ(h->me, who);
	EXPECT_EQ(wakes, 1);
	user_leave(h);
	EXPECT_EQ(sweeps, 1);
	EXPECT_EQ(swept[0].user, 1);
	EXPECT_EQ(swept[0].id.pid, us);
	xr_queue_free(queue);
}

FORKED_TEST(queue_user, a_number_of_another_one_is_not_taken)
{
	uint32_t who = 0;

	begin();
	set(1, USER_THERE, 7, PID);
	set(2, USER_COMING, 7, PID);
	set(3, USER_FREE, 9, 0);
	EXPECT_EQ(user_self(h, &who, &err), XR_OK);
	EXPECT_EQ(who, who_word(3, 9));
	EXPECT_EQ(sweeps, 0);
	EXPECT_EQ(h->users[1].word, word_of(USER_THERE, 7, PID));
	EXPECT_EQ(h->users[2].word, word_of(USER_COMING, 7, PID));
	/* It has another one by now. */
	set(3, USER_THERE, 9, PID);
	user_leave(h);
	EXPECT_EQ(sweeps, 0);
	atomic_store(&h->me, 0);
	user_leave(h);
	EXPECT_EQ(sweeps, 0);
	xr_queue_free(queue);
}

FORKED_TEST(queue_user, where_all_numbers_are_taken_nobody_comes)
{
	const uint32_t parent = (uint32_t)getppid();
	uint32_t who = 1;

	begin();
	for (uint32_t i = 1; i < HALL_USERS; i++) {
		set(i, USER_THERE, 7, parent);
		atomic_store(&h->users[i].start, user_start(parent));
	}
	EXPECT_EQ(user_self(h, &who, &err), XR_E_RANGE);
	EXPECT_STR(err.text, "a queue is used by 1023 processes already");
	EXPECT_EQ(who, 0);
	EXPECT_EQ(wakes + sweeps, 0);
	EXPECT_EQ(h->users[0].word, 0);
	xr_queue_free(queue);
}
