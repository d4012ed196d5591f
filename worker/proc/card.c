/* SPDX-License-Identifier: Apache-2.0 */
/* card.c - see card.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/status.h"
#include "worker/proc/card.h"

#define MAGIC UINT64_C(0x3164726163727878) /* "xxrcard1" */

struct head {
	uint64_t magic;
	uint32_t flags, ordinal;
	int64_t started;
	uint32_t env_count, reports;
	uint64_t text_len; /* of texts and environment, with their NULs */
	uint64_t arg_len;
	struct {
		uint64_t at, len;
	} report[CARD_REPORTS];
};

/* --- telling --------------------------------------------------------------- */

static void
put_texts(struct buf *b, struct head *h, const struct card *card)
{
	size_t from = b->len;

	for (int i = 0; i < CARD_TEXTS; i++)
		buf_put(b, card->text[i], strlen(card->text[i]) + 1);
	for (const char *const *e = card->env; *e != NULL; e++) {
		buf_put(b, *e, strlen(*e) + 1);
		h->env_count++;
	}
	h->text_len = b->len - from;
}

/* The parts of a value, wherever they lie. */
static void
put_value(struct buf *b, const struct xr_encoded *encoded)
{
	size_t count;
	const struct xr_part *parts = xr_encoded_parts(encoded, &count);

	for (size_t i = 0; i < count; i++)
		buf_put(b, parts[i].data, parts[i].len);
}

static enum xr_status
put_arg(struct buf *b, struct head *h, struct xr_value *arg,
	struct xr_error *err)
{
	struct xr_encoded *encoded = NULL;
	enum xr_status status;
	size_t from = b->len;

	if (arg == NULL)
		return XR_OK;
	status = xr_encode(arg, NULL, &encoded, err);
	if (status != XR_OK)
		return status;
	put_value(b, encoded);
	xr_encoded_free(encoded);
	h->arg_len = b->len - from;
	return XR_OK;
}

static enum xr_status
put_file(const struct buf *b, int *fd, struct xr_error *err)
{
	int made;

	if (b->bad != XR_OK)
		return fail(err, XR_E_NOMEM, "out of memory");
	made = fd_above_stdio(memfd_create("xrun-card", MFD_CLOEXEC));
	if (made == -1)
		return fail(err, XR_E_SYS, "memfd_create: %s", strerror(errno));
	if (fd_write_all(made, b->data, b->len) == -1) {
		fail(err, XR_E_SYS, "write: %s", strerror(errno));
		fd_close(made);
		return XR_E_SYS;
	}
	*fd = made;
	return XR_OK;
}

enum xr_status
card_write(const struct card *card, int *fd, struct xr_error *err)
{
	struct head head = {
		.magic = MAGIC,
		.flags = card->flags,
		.ordinal = card->ordinal,
		.started = card->started,
	};
	struct buf b = { 0 };
	enum xr_status status;

	buf_room(&b, sizeof(head));
	put_texts(&b, &head, card);
	status = put_arg(&b, &head, card->arg, err);
	if (status == XR_OK && b.bad == XR_OK)
		memcpy(b.data, &head, sizeof(head));
	if (status == XR_OK)
		status = put_file(&b, fd, err);
	buf_fini(&b);
	return status;
}

/* --- being told ------------------------------------------------------------ */

static bool
read_at(int fd, void *out, uint64_t len, uint64_t at)
{
	char *to = out;
	ssize_t n;

	while (len > 0) {
		n = pread(fd, to, len, (off_t)at);
		if (n <= 0)
			return false;
		to += n;
		at += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return true;
}

/* The next text up to @end; NULL: there is none. */
static const char *
next_text(const char **at, const char *end)
{
	const char *text = *at;
	const char *nul = memchr(text, 0, (size_t)(end - text));

	if (nul == NULL)
		return NULL;
	*at = nul + 1;
	return text;
}

static bool
take_texts(struct card *card, const struct head *h, const char *at)
{
	const char *end = at + h->text_len, **env;

	if (h->env_count > h->text_len) /* each has its NUL */
		return false;
	env = calloc((size_t)h->env_count + 1, sizeof(*env));
	for (int i = 0; i < CARD_TEXTS; i++) {
		card->text[i] = next_text(&at, end);
		if (card->text[i] == NULL)
			break;
	}
	for (uint32_t i = 0; env != NULL && i < h->env_count; i++) {
		env[i] = next_text(&at, end);
		if (env[i] == NULL)
			break;
	}
	card->env = env;
	return env != NULL && at == end;
}

/* Bytes that are there, into memory. */
static void *
take_bytes(int fd, uint64_t at, uint64_t len)
{
	struct stat st;
	char *data;

	if (fstat(fd, &st) == -1 || len > (uint64_t)st.st_size ||
		at > (uint64_t)st.st_size - len)
		return NULL;
	data = malloc(len + 1);
	if (data != NULL && !read_at(fd, data, len, at)) {
		free(data);
		data = NULL;
	}
	if (data != NULL)
		data[len] = '\0';
	return data;
}

static enum xr_status
take_value(int fd, uint64_t at, uint64_t len, struct xr_value **value,
	struct xr_error *err)
{
	struct xr_part part = { .data = take_bytes(fd, at, len), .len = len };
	struct xr_dec_opts opts = { .size = sizeof(opts) };
	enum xr_status status;

	if (part.data == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	status = xr_decode(&part, 1, &opts, value, err);
	free((void *)part.data);
	return status;
}

enum xr_status
card_read(int fd, struct card *card, struct xr_error *err)
{
	enum xr_status status;
	struct head h;
	char *texts;

	if (!read_at(fd, &h, sizeof(h), 0) || h.magic != MAGIC)
		return fail(err, XR_E_PROTO, "descriptor %d is no card", fd);
	*card = (struct card){
		.flags = h.flags,
		.ordinal = h.ordinal,
		.started = h.started,
	};
	texts = take_bytes(fd, sizeof(h), h.text_len);
	if (texts == NULL || !take_texts(card, &h, texts)) {
		free((void *)(uintptr_t)card->env);
		free(texts);
		return fail(err, XR_E_NOMEM, "out of memory");
	}
	status = h.arg_len == 0 ? XR_OK :
				  take_value(fd, sizeof(h) + h.text_len,
					  h.arg_len, &card->arg, err);
	card->own = texts;
	if (status != XR_OK) {
		free((void *)(uintptr_t)card->env);
		free(texts);
	}
	return status;
}

/* --- reporting ------------------------------------------------------------- */

/* Its parts behind what is there. */
static bool
append(int fd, const struct xr_encoded *encoded, uint64_t *at, uint64_t *len)
{
	size_t count;
	const struct xr_part *parts = xr_encoded_parts(encoded, &count);
	off_t end = lseek(fd, 0, SEEK_END);

	if (end == -1)
		return false;
	*at = (uint64_t)end;
	*len = 0;
	for (size_t i = 0; i < count; i++) {
		if (fd_write_all(fd, parts[i].data, parts[i].len) == -1)
			return false;
		*len += parts[i].len;
	}
	return true;
}

bool
card_report(int fd, struct xr_value *report)
{
	struct xr_encoded *encoded = NULL;
	struct head h;
	bool ok;

	if (!read_at(fd, &h, sizeof(h), 0) || h.reports >= CARD_REPORTS ||
		xr_encode(report, NULL, &encoded, NULL) != XR_OK)
		return false;
	ok = append(fd, encoded, &h.report[h.reports].at,
		&h.report[h.reports].len);
	xr_encoded_free(encoded);
	h.reports++;
	return ok && pwrite(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h);
}

uint32_t
card_reports(int fd, struct xr_value **reports, uint32_t cap)
{
	uint32_t n = 0;
	struct head h;

	if (!read_at(fd, &h, sizeof(h), 0) || h.magic != MAGIC)
		return 0;
	for (uint32_t i = 0; i < h.reports && i < CARD_REPORTS && n < cap; i++)
		if (take_value(fd, h.report[i].at, h.report[i].len, &reports[n],
			    NULL) == XR_OK)
			n++;
	return n;
}
