/* SPDX-License-Identifier: Apache-2.0 */
/* test_group_change.c - groups whose members come and go. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>

#include <sys/file.h>

#include "tests/unit/group_rig.h"

TestSuite(group_change, .init = rig_begin, .fini = rig_end, .timeout = 120);

static const char *const names[] = { "ann", "bob", "cat", "dan" };

/* Until it is as it should be; members hear of changes one after the other. */
#define AWAIT(x) \
	do { \
		int64_t until_ = now_ms() + 30000; \
		while (!(x) && now_ms() < until_) \
			usleep(1000); \
		EXPECT(x); \
	} while (0)

static size_t
members_now(void)
{
	size_t count = 0;

	if (xr_worker_list(NULL, 0, &count, &err) != XR_OK)
		return 0;
	return count;
}

/* "0=ann 2=cat " */
static const char *
list_text(void)
{
	struct xr_worker w[MEMBERS_MAX];
	static char text[512];
	size_t count = 0, n = 0;

	for (size_t i = 0; i < MEMBERS_MAX; i++)
		w[i].size = sizeof(w[i]);
	text[0] = '\0';
	if (xr_worker_list(w, MEMBERS_MAX, &count, &err) != XR_OK)
		return "none";
	for (size_t i = 0; i < count; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%u=%s ",
			w[i].id, w[i].name);
	return text;
}

static bool
lists(const char *text)
{
	return strcmp(list_text(), text) == 0;
}

/* --- coming ----------------------------------------------------------------- */

/* Ann begins, the others come at once; each calls all it sees when it has joined,
 * then all call all. */
static void
comes_at_once(int i)
{
	struct xr_worker w[MEMBERS_MAX];
	size_t count = 0;

	offer();
	if (i > 0)
		stage_await(1);
	NEED(join(names[i], i, 0) == XR_OK);
	for (size_t k = 0; k < MEMBERS_MAX; k++)
		w[k].size = sizeof(w[k]);
	NEED(xr_worker_list(w, MEMBERS_MAX, &count, &err) == XR_OK);
	for (size_t k = 0; k < count; k++)
		EXPECT(call(w[k].name) == XR_OK);
	stage_add();
	stage_await(4);
	for (int k = 0; k < 4; k++)
		EXPECT(call(names[k]) == XR_OK);
	EXPECT(lists("0=ann 1=bob 2=cat 3=dan "));
	stage_add();
	stage_await(8);
	EXPECT(leave() == XR_OK);
}

Test(group_change, AC_M11_three_come_at_once_and_all_call_all)
{
	together(4, comes_at_once);
}

static const char *const odd_names[] = { "worker-0", "worker-1", "a:b",
	"_-:_" };

static void
has_odd_name(int i)
{
	offer();
	if (i > 0)
		stage_await((uint32_t)i);
	NEED(join(odd_names[i], i, 0) == XR_OK);
	stage_add();
	stage_await(4);
	for (int k = 0; k < 4; k++)
		EXPECT(call(odd_names[k]) == XR_OK);
	stage_add();
	stage_await(8);
	EXPECT(leave() == XR_OK);
}

Test(group_change, AC_M12_names_with_signs_are_names_D_M9)
{
	together(4, has_odd_name);
}

static void
wants_no_rank(int i)
{
	struct xr_rpc_opts opts = usual();

	(void)i;
	EXPECT(xr_rpc_init("ann", -1, 0, &opts, &err) != XR_OK);
	EXPECT(strstr(err.text, "rank") != NULL);
}

Test(group_change, a_member_says_its_rank)
{
	together(1, wants_no_rank);
}

static void
takes_what_is_taken(int i)
{
	offer();
	if (i == 0) {
		NEED(join("ann", 0, 0) == XR_OK);
		stage_set(1);
		stage_await(2);
	} else {
		stage_await(1);
		EXPECT(join("ann", 1, 0) == XR_E_EXISTS);
		EXPECT(strstr(err.text,
			       "ranks 0 and 1 both have the name ann") != NULL);
		EXPECT(join("bob", 0, 0) == XR_E_EXISTS);
		EXPECT(strstr(err.text, "ann and bob both say") != NULL);
		EXPECT(join("bob", 1, 0) == XR_OK);
		EXPECT(call("ann") == XR_OK);
		EXPECT(lists("0=ann 1=bob "));
		EXPECT(leave() == XR_OK);
		stage_set(2);
		return;
	}
	AWAIT(members_now() == 1);
	EXPECT(leave() == XR_OK);
}

Test(group_change, names_and_ids_are_of_one_at_a_time)
{
	together(2, takes_what_is_taken);
}

/* --- going ------------------------------------------------------------------ */

static void
goes_and_is_not_found(int i)
{
	int64_t before;

	offer();
	if (i > 0)
		stage_await(1);
	NEED(join(names[i], i, 0) == XR_OK);
	stage_add();
	stage_await(3);
	if (i == 1) {
		EXPECT(call("ann") == XR_OK);
		stage_await(4);
		EXPECT(leave() == XR_OK);
		stage_set(5);
		return;
	}
	if (i == 0) {
		EXPECT(call("bob") == XR_OK);
		stage_set(4);
	}
	stage_await(5);
	/* Cat never called it: there was no link that could have broken. */
	AWAIT(members_now() == 2);
	before = now_ms();
	EXPECT(call("bob") == XR_E_NOTFOUND);
	EXPECT(now_ms() - before < 30000); /* of the 60 s of a call */
	EXPECT(strstr(err.text, "bob (1) has left the group") != NULL);
	EXPECT(call(i == 0 ? "cat" : "ann") == XR_OK);
	stage_add();
	stage_await(7);
	EXPECT(leave() == XR_OK);
}

Test(group_change, AC_M18_a_call_to_who_left_is_refused_at_once)
{
	together(3, goes_and_is_not_found);
}

static void
comes_again(int i)
{
	offer();
	if (i == 0) {
		NEED(join("ann", 0, 0) == XR_OK);
		stage_set(1);
		stage_await(2);
		EXPECT(call("rob") == XR_OK);
		EXPECT(lists("0=ann 1=rob "));
		EXPECT(call("bob") == XR_E_NOTFOUND);
		stage_set(3);
		stage_await(4);
		EXPECT(lists("0=ann 1=bob "));
		EXPECT(call("bob") == XR_OK);
		stage_set(5);
		EXPECT(leave() == XR_OK);
		return;
	}
	stage_await(1);
	NEED(join("bob", 1, 0) == XR_OK);
	EXPECT(leave() == XR_OK);
	NEED(join("rob", 1, 0) == XR_OK);
	stage_set(2);
	stage_await(3);
	EXPECT(call("ann") == XR_OK);
	EXPECT(leave() == XR_OK);
	NEED(join("bob", 1, 0) == XR_OK);
	EXPECT(call("ann") == XR_OK);
	stage_set(4);
	stage_await(5);
	EXPECT(leave() == XR_OK);
}

Test(group_change, AC_M17_the_same_id_comes_again_with_another_name)
{
	together(2, comes_again);
}

/* Each change is told by who made it, and awaited by the others. */
static void
sees_the_same(int i)
{
	static const char *const after[] = { "", "0=ann ", "0=ann 1=bob ",
		"0=ann 1=bob 2=cat ", "0=ann 2=cat ", "0=ann 1=bob 2=cat " };

	offer();
	stage_await((uint32_t)i);
	NEED(join(names[i], i, 0) == XR_OK);
	stage_add();
	stage_await(3);
	if (i == 1) {
		atomic_store(&shared->count, 0);
		EXPECT(leave() == XR_OK);
		stage_set(4);
		stage_await(6);
		NEED(join("bob", 1, 0) == XR_OK);
		stage_add();
	} else {
		stage_await(4);
		AWAIT(lists(after[4]));
		stage_add();
	}
	stage_await(7);
	AWAIT(lists(after[5]));
	stage_add();
	stage_await(10);
	EXPECT(leave() == XR_OK);
}

Test(group_change, AC_M21_all_have_the_same_list_after_each_change)
{
	together(3, sees_the_same);
}

/* --- meetings --------------------------------------------------------------- */

static void
gathers(size_t expected)
{
	struct xr_value *mine = xr_value_new_text(names[self_index], 3);
	struct xr_value *all = NULL;

	EXPECT(xr_rpc_allgather(NULL, mine, &all, &err) == XR_OK);
	EXPECT(xr_value_count(all) == expected);
	for (size_t k = 0; k < expected && all != NULL; k++)
		EXPECT(xr_value_equal(xr_value_find(all, names[k], 3),
			       xr_value_at(all, k)) ||
			xr_value_find(all, names[k], 3) != NULL);
	xr_value_unref(all);
	xr_value_unref(mine);
}

/* The last one comes, goes, and comes again: each time it is of the set. */
static void
comes_late(int i)
{
	offer();
	stage_await((uint32_t)i);
	if (i < 2) {
		NEED(join(names[i], i, 0) == XR_OK);
		stage_add();
	}
	stage_await(2);
	if (i < 2) {
		gathers(2);
		gathers(2);
		stage_add();
	}
	for (uint32_t k = 0; k < 2; k++) {
		stage_await(4 + 4 * k);
		if (i == 2) {
			NEED(join(names[i], i, 0) == XR_OK);
			stage_add();
		}
		stage_await(5 + 4 * k);
		gathers(3);
		gathers(3);
		stage_add();
		stage_await(8 + 4 * k);
		if (i == 2 && k == 0)
			EXPECT(leave() == XR_OK);
	}
	EXPECT(leave() == XR_OK);
}

Test(group_change, AC_M20_a_gather_is_of_those_who_came_late_too)
{
	together(3, comes_late);
}

/* --- kinds ------------------------------------------------------------------ */

static void
is_of_another_kind(int i)
{
	offer();
	if (i == 0) {
		NEED(join("ann", 0, 0) == XR_OK);
		stage_set(1);
		stage_await(2);
		EXPECT(leave() == XR_OK);
		return;
	}
	stage_await(1);
	EXPECT(join("bob", 1, 2) == XR_E_CONFLICT);
	EXPECT(strstr(err.text, "dynamic") != NULL);
	stage_set(2);
}

static void
is_of_another_kind_too(int i)
{
	offer();
	if (i == 0) {
		NEED(join("ann", 0, 1) == XR_OK);
		stage_set(1);
		stage_await(2);
		EXPECT(leave() == XR_OK);
		return;
	}
	stage_await(1);
	EXPECT(join("bob", 1, 0) == XR_E_CONFLICT);
	EXPECT(strstr(err.text, "static") != NULL);
	stage_set(2);
}

Test(group_change, AC_B16_static_and_changing_do_not_mix)
{
	together(2, is_of_another_kind);
	rig_fresh();
	together(2, is_of_another_kind_too);
}

/* --- dying ------------------------------------------------------------------ */

/* Is each of its threads? */
static bool
is_stopped(pid_t pid)
{
	char path[300], text[256];
	struct dirent *e;
	bool all = true;
	const char *at;
	FILE *f;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d != NULL && all && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/stat",
			(int)pid, e->d_name);
		f = fopen(path, "re");
		at = f != NULL && fgets(text, sizeof(text), f) != NULL ?
			strrchr(text, ')') :
			NULL;
		all = at != NULL && at[1] == ' ' && at[2] == 'T';
		if (f != NULL)
			fclose(f);
	}
	if (d != NULL)
		closedir(d);
	return d != NULL && all;
}

/* Nobody has the store locked. */
static bool
store_is_free(void)
{
	int fd = open(store_address + strlen("file://"), O_RDWR | O_CLOEXEC);
	bool is = fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == 0;

	if (fd != -1)
		close(fd);
	return is;
}

/* stop() - not while it has the store locked: nobody could join then. */
static void
stop(pid_t pid)
{
	for (;;) {
		kill(pid, SIGSTOP);
		AWAIT(is_stopped(pid));
		if (store_is_free())
			return;
		kill(pid, SIGCONT);
	}
}

/* Bob is stopped, so cat waits for him in the middle of joining, and is killed. */
static void
is_killed_while_joining(int i)
{
	int64_t before;

	offer();
	switch (i) {
	case 0:
		NEED(join("ann", 0, 0) == XR_OK);
		stage_set(1);
		stage_await(2);
		stop(atomic_load(&shared->pid[1]));
		stage_set(3);
		AWAIT(members_now() == 3);
		kill(atomic_load(&shared->pid[2]), SIGKILL);
		kill(atomic_load(&shared->pid[1]), SIGCONT);
		stage_set(4);
		stage_await(5);
		AWAIT(lists("0=ann 1=bob 3=dan "));
		EXPECT(call("dan") == XR_OK);
		stage_add();
		EXPECT(leave() == XR_OK);
		return;
	case 1:
		stage_await(1);
		NEED(join("bob", 1, 0) == XR_OK);
		stage_set(2);
		stage_await(5);
		EXPECT(call("dan") == XR_OK);
		stage_add();
		stage_await(7); /* ann has seen all three */
		EXPECT(leave() == XR_OK);
		return;
	case 2:
		stage_await(3);
		join("cat", 2, 0);
		EXPECT(!"it joined");
		return;
	default:
		stage_await(4);
		before = now_ms();
		NEED(join("dan", 3, 0) == XR_OK);
		EXPECT(now_ms() - before < 15000);
		EXPECT(lists("0=ann 1=bob 3=dan "));
		EXPECT(call("ann") == XR_OK);
		EXPECT(call("bob") == XR_OK);
		stage_set(5);
		stage_await(7);
		EXPECT(leave() == XR_OK);
	}
}

Test(group_change, AC_M14_who_dies_while_joining_holds_up_nobody_D_M8)
{
	pid_t pid[4];
	int status = 0;

	for (int i = 0; i < 4; i++)
		pid[i] = start(i, is_killed_while_joining);
	for (int i = 0; i < 4; i++)
		if (i != 2)
			ended(i, pid[i]);
	cr_expect_eq(waitpid(pid[2], &status, 0), pid[2]);
	cr_expect(WIFSIGNALED(status));
	told();
}

/* Its second life is called by who had called the first. */
static void
lives_again(int i)
{
	offer();
	if (i == 0) {
		NEED(join("ann", 0, 0) == XR_OK);
		stage_set(1);
		stage_await(2);
		EXPECT(call("bob") == XR_OK);
		kill(atomic_load(&shared->pid[1]), SIGKILL);
		stage_set(3);
		stage_await(4);
		EXPECT(call("bob") == XR_OK);
		EXPECT(lists("0=ann 1=bob "));
		stage_set(5);
		EXPECT(leave() == XR_OK);
		return;
	}
	if (i == 1)
		stage_await(1);
	else
		stage_await(3);
	NEED(join("bob", 1, 0) == XR_OK);
	EXPECT(call("ann") == XR_OK);
	stage_set(i == 1 ? 2 : 4);
	stage_await(5);
	EXPECT(leave() == XR_OK);
}

Test(group_change, AC_R15_a_second_life_can_be_called_again_D_R5)
{
	pid_t pid[3];
	int status = 0;

	for (int i = 0; i < 3; i++)
		pid[i] = start(i, lives_again);
	cr_expect_eq(waitpid(pid[1], &status, 0), pid[1]);
	ended(0, pid[0]);
	ended(2, pid[2]);
	cr_expect(WIFSIGNALED(status));
	told();
}

/* Ann has a link to it, cat has none: both have the same list soon. */
static void
is_found_dead(int i)
{
	enum xr_status status;

	offer();
	stage_await((uint32_t)i);
	NEED(join(names[i], i, 0) == XR_OK);
	stage_add();
	stage_await(3);
	if (i == 0) {
		EXPECT(call("bob") == XR_OK);
		kill(atomic_load(&shared->pid[1]), SIGKILL);
		stage_set(4);
	}
	if (i == 1)
		pause();
	stage_await(4);
	AWAIT(lists("0=ann 2=cat "));
	status = call("bob");
	EXPECT(status == XR_E_PEER_LOST || status == XR_E_NOTFOUND);
	EXPECT(strstr(err.text, "bob (1)") != NULL);
	stage_add();
	stage_await(6);
	EXPECT(leave() == XR_OK);
}

Test(group_change, who_loses_a_member_takes_it_off_the_list)
{
	pid_t pid[3];
	int status = 0;

	for (int i = 0; i < 3; i++)
		pid[i] = start(i, is_found_dead);
	ended(0, pid[0]);
	ended(2, pid[2]);
	cr_expect_eq(waitpid(pid[1], &status, 0), pid[1]);
	told();
}

/* Two call each other and a guest, who comes and goes; tests/thread/group.c does
 * it a thousand times under the thread sanitizer. */
static void
has_a_guest(int i)
{
	enum xr_status status;
	long met = 0;

	offer();
	if (i < 2) {
		NEED(join(names[i], i, 0) == XR_OK);
		stage_add();
		while (atomic_load(&shared->stage) < 3) {
			status = call("cat");
			if (status == XR_OK && met++ == 0)
				atomic_fetch_add(&shared->count, 1);
			EXPECT(status == XR_OK || status == XR_E_NOTFOUND ||
				status == XR_E_PEER_LOST);
		}
		EXPECT(met > 0);
		EXPECT(call(names[1 - i]) == XR_OK);
		stage_add();
		stage_await(5);
		EXPECT(leave() == XR_OK);
		return;
	}
	stage_await(2);
	for (int k = 0; k < 25; k++) {
		NEED(join("cat", 2, 0) == XR_OK);
		EXPECT(call("ann") == XR_OK);
		EXPECT(call("bob") == XR_OK);
		if (k == 0)
			AWAIT(atomic_load(&shared->count) == 2);
		if (k == 24)
			stage_add();
		EXPECT(leave() == XR_OK);
	}
}

Test(group_change, AC_M19_one_comes_and_goes_under_calls)
{
	together(3, has_a_guest);
}
