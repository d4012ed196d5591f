/* SPDX-License-Identifier: Apache-2.0 */
/* auth.c - see auth.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/random.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/status.h"
#include "worker/store/auth.h"

#define VARIABLE   "XRUN_STORE_SECRET_FILE"
#define FILE_MIN   16   /* bytes of a secret */
#define FILE_MAX   4096 /* bytes of a file */
#define FRESH      32   /* random bytes of a new secret */
#define PATH_BYTES 4096

/* --- the file -------------------------------------------------------------- */

/* The folder of the default file; it is made if it does not exist. */
static bool
auth_folder(char *path, size_t cap)
{
	const char *config = secure_getenv("XDG_CONFIG_HOME");
	const char *home = secure_getenv("HOME");
	int n = -1;

	if (config != NULL && config[0] == '/')
		n = snprintf(path, cap, "%s", config);
	else if (home != NULL && home[0] == '/')
		n = snprintf(path, cap, "%s/.config", home);
	if (n <= 0 || (size_t)n + sizeof("/xrun") > cap) {
		errno = ENOENT;
		return false;
	}
	mkdir(path, 0700);
	memcpy(path + n, "/xrun", sizeof("/xrun"));
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool
auth_write(const char *path)
{
	uint8_t random[FRESH];
	char text[2 * FRESH + 2];
	int fd = open(path,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok = fd != -1 &&
		getrandom(random, sizeof(random), 0) == sizeof(random);

	for (size_t i = 0; ok && i < FRESH; i++)
		snprintf(text + 2 * i, 3, "%02x", random[i]);
	text[2 * FRESH] = '\n';
	ok = ok && fchmod(fd, 0600) == 0 &&
		fd_write_all(fd, text, 2 * FRESH + 1) == 0;
	explicit_bzero(random, sizeof(random));
	explicit_bzero(text, sizeof(text));
	fd_close(fd);
	return ok;
}

/* Makes the file, unless another process does first. A reader never sees half of
 * it: it gets its name when it is whole. */
static bool
auth_create(const char *path)
{
	char draft[PATH_BYTES + 32];
	unsigned random = 0;
	int sys;
	bool ok;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return false;
	snprintf(draft, sizeof(draft), "%s.%d.%08x", path, (int)getpid(),
		random);
	ok = auth_write(draft) && (link(draft, path) == 0 || errno == EEXIST);
	sys = errno;
	unlink(draft);
	errno = sys;
	return ok;
}

static enum xr_status
auth_fail_sys(const char *path, struct xr_error *err)
{
	return fail(err, XR_E_SYS,
		"store: the secret of tcp:// in %.100s: %s\t" VARIABLE
		"=FILE, or file:///PATH on one machine",
		path, strerror(errno));
}

static enum xr_status
auth_read(struct fd_file *f, char **text, size_t *len, struct xr_error *err)
{
	enum xr_status status = fd_read_text(f, text, len, err);

	if (status != XR_OK)
		return status;
	if ((f->st.st_uid != geteuid() && f->st.st_uid != 0) ||
		(f->st.st_mode & 077) != 0)
		return fail(err, XR_E_AUTH,
			"store: the secret in %.100s: other users can read or change it\tchmod 600, and a file of your own",
			f->name);
	while (*len > 0 && strchr(" \t\r\n", (*text)[*len - 1]) != NULL)
		(*len)--;
	if (*len < FILE_MIN)
		return fail(err, XR_E_INVAL,
			"store: the secret in %.100s has %zu bytes, at least %d are needed\thead -c 32 /dev/urandom | base64 >FILE",
			f->name, *len, FILE_MIN);
	return XR_OK;
}

/* The default file may be made. */
static int
auth_open_file(char *path, size_t cap)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	const char *named = secure_getenv(VARIABLE);
	size_t len;
	int fd;

	if (named != NULL && named[0] != '\0') {
		snprintf(path, cap, "%s", named);
		return open(path, flags);
	}
	if (!auth_folder(path, cap - sizeof("/store.secret")))
		return -1;
	len = strlen(path);
	memcpy(path + len, "/store.secret", sizeof("/store.secret"));
	fd = open(path, flags | O_NOFOLLOW);
	if (fd == -1 && errno == ENOENT && auth_create(path))
		fd = open(path, flags | O_NOFOLLOW);
	return fd;
}

/* --- the secret ------------------------------------------------------------ */

enum xr_status
store_auth_open(struct store_auth *auth, struct xr_error *err)
{
	static const uint8_t label[GREET_SECRET] = "xrun store secret";
	char path[PATH_BYTES] = "~/.config/xrun/store.secret";
	uint8_t key[GREET_PROOF];
	struct fd_file f = { .name = path, .max = FILE_MAX };
	const struct greet_crypto *crypto = proof_crypto(err);
	char *text = NULL;
	size_t len = 0;
	enum xr_status status;

	if (crypto == NULL)
		return XR_E_NODEV;
	f.fd = auth_open_file(path, sizeof(path));
	if (f.fd == -1)
		return auth_fail_sys(path, err);
	status = auth_read(&f, &text, &len, err);
	fd_close(f.fd);
	if (status == XR_OK && !crypto->mac(label, text, len, key))
		status = fail(err, XR_E_NODEV, "store: libcrypto has failed");
	if (status == XR_OK) {
		auth->crypto = crypto;
		auth->secret = proof_keep(key);
		if (auth->secret == NULL)
			status = fail(err, XR_E_NOMEM, "store: out of memory");
	}
	if (text != NULL)
		explicit_bzero(text, len);
	explicit_bzero(key, sizeof(key));
	free(text);
	return status;
}

void
store_auth_close(struct store_auth *auth)
{
	proof_forget(auth->secret);
	auth->secret = NULL;
}

bool
store_auth_nonce(uint8_t nonce[STORE_NONCE])
{
	return getrandom(nonce, STORE_NONCE, 0) == STORE_NONCE;
}

bool
store_auth_prove(const struct store_auth *auth, bool host,
	const struct store_nonces *nonces, uint8_t proof[GREET_PROOF])
{
	struct {
		char side[16];
		struct store_nonces nonces;
	} data = { .nonces = *nonces };

	memcpy(data.side, host ? "store server" : "store client", 12);
	return auth->crypto->mac(auth->secret, &data, sizeof(data), proof);
}

bool
store_auth_check(const struct store_auth *auth, bool host,
	const struct store_nonces *nonces, struct span proof)
{
	uint8_t right[GREET_PROOF];

	return proof.len == GREET_PROOF &&
		store_auth_prove(auth, host, nonces, right) &&
		auth->crypto->differ(right, proof.at, GREET_PROOF) == 0;
}
