/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h - the process the user sees: parent of the supervisor, subreaper,
 * and the one who cleans up should the supervisor die.
 *
 * Both share one descriptor table, so that nothing has to be handed over: the
 * pipes, the raw files and the lock are the keeper's as well. A page of shared
 * memory tells the rest. After the start the keeper uses no heap and sleeps in
 * one poll(2); what it does at each event is the table in keeper.c.
 */
#ifndef LAUNCHER_KEEPER_KEEPER_H
#define LAUNCHER_KEEPER_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

#include "launcher/ctl/place.h"
#include "launcher/job/again.h"
#include "launcher/job/job.h"
#include "launcher/keeper/own_tty.h"
#include "launcher/keeper/record.h"
#include "launcher/log/modes.h"
#include "proc/leaf.h"

#define KEEPER_VERDICT    0x100 /* set in the verdict when there is one */
#define KEEPER_AGAIN      0x200 /* in the verdict: the job begins again */
#define KEEPER_SUPER_NAME "xrun-super" /* of the supervisor, in /proc */
#define KEEPER_NO_VERDICT -1 /* the job is not over: the keeper ends it */

/* Shared; the supervisor writes, the keeper reads. */
struct keeper_page {
	int32_t verdict; /* KEEPER_VERDICT | exit status; 0: none yet */
	int32_t follow;  /* the supervisor stops itself: do the same */
	int32_t keeper;  /* pidfd of the keeper, for the supervisor */
	int32_t told;    /* the same as verdict, once files may say so: the
			  * job has ended, and what remains can be done by
			  * the keeper */
	int32_t text;    /* report_file.h: all of the report; 0: none yet */
	int32_t closed;  /* the account is written, or was given up */
	int32_t overdue; /* timer of the keeper's: the supervisor ends by then,
			  * or has started all ranks */
	int32_t started; /* all ranks are, or none will be */
	int32_t heard;   /* answer.h: counter of signal reads */
	int32_t silent;  /* no rank wrote a byte: the folder is to go */
	int32_t kept;    /* it stays all the same */
	int32_t removed; /* it is gone */
	int32_t done;    /* the supervisor only exits */
	int32_t cleaned; /* it has removed error files and record */
	struct record record;
	struct own_tty own;
	struct again again;   /* sup/next.c, and of all attempts */
	struct ctl_place ctl; /* the control socket's */
	int32_t next;         /* the next attempt's folder; or -errno */
	int32_t listen;    /* the socket itself, between two attempts; or -1 */
	int32_t http;      /* that of --http auto; -1: none */
	int32_t http_over; /* nobody answers there any more */
	struct modes screen[RAW_STREAMS]; /* what the rank switched there */
	struct leaves leaves;             /* control groups of the ranks */
	char where[256]; /* the job's output, for the last word; "": nowhere */
};

typedef int keeper_fn(struct job *job);

/*
 * keeper_run() - make the supervisor, run @job_fn in it, keep watch.
 *
 * Returns the exit status of xrun, in the keeper. The supervisor never
 * returns: it leaves its verdict in the page and exits.
 */
int keeper_run(struct job *job, keeper_fn *job_fn);

/* keeper_fork() - fork(2) with a shared table of descriptors, before there are threads.
 * @pidfd receives a descriptor of the child. Returns as fork(2). */
pid_t keeper_fork(int *pidfd);

/* keeper_all_started() - no rank is, or will be, between clone and exec. */
void keeper_all_started(struct keeper_page *page);

/* keeper_follow_stop() - announce that the supervisor will stop itself. */
void keeper_follow_stop(struct keeper_page *page);

/* keeper_is_dead() - for the supervisor. */
bool keeper_is_dead(const struct keeper_page *page);

/* keeper_page_new() - NULL with errno. */
struct keeper_page *keeper_page_new(void);

#endif /* LAUNCHER_KEEPER_KEEPER_H */
