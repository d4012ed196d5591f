/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_where.c - addresses of TCP, and where a carrier listens. */
#include <criterion/criterion.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <net/if.h>
#include <sys/socket.h>

#include "worker/net/door.h"

TestSuite(net_where, .timeout = 30);

static struct where where;
static struct xr_error err;
static char text[WHERE_TEXT];

Test(net_where, an_address_is_read_as_it_is_written)
{
	static const char *const good[] = { "127.0.0.1:1", "10.0.0.3:65535",
		"[::1]:80", "[fd00::a:1]:4711" };
	char address[80];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(address, sizeof(address), "tcp:%s", good[i]);
		cr_assert_eq(where_parse(address, &where, &err), XR_OK, "%s",
			err.text);
		cr_expect_str_eq(where_text(&where, text), good[i]);
	}
	cr_expect(!where_is_loopback(&where));
	cr_expect_str_eq(where_host(&where, text), "fd00::a:1");
}

Test(net_where, what_is_no_address_is_told_from_what_is_a_bad_one)
{
	static const char *const bad[] = {
		"tcp:", "tcp::", "tcp:1.2.3.4", "tcp:1.2.3.4:", "tcp:1.2.3.4:0",
		"tcp:1.2.3.4:65536", "tcp:1.2.3.4: 80", "tcp:1.2.3:80",
		"tcp:host:80", "tcp:[]:80", "tcp:[::1]", "tcp:[::1:80",
		"tcp:::1:80", "tcp:[::1]80", "tcp:0.0.0.0:80", "tcp:[::]:80",
		"tcp:[::ffff:0.0.0.0]:80", "tcp:[::1]:99999999999999999999",
		"tcp:[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:1"
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(where_parse(bad[i], &where, &err), XR_E_INVAL,
			"%s", bad[i]);
	cr_expect_eq(where_parse("shm:3", &where, &err), XR_E_NODEV);
	cr_expect_eq(where_parse("", &where, &err), XR_E_NODEV);
	cr_expect_eq(where_parse(NULL, &where, &err), XR_E_NODEV);
	cr_expect_eq(where_parse("TCP:1.2.3.4:80", &where, &err), XR_E_NODEV);
}

/* Where a door is, for who may open it. */
static void
door(const char *interface, const char *host)
{
	int fd = -1, on = 0;
	socklen_t len = sizeof(on);

	cr_assert_eq(door_open(interface, host, &fd, &where, &err), XR_OK, "%s",
		err.text);
	cr_expect(!where_is_any(&where));
	cr_expect_eq(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len), 0);
	cr_expect_eq(on, 1);
	cr_expect_neq(strcmp(strrchr(where_text(&where, text), ':'), ":0"), 0);
	close(fd);
}

Test(net_where, one_machine_is_enough_for_the_loopback)
{
	door(NULL, NULL);
	cr_expect(where_is_loopback(&where));
}

Test(net_where, an_interface_is_named_or_numbered)
{
	door("lo", NULL);
	cr_expect(where_is_loopback(&where));
	door("127.0.0.1", NULL);
	cr_expect_str_eq(where_host(&where, text), "127.0.0.1");
	door("127.0.0.1", "a host that is not looked for");
}

Test(net_where, never_all_interfaces)
{
	int fd = -1;

	cr_expect_eq(door_open("0.0.0.0", NULL, &fd, &where, &err), XR_E_INVAL);
	cr_expect_not_null(strstr(err.text, "every interface"));
	cr_expect_eq(door_open("::", NULL, &fd, &where, &err), XR_E_INVAL);
	cr_expect_eq(fd, -1);
}

Test(net_where, an_interface_that_is_not_there_is_told_with_those_that_are)
{
	int fd = -1;

	cr_expect_eq(door_open("eth77", NULL, &fd, &where, &err),
		XR_E_NOTFOUND);
	cr_expect_not_null(strstr(err.text, "'eth77'"));
	cr_expect_not_null(strstr(err.text, "lo (127.0.0.1)"), "%s", err.text);
	cr_expect_eq(door_open("203.0.113.9", NULL, &fd, &where, &err),
		XR_E_SYS, "that address is of a documentation");
	cr_expect_not_null(strstr(err.text, "203.0.113.9"));
	cr_expect_eq(fd, -1);
}

Test(net_where, the_store_decides_which_interface_it_is)
{
	int fd = -1;

	door(NULL, "127.0.0.1");
	cr_expect(where_is_loopback(&where));
	door(NULL, "localhost");
	cr_expect(where_is_loopback(&where));
	cr_expect_eq(door_open(NULL, "no.such.host.invalid", &fd, &where, &err),
		XR_E_NOTFOUND);
	cr_expect_not_null(strstr(err.text, "no.such.host.invalid"));
}

/* Has this machine an IPv4 address that others could reach? */
static bool
is_outward(void)
{
	struct ifaddrs *all = NULL;
	bool found = false;

	cr_assert_eq(getifaddrs(&all), 0);
	for (struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
		found = found ||
			(i->ifa_addr != NULL && (i->ifa_flags & IFF_UP) != 0 &&
				(i->ifa_flags & IFF_LOOPBACK) == 0 &&
				i->ifa_addr->sa_family == AF_INET);
	freeifaddrs(all);
	return found;
}

Test(net_where, a_machine_whose_own_name_is_its_loopback_is_found_by_others)
{
	char name[256] = { 0 };
	int fd = -1;

	cr_assert_eq(gethostname(name, sizeof(name) - 1), 0);
	/* It may have a name that is no host's. */
	if (door_open(NULL, name, &fd, &where, &err) != XR_OK) {
		cr_expect_not_null(strstr(err.text, name));
		return;
	}
	cr_expect_eq(where_is_loopback(&where), !is_outward());
	close(fd);
}
