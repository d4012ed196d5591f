/* SPDX-License-Identifier: Apache-2.0 */
/* test_topology.c - machines made of files: what is a core, and where. */
#include <stdarg.h>

#include <criterion/criterion.h>

#include "place/topology.h"
#include "tests/unit/folder.h"
#include "tests/unit/leaks.h"
#include "tests/unit/machine.h"

static struct topology t;

static void
finish(void)
{
	topology_fini(&t);
	folder_remove();
	leaks_none();
}

TestSuite(topology, .init = folder_make, .fini = finish);

/* "0/0/0 4/0/0 1/1/0": CPU, core and package of each, in order. */
static const char *
table(void)
{
	static char text[4096];
	size_t n = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < t.count; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u/%u/%u",
			i > 0 ? " " : "", t.cpus[i].cpu, t.cpus[i].core,
			t.cpus[i].package);
	return text;
}

static void
look(const char *allowed)
{
	struct ranks may;

	cr_assert_eq(ranks_init(&may, TOPOLOGY_CPUS), XR_OK);
	cr_assert(cpulist_read(allowed, &may));
	topology_fini(&t);
	topology_read(&t, "sys", &may);
	ranks_fini(&may);
}

Test(topology, hardware_threads_of_a_core_stand_side_by_side)
{
	machine_cpu(0, 0, "0,2");
	machine_cpu(1, 0, "1,3");
	machine_cpu(2, 0, "0,2");
	machine_cpu(3, 0, "1,3");
	machine_online("0-3");
	look("0-3");
	cr_expect_str_eq(table(), "0/0/0 2/0/0 1/1/0 3/1/0");
	cr_expect_eq(t.cores, 2);
}

/* Even CPUs on one socket, odd ones on the other, as some firmware counts. */
Test(topology, sockets_come_one_after_the_other)
{
	for (unsigned cpu = 0; cpu < 8; cpu++)
		machine_cpu(cpu, cpu % 2, machine_fmt("%u", cpu));
	machine_online("0-7");
	machine_node(0, "0,2,4,6");
	machine_node(1, "1,3,5,7");
	look("0-7");
	cr_expect_str_eq(table(),
		"0/0/0 2/1/0 4/2/0 6/3/0 1/4/1 3/5/1 5/6/1 7/7/1");
	cr_expect_eq(t.cpus[3].node, 0);
	cr_expect_eq(t.cpus[4].node, 1);
}

/* Two nodes a socket: neighbours in the table share their memory. */
Test(topology, nodes_part_the_cores_of_a_socket)
{
	for (unsigned cpu = 0; cpu < 4; cpu++)
		machine_cpu(cpu, 0, machine_fmt("%u", cpu));
	machine_online("0-3");
	machine_node(0, "0,3");
	machine_node(1, "1-2");
	look("0-3");
	cr_expect_str_eq(table(), "0/0/0 3/1/0 1/2/0 2/3/0");
}

Test(topology, what_is_offline_or_not_allowed_is_not_there)
{
	for (unsigned cpu = 0; cpu < 8; cpu++)
		if (cpu != 5) /* sysfs has no topology of offline ones */
			machine_cpu(cpu, 0,
				machine_fmt("%u-%u", cpu & ~1u, cpu | 1));
	machine_online("0-4,6-7");
	look("1,4-6");
	cr_expect_str_eq(table(), "1/0/0 4/1/0 6/2/0");
}

Test(topology, numbers_with_holes_are_what_they_are)
{
	machine_cpu(3, 1, "3,900");
	machine_cpu(900, 1, "3,900");
	machine_cpu(8191, 2, "8191");
	machine_online("3,900,8191");
	look("0-8191");
	cr_expect_str_eq(table(), "3/0/1 900/0/1 8191/1/2");
}

Test(topology, without_sysfs_each_cpu_is_a_core)
{
	look("0,3");
	cr_expect_str_eq(table(), "0/0/0 3/1/0");
	look("");
	cr_expect_eq(t.count, 0);
	cr_expect_eq(t.cores, 0);
}

Test(topology, firmware_that_knows_no_packages_is_one)
{
	machine_cpu(0, 0, "0");
	machine_file("devices/system/cpu/cpu0/topology/physical_package_id",
		"-1\n");
	look("0");
	cr_expect_str_eq(table(), "0/0/0");
}

static bool
reads(const char *text)
{
	struct ranks set;
	bool fine;

	cr_assert_eq(ranks_init(&set, TOPOLOGY_CPUS), XR_OK);
	fine = cpulist_read(text, &set);
	ranks_fini(&set);
	return fine;
}

Test(cpulist, only_lists_are_lists)
{
	static const char *const good[] = { "", "\n", "0", "0-3,8\n", "8191",
		"3,1,2", "4-4" };
	static const char *const bad[] = { ",", "0,", "-1", "0-", "0--1", "a",
		"0 1", "3-1", "8192", "99999999999999999999", "0-8192", "0;1",
		"0-1-2", "0x1" };

	for (unsigned i = 0; i < sizeof(good) / sizeof(*good); i++)
		cr_expect(reads(good[i]), "%s", good[i]);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_expect_not(reads(bad[i]), "%s", bad[i]);
}

/* Every beginning of a list is a list of what it names, or none. */
Test(cpulist, a_list_may_end_anywhere)
{
	static const char whole[] = "0-3,17,200-255,8000\n";
	char text[sizeof(whole)];

	for (size_t n = 0; n < sizeof(whole); n++) {
		bool open = false;

		memcpy(text, whole, n);
		text[n] = '\0';
		if (n > 0)
			open = strchr("-,", text[n - 1]) != NULL;
		/* "200-2" and "200-25" run backwards */
		open = open || (n > 0 && strcmp(text, "0-3,17,200-2") == 0) ||
			strcmp(text, "0-3,17,200-25") == 0;
		cr_expect_eq(reads(text), !open, "%s", text);
	}
}
