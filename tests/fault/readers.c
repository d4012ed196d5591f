/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readers.c - jobs whose reader of stdout exits, stops, is slow or never reads.
 *
 *   readers [--rounds N] [--seed N] [--within MS] XRUN PROGRAMS DIR
 *
 * Each round draws one of 20 readers and the job: 1, 2 or 64 ranks; output with or
 * without newlines; ranks that exit or stay; --pty, --no-logs, --on-stdout-close; a
 * FIFO or a unix socket as stdout. The job must end in time, with the exit status that
 * follows from reader and job. Files must be byte-exact, and nothing may be left behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/fault/scene.h"
#include "tests/prog/prog.h"

#define READERS_PATIENCE 25000 /* ms; 64 ranks beside other work need some */
#define READERS_STEPS    4
#define READERS_TOLD_MS  200
#define READERS_STOP_MS  60
#define READERS_SOCKET   9 /* its descriptor; sh knows those below 10 */

enum reader_op {
	READER_EXIT,
	READER_READ,  /* so many bytes */
	READER_WAIT,  /* so many ms */
	READER_ALL,   /* to the end */
	READER_SLOW,  /* to the end, 4 KiB in a ms */
	READER_CRAWL, /* for so many ms, 16 bytes in a ms */
	READER_STOP,  /* SIGSTOP to itself */
	READER_NEVER, /* reads no more, and stays */
};

/* How the job ends, or how a reader that stopped itself ends. */
enum reader_end {
	READER_EXITS,
	READER_ENDS,      /* after the last byte */
	READER_TERM,      /* stays; xrun gets SIGTERM */
	READER_TERM_TWO,  /* the same, twice */
	READER_VERB,      /* stays; xrun stop */
	READER_KILLED,    /* while it is stopped */
	READER_CONTINUED, /* after it was stopped */
};

struct reader_kind {
	const char *name;
	enum reader_end end;
	struct {
		enum reader_op op;
		int arg;
	} step[READERS_STEPS];
};

static const struct reader_kind kinds[] = {
	{ "exit at once", READER_EXITS, { { READER_EXIT, 0 } } },
	{ "exit soon", READER_EXITS, { { READER_WAIT, 10 } } },
	{ "exit later", READER_EXITS, { { READER_WAIT, 250 } } },
	{ "one byte", READER_EXITS, { { READER_READ, 1 } } },
	{ "half a line", READER_EXITS, { { READER_READ, 50 } } },
	{ "one line", READER_EXITS, { { READER_READ, 100 } } },
	{ "some lines", READER_EXITS, { { READER_READ, 5050 } } },
	{ "a pipe", READER_EXITS, { { READER_READ, 65536 } } },
	{ "much", READER_EXITS, { { READER_READ, 90000 } } },
	{ "half a line, exit later", READER_EXITS,
		{ { READER_READ, 50 }, { READER_WAIT, 250 } } },
	{ "lines, exit later", READER_EXITS,
		{ { READER_READ, 5050 }, { READER_WAIT, 100 } } },
	{ "crawl, exit", READER_EXITS, { { READER_CRAWL, 150 } } },
	{ "stop, exit", READER_KILLED, { { READER_STOP, 0 } } },
	{ "lines, stop, exit", READER_KILLED,
		{ { READER_READ, 1050 }, { READER_STOP, 0 } } },
	{ "all", READER_ENDS, { { READER_ALL, 0 } } },
	{ "all, slowly", READER_ENDS, { { READER_SLOW, 0 } } },
	{ "stop, continue, all", READER_CONTINUED,
		{ { READER_READ, 1050 }, { READER_STOP, 0 },
			{ READER_ALL, 0 } } },
	{ "never, SIGTERM", READER_TERM, { { READER_NEVER, 0 } } },
	{ "half a line, never, SIGTERM twice", READER_TERM_TWO,
		{ { READER_READ, 50 }, { READER_NEVER, 0 } } },
	{ "some lines, never, xrun stop", READER_VERB,
		{ { READER_READ, 5050 }, { READER_NEVER, 0 } } },
};

#define READERS_KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct readers {
	struct scene scene;
	const char *xrun, *programs;
	int64_t rounds, seed, within;
	uint64_t random;
	uint32_t exits[256]; /* rounds by exit status */
};

/* One round. */
struct reader_round {
	const struct reader_kind *kind;
	int ranks, bytes; /* of each rank, without newlines; lines are 100 */
	bool newline, stay, pty, logs, go_on, socket;
	pid_t reader;
};

static uint64_t
readers_draw(struct readers *c, uint64_t most)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return c->random % most;
}

/* --- the reader ----------------------------------------------------------- */

/* Returns false at the end of the output. */
static bool
reader_take(int fd, size_t most)
{
	char data[65536];
	ssize_t n;

	while (most > 0) {
		n = read(fd, data, most < sizeof(data) ? most : sizeof(data));
		if (n == 0 || (n == -1 && errno != EINTR))
			return false;
		most -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

static void
reader_step(int fd, enum reader_op op, int arg)
{
	switch (op) {
	case READER_EXIT:
		_exit(0);
	case READER_READ:
		reader_take(fd, (size_t)arg);
		break;
	case READER_WAIT:
		poll(NULL, 0, arg);
		break;
	case READER_ALL:
		while (reader_take(fd, 65536))
			continue;
		break;
	case READER_SLOW:
		while (reader_take(fd, 4096))
			poll(NULL, 0, 1);
		break;
	case READER_CRAWL:
		for (int i = 0; i < arg && reader_take(fd, 16); i++)
			poll(NULL, 0, 1);
		break;
	case READER_STOP:
		raise(SIGSTOP);
		break;
	case READER_NEVER:
		for (;;)
			pause();
	}
}

/* The FIFO is open for reading before xrun opens it for writing. */
static int
reader_open_fifo(struct readers *c)
{
	char path[600];
	int fd;

	snprintf(path, sizeof(path), "%s/outlet", c->scene.dir);
	if (mkfifo(path, 0600) == -1)
		prog_die(errno, "%s", path);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		prog_die(errno, "%s", path);
	return fd;
}

/* xrun inherits the other end. */
static int
reader_open_socket(void)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == -1 ||
		dup2(fd[1], READERS_SOCKET) == -1)
		prog_die(errno, "socketpair");
	close(fd[1]);
	return fd[0];
}

static void
reader_start(struct readers *c, struct reader_round *r)
{
	int fd = r->socket ? reader_open_socket() : reader_open_fifo(c);

	fflush(stdout);
	r->reader = fork();
	if (r->reader == -1)
		prog_die(errno, "fork");
	if (r->reader > 0) {
		/* The other end of the reader's stays open until xrun has it. */
		close(fd);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (r->socket)
		close(READERS_SOCKET);
	/* Waits for a writer: an end before that is none. */
	poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 5000);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	for (int i = 0; i < READERS_STEPS; i++)
		reader_step(fd, r->kind->step[i].op, r->kind->step[i].arg);
	_exit(0);
}

/* --- the job -------------------------------------------------------------- */

/* The reader, or a signal, ends the ranks that stay. */
static void
round_draw(struct readers *c, struct reader_round *r, int64_t number)
{
	static const int ranks[] = { 1, 2, 2, 64 };
	bool ends;

	*r = (struct reader_round){
		.kind = &kinds[(uint64_t)number % READERS_KINDS],
		.ranks = ranks[readers_draw(c, 4)],
		.newline = readers_draw(c, 2) == 0,
		.pty = readers_draw(c, 4) == 0,
		.logs = readers_draw(c, 3) != 0,
		.go_on = readers_draw(c, 4) == 0,
	};
	ends = r->kind->end == READER_ENDS || r->kind->end == READER_CONTINUED;
	r->stay = readers_draw(c, 2) == 0 && !ends &&
		(!r->go_on || r->kind->end == READER_TERM ||
			r->kind->end == READER_TERM_TWO ||
			r->kind->end == READER_VERB);
	r->socket = readers_draw(c, 4) == 0;
	r->bytes = r->ranks == 64 ? 10000 : 200000;
	snprintf(c->scene.what, sizeof(c->scene.what),
		"readers %lld, seed %lld: %s, %d ranks%s%s%s%s%s%s",
		(long long)number, (long long)c->seed, r->kind->name, r->ranks,
		r->newline ? "" : ", no newline", r->stay ? ", stay" : "",
		r->pty ? ", --pty" : "", r->logs ? "" : ", --no-logs",
		r->go_on ? ", continue" : "", r->socket ? ", socket" : "");
}

/* The output of ranks without a newline is known in advance. */
static void
round_put_ref(struct readers *c, const struct reader_round *r)
{
	char path[600], data[1000];

	memset(data, 'a', sizeof(data));
	for (int i = 0; i < r->ranks; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/ref.%d.out", c->scene.dir, i);
		f = fopen(path, "we");
		if (f == NULL)
			prog_die(errno, "%s", path);
		for (int n = 0; n < r->bytes; n += (int)sizeof(data))
			fwrite(data, 1, sizeof(data), f);
		fclose(f);
	}
}

static void
round_start(struct readers *c, const struct reader_round *r)
{
	static char lines[] =
		"\"$0/spew\" --both --copy ref --lines \"$1\"; [ -z \"$2\" ] || exec sleep 60";
	static char bytes[] =
		"head -c \"$1\" /dev/zero | tr '\\0' a; [ -z \"$2\" ] || exec sleep 60";
	char ranks[16], count[16], programs[600];
	char *argv[] = { "/bin/sh", "-c",
		r->socket ? "exec \"$0\" \"$@\" >&9 9>&-" :
			    "exec \"$0\" \"$@\" >outlet",
		(char *)(uintptr_t)c->xrun, "-n", ranks, "--grace=300ms",
		"--report=report", r->pty ? "--pty" : "--no-pty",
		r->logs ? "--logs" : "--no-logs",
		r->go_on ? "--on-stdout-close=continue" :
			   "--on-stdout-close=stop",
		"sh", "-c", r->newline ? lines : bytes, programs, count,
		r->stay ? "stay" : "", NULL };

	snprintf(ranks, sizeof(ranks), "%d", r->ranks);
	snprintf(count, sizeof(count), "%d",
		r->newline ? r->bytes / 200 : r->bytes);
	snprintf(programs, sizeof(programs), "%s", c->programs);
	scene_start(&c->scene, argv, false);
	if (r->socket)
		close(READERS_SOCKET);
}

static void
round_run_verb(struct readers *c)
{
	char *argv[] = { (char *)(uintptr_t)c->xrun, "stop", NULL };
	struct scene other = c->scene;
	pid_t pid;
	int status;

	scene_start(&other, argv, false);
	pid = other.pid;
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		continue;
	/* The job may have ended meanwhile, or has no socket yet. */
	if (!WIFEXITED(status) ||
		(WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 125))
		scene_broken(&c->scene, "xrun stop: wait status %x", status);
	if (status != 0)
		kill(c->scene.pid, SIGTERM);
}

/* Signals and verbs, to the job or to the reader. */
static void
round_strike(struct readers *c, const struct reader_round *r)
{
	int status;

	switch (r->kind->end) {
	case READER_EXITS:
	case READER_ENDS:
		break;
	case READER_TERM:
	case READER_TERM_TWO:
		poll(NULL, 0, READERS_TOLD_MS);
		kill(c->scene.pid, SIGTERM);
		if (r->kind->end == READER_TERM)
			break;
		poll(NULL, 0, READERS_STOP_MS);
		kill(c->scene.pid, SIGTERM);
		break;
	case READER_VERB:
		poll(NULL, 0, READERS_TOLD_MS);
		round_run_verb(c);
		break;
	case READER_KILLED:
	case READER_CONTINUED:
		waitpid(r->reader, &status, WUNTRACED);
		poll(NULL, 0, READERS_STOP_MS);
		kill(r->reader,
			r->kind->end == READER_KILLED ? SIGKILL : SIGCONT);
		break;
	}
}

static bool
round_is_told(const struct reader_round *r)
{
	return r->kind->end == READER_TERM || r->kind->end == READER_TERM_TWO ||
		r->kind->end == READER_VERB;
}

/* Returns true if the job may end with @code. */
static bool
round_allows(const struct reader_round *r, int code)
{
	bool all =
		r->kind->end == READER_ENDS || r->kind->end == READER_CONTINUED;

	if (round_is_told(r))
		return code == 143 || (code == 0 && !r->stay) ||
			/* Without files the rest of the output is lost. */
			(code == 125 && !r->stay && !r->logs);
	if (all || r->go_on)
		return code == 0;
	return code == 141 || (code == 0 && !r->stay);
}

static void
round_judge(struct readers *c, const struct reader_round *r, int status)
{
	struct scene_end end = {
		.orphans_ms = c->within,
		.ranks = r->logs && !(r->pty && r->newline) ?
			(uint32_t)r->ranks :
			0,
		.report = true,
		.status = status,
		.pipe_bytes = 0,
	};

	if (status != -1 && WIFEXITED(status))
		c->exits[WEXITSTATUS(status)]++;
	end.complete = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (status != -1 &&
		(!WIFEXITED(status) || !round_allows(r, WEXITSTATUS(status))))
		scene_broken(&c->scene, "wait status %x", status);
	kill(r->reader, SIGKILL);
	while (waitpid(r->reader, &status, 0) == -1 && errno == EINTR)
		continue;
	scene_check(&c->scene, &end);
}

static void
readers_show(struct readers *c)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/err", c->scene.dir);
	fflush(stdout);
	if (fork() == 0)
		_exit(execlp("sh", "sh", "-c", "tail -n 8 \"$0\" | cut -b -200",
			path, NULL));
	wait(NULL);
}

static void
readers_play(struct readers *c, int64_t number)
{
	uint32_t before = c->scene.broken;
	struct reader_round r;
	int status;

	round_draw(c, &r, number);
	scene_clear(&c->scene);
	if (!r.newline)
		round_put_ref(c, &r);
	reader_start(c, &r);
	round_start(c, &r);
	round_strike(c, &r);
	status = scene_wait(&c->scene, READERS_PATIENCE);
	round_judge(c, &r, status);
	if (c->scene.broken > before)
		readers_show(c);
}

int
main(int argc, char **argv)
{
	static struct readers c = { .rounds = 20, .seed = 1, .within = 1000 };
	const struct prog_opt table[] = {
		{ "rounds", PROG_NUM, &c.rounds, "how many" },
		{ "seed", PROG_NUM, &c.seed, "of the random draws" },
		{ "within", PROG_NUM, &c.within,
			"ms until no process is left" },
		{ 0 },
	};
	int at = prog_opts(argc, argv, table);

	if (argc - at != 3)
		prog_die(0, "readers [OPTION]... XRUN PROGRAMS DIR");
	c.xrun = argv[at];
	c.programs = argv[at + 1];
	c.random = (uint64_t)c.seed * 2654435761u + 88172645463325252u;
	scene_init(&c.scene, argv[at + 2]);
	for (int64_t i = 0; i < c.rounds; i++)
		readers_play(&c, i);
	printf("readers: %lld rounds, seed %lld, %u violations\n",
		(long long)c.rounds, (long long)c.seed, c.scene.broken);
	for (int i = 0; i < 256; i++)
		if (c.exits[i] > 0)
			printf("exit status %d: %u rounds\n", i, c.exits[i]);
	scene_fini(&c.scene);
	return c.scene.broken == 0 ? 0 : 1;
}
