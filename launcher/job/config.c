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

static void
free_file(struct config_file *file)
{
	free(file->name);
	free(file->path);
	free(file->opt.text);
	free(file->opt.values);
	*file = (struct config_file){ 0 };
}

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

/* As shown: "~/.config/xrun/config.json"; what was asked for, as it was said. */
static char *
name_of(const char *path, enum opt_source who)
{
	char name[PATH_MAX];

	return xstrdup(who == OPT_USER ? state_tilde(path, name, sizeof(name)) :
					 path);
}

/* Read what is open, into the next file of @config. */
static enum xr_status
read_file(struct config *config, int fd, struct xr_error *err)
{
	struct config_file *file = &config->file[config->n];
	struct fd_file in = { .fd = fd, .name = file->name, .max = GATE_MAX };
	enum xr_status status;

	status = fd_read_text(&in, &file->opt.text, &file->opt.len, err);
	if (status == XR_OK)
		status = distrust(&in.st, file->name, file->opt.who == OPT_FILE,
			err);
	return status;
}

/* Why a file could not be opened. One is not told of what lies in a home that
 * is not ours to look into, as under sudo -u. */
static enum xr_status
not_opened(struct config *config, int sys, struct xr_error *err)
{
	const struct config_file *file = &config->file[config->n];

	if (sys != EACCES || file->opt.who == OPT_FILE) {
		errno = sys;
		return fail(err, XR_E_SYS, "%s: %s", file->name, strerror(sys));
	}
	if (access(file->path, F_OK) == 0)
		buf_fmt(&config->warnings, "%s: %s; it was not read\n",
			file->name, strerror(sys));
	return XR_OK;
}

/* One that nobody asked for need not be there. */
static enum xr_status
open_file(struct config *config, const char *path, enum opt_source who,
	struct xr_error *err)
{
	struct config_file *file = &config->file[config->n];
	enum xr_status status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int sys = errno;

	if (fd == -1 && who != OPT_FILE && (sys == ENOENT || sys == ENOTDIR))
		return XR_OK;
	*file = (struct config_file){
		.name = name_of(path, who),
		.path = xstrdup(path),
		.opt.who = who,
	};
	status = fd == -1 ? not_opened(config, sys, err) :
			    read_file(config, fd, err);
	if (fd != -1 && status == XR_OK)
		config->n++;
	else
		free_file(file);
	fd_close(fd);
	return status;
}

enum xr_status
config_open_one(struct config *config, const char *path, struct xr_error *err)
{
	return open_file(config, path, OPT_FILE, err);
}

/* The user's own; nobody has to have one. */
static enum xr_status
open_user(struct config *config, struct xr_error *err)
{
	char path[PATH_MAX];

	return user_path(path) ? open_file(config, path, OPT_USER, err) : XR_OK;
}

enum xr_status
config_open(struct config *config, const char *given, struct xr_error *err)
{
	struct xr_error wrong = { 0 };
	enum xr_status status;

	if (given != NULL && strcmp(given, "none") == 0)
		return XR_OK;
	status = open_file(config, SYSTEM_FILE, OPT_SYSTEM, err);
	if (status == XR_OK)
		status = open_user(config, err);
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
	for (unsigned i = 0; i < config->n; i++)
		free_file(&config->file[i]);
	buf_fini(&config->errors);
	buf_fini(&config->warnings);
	*config = (struct config){ 0 };
}
