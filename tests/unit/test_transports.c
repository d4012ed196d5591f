/* SPDX-License-Identifier: Apache-2.0 */
/* test_transports.c - transports that programs register, up to the last one. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>
#include <xrun/transport.h>

#include "tests/unit/short_memory.h"

#include "base/buf.h"
#include "worker/net/tcp.h"
#include "worker/rpc/transports.h"
#include "worker/shm/shm.h"

TestSuite(transports, .timeout = 60);

static struct xr_error err;

static struct xr_carrier
carrier(const char *name, int32_t priority)
{
	struct xr_carrier c = tcp_carrier;

	c.name = name;
	c.priority = priority;
	return c;
}

static enum xr_status
add(const char *name, int32_t priority)
{
	struct xr_carrier c = carrier(name, priority);

	return xr_carrier_register(&c, &err);
}

static const char *
names(void)
{
	static char text[1024];
	struct buf out = { .max = sizeof(text) };

	transport_names(&out);
	snprintf(text, sizeof(text), "%.*s", (int)out.len,
		(const char *)out.data);
	buf_fini(&out);
	return text;
}

Test(transports, they_are_named_by_priority_and_then_in_their_order)
{
	char text[128];

	snprintf(text, sizeof(text), "shm, tcp");
	cr_expect_str_eq(names(), text);
	cr_expect_eq(add("low", shm_carrier.priority - 1), XR_OK);
	cr_expect_eq(add("high", shm_carrier.priority + 1), XR_OK);
	cr_expect_eq(add("same_as_shm", shm_carrier.priority), XR_OK);
	cr_expect_eq(add("same_as_tcp", tcp_carrier.priority), XR_OK);
	cr_expect_str_eq(names(),
		"high, shm, same_as_shm, low, tcp, same_as_tcp");
	cr_expect_eq(transport_find("shm"), &shm_carrier);
	cr_expect_eq(transport_find("tcp"), &tcp_carrier);
	cr_expect_str_eq(transport_find("same_as_tcp")->name, "same_as_tcp");
	cr_expect_null(transport_find("same_as"));
	cr_expect_null(transport_find("same_as_tcpx"));
}

Test(transports, a_name_has_one_to_63_characters)
{
	char name[66];

	memset(name, 'a', sizeof(name));
	name[64] = '\0';
	cr_expect_eq(add(name, 0), XR_E_INVAL);
	cr_expect_not_null(strstr(err.text, name));
	name[63] = '\0';
	cr_expect_eq(add(name, 0), XR_OK);
	cr_expect_str_eq(transport_find(name)->name, name);
	cr_expect_eq(add(NULL, 0), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"a transport's name is 1 to 63 of a-z 0-9 _, and not ''");
	cr_expect_eq(add("a-b", 0), XR_E_INVAL);
	cr_expect_eq(add("a_0z9", 0), XR_OK);
	cr_expect_eq(add("a_0z9", 0), XR_E_EXISTS);
	cr_expect_str_eq(err.text, "a transport a_0z9 is registered already");
}

/* What every transport has. */
Test(transports, one_that_lacks_a_function_is_refused)
{
	struct xr_carrier c[9];

	for (size_t i = 0; i < 9; i++)
		c[i] = carrier("mine", 0);
	c[0].open = NULL;
	c[1].address = NULL;
	c[2].connect = NULL;
	c[3].send = NULL;
	c[4].body_take = NULL;
	c[5].buffer_unref = NULL;
	c[6].link_close = NULL;
	c[7].free = NULL;
	c[8].progress = NULL;
	c[8].caps &= ~(uint32_t)XR_CARRIER_THREAD;
	for (size_t i = 0; i < 9; i++) {
		cr_expect_eq(xr_carrier_register(&c[i], &err), XR_E_ABI,
			"row %zu", i);
		cr_expect_str_eq(err.text,
			"the transport mine lacks functions that every one has");
	}
	/* One whose thread reads needs no progress(). */
	c[8].caps |= XR_CARRIER_THREAD;
	cr_expect_eq(xr_carrier_register(&c[8], &err), XR_OK);
	cr_expect_null(transport_find("mine")->progress);
	cr_expect_eq(xr_carrier_register(&c[0], &err), XR_E_ABI);
}

Test(transports, one_of_another_api_is_refused_by_its_numbers)
{
	struct xr_carrier c = carrier("mine", 0);
	char text[256];

	c.size--;
	cr_expect_eq(xr_carrier_register(&c, &err), XR_E_ABI);
	snprintf(text, sizeof(text),
		"a transport of API %u and %zu bytes; this libxrun has API %u and %zu",
		XR_CARRIER_API, sizeof(c) - 1, XR_CARRIER_API, sizeof(c));
	cr_expect_str_eq(err.text, text);
	c.size += 9;
	c.api++;
	cr_expect_eq(xr_carrier_register(&c, &err), XR_E_ABI);
	snprintf(text, sizeof(text),
		"a transport of API %u and %zu bytes; this libxrun has API %u and %zu",
		XR_CARRIER_API + 1, sizeof(c) + 8, XR_CARRIER_API, sizeof(c));
	cr_expect_str_eq(err.text, text);
	cr_expect_eq(xr_carrier_register(NULL, &err), XR_E_ABI);
	snprintf(text, sizeof(text),
		"a transport of API 0 and 0 bytes; this libxrun has API %u and %zu",
		XR_CARRIER_API, sizeof(c));
	cr_expect_str_eq(err.text, text);
	/* What is beyond is not ours. */
	c.api--;
	cr_expect_eq(xr_carrier_register(&c, &err), XR_OK);
	cr_expect_eq(transport_find("mine")->size, sizeof(c));
}

Test(transports, it_is_a_copy)
{
	char name[] = "mine";
	struct xr_carrier c = carrier(name, 5);
	const struct xr_carrier *own;

	for (unsigned at = 1; at <= 2; at++) {
		until_short = at;
		cr_expect_eq(xr_carrier_register(&c, &err), XR_E_NOMEM);
		cr_expect_eq(until_short, 0);
		cr_expect_str_eq(err.text, "out of memory");
		cr_expect_null(transport_find("mine"));
	}
	cr_expect_eq(xr_carrier_register(&c, &err), XR_OK);
	name[0] = 'f';
	c.priority = 6;
	own = transport_find("mine");
	cr_assert_not_null(own);
	cr_expect_eq(own->priority, 5);
	cr_expect_eq(own->send, tcp_carrier.send);
}

Test(transports, there_is_room_for_so_many)
{
	const struct xr_carrier *all[TRANSPORTS_MAX + 1] = { NULL };
	char name[16], text[80];

	for (int i = 2; i < TRANSPORTS_MAX; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		cr_expect_eq(add(name, -100 - i), XR_OK);
		cr_expect_eq(transport_all(all, 1), (uint32_t)i + 1);
		cr_expect_null(all[1]);
	}
	cr_expect_eq(add("one_more", 0), XR_E_RANGE);
	snprintf(text, sizeof(text),
		"%d transports are registered, and there are no more",
		TRANSPORTS_MAX);
	cr_expect_str_eq(err.text, text);
	cr_expect_eq(transport_all(all, TRANSPORTS_MAX + 1), TRANSPORTS_MAX);
	cr_expect_null(all[TRANSPORTS_MAX]);
	snprintf(name, sizeof(name), "t%d", TRANSPORTS_MAX - 1);
	cr_expect_str_eq(all[TRANSPORTS_MAX - 1]->name, name);
}
