/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_auth.c - the secret of tcp:// stores and its file (worker/store/auth.h). */
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/folder.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"
#include "tests/unit/short_memory.h"
#include "tests/unit/sys_hook.h"
#include "worker/store/auth.h"

#define SECRET_FILE "cfg/xrun/store.secret"

static struct store_auth auth;
static struct xr_error err;

static void
begin(void)
{
	char path[PATH_MAX + 8];

	folder_make();
	unsetenv("XRUN_STORE_SECRET_FILE");
	snprintf(path, sizeof(path), "%s/cfg", folder);
	setenv("XDG_CONFIG_HOME", path, 1);
	setenv("HOME", folder, 1);
}

TestSuite(store_auth, .init = begin, .fini = folder_remove, .timeout = 60);

ssize_t __wrap_getrandom(void *data, size_t len, unsigned flags);

/* glibc 2.41 makes random bytes in the process itself, so that no filter sees the call. */
ssize_t
__wrap_getrandom(void *data, size_t len, unsigned flags)
{
	return syscall(SYS_getrandom, data, len, flags);
}

static enum xr_status
open_it(void)
{
	enum xr_status status;

	err = (struct xr_error){ 0 };
	auth = (struct store_auth){ 0 };
	status = store_auth_open(&auth, &err);
	if (status != XR_OK)
		cr_expect_null(auth.secret);
	store_auth_close(&auth);
	return status;
}

static void
expect_words(const char *words)
{
	cr_expect_not_null(strstr(err.text, words), "'%s' lacks '%s'", err.text,
		words);
}

/* --- where the file is ----------------------------------------------------- */

Test(store_auth, the_default_file_is_made_once_and_for_this_user_only)
{
	char text[128] = "";
	struct stat st;
	FILE *f;

	cr_assert_eq(open_it(), XR_OK, "%s", err.text);
	cr_assert_eq(stat(SECRET_FILE, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	cr_expect_eq(st.st_size, 65);
	cr_expect_eq(st.st_nlink, 1, "the draft is removed");
	cr_expect_eq(folder_entries("cfg/xrun"), 1);
	cr_assert_eq(stat("cfg/xrun", &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0700);
	f = fopen(SECRET_FILE, "r");
	cr_assert_not_null(f);
	cr_expect_eq(fread(text, 1, sizeof(text), f), 65);
	fclose(f);
	cr_expect_eq(strspn(text, "0123456789abcdef"), 64);
	cr_expect_eq(text[64], '\n');
	cr_assert_eq(open_it(), XR_OK, "%s", err.text);
	folder_expect(SECRET_FILE, text);
}

Test(store_auth, the_folder_is_that_of_xdg_or_of_home)
{
	static const struct {
		const char *config, *home;
		bool found;
	} rows[] = {
		{ "", ".", true },
		{ "rel", ".", true },
		{ NULL, ".", true },
		{ NULL, "rel", false },
		{ NULL, "", false },
		{ NULL, NULL, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsetenv("XDG_CONFIG_HOME");
		unsetenv("HOME");
		if (rows[i].config != NULL)
			setenv("XDG_CONFIG_HOME", rows[i].config, 1);
		if (rows[i].home != NULL)
			setenv("HOME",
				rows[i].home[0] == '.' ? folder : rows[i].home,
				1);
		cr_expect_eq(open_it(), rows[i].found ? XR_OK : XR_E_SYS, "%zu",
			i);
		cr_expect_eq(access(".config/xrun/store.secret", F_OK),
			rows[i].found ? 0 : -1, "%zu", i);
		if (!rows[i].found)
			expect_words("No such file or directory");
		unlink(".config/xrun/store.secret");
	}
	cr_expect_eq(folder_entries("."), 1);
}

/* The longest folder leaves room for /xrun/store.secret in 4096 bytes. */
Test(store_auth, a_folder_whose_name_is_too_long_is_refused)
{
	char *path = calloc(1, 6000);

	memset(path, 'x', 4077);
	path[0] = '/';
	setenv("XDG_CONFIG_HOME", path, 1);
	cr_expect_eq(open_it(), XR_E_SYS);
	expect_words(strerror(ENOENT));
	path[4076] = '\0';
	setenv("XDG_CONFIG_HOME", path, 1);
	cr_expect_eq(open_it(), XR_E_SYS);
	expect_words(strerror(ENAMETOOLONG)); /* by mkdir() */
	free(path);
}

Test(store_auth, a_folder_that_cannot_be_made_is_reported)
{
	char path[PATH_MAX + 8];

	folder_write("file", "", 0600);
	snprintf(path, sizeof(path), "%s/file", folder);
	setenv("XDG_CONFIG_HOME", path, 1);
	cr_expect_eq(open_it(), XR_E_SYS);
	expect_words("Not a directory");
}

Test(store_auth, a_file_that_is_named_is_not_made)
{
	setenv("XRUN_STORE_SECRET_FILE", "none", 1);
	cr_expect_eq(open_it(), XR_E_SYS);
	expect_words("the secret of tcp:// in none: No such file");
	cr_expect_eq(folder_entries("."), 0);
	/* An empty name is none. */
	setenv("XRUN_STORE_SECRET_FILE", "", 1);
	cr_expect_eq(open_it(), XR_OK, "%s", err.text);
	cr_expect_eq(access(SECRET_FILE, F_OK), 0);
}

Test(store_auth, a_default_file_that_is_a_link_is_not_followed)
{
	cr_assert_eq(mkdir("cfg", 0700), 0);
	cr_assert_eq(mkdir("cfg/xrun", 0700), 0);
	folder_write("elsewhere", "0123456789abcdef", 0600);
	cr_assert_eq(symlink("../../elsewhere", SECRET_FILE), 0);
	cr_expect_eq(open_it(), XR_E_SYS);
	expect_words(strerror(ELOOP));
	setenv("XRUN_STORE_SECRET_FILE", SECRET_FILE, 1);
	cr_expect_eq(open_it(), XR_OK, "%s", err.text);
}

/* --- what is in it --------------------------------------------------------- */

Test(store_auth, a_secret_has_16_bytes_without_the_white_space_at_its_end)
{
	static const struct {
		const char *text;
		mode_t mode;
		enum xr_status status;
		const char *words;
	} rows[] = {
		{ "0123456789abcdef", 0600, XR_OK, "" },
		{ "0123456789abcdef", 0400, XR_OK, "" },
		{ "0123456789abcdef \t\r\n", 0600, XR_OK, "" },
		{ "0123456789abcde", 0600, XR_E_INVAL, "has 15 bytes" },
		{ "0123456789abcde\n", 0600, XR_E_INVAL, "has 15 bytes" },
		{ " \t\r\n                  ", 0600, XR_E_INVAL,
			"has 0 bytes" },
		{ "", 0600, XR_E_INVAL, "has 0 bytes" },
		{ "0123456789abcdef", 0640, XR_E_AUTH, "other users can" },
		{ "0123456789abcdef", 0604, XR_E_AUTH, "other users can" },
		{ "0123456789abcdef", 0620, XR_E_AUTH, "other users can" },
		{ "0123456789abcdef", 0601, XR_E_AUTH, "other users can" },
	};

	setenv("XRUN_STORE_SECRET_FILE", "s", 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		folder_write("s", rows[i].text, rows[i].mode);
		cr_expect_eq(open_it(), rows[i].status, "%zu: %s", i, err.text);
		expect_words(rows[i].words);
		unlink("s");
	}
}

Test(store_auth, a_file_of_another_user_is_refused)
{
	if (geteuid() != 0)
		return;
	setenv("XRUN_STORE_SECRET_FILE", "s", 1);
	folder_write("s", "0123456789abcdef", 0600);
	cr_assert_eq(chown("s", 1001, 0), 0);
	cr_expect_eq(open_it(), XR_E_AUTH);
	expect_words("other users can read or change it");
	cr_assert_eq(chown("s", 1, 0), 0);
	cr_expect_eq(open_it(), XR_E_AUTH);
}

void __real_free(void *p);
void __wrap_free(void *p);
static unsigned secrets_left;

void
__wrap_free(void *p)
{
	if (p != NULL &&
		memmem(p, malloc_usable_size(p), "secret of 24 characters!",
			24) != NULL)
		secrets_left++;
	__real_free(p);
}

Test(store_auth, a_secret_is_erased_from_memory_that_is_given_back)
{
	char *text = strdup("secret of 24 characters!");

	free(text);
	cr_expect_eq(secrets_left, 1);
	setenv("XRUN_STORE_SECRET_FILE", "s", 1);
	folder_write("s", "secret of 24 characters!", 0600);
	cr_expect_eq(open_it(), XR_OK, "%s", err.text);
	cr_expect_eq(secrets_left, 1);
}

/* --- kernels that fail ----------------------------------------------------- */

Test(store_auth, a_file_that_is_no_secret_is_refused)
{
	char *text = calloc(1, 4098);

	memset(text, 'x', 4097);
	setenv("XRUN_STORE_SECRET_FILE", "s", 1);
	folder_write("s", text, 0600);
	cr_expect_neq(open_it(), XR_OK);
	text[4096] = '\0';
	folder_write("s", text, 0600);
	cr_expect_eq(open_it(), XR_OK, "%s", err.text);
	setenv("XRUN_STORE_SECRET_FILE", ".", 1);
	cr_expect_neq(open_it(), XR_OK);
	free(text);
}

static const struct {
	int call, sys;
	const char *words;
} calls[] = {
	{ SYS_getrandom, ENOSYS, "Function not implemented" },
	{ SYS_fchmod, EPERM, "Operation not permitted" },
	{ SYS_write, ENOSPC, "No space left on device" },
	{ SYS_link, EPERM, "Operation not permitted" },
};

/* Neither the file nor the draft of it stays. */
static void
expect_no_file(size_t i)
{
	int status;
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0) {
		/* libcrypto is loaded, and has seen random bytes. */
		proof_crypto(NULL);
		NEED(seccomp_refuse(calls[i].call, calls[i].sys) == 0);
		if (open_it() != XR_E_SYS)
			_exit(1);
		_exit(strstr(err.text, calls[i].words) == NULL ? 2 : 0);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	if (status != 0)
		forked_note(__LINE__, "system call %d: status %x",
			calls[i].call, status);
	EXPECT_EQ(folder_entries("cfg/xrun"), 0);
}

FORKED_TEST(store_auth, a_file_that_cannot_be_made_leaves_nothing)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		expect_no_file(i);
	EXPECT_EQ(open_it(), XR_OK);
}

/* The name of the draft is random, too. */
FORKED_TEST(store_auth, the_first_failure_is_the_one_that_is_told)
{
	NEED(open_it() == XR_OK);
	NEED(unlink(SECRET_FILE) == 0);
	sys_trap(SYS_getrandom);
	sys_trap(SYS_openat);
	for (unsigned n = 2; n <= 4; n++) {
		/* The file, the name, the draft, what is in it. */
		sys_fail_begin(n, EDQUOT);
		EXPECT_EQ(open_it(), XR_E_SYS);
		EXPECT(sys_fail_end());
		EXPECT(strstr(err.text, strerror(EDQUOT)) != NULL);
		EXPECT_EQ(sys_fail.nr, n == 3 ? SYS_openat : SYS_getrandom);
		EXPECT_EQ(folder_entries("cfg/xrun"), 0);
	}
}

/* Another process makes the file at the same time: it is that one's. */
FORKED_TEST(store_auth, a_file_that_another_process_has_made_first_is_read)
{
	NEED(open_it() == XR_OK);
	proof_crypto(NULL);
	NEED(seccomp_refuse(SYS_link, EEXIST) == 0);
	EXPECT_EQ(open_it(), XR_OK);
	NEED(unlink(SECRET_FILE) == 0);
	/* And has removed it again. */
	EXPECT_EQ(open_it(), XR_E_SYS);
	EXPECT(strstr(err.text, strerror(ENOENT)) != NULL);
	EXPECT_EQ(folder_entries("cfg/xrun"), 0);
}

/* A mapping that no memory is locked for. */
FORKED_TEST(store_auth, a_secret_without_memory_is_reported)
{
	NEED(open_it() == XR_OK);
	NEED(seccomp_refuse(SYS_mmap, ENOMEM) == 0);
	EXPECT_EQ(open_it(), XR_E_NOMEM);
	EXPECT(strstr(err.text, "out of memory") != NULL);
}

Test(store_auth, every_allocation_may_fail)
{
	unsigned n = 0;
	enum xr_status status;

	cr_assert_eq(open_it(), XR_OK, "%s", err.text);
	do {
		was_short = false;
		until_short = ++n;
		status = open_it();
		until_short = 0;
		cr_expect_eq(status, was_short ? XR_E_NOMEM : XR_OK, "%u: %s",
			n, err.text);
	} while (was_short);
	cr_expect_gt(n, 1);
}

/* HMAC-SHA256, with the secret of the file as its message and a label as the key, is the
 * key of the HMAC-SHA256 of the side, in 16 bytes, and of both nonces. */
Test(store_auth, a_proof_is_what_other_versions_make_of_the_same)
{
	static const uint8_t wanted[2][GREET_PROOF] = {
		{ 0x2d, 0x7b, 0x07, 0xdb, 0x1c, 0x8d, 0xf4, 0xb5, 0x58, 0xa1,
			0x80, 0xc5, 0x34, 0x7e, 0xac, 0x6e, 0xa4, 0x83, 0x16,
			0x97, 0xbf, 0x2c, 0xbb, 0x8e, 0x94, 0x99, 0xf1, 0xe8,
			0x24, 0xc2, 0x12, 0xc5 },
		{ 0xe4, 0xba, 0x59, 0x03, 0x96, 0x2d, 0x02, 0x8f, 0x5c, 0x75,
			0x01, 0x82, 0xbc, 0xb9, 0xdb, 0x30, 0x2f, 0x86, 0xd5,
			0xb0, 0xb1, 0x82, 0x11, 0xa7, 0xb2, 0x36, 0x2a, 0xd4,
			0x88, 0x3e, 0x7e, 0xd7 },
	};
	struct store_nonces nonces;
	uint8_t proof[GREET_PROOF];

	for (uint8_t i = 0; i < STORE_NONCE; i++) {
		nonces.client[i] = i;
		nonces.server[i] = (uint8_t)(100 + i);
	}
	folder_write("s", "0123456789abcdef\n", 0600);
	setenv("XRUN_STORE_SECRET_FILE", "s", 1);
	cr_assert_eq(store_auth_open(&auth, &err), XR_OK, "%s", err.text);
	for (int host = 0; host < 2; host++) {
		cr_expect(store_auth_prove(&auth, host, &nonces, proof));
		cr_expect_arr_eq(proof, wanted[host], GREET_PROOF);
		cr_expect(store_auth_check(&auth, host, &nonces,
			(struct span){ (const char *)proof, GREET_PROOF }));
		cr_expect(!store_auth_check(&auth, !host, &nonces,
			(struct span){ (const char *)proof, GREET_PROOF }));
		cr_expect(!store_auth_check(&auth, host, &nonces,
			(struct span){ (const char *)proof, GREET_PROOF - 1 }));
		proof[GREET_PROOF - 1] ^= 1;
		cr_expect(!store_auth_check(&auth, host, &nonces,
			(struct span){ (const char *)proof, GREET_PROOF }));
	}
	store_auth_close(&auth);
	cr_expect_null(auth.secret);
}
