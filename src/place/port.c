/* SPDX-License-Identifier: Apache-2.0 */
/* port.c - see port.h. The only file of place/ that touches the machine. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/span.h"
#include "base/status.h"
#include "place/port.h"

#define PRIVATE_LOW 49152 /* RFC 6335, section 6: never registered */
#define POLITE_LOW  10240 /* below stand most services people know */
#define RANGE_LOW   32768 /* Linux' default ip_local_port_range */
#define RANGE_HIGH  60999

static const char range_path[] = "/proc/sys/net/ipv4/ip_local_port_range";
static const char reserved_path[] =
	"/proc/sys/net/ipv4/ip_local_reserved_ports";

static struct span
word(const char **at)
{
	struct span s = { 0 };

	*at += strspn(*at, " \t\n");
	s.at = *at;
	s.len = strcspn(*at, " \t\n");
	*at += s.len;
	return s;
}

/* "8080" or "9148-9160". */
static void
reserve(struct port_limits *limits, struct span piece)
{
	struct span high = piece;
	struct span low = span_next(&high, '-');
	uint32_t from = 0, to = 0;

	if (!number_parse(low, UINT16_MAX, &from))
		return;
	to = from;
	if (high.at != NULL && !number_parse(high, UINT16_MAX, &to))
		return;
	for (; from <= to; from++)
		limits->reserved[from / 8] |= (uint8_t)(1u << from % 8);
}

void
port_limits_parse(struct port_limits *limits, const char *range,
	const char *reserved)
{
	uint32_t low = 0, high = 0;
	struct span list = { 0 };

	*limits = (struct port_limits){ .low = RANGE_LOW, .high = RANGE_HIGH };
	if (number_parse(word(&range), UINT16_MAX, &low) &&
		number_parse(word(&range), UINT16_MAX, &high) && low <= high) {
		limits->low = (uint16_t)low;
		limits->high = (uint16_t)high;
	}
	list = word(&reserved);
	while (list.at != NULL)
		reserve(limits, span_next(&list, ','));
}

void
port_limits_read(struct port_limits *limits)
{
	char range[64], reserved[16384];

	fd_read_small(range_path, range, sizeof(range));
	fd_read_small(reserved_path, reserved, sizeof(reserved));
	port_limits_parse(limits, range, reserved);
}

static bool
is_reserved(const struct port_limits *limits, uint32_t port)
{
	return (limits->reserved[port / 8] & 1u << port % 8) != 0;
}

/* Ports from @low on, @high is none of them. */
struct range {
	uint32_t low, high;
};

static struct range
overlap(struct range a, struct range b)
{
	struct range r = {
		.low = a.low > b.low ? a.low : b.low,
		.high = a.high < b.high ? a.high : b.high,
	};

	if (r.low > r.high)
		r.high = r.low;
	return r;
}

/* The candidates in two ranges; 0 are the best: private, and not handed out by
 * the kernel; 1 are registered ones; 2 are the kernel's. */
static void
ranges_of(const struct port_limits *limits, int rank, struct range out[2])
{
	static const struct range wide[] = {
		{ PRIVATE_LOW, 65536 },
		{ POLITE_LOW, PRIVATE_LOW },
		{ POLITE_LOW, 65536 },
	};
	struct range kernel = { limits->low, limits->high + 1u };

	if (kernel.low > kernel.high)
		kernel.low = kernel.high = 0;
	if (rank == 2) {
		out[0] = overlap(wide[rank], kernel);
		out[1] = (struct range){ 0, 0 };
		return;
	}
	out[0] = overlap(wide[rank], (struct range){ 0, kernel.low });
	out[1] = overlap(wide[rank], (struct range){ kernel.high, 65536 });
}

uint16_t
port_choose(const struct port_limits *limits, uint32_t seed, uint32_t nth)
{
	for (int rank = 0; rank < 3; rank++) {
		struct range r[2];
		uint32_t first, count, at;

		ranges_of(limits, rank, r);
		first = r[0].high - r[0].low;
		count = first + r[1].high - r[1].low;
		for (uint32_t i = 0; i < count; i++) {
			at = (seed % count + i) % count;
			at = at < first ? r[0].low + at : r[1].low + at - first;
			if (!is_reserved(limits, at) && nth-- == 0)
				return (uint16_t)at;
		}
	}
	return 0;
}

/* A socket bound to @number on every address; -1 with errno. */
static int
bind_one(int family, uint16_t number)
{
	struct sockaddr_in6 six = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(number),
	};
	struct sockaddr_in four = {
		.sin_family = AF_INET,
		.sin_port = htons(number),
	};
	const struct sockaddr *sa = (const struct sockaddr *)&six;
	socklen_t len = sizeof(six);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int off = 0;

	if (fd == -1)
		return -1;
	if (family == AF_INET) {
		sa = (const struct sockaddr *)&four;
		len = sizeof(four);
	} else if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off,
			   sizeof(off)) == -1) {
		goto fail;
	}
	if (bind(fd, sa, len) == 0)
		return fd;
fail:
	fd_close(fd);
	return -1;
}

/* A machine may have the code of IPv6 and no address, or not even that. */
static int
bind_any(uint16_t number)
{
	int fd = bind_one(AF_INET6, number);

	if (fd == -1 && errno != EADDRINUSE && errno != EACCES)
		fd = bind_one(AF_INET, number);
	return fd;
}

static uint32_t
random_seed(void)
{
	uint32_t seed = 0;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed))
		return seed;
	return (uint32_t)clock_now() ^ (uint32_t)getpid() * 2654435761u;
}

enum xr_status
port_hold(struct port *port, const struct port_limits *limits,
	struct xr_error *err)
{
	int on = 1, fd = -1;
	uint32_t seed = random_seed();
	uint16_t number = 0;

	for (uint32_t nth = 0; fd == -1; nth++) {
		number = port_choose(limits, seed, nth);
		if (number == 0)
			return fail(err, XR_E_NOTFOUND,
				"no TCP port is free on this machine");
		fd = bind_any(number);
		if (fd == -1 && errno != EADDRINUSE && errno != EACCES)
			return fail(err, XR_E_SYS, "bind TCP port %u: %s",
				number, strerror(errno));
	}
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == -1) {
		fail(err, XR_E_SYS, "SO_REUSEADDR: %s", strerror(errno));
		fd_close(fd);
		return XR_E_SYS;
	}
	*port = (struct port){ .fd = fd, .number = number };
	return XR_OK;
}

void
port_release(struct port *port)
{
	fd_close(port->fd);
	port->fd = -1;
}
