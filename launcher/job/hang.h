/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang.h - does a job hang, and which ranks? Pure.
 *
 * Two rules. A rank that shows no sign of life (no byte, no progress, no
 * processor time) for as long as --hang-timeout says hangs; none does while not
 * all is known of one that is silent for so long. And where every rank tells how
 * far it is, processor time is no excuse: if nobody tells anything for that long
 * and some have told less often than others, those hang; if all have told as
 * often, all do after twice that time. Those that are behind hang, too, where the
 * first rule finds others, who may wait for them. The second rule is that of
 * torch_xla's xla_dist, whose limits are 900 and 1800 s.
 */
#ifndef LAUNCHER_JOB_HANG_H
#define LAUNCHER_JOB_HANG_H

#include <stdbool.h>
#include <stdint.h>

struct hang_rank {
	bool lives;
	bool excused;    /* somebody stopped it, traces it, or xrun holds it */
	int64_t sign_ns; /* the last sign of life */
	int64_t told_ns; /* the last byte or heartbeat */
	uint64_t told;   /* heartbeats so far */
	int64_t sure_ns; /* when more is known of its silence; 0: all is */
	bool hangs;      /* the verdict */
};

enum hang {
	HANG_NO,
	HANG_SILENT, /* the first rule */
	HANG_UNEVEN, /* the second */
	HANG_EVEN,
};

/*
 * hang_judge() - at @now; marks those that hang.
 *
 * @due: when there may be another verdict if nothing happens; INT64_MAX: never
 */
enum hang hang_judge(struct hang_rank *ranks, uint32_t count,
	int64_t timeout_ns, int64_t now, int64_t *due);

/* hang_age() - for how long that has been so of those that hang: the longest time
 * without a sign, or without a word, of one of them; of HANG_EVEN, without a word
 * of any. */
int64_t hang_age(const struct hang_rank *ranks, uint32_t count, enum hang rule,
	int64_t now);

#endif /* LAUNCHER_JOB_HANG_H */
