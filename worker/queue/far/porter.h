/* SPDX-License-Identifier: Apache-2.0 */
/*
 * porter.h - threads that wait for others: as many as there is to wait for at a time.
 */
#ifndef WORKER_QUEUE_FAR_PORTER_H
#define WORKER_QUEUE_FAR_PORTER_H

#include <stdbool.h>

#include <sys/queue.h>

struct porter_job {
	STAILQ_ENTRY(porter_job) list;
	void (*run)(struct porter_job *job); /* it may wait */
};

/* porter_post() - a thread that has nothing else to do runs @job; false: there is none,
 * and none can be made. */
bool porter_post(struct porter_job *job);

#endif /* WORKER_QUEUE_FAR_PORTER_H */
