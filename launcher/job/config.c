/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - see config.h. What a file says is read by base/opt_file.c. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/job/config.h"
#include "launcher/state/state.h"

#define SYSTEM_FILE "/etc/xrun/config.json"
#define OTHERS      0002
#define GROUP       0020

/* False if the user has no place for it. */
static bool
user_path(char out[PATH_MAX])
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home;
	int n;

	if (xdg != NULL && xdg[0] == '/') {
		n = snprintf(out, PATH_MAX, "%s/xrun/config.json", xdg);
		return n < PATH_MAX;
	}
	home = state_user_home();
	n = snprintf(out, PATH_MAX, "%s/.config/xrun/config.json",
		home == NULL ? "" : home);
	return home != NULL && n < PATH_MAX;
}

/* Could anybody else have written it? */
static enum xr_status
distrust(const struct stat *st, const char *name, bool asked,
	struct xr_error *err)
{
	uid_t me = geteuid();
	mode_t others = me == 0 ? OTHERS | GROUP : OTHERS;

	if (asked && me != 0)
		return XR_OK;
	if (st->st_uid != me && st->st_uid != 0)
		return fail(err, XR_E_INVAL,
			"%s: belongs to user %u, who is not trusted\t%s%s",
			name, (unsigned)st->st_uid,
			me == 0 ? "chown root " : "--config none",
			me == 0 ? name : "");
	if ((st->st_mode & others) != 0)
		return fail(err, XR_E_INVAL,
			"%s: others may write it (mode %03o)\tchmod go-w %s",
			name, (unsigned)st->st_mode & 0777, name);
	return XR_OK;
}

/* Read what is open; the file is there then. */
static enum xr_status
read_file(struct config *config, const struct config_file *file, int fd,
	struct xr_error *err)
{
	struct fd_file in = { .fd = fd, .name = file->name, .max = GATE_MAX };
	enum xr_status status;
	char *text;
	size_t len;

	status = fd_read_text(&in, &text, &len, err);
	if (status != XR_OK)
		return status;
	status = distrust(&in.st, file->name, file->opt.who == OPT_FILE, err);
	if (status != XR_OK) {
		free(text);
		return status;
	}
	config->file[config->n] = *file;
	config->file[config->n].name = xstrdup(file->name);
	config->file[config->n].path = xstrdup(file->path);
	config->file[config->n].opt.text = text;
	config->file[config->n].opt.len = len;
	config->n++;
	return XR_OK;
}

/* One that nobody asked for need not be there. Nor is one told of that lies in
 * a home which is not ours to look into, as under sudo -u. */
static enum xr_status
open_file(struct config *config, const struct config_file *file,
	struct xr_error *err)
{
	bool asked = file->opt.who == OPT_FILE;
	enum xr_status status;
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd == -1 && !asked && (errno == ENOENT || errno == ENOTDIR))
		return XR_OK;
	if (fd == -1 && !asked && errno == EACCES) {
		if (access(file->path, F_OK) == -1)
			return XR_OK;
		buf_fmt(&config->warnings, "%s: %s; it was not read\n",
			file->name, strerror(EACCES));
		return XR_OK;
	}
	if (fd == -1)
		return fail(err, XR_E_SYS, "%s: %s", file->name,
			strerror(errno));
	status = read_file(config, file, fd, err);
	fd_close(fd);
	return status;
}

enum xr_status
config_open_one(struct config *config, const char *path, struct xr_error *err)
{
	struct config_file file = {
		.name = (char *)path,
		.path = (char *)path,
		.opt.who = OPT_FILE,
	};

	return open_file(config, &file, err);
}

enum xr_status
config_open(struct config *config, const char *given, struct xr_error *err)
{
	char path[PATH_MAX], name[PATH_MAX];
	struct xr_error wrong = { 0 };
	struct config_file file = {
		.name = SYSTEM_FILE,
		.path = SYSTEM_FILE,
		.opt.who = OPT_SYSTEM,
	};
	enum xr_status status;

	if (given != NULL && strcmp(given, "none") == 0)
		return XR_OK;
	status = open_file(config, &file, err);
	if (status == XR_OK && user_path(path)) {
		state_tilde(path, name, sizeof(name));
		file.name = name;
		file.path = path;
		file.opt.who = OPT_USER;
		status = open_file(config, &file, err);
	}
	if (status != XR_OK || given == NULL)
		return status;
	status = config_open_one(config, given, &wrong);
	return status == XR_OK ? XR_OK :
				 fail(err, status, "--config: %s", wrong.text);
}

/* A refused file leaves the others to be looked at, too. */
enum xr_status
config_apply(struct config *config, struct opts *opts, struct xr_error *err)
{
	enum xr_status first = XR_OK, status;

	buf_clear(&config->errors);
	for (unsigned i = 0; i < config->n; i++) {
		config->file[i].opt.name = config->file[i].name;
		config->file[i].opt.errors = &config->errors;
		status = opt_file(opts, &config->file[i].opt,
			first == XR_OK ? err : NULL);
		if (first == XR_OK)
			first = status;
	}
	return first;
}

const struct config_file *
config_file_of(const struct config *config, enum opt_source who)
{
	for (unsigned i = 0; i < config->n; i++)
		if (config->file[i].opt.who == who)
			return &config->file[i];
	return NULL;
}

void
config_fini(struct config *config)
{
	for (unsigned i = 0; i < config->n; i++) {
		free(config->file[i].name);
		free(config->file[i].path);
		free(config->file[i].opt.text);
		free(config->file[i].opt.values);
	}
	buf_fini(&config->errors);
	buf_fini(&config->warnings);
	*config = (struct config){ 0 };
}
