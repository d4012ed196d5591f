/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spew.c - a rank that writes lines which can be checked (line.h).
 *
 * With --copy PREFIX the bytes also go to PREFIX.RANK.out and PREFIX.RANK.err:
 * each chunk is there before write(2) is called, and the mapped counter beside
 * it (.count, one u64) is moved on after write(2) has said how much it took.
 * So whenever the writer is killed, what arrived begins the copy and is at
 * least as long as the counter says.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include "base/fd.h"
#include "tests/prog/line.h"
#include "tests/prog/prog.h"

#define CHUNK_MAX 70000 /* wild writes: above the 64 KiB of a pipe, too */
#define AWAIT_MS  1000
#define LOOK_MS   2

struct out {
	int fd;
	int copy;                    /* -1: none */
	volatile uint64_t *accepted; /* mapped; NULL: none */
	struct line_maker maker;
	char *data;
	size_t len, cap;
};

struct settings {
	int64_t lines, size, batch, wild;
	const char *copy, *await;
	bool err, both, endless, torn, joined;
};

/* Returns when a file matches @pattern, or after AWAIT_MS. */
static void
await_file(const char *pattern)
{
	glob_t found;
	int status = GLOB_NOMATCH;

	for (int ms = 0; status != 0 && ms < AWAIT_MS; ms += LOOK_MS) {
		status = glob(pattern, 0, NULL, &found);
		if (status == 0)
			globfree(&found);
		else
			poll(NULL, 0, LOOK_MS);
	}
}

static void
open_copy(struct out *out, const char *prefix, int64_t rank)
{
	const char *end = out->fd == STDOUT_FILENO ? "out" : "err";
	char path[4096];
	void *map;
	int fd;

	snprintf(path, sizeof(path), "%s.%lld.%s", prefix, (long long)rank,
		end);
	out->copy = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (out->copy == -1)
		prog_die(errno, "%s", path);
	snprintf(path, sizeof(path), "%s.%lld.%s.count", prefix,
		(long long)rank, end);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd == -1 || ftruncate(fd, sizeof(uint64_t)) == -1)
		prog_die(errno, "%s", path);
	map = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED,
		fd, 0);
	if (map == MAP_FAILED)
		prog_die(errno, "map %s", path);
	out->accepted = map;
	fd_close(fd);
}

static void
out_init(struct out *out, int fd, const struct settings *set)
{
	int64_t rank = prog_rank() < 0 ? 0 : prog_rank();
	size_t longest = set->wild != 0 ? LINE_WILD_MAX : (size_t)set->size;

	memset(out, 0, sizeof(*out));
	out->fd = fd;
	out->copy = -1;
	line_init(&out->maker, rank, fd, (size_t)set->size,
		(uint64_t)set->wild);
	out->cap = (longest + LINE_HEAD_MAX) *
		(set->wild != 0 ? 2 : (size_t)set->batch);
	out->data = malloc(out->cap);
	if (out->data == NULL)
		prog_die(0, "no memory for %zu bytes", out->cap);
	if (set->copy != NULL)
		open_copy(out, set->copy, rank);
}

static size_t
write_some(const struct out *out, size_t len)
{
	struct pollfd wait = { .fd = out->fd, .events = POLLOUT };
	ssize_t n;

	for (;;) {
		n = write(out->fd, out->data, len);
		if (n >= 0)
			return (size_t)n;
		if (errno == EAGAIN)
			poll(&wait, 1, -1);
		else if (errno != EINTR)
			prog_die(errno, "write to %d", out->fd);
	}
}

/* The first @len bytes of the buffer to the stream; the rest moves up. */
static void
emit(struct out *out, size_t len)
{
	size_t n;

	if (out->copy != -1 && fd_write_all(out->copy, out->data, len) == -1)
		prog_die(errno, "write the copy");
	while (len > 0) {
		n = write_some(out, len);
		if (out->accepted != NULL)
			*out->accepted += n;
		len -= n;
		out->len -= n;
		memmove(out->data, out->data + n, out->len);
	}
}

static void
add_line(struct out *out, uint64_t seq, const struct settings *set)
{
	out->len += line_make(&out->maker, seq, out->data + out->len);
	if (set->joined || (set->torn && (int64_t)seq == set->lines - 1))
		out->len--;
}

static void
wild_turn(struct out *out)
{
	uint64_t r;

	for (;;) {
		r = line_random(&out->maker.random);
		if (r >> 8 & 1)
			r = (r >> 16) % 200 + 1;
		else
			r = (r >> 16) % CHUNK_MAX + 1;
		if (r > out->len)
			return;
		emit(out, r);
	}
}

static void
run(struct out *outs, int count, const struct settings *set)
{
	int64_t seq;
	int i;

	for (seq = 0; set->endless || seq < set->lines; seq++) {
		for (i = 0; i < count; i++) {
			add_line(&outs[i], (uint64_t)seq, set);
			if (set->wild != 0)
				wild_turn(&outs[i]);
			else if ((seq + 1) % set->batch == 0)
				emit(&outs[i], outs[i].len);
		}
	}
	for (i = 0; i < count; i++)
		emit(&outs[i], outs[i].len);
}

int
main(int argc, char **argv)
{
	struct settings set = { .lines = 1000, .size = 100, .batch = 1 };
	const struct prog_opt table[] = {
		{ "lines", PROG_NUM, &set.lines, "lines a stream" },
		{ "size", PROG_NUM, &set.size, "bytes a line with newline" },
		{ "batch", PROG_NUM, &set.batch, "lines a write(2)" },
		{ "wild", PROG_NUM, &set.wild, "seed: wild lines and chunks" },
		{ "copy", PROG_TEXT, &set.copy, "prefix of reference files" },
		{ "await", PROG_TEXT, &set.await, "a file, by its pattern" },
		{ "err", PROG_FLAG, &set.err, "to stderr, not stdout" },
		{ "both", PROG_FLAG, &set.both, "to stdout and stderr" },
		{ "endless", PROG_FLAG, &set.endless, "never stop" },
		{ "torn", PROG_FLAG, &set.torn, "last line has no newline" },
		{ "joined", PROG_FLAG, &set.joined, "no newline at all" },
		{ 0 },
	};
	struct out outs[2];
	int count = 0;

	prog_opts(argc, argv, table);
	if (set.batch < 1 || set.size < 1 || set.lines < 0)
		prog_die(0, "--batch and --size begin at 1, --lines at 0");
	if (!set.err || set.both)
		out_init(&outs[count++], STDOUT_FILENO, &set);
	if (set.err || set.both)
		out_init(&outs[count++], STDERR_FILENO, &set);
	if (set.await != NULL)
		await_file(set.await);
	run(outs, count, &set);
	while (count-- > 0) {
		line_fini(&outs[count].maker);
		free(outs[count].data);
	}
	return 0;
}
