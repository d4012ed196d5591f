/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_address.c - where the store is, and who asks. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/address.h"

static struct store_address got;
static struct xr_error error;

/* Variables are a list, NAME=VALUE. */
static const char *
look_up(const char *name, void *ctx)
{
	const char *const *vars = ctx;
	size_t len = strlen(name);

	for (; vars != NULL && *vars != NULL; vars++)
		if (strncmp(*vars, name, len) == 0 && (*vars)[len] == '=')
			return *vars + len + 1;
	return NULL;
}

static enum xr_status
ask(const struct store_address_ask *what)
{
	got = (struct store_address){ 0 };
	error = (struct xr_error){ 0 };
	return store_address_parse(&got, what, &error);
}

/* An address that says all of it. */
static enum xr_status
parse(const char *text)
{
	return ask(&(struct store_address_ask){ text, STORE_UNSAID,
		STORE_UNSAID, false, look_up, NULL });
}

static enum xr_status
from_env(const char *text, const char *const *vars)
{
	return ask(&(struct store_address_ask){ text, STORE_UNSAID,
		STORE_UNSAID, false, look_up, (void *)vars });
}

#define VARS(...) \
	(const char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}
#define TORCH \
	VARS("RANK=3", "WORLD_SIZE=8", "MASTER_ADDR=tpu0", "MASTER_PORT=29500")

#define SAYS(words)      cr_expect(eq(str, error.text, (char *)(words)))
#define GOT(field, text) cr_expect(eq(str, got.field, (char *)(text)))

/* --- tcp ------------------------------------------------------------------- */

Test(store_address, tcp_has_host_port_rank_and_size)
{
	cr_assert(parse("tcp://tpu0.lan:29500?rank=0&world_size=8") == XR_OK);
	cr_expect_eq(got.place, STORE_AT_TCP);
	GOT(host, "tpu0.lan");
	cr_expect(eq(u16, got.port, 29500));
	cr_expect(eq(i64, got.rank, 0));
	cr_expect(eq(i64, got.size, 8));
	cr_expect(got.serve);
	cr_assert(parse("TCP://h:0/?&world_size=8&&rank=7&") == XR_OK);
	cr_expect(eq(u16, got.port, 0));
	cr_expect(eq(i64, got.rank, 7));
	cr_expect_not(got.serve);
	cr_assert(parse("tcp://h:65535?rank=%31%30&world_size=11") == XR_OK);
	cr_expect(eq(u16, got.port, 65535));
	cr_expect(eq(i64, got.rank, 10));
}

Test(store_address, an_ipv6_address_stands_in_brackets)
{
	cr_assert(parse("tcp://[::1]:1?rank=0&world_size=1") == XR_OK);
	GOT(host, "::1");
	cr_assert(parse("tcp://[fe80::1%25eth0.5]:1?rank=0&world_size=1") ==
		XR_OK);
	GOT(host, "fe80::1%eth0.5");
	cr_expect(parse("tcp://::1:29500?rank=0&world_size=1") == XR_E_INVAL);
	SAYS("store address 'tcp://::1:29500?rank=0&world_size=1': the host is missing");
	cr_expect(parse("tcp://fe80::1:29500?rank=0&world_size=1") ==
		XR_E_INVAL);
	SAYS("store address 'tcp://fe80::1:29500?rank=0&world_size=1': an IPv6 address stands in brackets, as in tcp://[::1]:29500");
}

Test(store_address, what_is_missing_in_tcp_is_named)
{
	cr_expect(parse("tcp://h:1") == XR_E_INVAL);
	SAYS("store address 'tcp://h:1': rank parameter missing\tadd ?rank=N");
	cr_expect(parse("tcp://h:1?rank=0") == XR_E_INVAL);
	SAYS("store address 'tcp://h:1?rank=0': world_size parameter missing\tadd ?world_size=N");
	cr_expect(parse("tcp://h?rank=0&world_size=1") == XR_E_INVAL);
	SAYS("store address 'tcp://h?rank=0&world_size=1': the port is missing");
	cr_expect(parse("tcp://:1?rank=0&world_size=1") == XR_E_INVAL);
	SAYS("store address 'tcp://:1?rank=0&world_size=1': the host is missing");
}

Test(store_address, a_host_is_a_name_or_an_address)
{
	static const char *const bad[] = {
		"tcp://a b:1", "tcp://a%20b:1", "tcp://user@h:1", "tcp://h%:1",
		"tcp://h%0:1", "tcp://h%0g:1", "tcp://%00:1", "tcp://a%3ab:1",
		"tcp://[h]:1", "tcp://[::1:1", "tcp://[::1]", "tcp://[::1]1",
		"tcp://[::1]x:1", "tcp://[]:1", "tcp://[::g]:1",
		"tcp://[::1%25]:1", "tcp://[::1%25a/b]:1",
		"tcp://[fe80::1%eth0]:1", "tcp://\xc3\xa4:1", "tcp://",
		"tcp:", "tcp:h:1", "tcp:/h:1", "tcp://h:1/x",
		"tcp://h:", "tcp://[", "tcp:x", "tcp:x//h:1",
		"tcp://[::1%25a^]:1", "tcp://[::1%25a%20]:1", "tcp://h%/0:1",
		"tcp://h%0/:1", "tcp://h%0@:1", "tcp://h%0G:1", "tcp://h%g0:1",
		"tcp://h%0%60:1",
		"tcp://[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:b]:1"
	};
	char text[128];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "%s?rank=0&world_size=1", bad[i]);
		cr_expect(parse(text) == XR_E_INVAL, "%s", text);
	}
	cr_expect(parse("tcp://a%2Db_%2e9:1?rank=0&world_size=1") == XR_OK);
	GOT(host, "a-b_.9");
}

Test(store_address, a_zone_has_letters_digits_and_four_signs)
{
	cr_assert(parse("tcp://[fe80::1%25Az09._-~]:1?rank=0&world_size=1") ==
		XR_OK);
	GOT(host, "fe80::1%Az09._-~");
}

/* An address of control: that a path says has no numbers of xrun's. */
Test(store_address, control_has_a_path_or_nothing)
{
	static const struct {
		const char *text, *words;
	} bad[] = {
		{ "control:x",
			"store address 'control:x': 'x' is no path that begins with /" },
		{ "control://",
			"store address 'control://': not set or empty: XRUN_RANK, XRUN_SIZE\tset them, or start the program with xrun" },
		{ "control://x",
			"store address 'control://x': nothing stands behind control:" },
		{ "control:///x",
			"store address 'control:///x': nothing stands behind control:" },
		{ "control:/%zz",
			"store address 'control:/%zz': byte 9, a %, is not followed by two hex digits, 01 to FF" },
		{ "env:x",
			"store address 'env:x': nothing stands behind env:" },
		{ "env:///",
			"store address 'env:///': nothing stands behind env:" },
	};

	cr_assert(parse("control:/run/a%20b?rank=1&world_size=2") == XR_OK);
	cr_expect_eq(got.place, STORE_AT_CONTROL);
	GOT(path, "/run/a b");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect(parse(bad[i].text) == XR_E_INVAL, "%s", bad[i].text);
		SAYS(bad[i].words);
	}
}

/* Nothing but the first error counts. */
Test(store_address, the_first_wrong_parameter_is_named)
{
	cr_expect(parse("tcp://h:1?rank=x&world_size=y") == XR_E_INVAL);
	SAYS("store address 'tcp://h:1?rank=x&world_size=y': rank 'x' is not a number");
	cr_expect(parse("tcp://h:1?no=1&rank=0&world_size=1") == XR_E_INVAL);
}

Test(store_address, a_host_fits_or_is_refused)
{
	char text[400];

	for (int n = 254; n <= 257; n++) {
		snprintf(text, sizeof(text), "tcp://%0*d:1?rank=0&world_size=1",
			n, 0);
		cr_expect(parse(text) == (n < 256 ? XR_OK : XR_E_INVAL), "%d",
			n);
	}
	cr_expect_not_null(strstr(error.text, "longer than 255 bytes"));
}

Test(store_address, AC_S9_a_port_beyond_65535_is_refused_by_value)
{
	cr_expect(parse("tcp://h:65536?rank=0&world_size=1") == XR_E_RANGE);
	SAYS("store address 'tcp://h:65536?rank=0&world_size=1': port 65536 is not 0 to 65535");
	cr_expect(parse("tcp://h:-1?rank=0&world_size=1") == XR_E_RANGE);
	SAYS("store address 'tcp://h:-1?rank=0&world_size=1': port -1 is not 0 to 65535");
	cr_expect(parse("tcp://h:99999999999999999999?rank=0&world_size=1") ==
		XR_E_RANGE);
	cr_expect(parse("tcp://h:http?rank=0&world_size=1") == XR_E_RANGE);
	cr_expect(from_env(NULL,
			  VARS("RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=h",
				  "MASTER_PORT=65536")) == XR_E_RANGE);
	SAYS("MASTER_PORT '65536': port 65536 is not 0 to 65535");
}

/* --- schemes --------------------------------------------------------------- */

Test(store_address, AC_S9_an_unknown_scheme_is_refused_by_name)
{
	cr_expect(parse("gopher://h:1?rank=0&world_size=1") == XR_E_NOTFOUND);
	SAYS("store address 'gopher://h:1?rank=0&world_size=1': unknown scheme 'gopher'\ttry: tcp://, file:// or env://");
	cr_expect(parse("tcps://h:1?rank=0&world_size=1") == XR_E_NOTFOUND);
	cr_expect(parse("tc://h:1?rank=0&world_size=1") == XR_E_NOTFOUND);
	cr_expect(parse("://h:1") == XR_E_INVAL);
	SAYS("store address '://h:1': there is no scheme\ttry: tcp://HOST:PORT, file:///PATH or env://");
	cr_expect(parse("h") == XR_E_INVAL);
	cr_expect(parse("4u:x") == XR_E_INVAL);
}

Test(store_address, the_scheme_is_known_beforehand)
{
	cr_expect(span_is(store_address_scheme("x-y+1.z://q"), "x-y+1.z"));
	cr_expect(span_is(store_address_scheme("env:"), "env"));
	cr_expect(span_is(store_address_scheme("env"), ""));
	cr_expect(span_is(store_address_scheme("1a:"), ""));
	cr_expect(span_is(store_address_scheme(""), ""));
}

Test(store_address, file_has_a_path)
{
	cr_assert(parse("file:///tmp/a%20b%3F?rank=1&world_size=2") == XR_OK);
	cr_expect_eq(got.place, STORE_AT_FILE);
	GOT(path, "/tmp/a b?");
	cr_expect(eq(i64, got.rank, 1));
	cr_expect_not(got.serve);
	cr_assert(parse("file://localhost/x?rank=0&world_size=2") == XR_OK);
	GOT(path, "/x");
	cr_expect_not(got.serve);
	cr_assert(parse("file:/x?rank=0&world_size=2") == XR_OK);
	cr_expect(parse("file:///x?world_size=2") == XR_E_INVAL);
	SAYS("store address 'file:///x?world_size=2': rank parameter missing\tadd ?rank=N");
	cr_expect(parse("file://?rank=0&world_size=2") == XR_E_INVAL);
	SAYS("store address 'file://?rank=0&world_size=2': there is no path that begins with /\ttry: file:///PATH");
	cr_expect(parse("file:x?rank=0&world_size=2") == XR_E_INVAL);
	cr_expect(parse("file:///%00?rank=0&world_size=2") == XR_E_INVAL);
	SAYS("store address 'file:///%00?rank=0&world_size=2': byte 8, a %, is not followed by two hex digits, 01 to FF");
	cr_expect(parse("file:///a#b?rank=0&world_size=2") == XR_E_INVAL);
	SAYS("store address 'file:///a#b?rank=0&world_size=2': a # is written as %23");
}

Test(store_address, a_path_without_its_third_slash_is_no_host)
{
	cr_expect(parse("file://tmp/x?rank=0&world_size=2") == XR_E_INVAL);
	SAYS("store address 'file://tmp/x?rank=0&world_size=2': 'tmp' would be a host\ttry: file:///tmp/x");
}

Test(store_address, a_path_fits_or_is_refused)
{
	char *text = malloc(5000);

	for (int n = 4094; n <= 4097; n++) {
		snprintf(text, 5000, "file:///%0*d?rank=0&world_size=1", n - 1,
			0);
		cr_expect(parse(text) == (n < 4096 ? XR_OK : XR_E_INVAL), "%d",
			n);
	}
	cr_expect_not_null(strstr(error.text, "longer than 4095 bytes"));
	free(text);
}

/* --- rank and size --------------------------------------------------------- */

Test(store_address, rank_and_size_may_stand_beside_the_address)
{
	struct store_address_ask what = { "tcp://h:1", 3, 8, false, NULL,
		NULL };

	cr_assert(ask(&what) == XR_OK);
	cr_expect(eq(i64, got.rank, 3));
	cr_expect(eq(i64, got.size, 8));
	what.text = "tcp://h:1?world_size=5";
	what.size = STORE_UNSAID;
	cr_assert(ask(&what) == XR_OK);
	cr_expect(eq(i64, got.size, 5));
	what.rank = -2;
	cr_expect(ask(&what) == XR_E_RANGE);
	SAYS("rank -2 is not 0 to 2147483647");
	what.rank = INT32_MAX;
	what.size = INT64_C(1) << 31;
	cr_expect(ask(&what) == XR_E_RANGE);
	SAYS("world_size 2147483648 is not 0 to 2147483647");
	what.text = "tcp://h:1";
	what.rank = INT32_MAX - 1;
	what.size = INT32_MAX;
	cr_assert(ask(&what) == XR_OK, "%s", error.text);
	cr_expect(eq(i64, got.size, INT32_MAX));
}

Test(store_address, AC_S8_rank_in_both_places_is_refused)
{
	struct store_address_ask what = { "tcp://h:1?rank=3&world_size=8", 3,
		STORE_UNSAID, false, NULL, NULL };

	cr_expect(ask(&what) == XR_E_INVAL);
	SAYS("store address 'tcp://h:1?rank=3&world_size=8': rank is given twice: here, and as an argument, 3\tleave one of them out");
	what.rank = STORE_UNSAID;
	what.size = 8;
	cr_expect(ask(&what) == XR_E_INVAL);
	SAYS("store address 'tcp://h:1?rank=3&world_size=8': world_size is given twice: here, and as an argument, 8\tleave one of them out");
	what.text = "file:///x?rank=3&world_size=8";
	cr_expect(ask(&what) == XR_E_INVAL);
	what.text = "env://?world_size=8";
	cr_expect(ask(&what) == XR_E_INVAL);
}

Test(store_address, parameters_are_numbers_known_and_said_once)
{
	cr_expect(parse("tcp://h:1?rank=0&world_size=1&rank=0") == XR_E_INVAL);
	SAYS("store address 'tcp://h:1?rank=0&world_size=1&rank=0': rank stands there twice");
	cr_expect(parse("tcp://h:1?ranks=0") == XR_E_INVAL);
	SAYS("store address 'tcp://h:1?ranks=0': unknown parameter 'ranks'\ttry: rank, world_size or auth");
	cr_expect(parse("tcp://h:1?rank=x") == XR_E_INVAL);
	SAYS("store address 'tcp://h:1?rank=x': rank 'x' is not a number");
	cr_expect(parse("tcp://h:1?rank") == XR_E_INVAL);
	cr_expect(parse("tcp://h:1?rank=") == XR_E_INVAL);
	cr_expect(parse("tcp://h:1?rank=-1") == XR_E_INVAL);
	cr_expect(parse("tcp://h:1?rank=0=0") == XR_E_INVAL);
	cr_expect(parse("tcp://h:1?rank=2147483648") == XR_E_INVAL);
	cr_expect(parse("tcp://h:1?rank=00000000000000000") == XR_E_INVAL);
	cr_expect(parse("tcp://h:1?rank=0?world_size=1") == XR_E_INVAL);
}

Test(store_address, a_rank_lies_in_its_world)
{
	cr_expect(parse("tcp://h:1?rank=8&world_size=8") == XR_E_RANGE);
	SAYS("store address 'tcp://h:1?rank=8&world_size=8': rank 8 is not 0 to 7, of world_size 8");
	cr_expect(parse("tcp://h:1?rank=0&world_size=0") == XR_E_RANGE);
	SAYS("store address 'tcp://h:1?rank=0&world_size=0': world_size 0: nobody is in it");
}

Test(store_address, a_dynamic_group_needs_no_size)
{
	struct store_address_ask what = { "tcp://h:1?rank=70", STORE_UNSAID,
		STORE_UNSAID, true, look_up, NULL };

	cr_assert(ask(&what) == XR_OK);
	cr_expect(eq(i64, got.size, STORE_UNSAID));
	what.text = "env://";
	what.ctx = (void *)VARS("RANK=3", "WORLD_SIZE=", "MASTER_ADDR=h",
		"MASTER_PORT=1");
	cr_assert(ask(&what) == XR_OK);
	cr_expect(eq(i64, got.size, STORE_UNSAID));
	what.ctx = (void *)TORCH;
	cr_assert(ask(&what) == XR_OK);
	cr_expect(eq(i64, got.size, 8));
	what.text = "tcp://h:1";
	cr_expect(ask(&what) == XR_E_INVAL);
}

/* --- env ------------------------------------------------------------------- */

Test(store_address, env_is_what_the_variables_say)
{
	static const char *const texts[] = { NULL, "", "env://", "env:" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		cr_assert(from_env(texts[i], TORCH) == XR_OK);
		cr_expect_eq(got.place, STORE_AT_TCP);
		GOT(host, "tpu0");
		cr_expect(eq(u16, got.port, 29500));
		cr_expect(eq(i64, got.rank, 3));
		cr_expect(eq(i64, got.size, 8));
		cr_expect_not(got.serve);
	}
	cr_assert(from_env("env://?rank=0", TORCH) == XR_OK);
	cr_expect(eq(i64, got.rank, 0));
	cr_expect(got.serve);
	cr_expect(from_env("env://tpu0", TORCH) == XR_E_INVAL);
	SAYS("store address 'env://tpu0': nothing stands behind env:");
}

Test(store_address, env_on_the_loopback_is_local)
{
	static const struct {
		const char *addr, *text;
		bool local;
	} rows[] = {
		{ "MASTER_ADDR=localhost", "env://", true },
		{ "MASTER_ADDR=127.0.0.1", "env://", true },
		{ "MASTER_ADDR=127.3.2.1", "env://", true },
		{ "MASTER_ADDR=::1", "env://", true },
		{ "MASTER_ADDR=[::1]", "env://", true },
		{ "MASTER_ADDR=128.0.0.1", "env://", false },
		{ "MASTER_ADDR=::2", "env://", false },
		{ "MASTER_ADDR=localhost.example", "env://", false },
		{ "MASTER_ADDR=127.0.0.1", "env://?auth=none", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert(from_env(rows[i].text,
				  VARS("RANK=0", "WORLD_SIZE=2", rows[i].addr,
					  "MASTER_PORT=1")) == XR_OK,
			"%s", rows[i].addr);
		cr_expect_eq(got.local, rows[i].local, "%s", rows[i].addr);
		cr_expect_eq(got.open, !rows[i].local && i == 8);
	}
	cr_assert(parse("tcp://127.0.0.1:1?rank=0&world_size=1") == XR_OK);
	cr_expect_not(got.local);
}

Test(store_address, auth_is_none_of_tcp_and_env_only)
{
	cr_assert(parse("tcp://h:1?rank=0&world_size=1&auth=none") == XR_OK);
	cr_expect(got.open);
	cr_assert(parse("tcp://h:1?rank=0&world_size=1") == XR_OK);
	cr_expect_not(got.open);
	cr_expect(parse("tcp://h:1?rank=0&world_size=1&auth=") == XR_E_INVAL);
	cr_expect(parse("tcp://h:1?rank=0&world_size=1&auth=all") ==
		XR_E_INVAL);
	cr_expect(parse("file:///x?rank=0&world_size=1&auth=none") ==
		XR_E_INVAL);
}

Test(store_address, AC_S5_each_missing_variable_is_named)
{
	static const char *const all[] = { "RANK=3", "WORLD_SIZE=8",
		"MASTER_ADDR=tpu0", "MASTER_PORT=29500" };

	for (size_t i = 0; i < 8; i++) {
		const char *vars[5] = { all[0], all[1], all[2], all[3] };
		char name[16], want[128];

		snprintf(name, sizeof(name), "%s", all[i % 4]);
		name[strcspn(name, "=") + (i < 4)] = '\0';
		vars[i % 4] = name; /* "RANK=", and "RANK", which is none */
		cr_expect(from_env("env://", vars) == XR_E_INVAL);
		name[strcspn(name, "=")] = '\0';
		snprintf(want, sizeof(want),
			"store address 'env://': not set or empty: %s\tset it, or start the program with xrun",
			name);
		SAYS(want);
	}
	cr_expect(from_env("env://", NULL) == XR_E_INVAL);
	SAYS("store address 'env://': not set or empty: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT\tset them, or start the program with xrun");
	cr_expect(from_env("env://?rank=1&world_size=2", NULL) == XR_E_INVAL);
	SAYS("store address 'env://?rank=1&world_size=2': not set or empty: MASTER_ADDR, MASTER_PORT\tset them, or start the program with xrun");
}

Test(store_address, a_variable_that_is_wrong_is_named)
{
	cr_expect(from_env(NULL,
			  VARS("RANK=x", "WORLD_SIZE=1", "MASTER_ADDR=h",
				  "MASTER_PORT=1")) == XR_E_INVAL);
	SAYS("RANK: 'x' is not a number");
	cr_expect(from_env(NULL,
			  VARS("RANK=0", "WORLD_SIZE=-1", "MASTER_ADDR=h",
				  "MASTER_PORT=1")) == XR_E_INVAL);
	SAYS("WORLD_SIZE: '-1' is not a number");
	cr_expect(from_env(NULL,
			  VARS("RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=h:1",
				  "MASTER_PORT=1")) == XR_E_INVAL);
	SAYS("MASTER_ADDR: 'h:1' is no host");
	cr_expect(from_env(NULL,
			  VARS("RANK=1", "WORLD_SIZE=1", "MASTER_ADDR=h",
				  "MASTER_PORT=1")) == XR_E_RANGE);
	SAYS("store address 'env://': rank 1 is not 0 to 0, of world_size 1");
}

/* MASTER_ADDR is a host of at most 255 bytes; brackets are taken off in pairs. */
Test(store_address, the_master_is_a_host_that_fits)
{
	static const char *const bad[] = { "[::1", "::1]", "[]", "[", "]",
		"a b", "[h" };
	char text[300];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "MASTER_ADDR=%s", bad[i]);
		cr_expect(from_env(NULL,
				  VARS("RANK=0", "WORLD_SIZE=1", text,
					  "MASTER_PORT=1")) == XR_E_INVAL,
			"%s", text);
		cr_expect_not_null(strstr(error.text, "is no host"), "%s",
			error.text);
	}
	for (int n = 254; n <= 257; n++) {
		snprintf(text, sizeof(text), "MASTER_ADDR=%0*d", n, 0);
		cr_expect(from_env(NULL,
				  VARS("RANK=0", "WORLD_SIZE=1", text,
					  "MASTER_PORT=1")) ==
				(n < 256 ? XR_OK : XR_E_INVAL),
			"%d", n);
	}
}

Test(store_address, without_variables_env_says_nothing)
{
	struct store_address_ask what = { NULL, STORE_UNSAID, STORE_UNSAID,
		false, NULL, NULL };

	cr_expect(ask(&what) == XR_E_INVAL);
	SAYS("store address 'env://': not set or empty: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT\tset them, or start the program with xrun");
}

Test(store_address, the_master_may_be_an_ipv6_address)
{
	cr_assert(from_env(NULL,
			  VARS("RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=::1",
				  "MASTER_PORT=1")) == XR_OK);
	GOT(host, "::1");
	cr_assert(from_env(NULL,
			  VARS("RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=[::1]",
				  "MASTER_PORT=1")) == XR_OK);
	GOT(host, "::1");
}

Test(store_address, the_store_of_the_job_wins)
{
	const char *vars[] = { "XRUN_STORE=control:", "XRUN_RANK=1",
		"XRUN_SIZE=2", "RANK=3", "WORLD_SIZE=8", "MASTER_ADDR=h",
		"MASTER_PORT=1", NULL };

	cr_assert(from_env("env://", vars) == XR_OK);
	cr_expect_eq(got.place, STORE_AT_CONTROL);
	cr_expect(eq(i64, got.rank, 1));
	cr_expect(eq(i64, got.size, 2));
	vars[0] = "XRUN_STORE=tcp://10.0.0.1:4000";
	vars[1] = "XRUN_RANK=0";
	cr_assert(from_env("env://", vars) == XR_OK);
	cr_expect_eq(got.place, STORE_AT_TCP);
	GOT(host, "10.0.0.1");
	cr_expect(eq(u16, got.port, 4000));
	cr_expect(eq(i64, got.rank, 0));
	cr_expect_not(got.serve);
	cr_assert(from_env("control:", vars) == XR_OK);
	cr_expect_eq(got.place, STORE_AT_CONTROL);
	vars[0] = "XRUN_STORE=";
	cr_assert(from_env("env://", vars) == XR_OK);
	cr_expect(eq(i64, got.rank, 3));
}

Test(store_address, the_store_of_the_job_needs_what_xrun_says)
{
	cr_expect(from_env("env://", VARS("XRUN_STORE=control:", "RANK=0")) ==
		XR_E_INVAL);
	SAYS("store address 'env://': not set or empty: XRUN_RANK, XRUN_SIZE\tset them, or start the program with xrun");
	cr_expect(from_env("env://",
			  VARS("XRUN_STORE=tcp://h:1?rank=0", "XRUN_RANK=0",
				  "XRUN_SIZE=1")) == XR_E_INVAL);
	SAYS("XRUN_STORE 'tcp://h:1?rank=0': rank and size are in XRUN_RANK and XRUN_SIZE");
	cr_expect(from_env("env://", VARS("XRUN_STORE=file:///x")) ==
		XR_E_NOTFOUND);
	SAYS("XRUN_STORE 'file:///x': it is neither control: nor tcp://HOST:PORT");
	cr_expect(from_env("env://", VARS("XRUN_STORE=env://")) ==
		XR_E_NOTFOUND);
	cr_expect(from_env("env://", VARS("XRUN_STORE=control://x")) ==
		XR_E_INVAL);
	SAYS("XRUN_STORE 'control://x': nothing stands behind control:");
	cr_expect(from_env("env://", VARS("XRUN_STORE=nothing")) == XR_E_INVAL);
	cr_expect_not_null(strstr(error.text,
		"XRUN_STORE 'nothing': there is no scheme"));
	cr_expect(from_env("env://", VARS("XRUN_STORE=tcp://h:65536")) ==
		XR_E_RANGE);
	SAYS("XRUN_STORE 'tcp://h:65536': port 65536 is not 0 to 65535");
}

/* --- every length ---------------------------------------------------------- */

/* How many beginnings of @whole are addresses. */
static unsigned
truncations(const char *whole, const char *const *vars)
{
	unsigned count = 0;

	for (size_t len = 0; len <= strlen(whole); len++) {
		/* On the heap and exact, for the address sanitizer. */
		char *text = strndup(whole, len);
		enum xr_status status = from_env(text, vars);

		cr_expect_eq(status == XR_OK, error.text[0] == '\0', "%s",
			text);
		count += status == XR_OK;
		free(text);
	}
	return count;
}

Test(store_address, every_truncation_parses_or_is_refused)
{
	cr_expect(eq(u32,
		truncations("tcp://[fe80::1%25a]:29500/?rank=1&world_size=23",
			NULL),
		2));
	cr_expect(eq(u32,
		truncations("tcp://a%2Eb:65536?rank=1&world_size=2", NULL), 0));
	cr_expect(eq(u32,
		truncations("file://localhost/a%41?world_size=2&rank=10", NULL),
		1));
	cr_expect(eq(u32, truncations("env://?rank=1&world_size=2", TORCH), 7));
}
