/* SPDX-License-Identifier: Apache-2.0 */
/* door.c - see door.h. */
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

#include <net/if.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/status.h"
#include "worker/net/door.h"
#include "worker/net/heir.h"

#define ANY_PORT "9" /* discard: nothing is sent there */

static bool
take_address(const struct sockaddr *at, struct where *where)
{
	*where = (struct where){ .len = 0 };
	if (at == NULL)
		return false;
	if (at->sa_family == AF_INET)
		where->len = sizeof(where->at.v4);
	else if (at->sa_family == AF_INET6)
		where->len = sizeof(where->at.v6);
	memcpy(&where->at, at, where->len);
	return where->len > 0;
}

/* Others need no more than the number to reach it: a link-local address of IPv6
 * means another place on each interface. */
static bool
is_reachable(const struct where *w)
{
	return w->at.any.sa_family == AF_INET ||
		!IN6_IS_ADDR_LINKLOCAL(&w->at.v6.sin6_addr);
}

/* The first IPv4 address of it, or else the first of IPv6. */
static bool
find_interface(const struct ifaddrs *all, const char *name, struct where *where)
{
	struct where one;
	bool found = false;

	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		if (strcmp(i->ifa_name, name) != 0 ||
			!take_address(i->ifa_addr, &one) || !is_reachable(&one))
			continue;
		if (!found ||
			(where->at.any.sa_family == AF_INET6 &&
				one.at.any.sa_family == AF_INET))
			*where = one;
		found = true;
	}
	return found;
}

/* "lo (127.0.0.1), eth0 (10.0.0.3)". */
static void
list_interfaces(const struct ifaddrs *all, struct buf *out)
{
	struct where one;
	char host[WHERE_TEXT];

	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
		if (take_address(i->ifa_addr, &one) && is_reachable(&one))
			buf_fmt(out, "%s%s (%s)", out->len > 0 ? ", " : "",
				i->ifa_name, where_host(&one, host));
}

static enum xr_status
choose_named(const char *name, struct where *where, struct xr_error *err)
{
	struct ifaddrs *all = NULL;
	struct buf list = { .max = 4096 };
	enum xr_status status = XR_OK;

	if (where_of_host(name, where))
		return where_is_any(where) ?
			fail(err, XR_E_INVAL,
				"tcp: '%.60s' is every interface\tone of them",
				name) :
			XR_OK;
	if (getifaddrs(&all) == -1)
		return fail(err, XR_E_SYS, "tcp: interfaces: %s",
			strerror(errno));
	if (!find_interface(all, name, where)) {
		list_interfaces(all, &list);
		status = fail(err, XR_E_NOTFOUND,
			"tcp: no interface '%.60s' has an address\tone of %s",
			name, buf_text(&list));
	}
	buf_fini(&list);
	freeifaddrs(all);
	return status;
}

/* The address that the kernel would say to come from, if it went to @at. */
static bool
source_to(const struct addrinfo *at, struct where *where)
{
	struct sockaddr_storage own = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(own);
	int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool known = fd != -1 &&
		connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
		getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
		take_address((struct sockaddr *)&own, where) &&
		is_reachable(where);

	fd_close(fd);
	return known;
}

/* The first address by which other machines may know this one. */
static bool
find_outward(struct where *where)
{
	struct ifaddrs *all = NULL;
	struct where one;
	bool found = false;

	if (getifaddrs(&all) == -1)
		return false;
	for (const struct ifaddrs *i = all; i != NULL && !found;
		i = i->ifa_next) {
		found = (i->ifa_flags & IFF_UP) != 0 &&
			take_address(i->ifa_addr, &one) && is_reachable(&one) &&
			!where_is_loopback(&one);
		if (found)
			*where = one;
	}
	freeifaddrs(all);
	return found;
}

/* A machine's own name often means its loopback, where nobody else finds it; who
 * wants that says so. */
static void
look_outward(const char *host, struct where *where)
{
	struct where said;

	if (where_is_loopback(where) && strcmp(host, "localhost") != 0 &&
		!where_of_host(host, &said) && find_outward(&said))
		*where = said;
}

static enum xr_status
choose_towards(const char *host, struct where *where, struct xr_error *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
	struct addrinfo *list = NULL;
	int failed = getaddrinfo(host, ANY_PORT, &hints, &list);
	enum xr_status status = XR_E_NODEV;

	if (failed != 0)
		return fail(err, XR_E_NOTFOUND,
			"tcp: the store's host %.100s: %s", host,
			gai_strerror(failed));
	for (const struct addrinfo *at = list;
		at != NULL && status == XR_E_NODEV; at = at->ai_next)
		if (source_to(at, where))
			status = XR_OK;
	freeaddrinfo(list);
	if (status != XR_OK)
		return fail(err, status,
			"tcp: no interface reaches the store's host %.100s: %s",
			host, strerror(errno));
	look_outward(host, where);
	return XR_OK;
}

static bool
listen_at(int fd, struct where *where)
{
	socklen_t len = sizeof(where->at);

	if (where->at.any.sa_family == AF_INET)
		where->at.v4.sin_port = 0;
	else
		where->at.v6.sin6_port = 0;
	return fd != -1 && bind(fd, &where->at.any, where->len) == 0 &&
		listen(fd, SOMAXCONN) == 0 &&
		getsockname(fd, &where->at.any, &len) == 0;
}

enum xr_status
door_open(const char *interface, const char *host, int *fd, struct where *where,
	struct xr_error *err)
{
	char text[WHERE_TEXT];
	enum xr_status status = XR_OK;

	if (interface != NULL)
		status = choose_named(interface, where, err);
	else if (host != NULL)
		status = choose_towards(host, where, err);
	else
		where_of_host("127.0.0.1", where);
	if (status != XR_OK)
		return status;
	*fd = heir_socket(where->at.any.sa_family);
	if (listen_at(*fd, where))
		return XR_OK;
	status = fail(err, XR_E_SYS, "tcp: listen on %s: %s",
		where_host(where, text), strerror(errno));
	heir_close(*fd);
	*fd = -1;
	return status;
}
