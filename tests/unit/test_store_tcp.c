/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_tcp.c - how a tcp:// store is reached (worker/store/tcp.c): by the test's
 * clock and sockets, and with the test in place of the greeting and of the server. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "store/frame.h"
#include "store/peer_uid.h"
#include "tests/unit/noted.h"
#include "tests/unit/short_memory.h"
#include "worker/store/greeting.h"
#include "worker/store/host.h"
#include "worker/store/link.h"

#define START (1000 * NS_PER_S)

static struct xr_error err;
static struct store_address at_address = {
	.place = STORE_AT_TCP,
	.open = true,
	.port = 4711,
	.host = "there",
};
static struct addrinfo places[3];
static unsigned place_count, open_sockets, lists;
static int64_t now;
static int fd_given; /* of the last socket */
static int connect_sys[8],
	late_sys[8];              /* of each attempt; 0: it is connected */
static enum xr_status greeted[8]; /* of each connection */
static enum xr_status hosted[8];  /* of each place */
static unsigned connects, lates, greets, hosts;
static bool is_foreign, ready, pauses;
static const struct link_speech *spoken;
static enum xr_status linked;

/* --- what takes the place of others ---------------------------------------- */

int64_t __wrap_clock_now(void);
bool __wrap_driver_pause(int fd, int64_t ns, int64_t until);
bool __real_driver_pause(int fd, int64_t ns, int64_t until);
int __wrap_getaddrinfo(const char *host, const char *port,
	const struct addrinfo *hints, struct addrinfo **list);
void __wrap_freeaddrinfo(struct addrinfo *list);
int __wrap_socket(int family, int type, int protocol);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int name, const void *value,
	socklen_t len);
void __wrap_fd_close(int fd);
bool __wrap_peer_is_foreign(int fd);
enum xr_status __wrap_greeting_client(int fd, const struct store_auth *auth,
	int64_t until, struct xr_error *e);
enum xr_status __wrap_store_auth_open(struct store_auth *auth,
	struct xr_error *e);
void __wrap_store_auth_close(struct store_auth *auth);
enum xr_status __wrap_host_open(const struct store_address *address,
	const struct addrinfo *at, struct host **host, struct xr_error *e);
void __wrap_host_close(struct host *host);
enum xr_status __wrap_link_open(int fd, const struct link_speech *speech,
	struct driver **driver, struct xr_error *e);

int64_t
__wrap_clock_now(void)
{
	return now;
}

bool
__wrap_driver_pause(int fd, int64_t ns, int64_t until)
{
	cr_expect_eq(fd, -1);
	note("pause-%lld ", (long long)(ns / NS_PER_MS));
	if (now >= until)
		return false;
	now = ns < until - now ? now + ns : until;
	return true;
}

int
__wrap_getaddrinfo(const char *host, const char *port,
	const struct addrinfo *hints, struct addrinfo **list)
{
	cr_expect_eq(hints->ai_family, AF_UNSPEC);
	cr_expect_eq(hints->ai_socktype, SOCK_STREAM);
	cr_expect_eq(hints->ai_flags, AI_NUMERICSERV);
	note("look-up-%s:%s ", host, port);
	if (place_count == 0)
		return EAI_NONAME;
	for (unsigned i = 0; i < place_count; i++) {
		places[i] = (struct addrinfo){ .ai_family = AF_INET + (int)i,
			.ai_addrlen = 16 + i };
		places[i].ai_next = i + 1 < place_count ? &places[i + 1] : NULL;
	}
	lists++;
	*list = places;
	return 0;
}

void
__wrap_freeaddrinfo(struct addrinfo *list)
{
	cr_expect_eq(list, places);
	lists--;
}

int
__wrap_socket(int family, int type, int protocol)
{
	cr_expect_eq(type, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
	cr_expect_eq(protocol, 0);
	note("socket-%d ", family - AF_INET);
	if (connect_sys[connects] == EMFILE) {
		connects++;
		errno = EMFILE;
		return -1;
	}
	open_sockets++;
	return fd_given = 5000 + (int)connects;
}

int
__wrap_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	cr_expect_eq(fd, fd_given);
	cr_expect_null(to);
	note("connect-%u ", len);
	errno = connect_sys[connects++];
	return errno == 0 ? 0 : -1;
}

/* What is ready is so at once; what is not makes the time pass. */
int
__wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	cr_expect_eq(n, 1);
	if (pauses) {
		cr_expect_eq(p->events, POLLIN);
		note("poll%d-%d ", p->fd, ms);
		return ready;
	}
	cr_expect_eq(p->fd, fd_given);
	cr_expect_eq(p->events, POLLOUT);
	note("poll-%d ", ms);
	if (!ready)
		now += ms * NS_PER_MS;
	return ready;
}

int
__wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	cr_expect_eq(fd, fd_given);
	cr_expect_eq(level, SOL_SOCKET);
	cr_expect_eq(name, SO_ERROR);
	cr_expect_eq(*len, sizeof(int));
	memcpy(value, &late_sys[lates++], sizeof(int));
	return 0;
}

int
__wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int on = 0;

	cr_expect_eq(fd, fd_given);
	cr_assert_eq(len, sizeof(on));
	memcpy(&on, value, sizeof(on));
	cr_expect_eq(on, 1);
	if (level == IPPROTO_TCP && name == TCP_NODELAY)
		note("nodelay ");
	else if (level == SOL_SOCKET && name == SO_KEEPALIVE)
		note("keepalive ");
	else
		note("option-%d/%d ", level, name);
	return 0;
}

void
__wrap_fd_close(int fd)
{
	if (fd == -1)
		return;
	cr_expect_eq(fd, fd_given);
	open_sockets--;
	note("close ");
}

bool
__wrap_peer_is_foreign(int fd)
{
	cr_expect_eq(fd, fd_given);
	note("whose ");
	return is_foreign;
}

enum xr_status
__wrap_greeting_client(int fd, const struct store_auth *auth, int64_t until,
	struct xr_error *e)
{
	enum xr_status status = greeted[greets++];

	cr_expect_eq(fd, fd_given);
	note("greet%s-%lld ", auth == NULL ? "" : "-with-secret",
		(long long)((until - now) / NS_PER_MS));
	return status == XR_OK ? status : fail(e, status, "not like that");
}

enum xr_status
__wrap_store_auth_open(struct store_auth *auth, struct xr_error *e)
{
	static uint8_t secret;

	note("secret ");
	if (linked == XR_E_AUTH)
		return fail(e, XR_E_AUTH, "no secret");
	auth->secret = &secret;
	return XR_OK;
}

void
__wrap_store_auth_close(struct store_auth *auth)
{
	note(auth->secret == NULL ? "forget-nothing " : "forget ");
}

enum xr_status
__wrap_host_open(const struct store_address *address, const struct addrinfo *at,
	struct host **host, struct xr_error *e)
{
	static char made;
	enum xr_status status = hosted[hosts++];

	cr_expect_eq(address, &at_address);
	note("serve-%d ", (int)(at - places));
	if (status != XR_OK)
		return fail(e, status, "not served");
	*host = (struct host *)&made;
	return XR_OK;
}

void
__wrap_host_close(struct host *host)
{
	if (host != NULL)
		note("host-close ");
}

static void
link_ask(struct driver *d, struct store_request *q, int64_t until,
	struct store_reply *r)
{
	(void)d;
	r->id = q->id;
	r->number = until;
	note("ask ");
}

static void
link_close(struct driver *d)
{
	(void)d;
	note("close-link ");
}

static void
link_free(struct driver *d)
{
	(void)d;
	open_sockets--;
	note("free-link ");
}

enum xr_status
__wrap_link_open(int fd, const struct link_speech *speech,
	struct driver **driver, struct xr_error *e)
{
	static const struct driver_ops ops = { link_ask, link_close,
		link_free };
	static struct driver made = { &ops };

	cr_expect_eq(fd, fd_given);
	spoken = speech;
	note("link ");
	if (linked != XR_OK) {
		open_sockets--; /* it is taken */
		return fail(e, linked, "no link");
	}
	*driver = &made;
	return XR_OK;
}

/* --- a test ---------------------------------------------------------------- */

static void
begin(void)
{
	place_count = 1;
	ready = true;
	now = START;
}

TestSuite(store_tcp, .init = begin, .timeout = 60);

static struct driver *
open_it(int64_t ms, enum xr_status want)
{
	struct driver *driver = NULL;
	enum xr_status status;

	done[0] = '\0';
	connects = lates = greets = hosts = 0;
	err = (struct xr_error){ 0 };
	status = tcp_open(&at_address, now + ms * NS_PER_MS, &driver, &err);
	cr_expect_eq(status, want, "%s", err.text);
	cr_expect_eq(driver != NULL, want == XR_OK);
	cr_expect_eq(open_sockets, want == XR_OK);
	cr_expect_eq(lists, 0, "the addresses are freed");
	return driver;
}

static void
opens(int64_t ms, const char *what)
{
	struct driver *driver = open_it(ms, XR_OK);

	cr_expect_str_eq(done, what);
	driver->ops->free(driver);
}

static void
fails(int64_t ms, enum xr_status want, const char *what, const char *text)
{
	open_it(ms, want);
	cr_expect_str_eq(done, what);
	cr_expect_str_eq(err.text, text);
}

/* --- connecting ------------------------------------------------------------ */

Test(store_tcp, a_store_is_connected_greeted_and_linked)
{
	struct store_request q = { .id = 7 };
	struct store_reply r = { 0 };
	struct driver *driver = open_it(9000, XR_OK);

	cr_expect_str_eq(done,
		"look-up-there:4711 socket-0 connect-16 nodelay "
		"keepalive greet-5000 whose forget-nothing "
		"link ");
	done[0] = '\0';
	driver->ops->ask(driver, &q, 99, &r);
	cr_expect_eq(r.id, 7);
	cr_expect_eq(r.number, 99);
	driver->ops->close(driver);
	driver->ops->free(driver);
	cr_expect_str_eq(done, "ask close-link free-link ");
	cr_expect_eq(open_sockets, 0);
}

Test(store_tcp, a_connection_in_progress_is_awaited)
{
	connect_sys[0] = EINPROGRESS;
	opens(9000,
		"look-up-there:4711 socket-0 connect-16 poll-5000 nodelay "
		"keepalive greet-5000 whose forget-nothing link ");
	/* Not longer than there is time, in whole milliseconds. */
	opens(70,
		"look-up-there:4711 socket-0 connect-16 poll-70 nodelay "
		"keepalive greet-70 whose forget-nothing link ");
}

/* A bit of a millisecond is a whole one. */
Test(store_tcp, time_is_rounded_up)
{
	struct driver *driver = NULL;

	connect_sys[0] = EINPROGRESS;
	cr_assert_eq(tcp_open(&at_address, now + NS_PER_MS + 1, &driver, &err),
		XR_OK);
	cr_expect_not_null(strstr(done, "poll-2 "), "%s", done);
	driver->ops->free(driver);
}

Test(store_tcp, what_fails_later_is_told)
{
	connect_sys[0] = EINPROGRESS;
	connect_sys[1] = EHOSTUNREACH;
	late_sys[0] = ECONNREFUSED;
	fails(5, XR_E_TIMEOUT,
		"look-up-there:4711 socket-0 connect-16 poll-5 close pause-5 "
		"forget-nothing ",
		"store: rank 0 does not serve tcp://there:4711: Connection "
		"refused");
	connect_sys[0] = EHOSTUNREACH;
	fails(5, XR_E_TIMEOUT,
		"look-up-there:4711 socket-0 connect-16 close pause-5 "
		"forget-nothing ",
		"store: rank 0 does not serve tcp://there:4711: No route to "
		"host");
	connect_sys[0] = EMFILE;
	fails(5, XR_E_TIMEOUT,
		"look-up-there:4711 socket-0 pause-5 forget-nothing ",
		"store: rank 0 does not serve tcp://there:4711: Too many open "
		"files");
}

Test(store_tcp, what_does_not_answer_takes_its_time)
{
	connect_sys[0] = EINPROGRESS;
	ready = false;
	fails(30, XR_E_TIMEOUT,
		"look-up-there:4711 socket-0 connect-16 poll-30 close pause-5 "
		"forget-nothing ",
		"store: rank 0 does not serve tcp://there:4711: Connection "
		"timed out");
	/* And that of the next address: there is no time left to wait. */
	place_count = 2;
	connect_sys[1] = EINPROGRESS;
	fails(30, XR_E_TIMEOUT,
		"look-up-there:4711 socket-0 connect-16 poll-30 close socket-1 "
		"connect-17 close pause-5 forget-nothing ",
		"store: rank 0 does not serve tcp://there:4711: Connection "
		"timed out");
}

Test(store_tcp, pauses_double_to_half_a_second)
{
	for (unsigned i = 0; i < 8; i++)
		greeted[i] = XR_E_AGAIN;
	place_count = 1;
	fails(5 + 10 + 20 + 40 + 80 + 160 + 320, XR_E_TIMEOUT,
		"look-up-there:4711 "
		"socket-0 connect-16 nodelay keepalive greet-635 close pause-5 "
		"socket-0 connect-16 nodelay keepalive greet-630 close pause-10 "
		"socket-0 connect-16 nodelay keepalive greet-620 close pause-20 "
		"socket-0 connect-16 nodelay keepalive greet-600 close pause-40 "
		"socket-0 connect-16 nodelay keepalive greet-560 close pause-80 "
		"socket-0 connect-16 nodelay keepalive greet-480 close pause-160 "
		"socket-0 connect-16 nodelay keepalive greet-320 close pause-320 "
		"forget-nothing ",
		"store: rank 0 does not serve tcp://there:4711: not like that");
	cr_expect_eq(now, START + 635 * NS_PER_MS);
	open_it(636, XR_E_TIMEOUT);
	cr_expect_not_null(strstr(done,
		"greet-1 close pause-500 forget-nothing "));
}

/* --- several addresses ----------------------------------------------------- */

Test(store_tcp, each_address_is_tried_until_one_is_the_store)
{
	place_count = 3;
	connect_sys[0] = ENETUNREACH;
	greeted[0] = XR_E_AGAIN;
	opens(9000,
		"look-up-there:4711 socket-0 connect-16 close socket-1 "
		"connect-17 nodelay keepalive greet-5000 close socket-2 "
		"connect-18 nodelay keepalive greet-5000 whose forget-nothing "
		"link ");
	/* The first is enough. */
	connect_sys[0] = 0;
	greeted[0] = XR_OK;
	opens(9000,
		"look-up-there:4711 socket-0 connect-16 nodelay keepalive "
		"greet-5000 whose forget-nothing link ");
	/* Who refuses is not asked again, nor is another. */
	greeted[0] = XR_E_VERSION;
	fails(9000, XR_E_VERSION,
		"look-up-there:4711 socket-0 connect-16 nodelay keepalive "
		"greet-5000 close forget-nothing ",
		"tcp://there:4711: not like that");
}

Test(store_tcp, a_name_that_is_none_is_told)
{
	place_count = 0;
	fails(9000, XR_E_NOTFOUND, "look-up-there:4711 ",
		"store: tcp://there:4711: Name or service not known");
}

/* --- who serves ------------------------------------------------------------ */

Test(store_tcp, without_a_secret_another_users_server_is_refused)
{
	is_foreign = true;
	fails(9000, XR_E_AUTH,
		"look-up-there:4711 socket-0 connect-16 nodelay keepalive "
		"greet-5000 whose close forget-nothing ",
		"tcp://there:4711: store: another user of this machine serves "
		"there\tanother port");
	/* With one it has proved that it knows it. */
	at_address.open = false;
	opens(9000,
		"look-up-there:4711 secret socket-0 connect-16 nodelay "
		"keepalive greet-with-secret-5000 forget link ");
	linked = XR_E_AUTH;
	fails(9000, XR_E_AUTH, "look-up-there:4711 secret forget-nothing ",
		"no secret");
}

Test(store_tcp, rank_0_serves_and_then_connects)
{
	struct driver *driver;

	at_address.serve = true;
	place_count = 3;
	hosted[0] = XR_E_SYS;
	driver = open_it(9000, XR_OK);
	cr_expect_str_eq(done,
		"look-up-there:4711 serve-0 serve-1 socket-0 connect-16 "
		"nodelay keepalive greet-5000 whose forget-nothing link ");
	done[0] = '\0';
	driver->ops->free(driver);
	cr_expect_str_eq(done, "free-link host-close ");
	/* Another handle, or process, serves there. */
	hosted[0] = XR_E_EXISTS;
	opens(9000,
		"look-up-there:4711 serve-0 socket-0 connect-16 nodelay "
		"keepalive greet-5000 whose forget-nothing link ");
	hosted[0] = XR_E_NOMEM;
	fails(9000, XR_E_NOMEM, "look-up-there:4711 serve-0 ", "not served");
	hosted[0] = hosted[1] = hosted[2] = XR_E_SYS;
	fails(9000, XR_E_SYS, "look-up-there:4711 serve-0 serve-1 serve-2 ",
		"not served");
	at_address.port = 0;
	fails(9000, XR_E_INVAL, "look-up-there:0 ",
		"store: rank 0 serves port 0, which nobody would find\tanother "
		"port");
}

Test(store_tcp, what_has_no_memory_closes_all)
{
	at_address.serve = true;
	linked = XR_E_NOMEM;
	fails(9000, XR_E_NOMEM,
		"look-up-there:4711 serve-0 socket-0 connect-16 nodelay "
		"keepalive greet-5000 whose forget-nothing link host-close ",
		"no link");
	until_short = 1;
	fails(9000, XR_E_NOMEM, "", "store: out of memory");
}

/* --- what it speaks -------------------------------------------------------- */

static struct link_in in;

static enum xr_status
take(struct store_reply *r, bool *there)
{
	err = (struct xr_error){ 0 };
	*there = true;
	return spoken->take(&in, r, there, &err);
}

Test(store_tcp, replies_are_taken_one_by_one_when_they_are_whole)
{
	struct store_reply one = { .id = 5, .number = -6 },
			   two = { .id = 7, .status = XR_E_NOTFOUND }, r;
	struct driver *driver = open_it(9000, XR_OK);
	struct buf all = { 0 };
	bool there;

	frame_put_reply(&all, &one);
	fail(&two.err, XR_E_NOTFOUND, "none");
	frame_put_reply(&all, &two);
	cr_assert_eq(all.len, 28 + 28 + 4 + 4);
	for (size_t len = 0; len < 28; len++) {
		buf_clear(&in.bytes);
		buf_put(&in.bytes, all.data, len);
		cr_expect_eq(take(&r, &there), XR_OK);
		cr_expect(!there);
		cr_expect_eq(in.at, 0);
		cr_expect_eq(in.need, len < 4 ? 0 : 28 - len);
	}
	buf_clear(&in.bytes);
	buf_put(&in.bytes, all.data, all.len);
	cr_expect_eq(take(&r, &there), XR_OK);
	cr_expect(there);
	cr_expect_eq(in.at, 28);
	cr_expect_eq(in.need, 0);
	cr_expect_eq(r.id, 5);
	cr_expect_eq(r.number, -6);
	cr_expect_eq(r.status, XR_OK);
	cr_expect_eq(take(&r, &there), XR_OK);
	cr_expect(there);
	cr_expect_eq(in.at, 64);
	cr_expect_eq(r.id, 7);
	cr_expect_eq(r.status, XR_E_NOTFOUND);
	cr_expect_str_eq(r.err.text, "none");
	cr_expect_eq(take(&r, &there), XR_OK);
	cr_expect(!there);
	cr_expect_eq(in.need, 0);
	buf_fini(&all);
	buf_fini(&in.bytes);
	driver->ops->free(driver);
}

Test(store_tcp, what_is_no_reply_is_refused)
{
	static const struct {
		const char *bytes, *text;
		bool there;
	} rows[] = {
		{ "\x17\0\0\0", "store: 27 bytes are no message of a store",
			false },
		{ "\x18\0\0\0\x80\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
			"store: a message of 1 parts", true },
		{ "\x18\0\0\0\x81\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
			"store: that is no reply", true },
	};
	struct driver *driver = open_it(9000, XR_OK);
	struct store_reply r;
	bool there;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		in.at = 0;
		buf_clear(&in.bytes);
		buf_put(&in.bytes, rows[i].bytes, rows[i].there ? 28 : 4);
		cr_expect_eq(take(&r, &there), XR_E_PROTO, "%zu", i);
		cr_expect_eq(there, rows[i].there, "%zu", i);
		cr_expect_str_eq(err.text, rows[i].text);
	}
	buf_fini(&in.bytes);
	driver->ops->free(driver);
}

Test(store_tcp, a_request_is_one_frame_without_a_descriptor)
{
	struct driver *driver = open_it(9000, XR_OK);
	struct store_request q = { .op = STORE_ADD,
		.id = 3,
		.number = 9,
		.key = span_of("k") };
	struct buf out = { 0 }, want = { 0 };
	int fd = -1;

	frame_put_request(&want, &q);
	cr_expect_eq(spoken->put(&out, &q, &fd, &err), XR_OK);
	cr_expect_eq(fd, -1);
	cr_assert_eq(out.len, want.len);
	cr_expect_arr_eq(out.data, want.data, want.len);
	buf_fini(&out);
	buf_fini(&want);
	driver->ops->free(driver);
}

/* --- pauses (worker/store/driver.h) ---------------------------------------- */

Test(store_tcp, a_pause_has_whole_milliseconds_and_an_end)
{
	static const struct {
		int fd;
		int64_t ns, left; /* -2: for ever */
		bool ready, goes_on;
		const char *polls;
	} rows[] = {
		{ -1, 5 * NS_PER_MS, -2, false, true, "poll-1-5 " },
		{ 7, 5 * NS_PER_MS, -2, true, true, "poll7-5 " },
		{ 7, 5 * NS_PER_MS + 1, -2, false, true, "poll7-6 " },
		{ 7, 1, -2, false, true, "poll7-1 " },
		{ 7, 0, -2, false, true, "poll7-0 " },
		{ 7, 5 * NS_PER_MS, 3 * NS_PER_MS, false, true, "poll7-3 " },
		{ 7, 3 * NS_PER_MS, 5 * NS_PER_MS, false, true, "poll7-3 " },
		{ 7, 5 * NS_PER_MS, 1, false, true, "poll7-1 " },
		{ 7, 5 * NS_PER_MS, 0, false, false, "poll7-0 " },
		{ 7, 5 * NS_PER_MS, 0, true, true, "poll7-0 " },
		{ 0, 5 * NS_PER_MS, 0, true, true, "poll0-0 " },
		{ 7, 5 * NS_PER_MS, -1, true, true, "poll7-0 " },
		{ -1, 5 * NS_PER_MS, 0, true, false, "" },
		{ -1, 5 * NS_PER_MS, 1, true, true, "poll-1-1 " },
	};

	pauses = true;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		done[0] = '\0';
		ready = rows[i].ready;
		cr_expect_eq(__real_driver_pause(rows[i].fd, rows[i].ns,
				     rows[i].left == -2 ? INT64_MAX :
							  now + rows[i].left),
			rows[i].goes_on, "%zu", i);
		cr_expect_str_eq(done, rows[i].polls, "%zu: %s", i, done);
	}
}
