/* SPDX-License-Identifier: Apache-2.0 */
/* fd.h - descriptors: whole reads and writes, and closing that keeps errno. */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <stdbool.h>
#include <stddef.h>

#include <sys/stat.h>
#include <sys/types.h>

#include "xrun/error.h"

/* fd_close() - close if not -1; errno survives. */
void fd_close(int fd);

/*
 * fd_above_stdio() - @fd, which is close-on-exec, or in place of 0, 1 and 2 a copy
 * above these: what a program has as standard input, output and error is its own.
 * Takes @fd. Returns -1, with errno, where @fd is -1 or there is none free.
 */
int fd_above_stdio(int fd);

/*
 * fd_reserve() - make room for descriptors 0 to @count - 1 in the table.
 *
 * Where threads or processes share a table (CLONE_FILES), the kernel waits
 * some milliseconds for all processors each time it makes it larger
 * (synchronize_rcu in fs/file.c, expand_fdtable), and it only doubles it: call
 * this before the table is shared. Costs 8 bytes a descriptor; what cannot be
 * reserved is not. errno survives.
 */
void fd_reserve(unsigned int count);

/*
 * fd_sole() - @fd, if it is a regular file of ours with one name; else -1 with
 * EMLINK, and @fd is closed.
 *
 * For files that are made in folders: O_NOFOLLOW refuses a symbolic link that
 * somebody put there, and not a hard link to another file. -1 and errno pass
 * through.
 */
int fd_sole(int fd);

/* fd_write_all() - every byte, through EINTR and short writes.
 * Returns 0, or -1 with errno. Blocks as the descriptor does. */
int fd_write_all(int fd, const void *data, size_t len);

/*
 * fd_write_now() - as much as goes without a wait, of a pipe, a terminal or a
 * socket, whatever flags @fd has, and without changing one. A regular file
 * takes all, as always.
 *
 * Returns how many bytes, maybe 0; or -1 with errno.
 */
ssize_t fd_write_now(int fd, const void *data, size_t len);

/*
 * fd_reader_gone() - returns true if @sys, the errno of write(2), means that the
 * reader of a pipe or the peer of a socket exited.
 */
bool fd_reader_gone(int sys);

/*
 * fd_tell() - write to a pipe or eventfd whose other end is ours.
 *
 * Whoever waits there for a word that is lost waits for ever, so whatever
 * refuses it is tried again, for a second. errno survives.
 */
void fd_tell(int fd, const void *data, size_t len);

/*
 * fd_has_writer() - returns true if a process has the other side of @fd open: of a pipe's
 * read end, or of the master of a terminal. If not, no more bytes come than @fd holds.
 * Returns true if the kernel refuses to tell.
 */
bool fd_has_writer(int fd);

/* fd_close_but() - closes all descriptors from @from on but the @count ones in @keep, where
 * -1 stands for none. Returns false with errno before Linux 5.9. */
bool fd_close_but(unsigned from, const int *keep, unsigned count);

/* fd_read_some() - up to @cap bytes until EOF, through EINTR.
 * Returns the count, or -1 with errno. */
ssize_t fd_read_some(int fd, void *data, size_t cap);

/*
 * fd_read_small() - the beginning of a file as terminated text, at most @cap - 1
 * bytes: of /proc and /sys, where files have no size. No heap.
 *
 * Returns the count; 0 and "" where there is nothing, or no such file
 */
size_t fd_read_small(const char *path, char *out, size_t cap);

/*
 * fd_read_file() - a whole regular file as terminated text.
 *
 * Opened without following a FIFO or device into a wait (O_NONBLOCK, fstat).
 * @max:  refuse anything larger
 * @text: receives malloc'ed memory, the caller frees
 * Returns  XR_OK, XR_E_SYS, XR_E_INVAL (not a regular file), XR_E_RANGE,
 *          XR_E_NOMEM
 */
enum xr_status fd_read_file(const char *path, size_t max, char **text,
	size_t *len, struct xr_error *err);

/* What fd_read_text() reads. */
struct fd_file {
	int fd;
	const char *name; /* in errors */
	size_t max;
	struct stat st; /* receives what fstat(2) says */
};

/* fd_read_text() - fd_read_file() of what is open already, with O_NONBLOCK. */
enum xr_status fd_read_text(struct fd_file *file, char **text, size_t *len,
	struct xr_error *err);

#endif /* BASE_FD_H */
