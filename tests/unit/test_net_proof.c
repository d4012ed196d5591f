/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_proof.c - where libcrypto is old, odd, or not there at all. */
#include <dlfcn.h>
#include <unistd.h>

#include <sys/socket.h>

#include "tests/unit/net_pair.h"
#include "worker/net/proof.h"
#include "worker/net/where.h"

TestSuite(net_proof, .timeout = 60);

static const char *missing; /* a library, or a function of it */

/* The linker gives the library these for its own (--wrap). */
void *__real_dlopen(const char *name, int flags);
void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlsym(void *handle, const char *name);

static bool
is_missing(const char *name)
{
	return missing != NULL && strncmp(name, missing, strlen(missing)) == 0;
}

void *
__wrap_dlopen(const char *name, int flags)
{
	return is_missing(name) ? NULL : __real_dlopen(name, flags);
}

void *
__wrap_dlsym(void *handle, const char *name)
{
	return is_missing(name) ? NULL : __real_dlsym(handle, name);
}

/* RFC 4231, test case 1 (its key, filled with zeros to 32 bytes, is the same). */
static void
is_hmac_sha256(void)
{
	static const uint8_t expected[32] = { 0xb0, 0x34, 0x4c, 0x61, 0xd8,
		0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b, 0xf1,
		0x2b, 0x88, 0x1d, 0xc2, 0x00, 0xc9, 0x83, 0x3d, 0xa7, 0x26,
		0xe9, 0x37, 0x6c, 0x2e, 0x32, 0xcf, 0xf7 };
	const struct greet_crypto *crypto = proof_crypto(&err);
	uint8_t key[32] = { 0 }, proof[32];

	cr_assert_not_null(crypto, "%s", err.text);
	memset(key, 0x0b, 20);
	cr_assert(crypto->mac(key, "Hi There", 8, proof));
	cr_expect_arr_eq(proof, expected, 32);
	cr_expect_eq(crypto->differ(proof, expected, 32), 0);
	proof[31] ^= 1;
	cr_expect_neq(crypto->differ(proof, expected, 32), 0);
}

Test(net_proof, the_mac_is_hmac_sha256)
{
	is_hmac_sha256();
}

Test(net_proof, an_older_libcrypto_is_as_good)
{
	missing = "EVP_Q_mac";
	is_hmac_sha256();
}

Test(net_proof, a_libcrypto_without_its_functions_is_none)
{
	missing = "CRYPTO_memcmp";
	cr_expect_null(proof_crypto(&err));
	cr_expect_eq(err.status, XR_E_NODEV);
	cr_expect_not_null(strstr(err.text, "HMAC-SHA256"), "%s", err.text);
	cr_expect_null(proof_crypto(NULL));
}

Test(net_proof, without_libcrypto_no_link_is_made_and_it_is_said_why)
{
	struct xr_link *link = NULL;

	missing = "libcrypto";
	one = side_open(1);
	two = side_open(2);
	cr_expect_eq(tcp_carrier.connect(one->self, two->address, 2, 1, one,
			     &link, &err),
		XR_E_NODEV);
	cr_expect_null(link);
	cr_expect_not_null(strstr(err.text, "libcrypto"), "%s", err.text);
	cr_expect_not_null(strstr(err.text, "install"), "%s", err.text);
	pair_down();
}

static uint8_t
hear_verdict(const char *address)
{
	struct greet_self self = { .id = 1, .incarnation = 1 };
	static const uint8_t challenge[32];
	struct greet g;
	struct where where;
	char bytes[GREET_VERDICT_SIZE];
	int fd;

	cr_assert_eq(where_parse(address, &where, &err), XR_OK);
	fd = socket(where.at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(connect(fd, &where.at.any, where.len), 0);
	greet_dial(&g, &self, 2, 1, 1);
	greet_challenge(&g, challenge);
	cr_assert_eq(send(fd, g.out, g.out_len, 0), (ssize_t)g.out_len);
	cr_assert_eq(recv(fd, bytes, sizeof(bytes), MSG_WAITALL),
		(ssize_t)sizeof(bytes));
	close(fd);
	return (uint8_t)bytes[8];
}

Test(net_proof, without_libcrypto_who_comes_is_told)
{
	missing = "libcrypto";
	two = side_open(2);
	cr_expect_eq(hear_verdict(two->address), GREET_UNABLE);
	cr_expect_eq(two->mates[1].accepted, 0);
	side_close(two);
}
