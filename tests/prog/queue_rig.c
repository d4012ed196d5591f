/* SPDX-License-Identifier: Apache-2.0 */
/* queue_rig.c - see queue_rig.h. */
#include <signal.h>
#include <time.h>

#include <sys/prctl.h>
#include <sys/wait.h>

#include <xrun/tensor.h>

#include "tests/prog/queue_far.h"
#include "tests/prog/queue_rig.h"

struct rig_board *rig_board;

/* --- what children have ---------------------------------------------------------------- */

static struct {
	void *data[8];
	size_t len[8], count;
} kept;

static struct {
	const struct xr_queue *q;
	uint32_t roles;
} left;

void
rig_keep(void *data, size_t len)
{
	EXPECT(kept.count < 8);
	kept.data[kept.count] = data;
	kept.len[kept.count++] = len;
}

static void
copy_kept(bool out)
{
	uint8_t *at = rig_board->kept;

	for (size_t i = 0; i < kept.count; i++) {
		EXPECT(at + kept.len[i] <= rig_board->kept + RIG_KEPT);
		memcpy(out ? kept.data[i] : at, out ? at : kept.data[i],
			kept.len[i]);
		at += kept.len[i];
	}
}

void
rig_recall(void)
{
	copy_kept(true);
}

void
rig_leave(struct xr_queue *q, uint32_t roles)
{
	left.roles = rig_left(q) | roles;
	left.q = q;
	xr_queue_leave(q, roles);
}

uint32_t
rig_left(const struct xr_queue *q)
{
	return left.q == q ? left.roles : 0;
}

void *
rig_init(size_t extra)
{
	size_t bytes = sizeof(*rig_board) + extra;

	alarm(rig_patience());
	rig_board = far_is_on() ? far_memory(bytes) : rig_memory(bytes, -1);
	rig_word = rig_board->word;
	return rig_board + 1;
}

pid_t
rig_fork(rig_fn *fn, struct xr_queue *q, uint32_t index)
{
	pid_t pid, parent = getpid();

	fflush(NULL);
	copy_kept(false);
	if (far_is_on())
		return far_fork(fn, q, index);
	pid = fork();
	EXPECT(pid != -1);
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	alarm(rig_patience());
	fn(q, index);
	_exit(0);
}

void
rig_join(const pid_t *pids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int status;

		EXPECT(waitpid(pids[i], &status, 0) == pids[i]);
		EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

void
rig_kill(pid_t pid)
{
	EXPECT(kill(pid, SIGKILL) == 0);
	EXPECT(waitpid(pid, NULL, 0) == pid);
}

/* In state S, twice in a row with no switch in between: it does not look any more. */
static bool
status_of(pid_t pid, char *state, long *switches)
{
	char path[64], line[256];
	bool has = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL) {
		sscanf(line, "State: %c", state);
		if (sscanf(line, "voluntary_ctxt_switches: %ld", switches) == 1)
			has = true;
	}
	fclose(f);
	return has;
}

void
rig_sleeps(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	long before = -1, now = -2;
	char state = '?';

	/* Nothing tells of this but a look. */
	while (status_of(pid, &state, &now) &&
		(state != 'S' || now != before)) {
		before = state == 'S' ? now : -1;
		nanosleep(&pause, NULL);
	}
	EXPECT(state == 'S');
}

int64_t
rig_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

struct xr_queue *
rig_queue(const struct xr_queue_opts *opts)
{
	struct xr_queue *q = NULL;

	left.q = NULL;
	if (far_is_on())
		return far_queue(opts);
	EXPECT(xr_queue_new(opts, &q, &rig_err) == XR_OK);
	return q;
}

struct xr_value *
rig_tensor(void)
{
	struct xr_tensor_desc desc = { .size = sizeof(desc),
		.dtype = XR_DT_U8,
		.ndim = 1,
		.shape = { 100000 } };
	struct xr_value *t = NULL;

	EXPECT(xr_tensor_new(&desc, &t, &rig_err) == XR_OK);
	memset(xr_tensor_data(t, NULL), 1, 100000);
	return t;
}

/* The rest of an item follows from its beginning. */
static uint8_t
filler(const struct rig_item *item, size_t i)
{
	return (uint8_t)(item->writer * 31 + item->seq * 7 + i);
}

void
rig_put(struct xr_queue *q, uint32_t writer, uint32_t seq, size_t bytes)
{
	static uint8_t data[1 << 16];
	struct rig_item item = { writer, seq };

	EXPECT(bytes >= sizeof(item) && bytes <= sizeof(data));
	memcpy(data, &item, sizeof(item));
	for (size_t i = sizeof(item); i < bytes; i++)
		data[i] = filler(&item, i);
	EXPECT(xr_queue_put_bytes(q, data, bytes, XR_TIMEOUT_NEVER, &rig_err) ==
		XR_OK);
}

bool
rig_get(struct xr_queue *q, struct rig_item *item, size_t *len)
{
	static uint8_t data[1 << 16];
	struct xr_queue_buf buf = { .data = data, .room = sizeof(data) };
	enum xr_status status =
		xr_queue_get_bytes(q, &buf, XR_TIMEOUT_NEVER, &rig_err);

	if (status == XR_E_CLOSED)
		return false;
	EXPECT(status == XR_OK);
	EXPECT(buf.len >= sizeof(*item));
	memcpy(item, data, sizeof(*item));
	for (size_t i = sizeof(*item); i < buf.len; i++)
		EXPECT(data[i] == filler(item, i));
	*len = buf.len;
	return true;
}
