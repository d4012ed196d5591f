/* SPDX-License-Identifier: Apache-2.0 */
/* test_rendezvous.c - ranks of xr_spawn() that end before a rendezvous, and tags. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/spawn.h>
#include <xrun/value.h>

#include "base/clock.h"
#include "worker/proc/meet.h"

/* A rank that takes its place, leaves a payload or not, and ends. */
static void
end_as(int fd, uint32_t index, bool leaves)
{
	struct meet m = { .tag = "a", .deadline = INT64_MAX };
	struct xr_value *nil = xr_value_new_nil();
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0) {
		meet_take(fd, index);
		_exit(leaves && meet_leave(&m, nil, NULL) != XR_OK);
	}
	cr_assert_gt(pid, 0);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	cr_assert_eq(info.si_status, 0);
	xr_value_unref(nil);
}

static enum xr_status
come(int fd, int64_t timeout, struct xr_error *err)
{
	struct meet m = { .tag = "a", .deadline = clock_now() + timeout };
	struct xr_value *nil = xr_value_new_nil(), *all = NULL;
	enum xr_status status;

	meet_take(fd, 0);
	status = meet_leave(&m, nil, err);
	cr_assert_eq(status, XR_OK);
	status = meet_collect(&m, &all, err);
	xr_value_unref(all);
	xr_value_unref(nil);
	return status;
}

TestSuite(rendezvous, .timeout = 60);

Test(rendezvous, a_rank_that_ended_before_it_came_is_named_at_once)
{
	struct xr_error err = { 0 };
	int fd;

	cr_assert_eq(meet_make(3, &fd, &err), XR_OK);
	end_as(fd, 1, false);
	cr_expect_eq(come(fd, 600 * NS_PER_S, &err), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "rendezvous a: rank 1 ended before it came");
}

Test(rendezvous, a_rank_that_ended_after_it_came_has_come)
{
	struct xr_error err = { 0 };
	int fd;

	cr_assert_eq(meet_make(3, &fd, &err), XR_OK);
	end_as(fd, 1, true);
	cr_expect_eq(come(fd, NS_PER_S / 10, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "rendezvous a: rank 2 did not come in time");
}

/* Of a process that is the only rank. */
static enum xr_status
meet_alone(const char *tag, struct xr_error *err)
{
	struct xr_value *payload = xr_value_new_u64(7), *all = NULL;
	enum xr_status status = xr_rendezvous(tag, payload, 0, &all, err);
	uint64_t n = 0;

	if (status == XR_OK) {
		cr_expect_eq(xr_value_count(all), 1);
		cr_expect_eq(xr_value_get_u64(xr_value_at(all, 0), &n), XR_OK);
		cr_expect_eq(n, 7);
	}
	xr_value_unref(all);
	xr_value_unref(payload);
	return status;
}

Test(rendezvous, a_tag_has_1_to_127_bytes)
{
	static const struct {
		size_t len;
		const char *text; /* NULL: it is accepted */
	} rows[] = {
		{ 0, "xr_rendezvous: the tag has 0 bytes or more, not 1 to 127" },
		{ 1, NULL },
		{ 127, NULL },
		{ 128, "xr_rendezvous: the tag has 128 bytes or more, not 1 to 127" },
		{ 200, "xr_rendezvous: the tag has 128 bytes or more, not 1 to 127" },
	};
	struct xr_error err = { 0 };
	char tag[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(tag, 't', sizeof(tag));
		tag[rows[i].len] = '\0';
		err = (struct xr_error){ 0 };
		if (rows[i].text == NULL) {
			cr_expect_eq(meet_alone(tag, &err), XR_OK);
			continue;
		}
		cr_expect_eq(meet_alone(tag, &err), XR_E_INVAL);
		cr_expect_str_eq(err.text, rows[i].text);
	}
	cr_expect_eq(meet_alone(NULL, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, rows[0].text);
}
