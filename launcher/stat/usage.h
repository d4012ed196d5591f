/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.h - what living ranks use: processor time, memory, processes.
 *
 * Read from /proc by whoever wants to know, for a rank's process and its
 * descendants, so that the job has no work with it.
 */
#ifndef LAUNCHER_STAT_USAGE_H
#define LAUNCHER_STAT_USAGE_H

struct cJSON;

/* usage_add() - adds cpu_seconds, rss_bytes and processes to each rank of @status
 * that has not ended. The state of a running rank becomes "stopped" if a signal or
 * a debugger has stopped its process. @status is a reply to the request "status". */
void usage_add(struct cJSON *status);

#endif /* LAUNCHER_STAT_USAGE_H */
