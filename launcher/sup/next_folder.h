/* SPDX-License-Identifier: Apache-2.0 */
/*
 * next_folder.h - the folder of the next attempt is made at the end of this one,
 * by the helper thread: a disk that hangs must not hold the keeper.
 */
#ifndef LAUNCHER_SUP_NEXT_FOLDER_H
#define LAUNCHER_SUP_NEXT_FOLDER_H

#include <stdbool.h>

#include "launcher/job/job.h"

/*
 * next_folder_known() - it is there, or there is no next attempt.
 *
 * False: that is waited for, as by report_next(): to be called again at
 * NOTE_WRITTEN, and when sup->patience is at an end. Where it could not be made
 * that is said, and the job is over.
 */
bool next_folder_known(struct job *job);

#endif /* LAUNCHER_SUP_NEXT_FOLDER_H */
