/* SPDX-License-Identifier: Apache-2.0 */
/* test_port_sys.c - ports that are held (src/place/port.h) if the kernel refuses
 * sockets. */
#include <sys/socket.h>

#include "place/port.h"
#include "sys_hook.h"

static struct xr_error err;
static int refused_family; /* AF_UNSPEC: all */

static long
refuse_sockets(int nr, const long arg[5])
{
	(void)nr;
	return refused_family == AF_UNSPEC || arg[0] == refused_family ?
		-EAFNOSUPPORT :
		0;
}

FORKED_TEST(port_sys, a_kernel_without_ipv6_holds_a_port_of_ipv4)
{
	struct port_limits limits;
	struct port port = { .fd = -1 };
	int family = AF_UNSPEC;
	socklen_t len = sizeof(family);

	port_limits_read(&limits);
	sys_trap(SYS_socket);
	refused_family = AF_INET6;
	sys_hook = refuse_sockets;
	NEED(port_hold(&port, &limits, &err) == XR_OK);
	EXPECT(port.number != 0);
	EXPECT_EQ(getsockopt(port.fd, SOL_SOCKET, SO_DOMAIN, &family, &len), 0);
	EXPECT_EQ(family, AF_INET);
	port_release(&port);
}

FORKED_TEST(port_sys, without_any_socket_no_port_is_held_and_the_error_says_why)
{
	struct port_limits limits;
	struct port port = { .fd = -1 };

	port_limits_read(&limits);
	sys_trap(SYS_socket);
	refused_family = AF_UNSPEC;
	sys_hook = refuse_sockets;
	EXPECT_EQ(port_hold(&port, &limits, &err), XR_E_SYS);
	EXPECT(strncmp(err.text, "bind TCP port ", 14) == 0);
	EXPECT(strstr(err.text, strerror(EAFNOSUPPORT)) != NULL);
	EXPECT_EQ(port.fd, -1);
}
