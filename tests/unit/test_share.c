/* SPDX-License-Identifier: Apache-2.0 */
/* test_share.c - messages whose buffers are not in them: descriptors, handles,
 * and bodies that are read where they came. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/along.h"
#include "tests/unit/at_end.h"
#include "tests/unit/codec_rig.h"
#include "tests/unit/value_arena.h"

static void
end_share(void)
{
	storage_set_source(NULL);
	end();
	AT_END(arena_held == 0);
}

TestSuite(share, .init = begin, .fini = end_share);

static const struct xr_enc_opts by_share = {
	.size = sizeof(struct xr_enc_opts),
	.mode = XR_ENC_SHARE,
};

/* As it arrives: bytes, and descriptors of its own. */
struct sent {
	struct message m;
	int fds[4];
	size_t fd_count;
};

static struct sent
send_shared(struct xr_value *v)
{
	struct xr_encoded *e = NULL;
	struct sent sent;
	const int *fds;

	cr_assert_eq(xr_encode(v, &by_share, &e, &err), XR_OK, "%s", err.text);
	sent.m = joined(e);
	fds = xr_encoded_fds(e, &sent.fd_count);
	cr_assert(sent.fd_count <= 4);
	for (size_t i = 0; i < sent.fd_count; i++)
		sent.fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
	xr_encoded_free(e);
	return sent;
}

static enum xr_status
receive(const struct sent *sent, struct xr_value **v)
{
	struct xr_dec_opts opts = {
		.size = sizeof(opts),
		.fds = sent->fds,
		.fd_count = sent->fd_count,
	};
	struct xr_part part = { sent->m.data, sent->m.len };

	err.text[0] = '\0';
	return xr_decode(&part, 1, &opts, v, &err);
}

static void
forget(struct sent *sent)
{
	for (size_t i = 0; i < sent->fd_count; i++)
		close(sent->fds[i]);
	free(sent->m.data);
}

/* Mappings of tensors that the process has. */
static int
mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, "xrun-tensor") != NULL;
	fclose(f);
	return n;
}

static int
descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static float *
floats(const struct xr_value *tensor)
{
	return xr_tensor_data(tensor, NULL);
}

/* --- descriptors ----------------------------------------------------------- */

Test(share, AC_K4_both_see_what_either_writes_until_both_let_go)
{
	int fds = descriptors();
	struct xr_value *v = numbers(64, 64), *got = NULL;
	struct sent sent = send_shared(v);

	cr_assert(eq(sz, sent.fd_count, 1));
	cr_expect(lt(sz, sent.m.len, 256), "the elements are not in it");
	cr_assert_eq(receive(&sent, &got), XR_OK, "%s", err.text);
	forget(&sent);
	cr_expect_neq(floats(v), floats(got), "two mappings");
	floats(got)[5] = 77;
	cr_expect_eq(floats(v)[5], 77);
	floats(v)[6] = 78;
	cr_expect_eq(floats(got)[6], 78);
	xr_value_unref(v);
	cr_expect_eq(floats(got)[5], 77);
	cr_expect(eq(int, mappings(), 1));
	xr_value_unref(got);
	cr_expect(eq(int, mappings(), 0));
	cr_expect(eq(int, descriptors(), fds));
}

Test(share, views_share_one_descriptor_and_keep_all_of_it)
{
	struct xr_value *of = numbers(64, 64), *got = NULL;
	struct xr_value *items[] = {
		view(of, PAIR(1, 2), PAIR(1, 1), 400),
		view(of, PAIR(1, 2), PAIR(1, 1), 8000),
		numbers(40, 40),
		of,
	};
	struct xr_value *v = xr_value_new_list_of(items, 4);
	struct sent sent = send_shared(v);
	size_t bytes;

	cr_assert(eq(sz, sent.fd_count, 2));
	cr_assert_eq(receive(&sent, &got), XR_OK, "%s", err.text);
	cr_expect(xr_value_equal(v, got));
	xr_tensor_data(xr_value_at(got, 0), &bytes);
	cr_expect(eq(sz, bytes, 64 * 64 * 4));
	cr_expect(xr_tensor_same(xr_value_at(got, 0), xr_value_at(got, 1)));
	forget(&sent);
	xr_value_unref(v);
	sent = send_shared(got);
	cr_assert(eq(sz, sent.fd_count, 2), "they can be handed on");
	v = NULL;
	cr_assert_eq(receive(&sent, &v), XR_OK, "%s", err.text);
	floats(xr_value_at(v, 3))[0] = 5;
	cr_expect_eq(floats(xr_value_at(got, 3))[0], 5);
	forget(&sent);
	xr_value_unref(v);
	xr_value_unref(got);
}

/* In a process of its own: a tensor, sent with its descriptor. */
static void
send_and_go(int socket)
{
	struct xr_value *v = numbers(64, 64);
	struct sent sent;

	floats(v)[9] = 1234;
	sent = send_shared(v);
	if (sent.fd_count != 1 ||
		along_send(socket, sent.m.data, sent.m.len, sent.fds[0]) !=
			(ssize_t)sent.m.len)
		_exit(1);
	_exit(0);
}

Test(share, AC_K5_what_is_on_its_way_outlives_who_sent_it)
{
	char data[512];
	struct sent sent = { .m.data = (uint8_t *)data, .fd_count = 1 };
	struct xr_value *got = NULL;
	struct along along;
	int pair[2], status;
	pid_t pid;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
			     pair),
		0);
	pid = fork();
	if (pid == 0)
		send_and_go(pair[1]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	close(pair[1]);
	sent.m.len = (size_t)along_receive(pair[0], data, sizeof(data), &along);
	cr_assert(eq(u32, along.count, 1));
	sent.fds[0] = along.fd[0];
	cr_assert_eq(receive(&sent, &got), XR_OK, "%s", err.text);
	cr_expect_eq(floats(got)[9], 1234);
	cr_expect_eq(floats(got)[10], 2.5F);
	xr_value_unref(got);
	close(along.fd[0]);
	close(pair[0]);
}

Test(share, a_tensor_in_private_memory_is_not_shared)
{
	struct xr_tensor_desc d = { .size = sizeof(d), .dtype = XR_DT_F32 };
	float here = 1;
	struct xr_tensor_memory memory = { sizeof(memory), &here, 4, NULL,
		NULL };
	struct xr_encoded *e = NULL;
	struct xr_value *v = NULL, *got = NULL;
	struct sent sent;

	cr_assert_eq(xr_tensor_wrap(&d, &memory, &v, &err), XR_OK);
	cr_expect_eq(xr_encode(v, &by_share, &e, &err), XR_E_ENCODE);
	cr_expect_str_eq(err.text,
		"value: a tensor that is not in shared memory");
	cr_expect_null(e);
	xr_value_unref(v);
	v = numbers(0, 9);
	sent = send_shared(v);
	cr_expect_eq(receive(&sent, &got), XR_OK,
		"of nothing there is nothing to share: %s", err.text);
	forget(&sent);
	xr_value_unref(v);
	xr_value_unref(got);
}

Test(share, bytes_are_copied_where_they_cannot_be_shared)
{
	char data[3000] = "x";
	struct xr_value *items[] = {
		xr_value_new_bytes(data, sizeof(data)),
		numbers(64, 64),
		xr_value_new_text("t", 1),
	};
	struct xr_value *v = xr_value_new_list_of(items, 3), *got = NULL;
	struct sent sent = send_shared(v);

	cr_assert_eq(receive(&sent, &got), XR_OK, "%s", err.text);
	cr_expect(xr_value_equal(v, got));
	forget(&sent);
	xr_value_unref(v);
	xr_value_unref(got);
}

Test(share, descriptors_that_did_not_come_are_missed)
{
	struct xr_value *v = numbers(64, 64), *got = NULL;
	struct sent sent = send_shared(v);
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC), own = sent.fds[0];

	sent.fd_count = 0;
	cr_expect_eq(receive(&sent, &got), XR_E_DECODE);
	cr_expect_str_eq(err.text,
		"value: byte 32: descriptor 0 of 0 that came");
	sent.fd_count = 1;
	sent.fds[0] = file;
	cr_expect_eq(receive(&sent, &got), XR_E_DECODE);
	sent.fds[0] = -1;
	cr_expect_eq(receive(&sent, &got), XR_E_DECODE);
	sent.fds[0] = own;
	format_put64(sent.m.data + FORMAT_HEADER + 24, 4096);
	cr_expect_eq(receive(&sent, &got), XR_E_DECODE,
		"it reaches beyond its end");
	format_put64(sent.m.data + FORMAT_HEADER + 24, 0);
	sent.m.data[FORMAT_AT_FLAGS] = 0;
	cr_expect_eq(receive(&sent, &got), XR_E_DECODE);
	cr_expect_null(got);
	close(file);
	forget(&sent);
	xr_value_unref(v);
}

Test(share, nothing_is_mapped_beyond_what_may_be_made)
{
	struct xr_value *v = numbers(64, 64), *got = NULL;
	struct sent sent = send_shared(v);
	struct xr_dec_opts opts = {
		.size = sizeof(opts),
		.bytes_max = 64 * 64 * 4,
		.fds = sent.fds,
		.fd_count = 1,
	};
	struct xr_part part = { sent.m.data, sent.m.len };

	cr_expect_eq(xr_decode(&part, 1, &opts, &got, &err), XR_E_RANGE);
	forget(&sent);
	xr_value_unref(v);
}

/* --- handles --------------------------------------------------------------- */

Test(share, what_lies_in_the_source_is_handed_over_by_a_handle)
{
	char data[3000] = "bytes";
	struct xr_value *items[2], *v, *got = NULL;
	struct sent sent;

	storage_set_source(&arena_source);
	items[0] = numbers(8, 8);
	items[1] = xr_value_new_bytes(data, sizeof(data));
	v = xr_value_new_list_of(items, 2);
	sent = send_shared(v);
	cr_expect(eq(sz, sent.fd_count, 0));
	cr_expect(lt(sz, sent.m.len, 256));
	cr_assert_eq(receive(&sent, &got), XR_OK, "%s", err.text);
	cr_expect(eq(int, arena_held, 4));
	cr_expect_eq(floats(xr_value_at(got, 0)), floats(xr_value_at(v, 0)));
	cr_expect_eq(xr_value_data(xr_value_at(got, 1), NULL),
		xr_value_data(xr_value_at(v, 1), NULL));
	xr_value_unref(got);
	cr_expect(eq(int, arena_held, 2));
	got = NULL;
	storage_set_source(NULL);
	cr_expect_eq(receive(&sent, &got), XR_E_DECODE, "nobody knows them");
	storage_set_source(&arena_source);
	format_put64(sent.m.data + FORMAT_HEADER + 16, sizeof(arena));
	cr_expect_eq(receive(&sent, &got), XR_E_DECODE);
	cr_expect_str_eq(err.text, "arena: no such block");
	cr_expect_null(got);
	forget(&sent);
	xr_value_unref(v);
}

Test(share, what_can_be_handed_over_is_and_the_rest_is_copied)
{
	struct value_encoding how = { .mode = VALUE_HANDOVER };
	struct xr_value *items[3], *v, *got = NULL;
	struct message m;

	items[1] = numbers(4, 4);
	storage_set_source(&arena_source);
	items[0] = numbers(8, 8);
	items[2] = text("and text");
	v = xr_value_new_list_of(items, 3);
	m = message_of(v, &how);
	cr_assert_eq(read_message(m, &got), XR_OK, "%s", err.text);
	cr_expect(xr_value_equal(v, got));
	cr_expect_eq(floats(xr_value_at(got, 0)), floats(xr_value_at(v, 0)));
	cr_expect_neq(floats(xr_value_at(got, 1)), floats(xr_value_at(v, 1)));
	free(m.data);
	xr_value_unref(v);
	xr_value_unref(got);
}

/* --- where it came --------------------------------------------------------- */

static int body_refs;

static void
body_ref(void *owner)
{
	++*(int *)owner;
}

static void
body_unref(void *owner)
{
	--*(int *)owner;
}

static struct value_owner body = { &body_refs, body_ref, body_unref, true };

static struct xr_value *
read_body(const struct xr_part *parts, size_t count)
{
	const struct value_reader reader = {
		.parts = parts,
		.count = count,
		.owner = &body,
	};
	struct xr_value *got = NULL;

	cr_assert_eq(value_decode(&reader, &got, &err), XR_OK, "%s", err.text);
	return got;
}

static bool
within(const void *p, struct message m)
{
	return (const uint8_t *)p >= m.data &&
		(const uint8_t *)p < m.data + m.len;
}

Test(share, long_bytes_and_tensors_stay_in_the_body_they_came_in)
{
	char data[3000] = "b";
	struct xr_value *items[] = {
		numbers(64, 64),
		xr_value_new_bytes(data, sizeof(data)),
		xr_value_new_text(memset(data, 't', 3000), sizeof(data)),
		xr_value_new_bytes(data, 10),
		numbers(0, 4),
	};
	struct xr_value *v = xr_value_new_list_of(items, 5), *got, *tensor;
	struct message m = message_of(v, NULL);
	struct xr_part part = { m.data, m.len };

	most_asked = 0;
	got = read_body(&part, 1);
	cr_expect(lt(sz, most_asked, 4096));
	cr_expect(xr_value_equal(v, got));
	cr_expect(eq(int, body_refs, 2));
	cr_expect(within(xr_tensor_data(xr_value_at(got, 0), NULL), m));
	cr_expect(within(xr_value_data(xr_value_at(got, 1), NULL), m));
	cr_expect_not(within(xr_value_data(xr_value_at(got, 2), NULL), m),
		"text is checked, and must not change");
	tensor = xr_value_ref(xr_value_at(got, 0));
	xr_value_unref(got);
	cr_expect(eq(int, body_refs, 1));
	cr_expect_eq(floats(tensor)[3], 0.75F);
	xr_value_unref(tensor);
	cr_expect(eq(int, body_refs, 0));
	free(m.data);
	xr_value_unref(v);
}

Test(share, what_is_cut_or_not_aligned_is_copied)
{
	struct xr_value *v = numbers(64, 64), *got;
	struct message m = message_of(v, NULL);
	uint8_t *moved = aligned_alloc(64, m.len + 64);
	struct xr_part parts[] = { { m.data, m.len - 1 },
		{ m.data + m.len - 1, 1 } };
	struct xr_part odd = { moved + 8, m.len };

	got = read_body(parts, 2);
	cr_expect(eq(int, body_refs, 0));
	cr_expect(xr_value_equal(v, got));
	xr_value_unref(got);
	memcpy(moved + 8, m.data, m.len);
	got = read_body(&odd, 1);
	cr_expect(eq(int, body_refs, 0));
	cr_expect(xr_value_equal(v, got));
	xr_value_unref(got);
	free(moved);
	free(m.data);
	xr_value_unref(v);
}

/* An object whose encoding is long: as long as its text. */
static const void *seen_at;

static void *
text_decode(const void *data, size_t len, void *ctx)
{
	char *object = malloc(len + 1);

	(void)ctx;
	seen_at = data;
	if (object == NULL)
		return NULL;
	memcpy(object, data, len);
	object[len] = '\0';
	return object;
}

static struct xr_value *
text_encode(void *object, void *ctx)
{
	(void)ctx;
	return xr_value_new_bytes(object, strlen(object));
}

static void
text_free(void *object, void *ctx)
{
	(void)ctx;
	free(object);
}

static struct xr_value *
long_object(void)
{
	static const struct xr_type type = {
		.size = sizeof(type),
		.name = "long.Text",
		.encode = text_encode,
		.decode = text_decode,
		.free = text_free,
	};
	char *object = malloc(5001);

	xr_type_register(&type, NULL);
	memset(object, 'o', 5000);
	object[5000] = '\0';
	return xr_value_new_opaque("long.Text", object);
}

Test(share, a_decoder_sees_bytes_that_nobody_else_writes_to)
{
	struct xr_value *v = long_object(), *got;
	struct message m = message_of(v, NULL);
	struct xr_part part = { m.data, m.len };

	got = read_body(&part, 1);
	cr_expect(within(seen_at, m));
	cr_expect(xr_value_equal(v, got));
	xr_value_unref(got);
	body.stable = false;
	got = read_body(&part, 1);
	cr_expect_not(within(seen_at, m));
	cr_expect(xr_value_equal(v, got));
	xr_value_unref(got);
	body.stable = true;
	free(m.data);
	storage_set_source(&arena_source);
	{
		struct sent sent = send_shared(v);

		cr_expect(lt(sz, sent.m.len, 256));
		got = NULL;
		cr_assert_eq(receive(&sent, &got), XR_OK, "%s", err.text);
		cr_expect_not((const char *)seen_at >= arena &&
			(const char *)seen_at < arena + sizeof(arena));
		cr_expect(xr_value_equal(v, got));
		xr_value_unref(got);
		forget(&sent);
	}
	xr_value_unref(v);
}

Test(share, an_object_keeps_its_encoding_until_the_message_goes)
{
	struct xr_value *items[] = { long_object(), NULL }, *v, *got;

	items[1] = xr_value_ref(items[0]);
	v = xr_value_new_list_of(items, 2);
	got = again(v);
	cr_expect(xr_value_equal(v, got));
	xr_value_unref(v);
	xr_value_unref(got);
}

Test(share, the_owner_is_let_go_when_memory_is_short)
{
	char data[3000] = "b";
	struct xr_value *items[] = { numbers(64, 64),
		xr_value_new_bytes(data, sizeof(data)), long_object() };
	struct xr_value *v = xr_value_new_list_of(items, 3), *got;
	struct message m = message_of(v, NULL);
	struct xr_part part = { m.data, m.len };
	const struct value_reader reader = {
		.parts = &part,
		.count = 1,
		.owner = &body,
	};
	enum xr_status status;
	unsigned n = 0;

	do {
		got = NULL;
		was_short = false;
		until_short = ++n;
		status = value_decode(&reader, &got, &err);
		until_short = 0;
		cr_assert_eq(got == NULL, status != XR_OK);
		xr_value_unref(got);
		cr_assert_eq(body_refs, 0, "%u", n);
	} while (was_short);
	cr_expect(gt(u32, n, 6));
	free(m.data);
	xr_value_unref(v);
}
