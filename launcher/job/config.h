/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - the files of settings: where they are, and whether to trust them.
 *
 *   /etc/xrun/config.json                     the machine's
 *   $XDG_CONFIG_HOME/xrun/config.json         the user's; ~/.config if unset
 *   --config FILE                             what was asked for
 *
 * Nothing is looked for in the current directory: a repository that was cloned
 * must not run commands. A file that anybody else could have written is
 * refused: one that belongs neither to us nor to root, or that all may write;
 * for root also one that its group may write. What a user who is not root
 * names with --config is his choice and may belong to anybody.
 *
 * Where no file is, this costs two failed open(2).
 */
#ifndef LAUNCHER_JOB_CONFIG_H
#define LAUNCHER_JOB_CONFIG_H

#include "base/opt.h"

#define CONFIG_FILES_MAX 3

struct config_file {
	char *name; /* as shown: "~/.config/xrun/config.json" */
	char *path; /* as opened */
	struct opt_file opt;
};

/* What was found, the weakest first. Settings borrow from it. */
struct config {
	struct config_file file[CONFIG_FILES_MAX];
	unsigned n;
	struct buf errors;   /* lines, with newlines */
	struct buf warnings; /* the same: of files that may not be read */
};

/*
 * config_open() - find and read the files.
 *
 * @given: of --config; NULL: none; "none": not even the others
 *
 * Returns  XR_OK; XR_E_SYS, XR_E_INVAL, XR_E_RANGE, XR_E_NOMEM with the words in
 *          @err, a tab before what to try; config_fini() is due in any case
 */
enum xr_status config_open(struct config *config, const char *given,
	struct xr_error *err);

/* config_open_one() - @path and no other, which must be there. */
enum xr_status config_open_one(struct config *config, const char *path,
	struct xr_error *err);

/*
 * config_apply() - set what the files say; may be done again.
 *
 * Returns as opt_file(); the errors of all files are in config->errors
 */
enum xr_status config_apply(struct config *config, struct opts *opts,
	struct xr_error *err);

/* config_file_of() - the file that a row was set by, or NULL. */
const struct config_file *config_file_of(const struct config *config,
	enum opt_source who);

void config_fini(struct config *config);

#endif /* LAUNCHER_JOB_CONFIG_H */
