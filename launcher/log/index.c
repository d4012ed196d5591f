/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - see index.h. */
#include <fcntl.h>
#include <stdio.h>

#include "base/fd.h"
#include "launcher/log/index.h"
#include "launcher/log/piece.h"
#include "launcher/log/raw.h"

/* The file is opened for each record, 100 times a second at most: a descriptor
 * kept for each of 2 N streams would be the dearer thing. A record that cannot
 * be written is lost; the bytes it speaks of are not. */
static void
append(struct index *index, int dir, uint32_t named)
{
	char name[64], file[80];
	int fd;

	snprintf(file, sizeof(file), "%s.idx",
		raw_name(named, name, sizeof(name)));
	fd = fd_sole(openat(dir, file,
		O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
	if (fd == -1)
		return;
	index->file = true;
	fd_write_all(fd, &index->held, sizeof(index->held));
	fd_close(fd);
}

void
index_moved(struct index *index, int dir, uint32_t named, uint64_t end,
	int64_t ns)
{
	struct index_record *held = &index->held;

	if (held->ns != 0 && ns - held->ns >= INDEX_STEP_NS) {
		append(index, dir, named);
		held->ns = 0;
	}
	if (held->ns == 0)
		held->ns = ns;
	held->end = end;
}

void
index_finish(struct index *index, int dir, uint32_t named)
{
	if (index->file && index->held.ns != 0)
		append(index, dir, named);
	index->held.ns = 0;
}

void
index_cut(struct index *index, int dir, uint32_t named, uint64_t start)
{
	char name[64], from[80], to[96];

	index_finish(index, dir, named);
	if (!index->file)
		return;
	index->file = false;
	snprintf(from, sizeof(from), "%s.idx",
		raw_name(named, name, sizeof(name)));
	snprintf(to, sizeof(to), "%s.idx",
		piece_name(named, start, name, sizeof(name)));
	renameat(dir, from, dir, to);
}
