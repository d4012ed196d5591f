/* SPDX-License-Identifier: Apache-2.0 */
/* test_shm_address.c - which addresses the carrier of shared memory takes for its own. */
#include "tests/unit/shm_rig.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What stands before the numbers of this rank. */
static char near[XR_ADDRESS_MAX + 1];

static void
expect(const char *text, const char *end, bool is_ours)
{
	char address[2 * XR_ADDRESS_MAX], want[3 * XR_ADDRESS_MAX];
	struct xr_error err = { 0 };
	struct xr_link *link = NULL;
	enum xr_status status;

	snprintf(address, sizeof(address), "%s%s", text, end);
	snprintf(want, sizeof(want), "shm: %s is not of this machine and job",
		address);
	want[sizeof(err.text) - 1] = '\0';
	EXPECT_EQ(shm_carrier.there(rig.self, address, 1, 1) ==
			XR_THERE_UNKNOWN,
		!is_ours);
	status = shm_carrier.connect(rig.self, address, 1, 1, &rig.peer[1],
		&link, &err);
	if (status != (is_ours ? XR_OK : XR_E_NODEV))
		forked_note(__LINE__, "%s: %s", address,
			xr_status_name(status));
	if (!is_ours)
		EXPECT_STR(err.text, want);
	if (link != NULL)
		shm_carrier.link_close(link);
}

static void
check(uint32_t rank)
{
	static const char *const theirs[] = { "1:0", "1:00", "1:01", "1:/1",
		"1::1", "1::", "1:", "1", "", "1;1", "11", "1:-1", "1:+1",
		"1: 1", "-1:1", "+1:1", " 1:1", "/:1", "::1", ":1", "a:1",
		"6:1", "4294967296:1", "4294967297:1", "18446744073709551617:1",
		"1:4294967296", "1:4294967297", "1:18446744073709551617",
		"1:1 ", "1:1:", "1:1x" };
	static const char *const ours[] = { "1:1", "1:9", "1:10", "0:1", "5:1",
		"1:4294967295" };
	char *slot;

	rig_open(rank, 1);
	slot = strrchr(notes->address[rank], ':');
	NEED(slot != NULL && slot - notes->address[rank] > 2);
	snprintf(near, sizeof(near), "%.*s",
		(int)(slot - notes->address[rank]) - 1, notes->address[rank]);
	for (size_t i = 0; i < COUNT(theirs); i++)
		expect(near, theirs[i], false);
	for (size_t i = 0; i < COUNT(ours); i++)
		expect(near, ours[i], true);
	expect("tcp:", "1:1", false);
	near[strlen(near) - 2] ^= 1;
	expect(near, "1:1", false);
	rig_close();
}

FORKED_TEST(shm_address, an_address_names_a_slot_and_an_opening_of_the_segment)
{
	int how = -1;
	pid_t pid;

	rig_make();
	pid = rig_rank(0, check);
	NEED(waitpid(pid, &how, 0) == pid);
	EXPECT_EQ(how, 0);
}
