/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - see history.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "base/fd.h"
#include "base/gate.h"
#include "base/mem.h"
#include "launcher/state/history.h"
#include "launcher/state/jobs.h"
#include "launcher/state/state.h"

#define HISTORY_FILE  ".history"
#define HISTORY_OLDER ".history.1"
#define HISTORY_FULL  (256 << 10) /* bytes: some 600 jobs */
#define HISTORY_MAX   (16 << 20)  /* no xrun wrote that */

/* Returns false with errno if the path is too long. */
static bool
history_path(char path[static PATH_MAX], const char *root, const char *name)
{
	if (snprintf(path, PATH_MAX, "%s/%s", root, name) < PATH_MAX)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

/* A file of ours with one name; @st receives what it is. -1 with errno. */
static int
history_open(const char *path, struct stat *st)
{
	int fd = open(path,
		O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK |
			O_CLOEXEC,
		0600);

	if (fd == -1)
		return -1;
	if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_nlink <= 1 &&
		st->st_uid == geteuid())
		return fd;
	fd_close(fd);
	errno = EMLINK;
	return -1;
}

/* If several processes find it full, one of them renames it. */
static int
history_turn(int fd, const char *path, const char *root)
{
	char older[PATH_MAX];
	struct stat held, named;

	if (fstat(fd, &held) == -1 || flock(fd, LOCK_EX | LOCK_NB) == -1 ||
		stat(path, &named) == -1 || named.st_ino != held.st_ino ||
		!history_path(older, root, HISTORY_OLDER) ||
		rename(path, older) == -1)
		return fd;
	fd_close(fd);
	return history_open(path, &held);
}

int
history_add(const char *root, const char *text, size_t len)
{
	char path[PATH_MAX];
	int fd, done = -1;
	struct stat st;

	if (!history_path(path, root, HISTORY_FILE))
		return -1;
	fd = history_open(path, &st);
	if (fd != -1 && st.st_size >= HISTORY_FULL)
		fd = history_turn(fd, path, root);
	if (fd != -1)
		done = fd_write_all(fd, text, len);
	fd_close(fd);
	return done;
}

int
history_add_line(const char *root, const char *text)
{
	char *line = xasprintf("%s\n", text);
	int done = history_add(root, line, strlen(line));

	free(line);
	return done;
}

static size_t
history_index(const struct history *h, const char *id)
{
	size_t i = 0;

	while (i < h->count && strcmp(jobs_text(h->job[i], "job"), id) != 0)
		i++;
	return i;
}

const cJSON *
history_find(const struct history *h, const char *id)
{
	size_t i = history_index(h, id);

	return i < h->count ? h->job[i] : NULL;
}

/* Returns NULL if the line is not that of a job. */
static cJSON *
history_parse(const char *line, size_t len)
{
	cJSON *json = NULL;
	const char *id;

	if (gate_check("", line, len, GATE_MAX, NULL) == XR_OK)
		json = cJSON_ParseWithLength(line, len);
	id = jobs_text(json, "job");
	if (id != NULL && state_name_valid(id))
		return json;
	cJSON_Delete(json);
	return NULL;
}

/* A later line of the same job replaces what an earlier one said. */
static void
history_take(struct history *h, const char *line, size_t len)
{
	cJSON *json = history_parse(line, len);
	const char *id = jobs_text(json, "job");
	size_t i;

	if (json == NULL)
		return;
	i = history_index(h, id);
	if (i < h->count) {
		cJSON_Delete(h->job[i]);
		h->count--;
		memmove(&h->job[i], &h->job[i + 1],
			(h->count - i) * sizeof(*h->job));
	}
	if (cJSON_HasObjectItem(json, "removed")) {
		cJSON_Delete(json);
		return;
	}
	/* Members that only the record of the running job needs. */
	cJSON_DeleteItemFromObjectCaseSensitive(json, "root");
	cJSON_DeleteItemFromObjectCaseSensitive(json, "errors");
	cJSON_DeleteItemFromObjectCaseSensitive(json, "pid_namespace");
	h->job = xrealloc(h->job, (h->count + 1) * sizeof(*h->job));
	h->job[h->count++] = json;
}

static void
history_read_file(struct history *h, const char *root, const char *name)
{
	char path[PATH_MAX], *text = NULL, *nl;
	size_t len = 0;

	if (!history_path(path, root, name) ||
		fd_read_file(path, HISTORY_MAX, &text, &len, NULL) != XR_OK)
		return;
	for (char *p = text; (nl = strchr(p, '\n')) != NULL; p = nl + 1)
		history_take(h, p, (size_t)(nl - p));
	free(text);
}

void
history_read(struct history *h, const char *root)
{
	*h = (struct history){ 0 };
	if (root == NULL)
		return;
	history_read_file(h, root, HISTORY_OLDER);
	history_read_file(h, root, HISTORY_FILE);
}

void
history_fini(struct history *h)
{
	for (size_t i = 0; i < h->count; i++)
		cJSON_Delete(h->job[i]);
	free(h->job);
	*h = (struct history){ 0 };
}

struct history_blank {
	history_is_fn *is;
	void *ctx;
	int fd;
};

/* In its place: another xrun may append to the file, or rename it. */
static int
history_blank_line(const struct history_blank *b, off_t at, char *line,
	size_t len)
{
	cJSON *json = history_parse(line, len);
	bool is = json != NULL && b->is(b->ctx, jobs_text(json, "job"));

	cJSON_Delete(json);
	if (!is)
		return 0;
	memset(line, ' ', len);
	return pwrite(b->fd, line, len, at) == (ssize_t)len ? 0 : -1;
}

static int
history_blank_file(struct history_blank *b, const char *path)
{
	struct fd_file file = { .name = path, .max = HISTORY_MAX };
	char *text = NULL, *nl;
	size_t len = 0;
	int done = -1;

	file.fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (file.fd == -1)
		return errno == ENOENT ? 0 : -1;
	b->fd = file.fd;
	if (fd_read_text(&file, &text, &len, NULL) != XR_OK)
		errno = EIO;
	else if (file.st.st_nlink > 1 || file.st.st_uid != geteuid())
		errno = EMLINK;
	else
		done = 0;
	for (char *p = text; done == 0 && (nl = strchr(p, '\n')) != NULL;
		p = nl + 1)
		done = history_blank_line(b, p - text, p, (size_t)(nl - p));
	free(text);
	fd_close(file.fd);
	return done;
}

/* The older one last: a file that is renamed meanwhile is read twice. */
int
history_remove(const char *root, history_is_fn *is, void *ctx)
{
	struct history_blank b = { .is = is, .ctx = ctx };
	char path[PATH_MAX];
	int sys = 0;

	if (!history_path(path, root, HISTORY_FILE) ||
		history_blank_file(&b, path) == -1)
		sys = errno;
	if (!history_path(path, root, HISTORY_OLDER) ||
		history_blank_file(&b, path) == -1)
		sys = sys == 0 ? errno : sys;
	if (sys == 0)
		return 0;
	errno = sys;
	return -1;
}
