/* SPDX-License-Identifier: Apache-2.0 */
/* test_keys_value.c - values of the job's store: in a line, or as memory that comes
 * along. */
#include <fcntl.h>
#include <stdlib.h>

#include <sys/mman.h>

#include "base/base64.h"
#include "tests/unit/keys_rig.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

TestSuite(keys_value, .init = begin, .fini = end);

/* --- values ----------------------------------------------------------------- */

/* A line that sets /a to @len bytes. */
static void
set_bytes(size_t len)
{
	char *bytes = calloc(1, len + 1), *text = malloc(base64_len(len) + 1);
	struct buf line = { 0 };

	cr_assert(bytes != NULL && text != NULL);
	base64_put((struct span){ bytes, len }, text);
	buf_fmt(&line, "{'type':'store_set','id':1,'key':'/a','value':'");
	buf_put_text(&line, text);
	buf_put_text(&line, "'}");
	buf_put(&line, "", 1);
	ask(0, line.data);
	buf_fini(&line);
	free(bytes);
	free(text);
}

static int
memory(size_t len, int seals)
{
	int fd = memfd_create("value", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_neq(fd, -1);
	cr_assert_eq(ftruncate(fd, (off_t)len), 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* Guest 0 sets /a to what came along. */
static void
set_memory(int fd, const char *answer)
{
	guests[0].fd = fd;
	ask(0, "{'type':'store_set','id':1,'key':'/a'}");
	cr_expect_eq(strncmp(said, answer, strlen(answer)), 0, "%s, not %s",
		said, answer);
}

static bool
is_open(int fd)
{
	return fcntl(fd, F_GETFD) != -1;
}

Test(keys_value, a_value_in_a_line_has_at_most_32_KiB)
{
	const char *beyond = "store: a value beyond 32768 bytes is sent along";
	const char *bare = "{'type':'store_value','id':2,'value':''}\n";

	for (size_t len = KEYS_INLINE - 2; len <= KEYS_INLINE; len++) {
		set_bytes(len);
		cr_expect_str_eq(said, "{'type':'done','id':1}\n");
		ask(0, "{'type':'store_get','id':2,'key':'/a'}");
		cr_expect_eq(strlen(said), base64_len(len) + strlen(bare),
			"%zu of %zu", strlen(said), len);
	}
	for (size_t len = KEYS_INLINE + 1; len <= KEYS_INLINE + 4; len++) {
		set_bytes(len);
		expect_refusal(XR_E_RANGE, beyond);
	}
	EXPECT_SAID("{'type':'store_set','id':1,'key':'/a','value':'Y'}",
		refusal(XR_E_INVAL, "store: a value is no base64"));
	EXPECT_SAID(
		"{'type':'store_compare_set','id':1,'key':'/a','expected':'Y','value':''}",
		refusal(XR_E_INVAL, "store: a value is no base64"));
	EXPECT_SAID("{'type':'store_set','id':1,'key':'/a'}",
		refusal(XR_E_INVAL, "store: there is no value"));
}

Test(keys_value, memory_that_is_not_sealed_is_refused_and_closed)
{
	static const int seals[] = { 0, SEALS & ~F_SEAL_SHRINK,
		SEALS & ~F_SEAL_GROW, SEALS & ~F_SEAL_WRITE };
	const char *want = refusal(XR_E_INVAL, "store: a value that is sent");
	int fd;

	for (unsigned i = 0; i < sizeof(seals) / sizeof(seals[0]); i++) {
		fd = memory(5, seals[i]);
		set_memory(fd, want);
		cr_expect_eq(closed, fd);
	}
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	set_memory(fd, want);
	cr_expect_eq(closed, fd);
}

Test(keys_value, memory_is_refused_if_it_is_too_large_or_no_descriptor_is_left)
{
	int fd = memory(STORE_VALUE_MAX + 1, SEALS);

	set_memory(fd,
		refusal(XR_E_RANGE,
			"store: a value of 67108865 bytes, at most 67108864"));
	cr_expect_eq(closed, fd);
	spares = false;
	fd = memory(5, SEALS);
	set_memory(fd, refusal(XR_E_NOMEM, "store: no descriptor is left"));
	cr_expect_eq(closed, fd);
}

Test(keys_value, large_memory_is_kept_and_handed_on)
{
	int fd = memory(KEYS_INLINE + 1, SEALS);

	set_memory(fd, "{'type':'done','id':1}\n");
	cr_expect(is_open(fd));
	ask(1, "{'type':'store_get','id':2,'key':'/a'}");
	cr_expect_str_eq(said, "{'type':'store_value','id':2,'size':32769}\n");
	cr_expect_eq(guests[1].sent, fd);
	guests[2].crowded = true;
	ask(2, "{'type':'store_get','id':1,'key':'/a'}");
	expect_refusal(XR_E_AGAIN, "store: no descriptor is left to send");
	ask(1, "{'type':'store_delete','id':3,'key':'/a'}");
	cr_expect_not(is_open(fd));
	cr_expect_eq(closed, -1, "a small one is closed at once");
}

Test(keys_value, what_takes_long_to_close_is_closed_beside_the_loop)
{
	int fd = memory(STORE_VALUE_MAX, SEALS);

	set_memory(fd, "{'type':'done','id':1}\n");
	ask(1, "{'type':'store_delete','id':3,'key':'/a'}");
	cr_expect_eq(closed, fd);
	closed = -1;
	fd = memory(1 << 20, SEALS);
	set_memory(fd, "{'type':'done','id':1}\n");
	ask(1, "{'type':'store_delete','id':3,'key':'/a'}");
	cr_expect_eq(closed, -1);
	cr_expect_not(is_open(fd));
	fd = memory((1 << 20) + 1, SEALS);
	set_memory(fd, "{'type':'done','id':1}\n");
	ask(1, "{'type':'store_delete','id':3,'key':'/a'}");
	cr_expect_eq(closed, fd);
}

Test(keys_value, small_memory_is_read_and_closed)
{
	int fd = memfd_create("value", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_eq(write(fd, "abc", 3), 3);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	set_memory(fd, "{'type':'done','id':1}\n");
	cr_expect_not(is_open(fd));
	ask(1, "{'type':'store_get','id':2,'key':'/a'}");
	cr_expect_str_eq(said,
		"{'type':'store_value','id':2,'value':'YWJj'}\n");
	fd = memory(KEYS_INLINE, SEALS);
	set_memory(fd, "{'type':'done','id':1}\n");
	cr_expect_not(is_open(fd));
	for (got = -1; got < 1; got++) {
		fd = memory(5, SEALS);
		set_memory(fd, refusal(XR_E_SYS, "store: value: "));
		cr_expect_not(is_open(fd));
	}
	cr_expect_eq(closed, -1);
}

/* --- no memory -------------------------------------------------------------- */

static void
ask_short(const char *name, int fd, const char *question)
{
	bool again = true;
	char line[200];
	struct control m;

	for (unsigned n = 1; again; n++) {
		cr_assert_lt(n, 40);
		/* Its error is another one. */
		ask(0, "{'type':'store_add','id':1,'key':'/n','by':0.5}");
		keys_gone(&job, &guests[0]);
		keys_close(&job);
		cr_expect_eq(timers, 0);
		guests[0].fd = fd == -1 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
		snprintf(line, sizeof(line), "%s", question);
		turn(line, '\'', '"');
		cr_assert_eq(control_read(&m, line, strlen(line),
				     CONTROL_BY_RANK, NULL),
			XR_OK);
		said[0] = '\0';
		was_short = false;
		until_short = n;
		keys_asked(&job, &guests[0], &m);
		until_short = 0;
		again = was_short;
		if (again)
			cr_expect(strstr(said, "memory") != NULL, "%s, %u: %s",
				name, n, said);
		keys_gone(&job, &guests[0]);
		keys_close(&job);
	}
	cr_expect_str_eq(said, "{'type':'done','id':1}\n", "%s", name);
}

Test(keys_value, where_memory_is_short_the_request_is_refused)
{
	int fd = memory(KEYS_INLINE + 1, SEALS), small = memory(5, SEALS);

	ask_short("in the line", -1,
		"{'type':'store_set','id':1,'key':'/a','value':'eA=='}");
	ask_short("large", fd, "{'type':'store_set','id':1,'key':'/a'}");
	ask_short("small", small, "{'type':'store_set','id':1,'key':'/a'}");
	close(fd);
	close(small);
}

Test(keys_value, without_a_timer_there_is_no_store)
{
	no_timer = true;
	EXPECT_SAID("{'type':'store_get','id':1,'key':'/a'}",
		refusal(XR_E_NOMEM, "store: out of memory"));
	cr_expect_null(sup.keys);
	cr_expect_null(guests[0].of);
}
