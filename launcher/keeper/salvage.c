/* SPDX-License-Identifier: Apache-2.0 */
/* salvage.c - see salvage.h. */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "launcher/job/job.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/salvage.h"
#include "launcher/log/modes.h"
#include "launcher/log/raw.h"

#define SAVE_PATIENCE 6000 /* ms; for a full disk, and for one that is frozen */
#define PUT_PATIENCE  1000 /* ms; with a terminal that is stopped */

void
salvage_output(struct job *job)
{
	struct raw_share *share = job->share;
	char lost[RAW_LOST_MAX];
	struct pollfd p = { .events = POLLIN };
	uint64_t before = raw_lost(share, &(int){ 0 });
	pid_t child;

	if (share->left == 0)
		return;
	child = keeper_fork(&p.fd);
	if (child > 0) {
		poll(&p, 1, SAVE_PATIENCE);
		syscall(SYS_pidfd_send_signal, p.fd, SIGKILL, NULL, 0);
	} else {
		if (child == 0)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		raw_drain(share, SALVAGE_PATIENCE);
		if (child == 0)
			_exit(0);
	}
	raw_lost_text(share, lost);
	if (raw_lost(share, &(int){ 0 }) > before)
		fd_write_all(STDERR_FILENO, lost, strlen(lost));
}

void
salvage_terminal(const struct job *job)
{
	struct pollfd room = { .events = POLLOUT };
	char off[MODES_END_MAX];

	for (int kind = 0; kind < RAW_STREAMS; kind++) {
		size_t len = modes_end(&job->page->screen[kind], off);

		room.fd = kind == RAW_OUT ? STDOUT_FILENO : STDERR_FILENO;
		if (len > 0 && poll(&room, 1, PUT_PATIENCE) == 1)
			fd_write_now(room.fd, off, len);
	}
}
