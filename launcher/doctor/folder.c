/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c - where jobs keep their output and their sockets. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "launcher/doctor/facts.h"
#include "launcher/state/state.h"

/* Source  linux/magic.h, and statfs(2) for those that are not in it */
static const struct {
	unsigned magic;
	const char *name;
} kinds[] = {
	{ 0xEF53, "ext4" },
	{ 0x58465342, "xfs" },
	{ 0x9123683E, "btrfs" },
	{ 0x2FC12FC1, "zfs" },
	{ 0xF2F52010, "f2fs" },
	{ 0x794C7630, "overlay" },
	{ 0x01021994, "tmpfs" },
	{ 0x858458F6, "ramfs" },
	{ 0x4D44, "vfat" },
	{ 0x6969, "nfs" },
	{ 0xFF534D42, "cifs" },
	{ 0xFE534D42, "smb2" },
	{ 0x00C36400, "ceph" },
	{ 0x0BD00BD0, "lustre" },
	{ 0x47504653, "gpfs" },
	{ 0x01021997, "9p" },
	{ 0x65735546, "fuse" },
};

static const char *
kind_of(const char *path)
{
	struct statfs fs;

	if (statfs(path, &fs) == -1)
		return "";
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((unsigned)fs.f_type == kinds[i].magic)
			return kinds[i].name;
	return "";
}

/* What there is of @path: itself, or the folder in which it will be made. */
static void
find_there(const char *path, char out[static PATH_MAX])
{
	char *slash;

	snprintf(out, PATH_MAX, "%s", path);
	while (access(out, F_OK) == -1 && (slash = strrchr(out, '/')) != NULL &&
		slash > out)
		*slash = '\0';
	if (access(out, F_OK) == -1)
		snprintf(out, PATH_MAX, "/");
}

static void
look_at(struct folder_facts *f, const char *path)
{
	char there[PATH_MAX];
	struct statvfs fs;
	struct stat st;

	state_tilde(path, f->path, sizeof(f->path));
	find_there(path, there);
	f->exists = strcmp(there, path) == 0;
	f->trusted = !f->exists ||
		(stat(there, &st) == 0 && S_ISDIR(st.st_mode) &&
			state_is_trusted(&st));
	f->writable = access(there, W_OK | X_OK) == 0;
	snprintf(f->kind, sizeof(f->kind), "%s", kind_of(there));
	f->room = f->inodes = UINT64_MAX;
	if (statvfs(there, &fs) == -1)
		return;
	f->room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (fs.f_files > 0)
		f->inodes = fs.f_favail;
}

/* Nothing is made: a folder that does not exist is good. */
static void
look_at_runtime(struct facts *f)
{
	struct ctl_root root;

	f->runtime_given = getenv("XDG_RUNTIME_DIR") != NULL;
	f->runtime = ctl_root_open(&root, false, &f->runtime_trouble);
	f->runtime_sys = f->runtime ? 0 : errno;
	f->runtime = f->runtime || f->runtime_sys == ENOENT;
	f->runtime_kind = root.kind;
	ctl_root_where(&root, f->runtime_at);
	fd_close(root.dir);
}

void
facts_folders(struct facts *f)
{
	char *home = state_home();
	int terminal;

	if (home != NULL)
		look_at(&f->state, home);
	free(home);
	look_at_runtime(f);
	terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	f->terminals = terminal != -1;
	fd_close(terminal);
}
