/* SPDX-License-Identifier: Apache-2.0 */
/* final.h - finalisers, as the library itself has them. */
#ifndef WORKER_PROC_FINAL_H
#define WORKER_PROC_FINAL_H

#include <xrun/final.h>

/* final_run_all() - those of this process, by priority. For who ends without
 * exit(3). */
void final_run_all(void);

#endif /* WORKER_PROC_FINAL_H */
