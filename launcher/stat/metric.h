/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metric.h - a job in the text format of Prometheus, version 0.0.4.
 *
 * One table says what there is; it is also what xrun-metrics(7) is made from.
 * All values come from the object that a job answers to the message status, with
 * what usage.h adds: so they are what `xrun ps --json JOB` shows.
 */
#ifndef LAUNCHER_STAT_METRIC_H
#define LAUNCHER_STAT_METRIC_H

#include "base/buf.h"

struct cJSON;

/* Of what a rank tells itself: names a rank, and samples a job. */
#define METRIC_NAMES_MAX   64
#define METRIC_SAMPLES_MAX 10000

enum metric_of {
	METRIC_OF_JOB,    /* a sample a job */
	METRIC_OF_RANK,   /* one for each rank: label rank */
	METRIC_OF_STATES, /* one for each state: label state */
	METRIC_OF_WAITS,  /* one for each reason: label for */
	METRIC_OF_STREAM, /* two a rank: labels rank, stream */
	METRIC_OF_NAMES,  /* one for each name that a rank chose: rank, name */
	METRIC_OF_TIMES,  /* a histogram for each rank: label le */
	METRIC_OF_POOL,   /* one for each pool of a rank: label pool */
	METRIC_OF_TASKS,  /* a histogram for each pool: labels pool, le */
	METRIC_OF_QUEUE,  /* one for each queue of a rank: label queue */
};

struct metric_row {
	const char *name; /* NULL ends the table */
	const char *type; /* "gauge", "counter" or "histogram" */
	enum metric_of of;
	/* Where the value is: members, inward, split by dots. "a|b+c": a, or if
	 * that is not there the sum of the others. What is not there has no
	 * sample. NULL: metric.c knows */
	const char *from;
	const char *help; /* a sentence without its full stop */
};

extern const struct metric_row metric_rows[];

/* metric_labels() - "job, rank, stream": the labels of samples of a row. */
const char *metric_labels(enum metric_of of);

/* metric_put() - the text. @status: NULL is a job of which nothing is known, and
 * puts nothing. */
void metric_put(struct buf *out, const struct cJSON *status);

#endif /* LAUNCHER_STAT_METRIC_H */
