/* SPDX-License-Identifier: Apache-2.0 */
/* test_member.c - what a member of a group tells of itself, and tensors' devices. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "tests/unit/short_memory.h"
#include "worker/net/tcp.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/devices.h"
#include "worker/rpc/member.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/tell.h"
#include "worker/shm/shm.h"

TestSuite(member, .timeout = 60);

static struct xr_error err;
static struct peer me = { .name = "ann", .id = 4, .self = true };

struct peer *__wrap_agent_self(void);

struct peer *
__wrap_agent_self(void)
{
	return &me;
}

/* Where the fields of the head are; the lists follow, then the texts. */
enum {
	AT_SHAPE = 0,
	AT_ID = 4,
	AT_DEVICE_KIND = 24,
	AT_DEVICE_COUNT = 28,
	AT_USED_COUNT = 32,
	AT_PAIR_COUNT = 36,
	HEAD = 40,
};

static const struct xr_device_pair maps[] = {
	{ "bob", 0, 2 },
	{ "cat", 1, 3 },
	{ "bob", XR_DEVICE_MAP_CPU, 7 },
};
static const int32_t used[] = { 5, 6 };

static struct xr_rpc_opts
all_lists(void)
{
	return (struct xr_rpc_opts){
		.size = sizeof(struct xr_rpc_opts),
		.maps = maps,
		.map_count = 3,
		.devices = used,
		.device_count = 2,
	};
}

static const struct member ann = {
	.name = "ann",
	.addresses = "tcp 1.2.3.4 5",
	.id = 4,
	.incarnation = 0x123456789abcdef0,
	.said_size = 9,
	.device_kind = XR_DEVICE_FAKE,
	.device_count = 8,
};

static struct xr_value *
bytes_of(const struct member *m, const struct xr_rpc_opts *opts)
{
	struct xr_value *v = member_new(m, opts);

	cr_assert_not_null(v);
	return v;
}

Test(member, what_it_tells_is_read_as_it_was)
{
	const struct xr_rpc_opts opts = all_lists();
	struct xr_value *v;
	struct member m;
	int32_t n[6];

	setenv("XRUN_JOB", "k7q2", 1);
	setenv("XRUN_ATTEMPT", "3", 1);
	setenv("XRUN_RANK", "12", 1);
	setenv("XRUN_SIZE", "100", 1);
	tell_open();
	v = bytes_of(&ann, &opts);
	cr_assert(member_read(v, &m));
	cr_expect_str_eq(m.name, "ann");
	cr_expect_str_eq(m.addresses, "tcp 1.2.3.4 5");
	cr_expect_str_eq(m.place, "k7q2/3/12");
	cr_expect_eq(m.id, 4);
	cr_expect_eq(m.incarnation, 0x123456789abcdef0);
	cr_expect_eq(m.said_size, 9);
	cr_expect_not(m.over_group);
	cr_expect_eq(m.device_kind, XR_DEVICE_FAKE);
	cr_expect_eq(m.device_count, 8);
	cr_expect_eq(m.used_count, 2);
	cr_expect_eq(m.pair_count, 3);
	memcpy(n, m.used, 2 * sizeof(*n));
	cr_expect(n[0] == 5 && n[1] == 6);
	memcpy(n, m.pairs, sizeof(n));
	cr_expect(n[0] == 0 && n[1] == 2 && n[2] == 1 && n[3] == 3 &&
		n[4] == XR_DEVICE_MAP_CPU && n[5] == 7);
	cr_expect_eq(memcmp(m.to, "bob\0cat\0bob", 12), 0);
	xr_value_unref(v);
}

/* Returns true if the first @len bytes of @data are read as a member. */
static bool
can_read(const void *data, size_t len)
{
	struct xr_value *v = xr_value_new_bytes(data, len);
	struct member m;
	bool can;

	cr_assert_not_null(v);
	can = member_read(v, &m);
	xr_value_unref(v);
	return can;
}

static uint8_t image[400];

/* The BYTES of ann, with all lists, in @image. */
static size_t
make_image(void)
{
	const struct xr_rpc_opts opts = all_lists();
	struct xr_value *v = bytes_of(&ann, &opts);
	const void *data;
	size_t len;

	data = xr_value_data(v, &len);
	cr_assert_lt(len, sizeof(image));
	memcpy(image, data, len);
	xr_value_unref(v);
	return len;
}

Test(member, one_that_is_cut_or_longer_is_none)
{
	size_t len = make_image();
	struct xr_value *text = xr_value_new_text("x", 1);
	struct member m;

	for (size_t n = 0; n < len; n++)
		cr_expect_not(can_read(image, n), "%zu of %zu bytes", n, len);
	cr_expect(can_read(image, len));
	cr_expect_not(can_read(image, len + 1));
	cr_expect_not(member_read(text, &m));
	xr_value_unref(text);
}

/* With @n for the number of 4 bytes at @at. */
static bool
can_read_with(size_t at, uint32_t n)
{
	size_t len = make_image();

	memcpy(image + at, &n, sizeof(n));
	return can_read(image, len);
}

Test(member, numbers_out_of_range_are_refused)
{
	/* The flags, which share a number with the shape, are 0. */
	cr_expect(can_read_with(AT_SHAPE, 1));
	cr_expect_not(can_read_with(AT_SHAPE, 0));
	cr_expect_not(can_read_with(AT_SHAPE, 2));
	cr_expect(can_read_with(AT_ID, XR_WORKER_ID_MAX));
	cr_expect_not(can_read_with(AT_ID, XR_WORKER_ID_MAX + 1));
	cr_expect(can_read_with(AT_DEVICE_KIND, XR_DEVICE_FAKE));
	cr_expect_not(can_read_with(AT_DEVICE_KIND, XR_DEVICE_FAKE + 1));
	cr_expect(can_read_with(AT_DEVICE_COUNT, INT32_MAX));
	cr_expect_not(can_read_with(AT_DEVICE_COUNT, (uint32_t)INT32_MAX + 1));
	cr_expect_not(can_read_with(AT_USED_COUNT, UINT32_MAX));
	cr_expect_not(can_read_with(AT_PAIR_COUNT, UINT32_MAX));
	cr_expect_not(can_read_with(AT_PAIR_COUNT, 1u << 31));
	cr_expect_not(can_read_with(AT_PAIR_COUNT, 4));
	cr_expect_not(can_read_with(AT_PAIR_COUNT, 2));
}

Test(member, lists_may_take_exactly_what_is_left)
{
	const struct xr_rpc_opts opts = { .size = sizeof(opts) };
	const struct member nobody = { .name = "", .addresses = "" };
	struct xr_value *v = bytes_of(&nobody, &opts);
	struct member m;
	size_t len;

	cr_assert(member_read(v, &m));
	cr_expect_str_eq(m.name, "");
	cr_expect_eq(m.pair_count, 0);
	xr_value_data(v, &len);
	cr_expect_eq(len, HEAD + 3);
	xr_value_unref(v);
}

/* --- lists of members ----------------------------------------------------- */

static struct xr_value *
list_of(const struct member *a, const struct member *b)
{
	const struct xr_rpc_opts opts = { .size = sizeof(opts) };
	struct xr_value *list = xr_value_new_list();

	cr_assert_not_null(list);
	cr_assert_eq(xr_value_append(list, bytes_of(a, &opts)), XR_OK);
	cr_assert_eq(xr_value_append(list, bytes_of(b, &opts)), XR_OK);
	return list;
}

/* The message of members_check_names(); "" if there is none. */
static const char *
check_names(const struct member *a, const struct member *b)
{
	struct xr_value *list = list_of(a, b);
	enum xr_status status = members_check_names(list, &err);

	xr_value_unref(list);
	cr_assert(status == XR_OK || status == XR_E_EXISTS);
	return status == XR_OK ? "" : err.text;
}

Test(member, two_do_not_have_one_name_or_one_rank)
{
	const struct member bob = { .name = "bob", .addresses = "", .id = 5 },
			    other = { .name = "ann", .addresses = "", .id = 5 },
			    fourth = { .name = "dan",
				    .addresses = "",
				    .id = 4 };

	cr_expect_str_eq(check_names(&ann, &bob), "");
	cr_expect_str_eq(check_names(&ann, &other),
		"ranks 4 and 5 both have the name ann");
	cr_expect_str_eq(check_names(&ann, &fourth),
		"ann and dan both say that they are rank 4");
}

Test(member, what_is_no_member_of_a_list_is_told)
{
	struct xr_value *list = list_of(&ann, &ann);

	cr_assert_eq(xr_value_append(list, xr_value_new_nil()), XR_OK);
	cr_expect_eq(members_check_devices(list, true, &err), XR_E_PROTO);
	cr_expect_str_eq(err.text, "member 2 is none");
	xr_value_unref(list);
	list = xr_value_new_list();
	cr_assert_eq(xr_value_append(list, xr_value_new_nil()), XR_OK);
	cr_expect_eq(members_check_names(list, &err), XR_E_PROTO);
	cr_expect_str_eq(err.text, "member 0 is none");
	xr_value_unref(list);
}

Test(member, a_check_of_devices_without_memory_fails)
{
	struct xr_value *list = list_of(&ann, &ann);

	for (unsigned n = 1; n <= 5; n++) {
		was_short = false;
		until_short = n;
		cr_expect_eq(members_check_devices(list, true, &err),
			XR_E_NOMEM, "allocation %u", n);
		cr_expect_str_eq(err.text, "out of memory");
		cr_expect(was_short);
	}
	until_short = 0;
	xr_value_unref(list);
}

Test(member, either_all_send_over_a_group_or_none_does)
{
	const struct xr_rpc_opts group = {
		.size = sizeof(group),
		.backend = xr_backend_find("process_group"),
	};
	const struct xr_rpc_opts none = { .size = sizeof(none) };
	const struct member bob = { .name = "bob", .addresses = "", .id = 5 };
	struct xr_value *list = list_of(&ann, &ann);
	struct member m;

	cr_expect_eq(members_check_way(list, &err), XR_OK);
	cr_assert_eq(xr_value_append(list, bytes_of(&bob, &group)), XR_OK);
	cr_assert(member_read(xr_value_at(list, 2), &m));
	cr_expect(m.over_group);
	cr_expect_eq(members_check_way(list, &err), XR_E_CONFLICT);
	cr_expect_str_eq(err.text,
		"bob (5) has the backend process_group, and ann (4) has not");
	xr_value_unref(list);
	list = xr_value_new_list();
	cr_assert_eq(xr_value_append(list, bytes_of(&bob, &group)), XR_OK);
	cr_expect_eq(members_check_way(list, &err), XR_OK);
	cr_assert_eq(xr_value_append(list, bytes_of(&ann, &none)), XR_OK);
	cr_expect_eq(members_check_way(list, &err), XR_E_CONFLICT);
	cr_expect_str_eq(err.text,
		"bob (5) has the backend process_group, and ann (4) has not");
	xr_value_unref(list);
}

Test(member, the_lists_of_members_are_checked)
{
	const struct xr_rpc_opts opts = all_lists(),
				 none = {
					 .size = sizeof(none),
					 .maps = maps,
					 .map_count = 1,
				 };
	struct xr_value *list = xr_value_new_list();

	cr_assert_eq(xr_value_append(list, bytes_of(&ann, &none)), XR_OK);
	cr_expect_eq(members_check_devices(list, false, &err), XR_OK);
	cr_expect_eq(members_check_devices(list, true, &err), XR_E_INVAL);
	cr_assert_eq(xr_value_append(list, bytes_of(&ann, &opts)), XR_OK);
	cr_expect_eq(members_check_devices(list, false, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"ann: its map to bob begins at device 0, which is not in its list");
	xr_value_unref(list);
}

/* --- devices of tensors --------------------------------------------------- */

/* Between ann, who is this process, and bob, who has the maps @back. */
static struct peer
peer_with(const struct xr_device_pair *back, uint32_t count)
{
	const struct member bob = {
		.name = "bob",
		.addresses = "",
		.id = 5,
		.device_kind = XR_DEVICE_CUDA,
		.device_count = 9,
	};
	const struct xr_rpc_opts mine = all_lists(),
				 his = {
					 .size = sizeof(his),
					 .maps = back,
					 .map_count = count,
				 };
	struct xr_value *a = bytes_of(&ann, &mine), *b = bytes_of(&bob, &his);
	struct peer p = { .name = "bob", .id = 5 };
	struct member self, m;

	cr_assert(member_read(a, &self) && member_read(b, &m));
	p.devices = member_devices(&m, &self);
	cr_assert_not_null(p.devices);
	xr_value_unref(a);
	xr_value_unref(b);
	return p;
}

static const struct xr_device_pair bobs[] = {
	{ "ann", 8, 1 },
	{ "cat", 0, 0 },
	{ "ann", 4, XR_DEVICE_MAP_CPU },
	{ "ann", XR_DEVICE_MAP_CPU, 6 },
};

static struct xr_tensor_desc
on(enum xr_device_kind kind, int32_t index)
{
	return (struct xr_tensor_desc){
		.size = sizeof(struct xr_tensor_desc),
		.device_kind = kind,
		.device_index = index,
	};
}

#define EXPECT_ON(d, kind, index) \
	cr_expect((d).device_kind == (kind) && (d).device_index == (index), \
		"on %d:%d", (int)(d).device_kind, (int)(d).device_index)

Test(member, each_pair_between_two_members_is_known_both_ways)
{
	struct peer p = peer_with(bobs, 4);
	const struct peer_devices *d = p.devices;

	cr_expect_eq(d->kind, XR_DEVICE_CUDA);
	cr_expect_eq(d->there, 2);
	cr_expect_eq(d->back, 3);
	cr_expect(d->pair[0].from == 0 && d->pair[0].dst == 2);
	cr_expect(d->pair[1].from == -1 && d->pair[1].dst == 7);
	cr_expect(d->pair[2].from == 1 && d->pair[2].dst == 8);
	cr_expect(d->pair[3].from == -1 && d->pair[3].dst == 4);
	cr_expect(d->pair[4].from == 6 && d->pair[4].dst == -1);
	free(p.devices);
}

Test(member, a_tensor_goes_where_the_map_leads)
{
	struct peer p = peer_with(bobs, 4);
	struct xr_tensor_desc d = on(XR_DEVICE_FAKE, 0);

	cr_expect_eq(devices_to(&p, &d, &err), XR_OK);
	EXPECT_ON(d, XR_DEVICE_CUDA, 2);
	d = on(XR_DEVICE_CPU, 0);
	cr_expect_eq(devices_to(&p, &d, &err), XR_OK);
	EXPECT_ON(d, XR_DEVICE_CUDA, 7);
	d = on(XR_DEVICE_FAKE, 1);
	cr_expect_eq(devices_back(&p, &d, &err), XR_OK);
	EXPECT_ON(d, XR_DEVICE_CUDA, 8);
	d = on(XR_DEVICE_FAKE, 6);
	cr_expect_eq(devices_back(&p, &d, &err), XR_OK);
	EXPECT_ON(d, XR_DEVICE_CPU, 0);
	free(p.devices);
}

Test(member, a_tensor_without_a_map_is_refused_except_on_the_cpu_and_at_home)
{
	struct peer p = peer_with(bobs, 3);
	struct xr_tensor_desc d = on(XR_DEVICE_FAKE, 1);

	cr_expect_eq(devices_to(&p, &d, &err), XR_E_DEVICE);
	cr_expect_str_eq(err.text,
		"ann (4) has no device map to bob (5) for fake:1: nothing was sent");
	EXPECT_ON(d, XR_DEVICE_FAKE, 1);
	d = on(XR_DEVICE_FAKE, 0);
	cr_expect_eq(devices_back(&p, &d, &err), XR_E_DEVICE);
	cr_expect_str_eq(err.text,
		"ann (4) answers with a tensor on fake:0, to which the device map of bob (5) does not lead");
	free(p.devices);
	p = peer_with(bobs, 1);
	d = on(XR_DEVICE_CPU, 0);
	cr_expect_eq(devices_back(&p, &d, &err), XR_OK);
	EXPECT_ON(d, XR_DEVICE_CPU, 0);
	free(p.devices);
	d = on(XR_DEVICE_FAKE, 3);
	cr_expect_eq(devices_to(&me, &d, &err), XR_OK);
	EXPECT_ON(d, XR_DEVICE_FAKE, 3);
}

/* --- beginning ------------------------------------------------------------- */

enum xr_status __wrap_agent_open(const struct agent_wish *wish,
	struct xr_error *e);

static struct agent_wish wished;
static const struct xr_carrier *wished_carriers[8];
static unsigned opened;

enum xr_status
__wrap_agent_open(const struct agent_wish *wish, struct xr_error *e)
{
	opened++;
	wished = *wish;
	for (uint32_t i = 0; i < wish->carrier_count; i++)
		wished_carriers[i] = wish->carriers[i];
	return fail(e, XR_E_NODEV, "on purpose");
}

static void
lost(struct peer *p)
{
	(void)p;
}

Test(member, its_agent_is_as_its_options_say)
{
	static const uint8_t secret[AGENT_SECRET];
	const struct member_begin how = { .secret = secret,
		.store_host = "host",
		.is_new = true,
		.lost = lost };
	const struct member_begin near = { .is_near = true };
	struct xr_rpc_opts opts = all_lists();
	struct xr_device_pair own[] = { { "ann", 1, 3 }, { "bob", 2, 4 } };

	opts.threads = 6;
	opts.timeout = 77;
	opts.maps = own;
	opts.map_count = 2;
	setenv("TP_SOCKET_IFNAME", "eth7", 1);
	cr_expect_eq(member_open(&ann, &opts, &how, &err), XR_E_NODEV);
	cr_expect_str_eq(err.text, "on purpose");
	cr_expect_str_eq(wished.name, "ann");
	cr_expect_eq(wished.id, 4);
	cr_expect_eq(wished.incarnation, 0x123456789abcdef0);
	cr_expect_eq(wished.threads, 6);
	cr_expect_eq(wished.timeout, 77);
	cr_expect_eq(wished.secret, secret);
	cr_expect_str_eq(wished.store_host, "host");
	cr_expect_str_eq(wished.interface, "eth7");
	cr_expect(wished.is_new);
	cr_expect_eq(wished.lost, lost);
	cr_expect_eq(wished.carrier_count, 2);
	cr_expect_eq(wished_carriers[0], &shm_carrier);
	cr_expect_eq(wished_carriers[1], &tcp_carrier);
	cr_assert_not_null(wished.devices);
	cr_expect_eq(wished.devices->kind, XR_DEVICE_FAKE);
	cr_expect_eq(wished.devices->there, 1);
	cr_expect_eq(wished.devices->back, 1);
	cr_expect_eq(wished.devices->pair[0].from, 1);
	cr_expect_eq(wished.devices->pair[0].dst, 3);
	cr_expect_eq(wished.devices->pair[1].from, 3);
	cr_expect_eq(wished.devices->pair[1].dst, 1);
	free(wished.devices);
	/* Where all have the segment the network is not opened. */
	setenv("TP_SOCKET_IFNAME", "", 1);
	cr_expect_eq(member_open(&ann, &opts, &near, &err), XR_E_NODEV);
	cr_expect_null(wished.interface);
	cr_expect_not(wished.is_new);
	cr_expect_eq(wished.carrier_count, 1);
	cr_expect_eq(wished_carriers[0], &shm_carrier);
	free(wished.devices);
	unsetenv("TP_SOCKET_IFNAME");
	opts.transports = (const char *const[]){ "tcp" };
	opts.transport_count = 1;
	cr_expect_eq(member_open(&ann, &opts, &near, &err), XR_E_NODEV);
	cr_expect_null(wished.interface);
	cr_expect_eq(wished.carrier_count, 1);
	cr_expect_eq(wished_carriers[0], &tcp_carrier);
	free(wished.devices);
	cr_expect_eq(opened, 3);
}

Test(member, without_memory_no_agent_is_opened)
{
	const struct member_begin how = { .is_near = true };
	const struct xr_rpc_opts opts = all_lists();
	unsigned at = 0;

	while (opened == 0 && at < 20) {
		enum xr_status status;

		until_short = ++at;
		status = member_open(&ann, &opts, &how, &err);
		until_short = 0;
		if (opened > 0)
			continue;
		cr_expect_eq(status, XR_E_NOMEM);
		cr_expect_str_eq(err.text, "out of memory");
	}
	cr_expect(at > 1 && at < 20, "%u", at);
	free(wished.devices);
}
