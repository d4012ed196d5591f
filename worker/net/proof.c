/* SPDX-License-Identifier: Apache-2.0 */
/* proof.c - see proof.h. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include <sys/mman.h>

#include "base/status.h"
#include "worker/net/proof.h"

/* As <openssl/evp.h> and <openssl/hmac.h> declare them. */
typedef unsigned char *q_mac_fn(void *libctx, const char *name,
	const char *propq, const char *subalg, const void *params,
	const void *key, size_t keylen, const unsigned char *data,
	size_t datalen, unsigned char *out, size_t outsize, size_t *outlen);
typedef void *lib_ctx_new_fn(void);
typedef unsigned char *hmac_fn(const void *evp_md, const void *key, int key_len,
	const unsigned char *data, size_t data_len, unsigned char *md,
	unsigned int *md_len);
typedef const void *sha256_fn(void);
typedef int memcmp_fn(const void *a, const void *b, size_t len);

static struct {
	q_mac_fn *q_mac; /* OpenSSL 3 and later; or NULL, and ... */
	void *ctx;       /* its own: a program's settings are not read */
	hmac_fn *hmac;
	sha256_fn *sha256;
	memcmp_fn *differ;
	struct xr_error why; /* there is none */
} lib;

static struct greet_crypto crypto;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool
mac(const uint8_t secret[GREET_SECRET], const void *data, size_t len,
	uint8_t proof[GREET_PROOF])
{
	size_t got = 0;
	unsigned int n = 0;

	if (lib.q_mac != NULL)
		return lib.q_mac(lib.ctx, "HMAC", NULL, "SHA256", NULL, secret,
			       GREET_SECRET, data, len, proof, GREET_PROOF,
			       &got) != NULL &&
			got == GREET_PROOF;
	return lib.hmac(lib.sha256(), secret, GREET_SECRET, data, len, proof,
		       &n) != NULL &&
		n == GREET_PROOF;
}

static void *
open_library(void)
{
	/* By their versions: the name without one is a development file. */
	static const char *const names[] = { "libcrypto.so.3", "libcrypto.so.4",
		"libcrypto.so.1.1" };
	void *handle = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		if (handle != NULL)
			break;
	}
	if (handle == NULL)
		fail(&lib.why, XR_E_NODEV,
			"tcp: no libcrypto, without which no link between machines can be trusted\tinstall OpenSSL 3 (Debian: libssl3)");
	return handle;
}

/* The new way. */
static bool
find_q_mac(void *handle)
{
	lib_ctx_new_fn *new =
		(lib_ctx_new_fn *)dlsym(handle, "OSSL_LIB_CTX_new");

	lib.q_mac = (q_mac_fn *)dlsym(handle, "EVP_Q_mac");
	if (new == NULL || lib.q_mac == NULL)
		return false;
	lib.ctx = new ();
	return lib.ctx != NULL;
}

static bool
find_hmac(void *handle)
{
	lib.q_mac = NULL;
	lib.hmac = (hmac_fn *)dlsym(handle, "HMAC");
	lib.sha256 = (sha256_fn *)dlsym(handle, "EVP_sha256");
	return lib.hmac != NULL && lib.sha256 != NULL;
}

static void
load(void)
{
	static const uint8_t zero[GREET_SECRET];
	uint8_t proof[GREET_PROOF];
	void *handle = open_library();

	if (handle == NULL)
		return;
	lib.differ = (memcmp_fn *)dlsym(handle, "CRYPTO_memcmp");
	if (lib.differ == NULL || !(find_q_mac(handle) || find_hmac(handle)) ||
		!mac(zero, "", 0, proof))
		fail(&lib.why, XR_E_NODEV, "tcp: libcrypto has no HMAC-SHA256");
	crypto = (struct greet_crypto){ .mac = mac, .differ = lib.differ };
}

const struct greet_crypto *
proof_crypto(struct xr_error *err)
{
	pthread_once(&once, load);
	if (lib.why.status == XR_OK)
		return &crypto;
	if (err != NULL)
		*err = lib.why;
	return NULL;
}

/* A page of its own: what is said of memory is said of pages. */
#define PAGE 4096

uint8_t *
proof_keep(const uint8_t secret[GREET_SECRET])
{
	uint8_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	/* Each of them is more than one has a right to. */
	madvise(page, PAGE, MADV_DONTDUMP);
	madvise(page, PAGE, MADV_WIPEONFORK);
	mlock(page, PAGE);
	memcpy(page, secret, GREET_SECRET);
	return page;
}

void
proof_forget(uint8_t *secret)
{
	if (secret == NULL)
		return;
	explicit_bzero(secret, GREET_SECRET);
	munmap(secret, PAGE);
}
