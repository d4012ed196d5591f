/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prog.h - what the small programs that serve as ranks have in common.
 *
 * They run under any launcher, so that the same test can be tried on a peer:
 * the rank is the first of RANK, XRUN_RANK, PMI_RANK, OMPI_COMM_WORLD_RANK and
 * PARALLEL_SEQ (which counts from 1) that is set. A wrong command line ends a
 * program with 2 and one line on stderr, never with a guess.
 */
#ifndef TESTS_PROG_PROG_H
#define TESTS_PROG_PROG_H

#include <stdbool.h>
#include <stdint.h>

enum prog_kind {
	PROG_FLAG,   /* bool */
	PROG_NUM,    /* int64_t; K, M, G (or k, m, g) multiply by 1024 */
	PROG_TEXT,   /* const char * */
	PROG_SIGNAL, /* int; "SEGV", "SIGSEGV" or a number */
};

/* One row per option; a row without a name ends the table. */
struct prog_opt {
	const char *name;
	enum prog_kind kind;
	void *to;
	const char *help;
};

/*
 * prog_opts() - read "--name value" and "--name=value" up to the first operand.
 *
 * "--help" prints the table and ends the program with 0.
 * Returns the index of the first operand in @argv.
 */
int prog_opts(int argc, char **argv, const struct prog_opt *table);

/* prog_rank() - this rank, or -1 if no launcher said one. */
int64_t prog_rank(void);

/* prog_size() - the number of ranks, 1 if no launcher said. */
int64_t prog_size(void);

/* prog_num() - @text as a number; dies naming @what. */
int64_t prog_num(const char *what, const char *text);

/* prog_signal() - a signal's number from its name or number, or dies. */
int prog_signal(const char *text);

/* prog_die() - one line on stderr with errno's text if @sys is not 0, exit 2. */
void prog_die(int sys, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* prog_lifetime() - be killed by SIGALRM after @ms, whoever forgot us. */
void prog_lifetime(int64_t ms);

/* prog_pause_ms() - let @ms pass; the delay is what the caller was asked for. */
void prog_pause_ms(int64_t ms);

/* prog_rest() - wait for a signal that ends the process; never returns. */
void prog_rest(void) __attribute__((noreturn));

#endif /* TESTS_PROG_PROG_H */
