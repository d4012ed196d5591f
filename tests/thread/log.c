/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - mover and sinks between pipes, for the thread sanitizer.
 *
 * Writers play ranks, readers play the terminal, the main thread plays the
 * loop: it takes notes, says words, drops a stream that stays open, and ends
 * the sinks. What was written must be in the files and on the screen. TAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/fd.h"
#include "launcher/log/mover.h"
#include "launcher/log/sink.h"

#define RANKS   6
#define STREAMS (RANKS * RAW_STREAMS)
#define LINES   2000
#define LINE    32 /* bytes a line with its newline */
#define WORDS   "xrun: words\n"

struct writer {
	pthread_t thread;
	uint32_t stream;
	int fd;
	bool stays; /* keeps its pipe open */
};

struct reader {
	pthread_t thread;
	int fd;
	uint64_t lines[STREAMS]; /* next one expected */
	uint32_t words, wrong;
};

/* One job: everything that the supervisor would have. */
struct flow {
	int dir; /* -1: no files */
	struct raw_share *share;
	struct notes notes;
	struct mover *mover;
	struct sink *sink[RAW_STREAMS];
	int screen[RAW_STREAMS]; /* write ends */
	struct writer writer[STREAMS];
	struct reader reader[RAW_STREAMS];
	struct line_prefix prefix[STREAMS];
	bool shown[STREAMS];
	uint32_t over, done;
};

static void
must(bool good, const char *what)
{
	if (good)
		return;
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static void
make_line(char *out, uint32_t stream, uint32_t number)
{
	memset(out, '.', LINE);
	out[snprintf(out, LINE, "%u:%u ", stream, number)] = '.';
	out[LINE - 1] = '\n';
}

/* In pieces that end anywhere. */
static void *
write_lines(void *arg)
{
	struct writer *w = arg;
	static _Thread_local char text[LINES * LINE];
	size_t at = 0, piece = 1;

	for (uint32_t i = 0; i < LINES; i++)
		make_line(text + i * LINE, w->stream, i);
	while (at < sizeof(text)) {
		piece = piece * 5 % 7919 + 1;
		if (piece > sizeof(text) - at)
			piece = sizeof(text) - at;
		must(fd_write_all(w->fd, text + at, piece) == 0, "write");
		at += piece;
	}
	if (!w->stays)
		fd_close(w->fd);
	return NULL;
}

static void
read_line(struct reader *r, const char *at, size_t len)
{
	char want[LINE];
	unsigned stream;

	if (len == sizeof(WORDS) - 1 && memcmp(at, WORDS, len) == 0) {
		r->words++;
	} else if (sscanf(at, "[%u] ", &stream) == 1 && stream < STREAMS) {
		make_line(want, stream, (uint32_t)r->lines[stream]++);
		at = strchr(at, ' ') + 1;
		r->wrong += memcmp(at, want, LINE) != 0;
	} else {
		r->wrong++;
	}
}

static void *
read_screen(void *arg)
{
	struct reader *r = arg;
	FILE *file = fdopen(r->fd, "r");
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	must(file != NULL, "fdopen");
	while ((len = getline(&line, &cap, file)) > 0)
		read_line(r, line, (size_t)len);
	free(line);
	fclose(file);
	return NULL;
}

static void
open_screen(struct flow *f, uint32_t kind)
{
	struct sink_config config = {
		.id = kind,
		.lines = true,
		.idle_ns = LINE_IDLE_TTY_NS,
		.dir = f->dir,
		.streams = STREAMS,
		.prefix = f->prefix,
		.shown = f->shown,
		.notes = &f->notes,
		.share = f->share != NULL && f->share->rule.size != 0 ?
			f->share :
			NULL,
	};
	int fd[2];

	must(pipe2(fd, O_CLOEXEC) == 0, "pipe");
	config.fd = f->screen[kind] = fd[1];
	f->reader[kind].fd = fd[0];
	f->sink[kind] = sink_open(&config);
	must(f->sink[kind] != NULL, "sink");
	must(pthread_create(&f->reader[kind].thread, NULL, read_screen,
		     &f->reader[kind]) == 0,
		"thread");
}

static void
open_all(struct flow *f, int dir, uint64_t piece)
{
	struct mover_config config = { .notes = &f->notes, .files_max = 4 };

	memset(f, 0, sizeof(*f));
	f->dir = dir;
	for (uint32_t i = 0; i < STREAMS; i++) {
		f->prefix[i].len = (uint16_t)snprintf(f->prefix[i].text,
			PREFIX_MAX, "[%u] ", i);
		f->shown[i] = true;
	}
	must(notes_init(&f->notes) == 0, "notes");
	if (dir >= 0) {
		config.share = f->share = raw_share_new(RANKS, 0, dir);
		must(f->share != NULL, "share");
		f->share->rule.size = piece;
	}
	for (uint32_t k = 0; k < RAW_STREAMS; k++)
		open_screen(f, k);
	if (dir < 0)
		return;
	config.sink[RAW_OUT] = f->sink[RAW_OUT];
	config.sink[RAW_ERR] = f->sink[RAW_ERR];
	f->mover = mover_open(&config);
	must(f->mover != NULL, "mover");
}

static void
start_writer(struct flow *f, uint32_t stream)
{
	struct writer *w = &f->writer[stream];
	int fd[2];

	must(pipe2(fd, O_CLOEXEC) == 0, "pipe");
	*w = (struct writer){ .stream = stream,
		.fd = fd[1],
		.stays = stream == 3 };
	if (f->mover != NULL)
		must(mover_add(f->mover, stream, fd[0]), "add");
	else
		must(sink_add(f->sink[stream % RAW_STREAMS], stream, fd[0]),
			"add");
	must(pthread_create(&w->thread, NULL, write_lines, w) == 0, "thread");
}

static void
take_notes(struct flow *f)
{
	struct pollfd p = { .fd = f->notes.rd, .events = POLLIN };
	struct note note[16];
	uint32_t n;

	poll(&p, 1, -1);
	n = notes_take(&f->notes, note, 16);
	for (uint32_t i = 0; i < n; i++) {
		f->over += note[i].kind == NOTE_EOF;
		f->done += note[i].kind == NOTE_SINK_DONE;
	}
}

/* What the loop asks while others work. */
static void
look(struct flow *f)
{
	for (uint32_t i = 0; i < STREAMS; i++) {
		if (f->mover != NULL) {
			mover_bytes(f->mover, i);
			mover_last(f->mover, i);
		} else {
			sink_bytes(f->sink[i % RAW_STREAMS], i);
		}
	}
	sink_backlog(f->sink[RAW_OUT]);
	sink_say(f->sink[RAW_ERR], WORDS, sizeof(WORDS) - 1);
}

static void
run(struct flow *f)
{
	uint32_t words = 0;

	for (uint32_t i = 0; i < STREAMS; i++)
		start_writer(f, i);
	if (f->mover != NULL)
		must(mover_start(f->mover) == 0, "start");
	for (uint32_t k = 0; k < RAW_STREAMS && f->mover == NULL; k++)
		must(sink_start(f->sink[k]) == 0, "start");
	while (f->over + 1 < STREAMS) {
		look(f);
		words++;
		take_notes(f);
	}
	pthread_join(f->writer[3].thread, NULL);
	if (f->mover != NULL)
		mover_drop(f->mover, 3);
	else
		sink_drop(f->sink[RAW_ERR], 3);
	while (f->over < STREAMS)
		take_notes(f);
	for (uint32_t i = 0; i < STREAMS; i++)
		if (i != 3)
			pthread_join(f->writer[i].thread, NULL);
	sink_last(f->sink[RAW_ERR], WORDS, sizeof(WORDS) - 1);
	for (uint32_t k = 0; k < RAW_STREAMS; k++)
		must(sink_finish(f->sink[k], &(int){ 0 }) == SINK_LATER,
			"finish");
	while (f->done < RAW_STREAMS)
		take_notes(f);
	for (uint32_t k = 0; k < RAW_STREAMS; k++) {
		fd_close(f->screen[k]);
		pthread_join(f->reader[k].thread, NULL);
	}
	f->reader[RAW_ERR].words -= words + 1;
	fd_close(f->writer[3].fd);
}

static bool
screen_is_whole(const struct flow *f)
{
	bool good = true;

	for (uint32_t i = 0; i < STREAMS; i++)
		good = good && f->reader[i % RAW_STREAMS].lines[i] == LINES;
	for (uint32_t k = 0; k < RAW_STREAMS; k++)
		good = good && f->reader[k].wrong == 0 &&
			f->reader[k].words == 0;
	return good;
}

static bool
file_is_whole(int dir, uint32_t stream)
{
	static char text[LINES * LINE + 1];
	char name[64], want[LINE];
	int fd = openat(dir, raw_name(stream, name, sizeof(name)),
		O_RDONLY | O_CLOEXEC);
	ssize_t n = fd == -1 ? -1 : fd_read_some(fd, text, sizeof(text));

	fd_close(fd);
	for (uint32_t i = 0; n == LINES * LINE && i < LINES; i++) {
		make_line(want, stream, i);
		if (memcmp(text + i * LINE, want, LINE) != 0)
			return false;
	}
	return n == LINES * LINE;
}

static int
forget(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int
make_folder(char *place)
{
	int dir;

	must(mkdtemp(place) != NULL, "mkdtemp");
	dir = open(place, O_DIRECTORY | O_CLOEXEC);
	must(dir >= 0, "open");
	return dir;
}

static void
tell(int number, bool good, const char *what)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", number, what);
	fflush(stdout);
}

int
main(void)
{
	static struct flow kept, plain, pieces; /* their movers live on */
	char place[] = "/tmp/xrun-thread-XXXXXX";
	char other[] = "/tmp/xrun-thread-XXXXXX";
	int dir = make_folder(place);
	bool files = true, tail;

	puts("1..5");
	open_all(&kept, dir, 0);
	run(&kept);
	for (uint32_t i = 0; i < STREAMS; i++)
		files = files && file_is_whole(dir, i);
	nftw(place, forget, 16, FTW_DEPTH | FTW_PHYS);
	tell(1, files, "files hold what was written");
	tell(2, screen_is_whole(&kept), "screens show it by whole lines");
	open_all(&plain, -1, 0);
	run(&plain);
	tell(3, screen_is_whole(&plain), "without files, too");
	tail = sink_tail(plain.sink[RAW_ERR], 1).len == 2048;
	tell(4, tail, "the last bytes are kept for the account");
	open_all(&pieces, make_folder(other), 1000);
	run(&pieces);
	nftw(other, forget, 16, FTW_DEPTH | FTW_PHYS);
	tell(5, screen_is_whole(&pieces), "and of files in pieces");
	return 0;
}
