/* SPDX-License-Identifier: Apache-2.0 */
/*
 * die.c - the culprit and its victims.
 *
 * Rank --rank (default: every rank) dies by --signal or with --exit. The others
 * rest, or, connected with --star or --ring PATH, die of the culprit's death:
 * by SIGPIPE, an exit code or SIGSEGV. In a star all hear of it at once, in a
 * ring each from its neighbour. A folder for PATH is made by the caller.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "tests/prog/meet.h"
#include "tests/prog/prog.h"

#define NOBODY (-2)

static struct settings {
	int64_t rank, code, after, touch, within, victim_code, last;
	int sig;
	bool core, tcp;
	const char *say, *ring, *star, *how;
} set = { .rank = NOBODY, .victim_code = 1, .last = 60000, .how = "pipe" };

static int peers[2] = { -1, -1 }; /* whose end a victim hears of */

static void
touch_memory(int64_t bytes)
{
	char *map;

	if (bytes <= 0)
		return;
	map = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		prog_die(errno, "%lld bytes", (long long)bytes);
	memset(map, 1, (size_t)bytes);
}

static void
limit_core(bool wanted)
{
	struct rlimit core;

	getrlimit(RLIMIT_CORE, &core);
	core.rlim_cur = wanted ? core.rlim_max : 0;
	setrlimit(RLIMIT_CORE, &core);
}

/* A real fault for SEGV and abort() for ABRT: what programs do. */
static void
die_by(int sig)
{
	struct sigaction deflt = { .sa_handler = SIG_DFL };
	int *volatile nowhere = NULL;
	sigset_t all;

	sigaction(sig, &deflt, NULL);
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	if (sig == SIGSEGV)
		*nowhere = 1;
	if (sig == SIGABRT)
		abort();
	kill(getpid(), sig);
	_exit(99); /* the signal does not kill */
}

static void
culprit(void)
{
	prog_pause_ms(set.after);
	if (set.say != NULL)
		dprintf(STDERR_FILENO, "%s\n", set.say);
	if (set.sig != 0)
		die_by(set.sig);
	_exit((int)set.code);
}

static void
swap_byte(int fd, bool send_it)
{
	char byte = 'x';
	ssize_t n;

	do {
		n = send_it ? write(fd, &byte, 1) : read(fd, &byte, 1);
	} while (n == -1 && errno == EINTR);
	if (n != 1)
		prog_die(errno, "a peer left too early");
}

/* The culprit's word comes round only when all are connected. */
static void
join_ring(int64_t rank, int64_t size, bool first)
{
	int fd = meet_listen(set.ring, rank, set.tcp);

	peers[1] = meet_connect(set.ring, (rank + 1) % size, set.tcp);
	peers[0] = meet_accept(fd);
	close(fd);
	swap_byte(peers[first ? 1 : 0], first);
	swap_byte(peers[first ? 0 : 1], !first);
}

static void
join_star(int64_t size, bool centre)
{
	int fd;

	if (!centre) {
		peers[0] = meet_connect(set.star, set.rank, set.tcp);
		return;
	}
	fd = meet_listen(set.star, set.rank, set.tcp);
	while (--size > 0)
		meet_accept(fd); /* kept: our death closes them */
}

/* Returns the peer that is gone. */
static int
hear_of_death(void)
{
	struct pollfd fds[2] = {
		{ .fd = peers[0], .events = POLLIN },
		{ .fd = peers[1], .events = POLLIN },
	};

	while (poll(fds, 2, -1) == -1 && errno == EINTR)
		;
	return fds[0].revents != 0 ? peers[0] : peers[1];
}

static void
victim(int64_t rank)
{
	int fd = hear_of_death();

	prog_pause_ms(rank * 7919 % (set.within + 1));
	if (strcmp(set.how, "segv") == 0)
		die_by(SIGSEGV);
	while (strcmp(set.how, "pipe") == 0)
		if (write(fd, "x", 1) == -1 && errno == EPIPE)
			break; /* SIGPIPE is ignored here */
	_exit((int)set.victim_code);
}

int
main(int argc, char **argv)
{
	const struct prog_opt table[] = {
		{ "rank", PROG_NUM, &set.rank, "the culprit; default: all" },
		{ "signal", PROG_SIGNAL, &set.sig, "what it dies of" },
		{ "exit", PROG_NUM, &set.code, "or its exit code" },
		{ "after", PROG_NUM, &set.after, "ms of life before" },
		{ "touch", PROG_NUM, &set.touch, "bytes of memory to touch" },
		{ "core", PROG_FLAG, &set.core, "allow a core file" },
		{ "say", PROG_TEXT, &set.say, "last words on stderr" },
		{ "ring", PROG_TEXT, &set.ring, "path: die round a ring" },
		{ "star", PROG_TEXT, &set.star, "path: die all at once" },
		{ "tcp", PROG_FLAG, &set.tcp, "TCP, not Unix sockets" },
		{ "how", PROG_TEXT, &set.how, "victims: pipe, exit, segv" },
		{ "victim-exit", PROG_NUM, &set.victim_code, "their code" },
		{ "within", PROG_NUM, &set.within, "ms they take at most" },
		{ "last", PROG_NUM, &set.last, "ms nobody outlives" },
		{ 0 },
	};
	int64_t rank = prog_rank(), size = prog_size();
	bool guilty;

	prog_opts(argc, argv, table);
	if (set.rank == NOBODY && (set.ring != NULL || set.star != NULL))
		prog_die(0, "--ring and --star need --rank");
	if (strcmp(set.how, "pipe") != 0 && strcmp(set.how, "exit") != 0 &&
		strcmp(set.how, "segv") != 0)
		prog_die(0, "--how is pipe, exit or segv");
	guilty = set.rank == NOBODY || set.rank == rank;
	prog_lifetime(set.last);
	limit_core(set.core && guilty);
	if (set.ring != NULL)
		join_ring(rank, size, guilty);
	if (set.star != NULL)
		join_star(size, guilty);
	touch_memory(guilty ? set.touch : 0);
	if (guilty)
		culprit();
	if (set.ring != NULL || set.star != NULL)
		victim(rank);
	prog_rest();
}
