/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - did what spew wrote arrive?
 *
 *   verify raw RAW REF [RAW REF]...   byte for byte; --killed: REF.count bytes
 *                                     at least, and nothing that REF lacks
 *   verify merged FILE                prefixed lines of all ranks on one screen
 *
 * A template such as "[%] " says how a prefix looks; % is the rank, padded with
 * blanks or not. Exit 0 all right, 1 not (the first places are named), 2 usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "tests/prog/line.h"
#include "tests/prog/prog.h"

#define RANKS_MAX 16384
#define NAMED_MAX 5 /* places that are named; the rest is counted */

struct flow {
	uint64_t next, lines;
	struct buf held; /* pieces of a line, with --joins */
};

struct totals {
	uint64_t lines, broken, mixed, order, missing, skipped, joined;
};

struct view {
	int64_t ranks, lines, streams;
	const char *prefix, *err_prefix, *skip;
	bool joins, killed;
	struct flow *flows; /* [ranks][2] */
	struct totals sum;
	int named;
};

static struct span
map_file(const char *path)
{
	struct span file = { .at = "", .len = 0 };
	struct stat st;
	void *map;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &st) == -1)
		prog_die(errno, "%s", path);
	file.len = (size_t)st.st_size;
	if (file.len > 0) {
		map = mmap(NULL, file.len, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map == MAP_FAILED)
			prog_die(errno, "map %s", path);
		file.at = map;
	}
	fd_close(fd);
	return file;
}

static void
unmap_file(struct span file)
{
	if (file.len > 0)
		munmap((void *)(uintptr_t)file.at, file.len);
}

static size_t
first_difference(struct span a, struct span b)
{
	size_t n = a.len < b.len ? a.len : b.len, i = 0;

	while (n - i > 4096 && memcmp(a.at + i, b.at + i, 4096) == 0)
		i += 4096;
	while (i < n && a.at[i] == b.at[i])
		i++;
	return i;
}

/* How many bytes the writer knew to be accepted. */
static uint64_t
accepted(const char *ref)
{
	char path[4096];
	uint64_t count = 0;
	struct span file;

	snprintf(path, sizeof(path), "%s.count", ref);
	file = map_file(path);
	if (file.len != sizeof(count))
		prog_die(0, "%s: not a counter", path);
	memcpy(&count, file.at, sizeof(count));
	unmap_file(file);
	return count;
}

static bool
check_raw(const char *raw_path, const char *ref_path, bool killed)
{
	struct span raw = map_file(raw_path), ref = map_file(ref_path);
	uint64_t least = killed ? accepted(ref_path) : ref.len;
	size_t at = first_difference(raw, ref);
	bool same = at == raw.len && raw.len >= least;

	if (same)
		printf("%s: identical, %zu bytes\n", raw_path, raw.len);
	else if (at < raw.len && at < ref.len)
		printf("%s: differs at byte %zu of %zu from %s\n", raw_path, at,
			raw.len, ref_path);
	else if (at < raw.len)
		printf("%s: %zu bytes more than %s\n", raw_path, raw.len - at,
			ref_path);
	else
		printf("%s: ends at byte %zu, %llu were accepted\n", raw_path,
			raw.len, (unsigned long long)least);
	unmap_file(raw);
	unmap_file(ref);
	return same;
}

/* The rank in front of @line if it looks like @tmpl; the line loses it. */
static bool
strip(struct span *line, const char *tmpl, int64_t *rank)
{
	const char *p = line->at, *end = p + line->len;
	bool digits = false;

	*rank = -1;
	for (; *tmpl != '\0'; tmpl++) {
		if (*tmpl != '%') {
			if (p == end || *p++ != *tmpl)
				return false;
			continue;
		}
		while (p < end && *p == ' ')
			p++;
		for (*rank = 0; p < end && *p >= '0' && *p <= '9'; p++) {
			*rank = (*rank * 10 + *p - '0') % (RANKS_MAX * 10);
			digits = true;
		}
		if (!digits)
			return false;
	}
	line->at = p;
	line->len = (size_t)(end - p);
	return true;
}

static void
name(struct view *v, uint64_t number, const char *what, struct span line)
{
	int len = line.len < 60 ? (int)line.len : 60, i;

	if (v->named++ >= NAMED_MAX)
		return;
	printf("line %llu: %s: '", (unsigned long long)number, what);
	for (i = 0; i < len; i++)
		putchar(line.at[i] >= ' ' && line.at[i] < 127 ? line.at[i] :
								'?');
	printf("'\n");
}

static struct flow *
flow_of(struct view *v, int64_t rank, int stream)
{
	if (rank < 0 || rank >= v->ranks)
		return NULL;
	return &v->flows[rank * 2 + stream - 1];
}

static void
count_line(struct view *v, const struct line_seen *seen, uint64_t number,
	struct span line)
{
	struct flow *flow = flow_of(v, seen->rank, seen->stream);

	v->sum.lines++;
	if (flow == NULL) {
		v->sum.mixed++;
		name(v, number, "no such rank", line);
		return;
	}
	flow->lines++;
	if (seen->seq != flow->next) {
		v->sum.order++;
		name(v, number, "out of order", line);
	}
	flow->next = seen->seq + 1;
}

/* Pieces of one line, "…" in front of all but the first, become one span. */
static struct span
join(struct view *v, struct flow *flow, struct span line)
{
	static const char dots[] = "\xe2\x80\xa6";

	if (!v->joins || flow == NULL)
		return line;
	if (line.len >= 3 && memcmp(line.at, dots, 3) == 0) {
		buf_put(&flow->held, line.at + 3, line.len - 3);
		v->sum.joined++;
	} else {
		if (flow->held.len > 0)
			v->sum.broken++;
		buf_clear(&flow->held);
		buf_put(&flow->held, line.at, line.len);
	}
	return (struct span){ .at = buf_text(&flow->held),
		.len = flow->held.len };
}

static void
take_line(struct view *v, uint64_t number, struct span line)
{
	size_t skip = v->skip != NULL ? strlen(v->skip) : 0;
	struct line_seen seen;
	struct flow *flow;
	struct span whole = line;
	int64_t rank;
	int stream;

	if (skip > 0 && line.len >= skip &&
		memcmp(line.at, v->skip, skip) == 0) {
		v->sum.skipped++;
		return;
	}
	stream = strip(&whole, v->prefix, &rank) ? 1 : 2;
	if (stream == 2 && !strip(&whole, v->err_prefix, &rank)) {
		v->sum.broken++;
		name(v, number, "no prefix", line);
		return;
	}
	flow = flow_of(v, rank, stream);
	whole = join(v, flow, whole);
	if (!line_read(whole.at, whole.len, &seen)) {
		if (v->joins && flow != NULL)
			return;
		v->sum.broken++;
		name(v, number, "not whole", line);
		return;
	}
	if (v->joins && flow != NULL)
		buf_clear(&flow->held);
	if ((rank >= 0 && rank != seen.rank) ||
		(strcmp(v->prefix, v->err_prefix) != 0 &&
			stream != seen.stream)) {
		v->sum.mixed++;
		name(v, number, "prefix of another", line);
	}
	count_line(v, &seen, number, line);
}

static void
finish(struct view *v)
{
	struct flow *flow;
	int64_t i;

	for (i = 0; i < v->ranks * 2; i++) {
		flow = &v->flows[i];
		if (flow->held.len > 0)
			v->sum.broken++;
		buf_fini(&flow->held);
		if (v->lines < 0 || (v->streams & 1LL << i % 2) == 0)
			continue;
		if (flow->lines >= (uint64_t)v->lines)
			continue;
		v->sum.missing += (uint64_t)v->lines - flow->lines;
		if (v->named++ < NAMED_MAX)
			printf("rank %lld stream %lld: %llu lines of %lld\n",
				(long long)i / 2, (long long)i % 2 + 1,
				(unsigned long long)flow->lines,
				(long long)v->lines);
	}
}

static bool
check_merged(struct view *v, const char *path)
{
	struct span file = map_file(path), line;
	const char *at = file.at, *end = file.at + file.len, *newline;
	struct totals *sum = &v->sum;
	uint64_t number = 0;

	v->flows = calloc((size_t)v->ranks * 2, sizeof(*v->flows));
	if (v->flows == NULL)
		prog_die(0, "no memory for %lld ranks", (long long)v->ranks);
	while (at < end) {
		newline = memchr(at, '\n', (size_t)(end - at));
		line.at = at;
		line.len = (size_t)((newline != NULL ? newline : end) - at);
		take_line(v, ++number, line);
		at += line.len + 1;
	}
	finish(v);
	printf("lines %llu, broken %llu, mixed %llu, out of order %llu, missing %llu, skipped %llu, joined %llu\n",
		(unsigned long long)sum->lines, (unsigned long long)sum->broken,
		(unsigned long long)sum->mixed, (unsigned long long)sum->order,
		(unsigned long long)sum->missing,
		(unsigned long long)sum->skipped,
		(unsigned long long)sum->joined);
	free(v->flows);
	unmap_file(file);
	return sum->broken + sum->mixed + sum->order + sum->missing == 0;
}

int
main(int argc, char **argv)
{
	struct view v = { .ranks = 1,
		.lines = -1,
		.streams = 1,
		.prefix = "[%] ",
		.err_prefix = "[%]!" };
	const struct prog_opt table[] = {
		{ "ranks", PROG_NUM, &v.ranks, "merged: how many" },
		{ "lines", PROG_NUM, &v.lines, "merged: lines a stream" },
		{ "streams", PROG_NUM, &v.streams,
			"merged: 1 stdout, 2 stderr, 3 both are expected" },
		{ "prefix", PROG_TEXT, &v.prefix, "of stdout, % is the rank" },
		{ "err-prefix", PROG_TEXT, &v.err_prefix, "of stderr" },
		{ "skip", PROG_TEXT, &v.skip, "ignore lines that begin so" },
		{ "joins", PROG_FLAG, &v.joins,
			"pieces of a line are allowed" },
		{ "killed", PROG_FLAG, &v.killed,
			"raw: the writer was killed" },
		{ 0 },
	};
	bool good = true;
	int i;

	if (argc < 2)
		prog_die(0, "raw RAW REF, or merged FILE");
	i = prog_opts(argc - 1, argv + 1, table) + 1;
	if (v.ranks < 1 || v.ranks > RANKS_MAX)
		prog_die(0, "--ranks is 1 to %d", RANKS_MAX);
	if (strcmp(argv[1], "merged") == 0 && i + 1 == argc)
		good = check_merged(&v, argv[i]);
	else if (strcmp(argv[1], "raw") == 0 && i < argc && (argc - i) % 2 == 0)
		for (; i < argc; i += 2)
			good &= check_raw(argv[i], argv[i + 1], v.killed);
	else
		prog_die(0, "raw RAW REF, or merged FILE");
	return good ? 0 : 1;
}
