/* SPDX-License-Identifier: Apache-2.0 */
/* queue_far.c - see queue_far.h. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>

#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <xrun/rpc.h>

#include "tests/prog/queue_far.h"

#define STORE  "QUEUE_FAR"
#define NET    "QUEUE_FAR_NET"
#define MEMORY "QUEUE_FAR_MEMORY" /* a descriptor */
#define CHILD  "QUEUE_FAR_CHILD"  /* what it is to do */

static struct {
	pid_t server;
	int talk;                /* to it */
	int memory;              /* the board's */
	struct xr_value *tensor; /* of the server: no agent has made it */
} far = { .talk = -1, .memory = -1 };

bool
far_is_on(void)
{
	return getenv(STORE) != NULL;
}

pid_t
far_server(void)
{
	return far.server;
}

static void
join(const char *name, int rank)
{
	struct xr_rpc_opts opts = { .size = sizeof(opts) };
	char store[256];

	snprintf(store, sizeof(store), "%s?rank=%d", getenv(STORE), rank);
	EXPECT(xr_rpc_opts_init(0, &opts, &rig_err) == XR_OK);
	opts.init_method = store;
	EXPECT(xr_rpc_init(name, -1, 0, &opts, &rig_err) == XR_OK);
}

/* --- who serves --------------------------------------------------------------------------- */

static void
enter_net(void)
{
	const char *path = getenv(NET);
	int fd;

	if (path == NULL)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	EXPECT(fd != -1 && setns(fd, CLONE_NEWNET) == 0);
	close(fd);
}

/* A queue of which it is nothing itself, once another one has it. */
static void
serve_one(const struct xr_queue_opts *opts)
{
	struct xr_queue *q = NULL;
	char text[XR_QUEUE_TEXT_MAX] = "";

	EXPECT(xr_queue_new(opts, &q, &rig_err) == XR_OK);
	EXPECT(xr_queue_text(q, text, sizeof(text), &rig_err) == XR_OK);
	EXPECT(write(far.talk, text, sizeof(text)) == sizeof(text));
	EXPECT(read(far.talk, text, 1) == 1);
	if (opts->mode == XR_ENC_SHARE)
		EXPECT(xr_queue_put(q, far.tensor, 0, &rig_err) == XR_OK);
	xr_queue_leave(q, XR_QUEUE_WRITER | XR_QUEUE_READER);
	EXPECT(write(far.talk, text, 1) == 1);
}

static void
serve(void)
{
	struct xr_queue_opts opts;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	EXPECT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		mount("proc", "/proc", "proc", 0, NULL) == 0);
	enter_net();
	far.tensor = rig_tensor();
	join("server", 0);
	EXPECT(write(far.talk, "", 1) == 1);
	while (read(far.talk, &opts, sizeof(opts)) == sizeof(opts))
		serve_one(&opts);
	_exit(0);
}

static void
begin_server(void)
{
	int ends[2];

	EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	far.server = (pid_t)syscall(SYS_clone,
		CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);
	EXPECT(far.server != -1);
	far.talk = ends[far.server == 0];
	close(ends[far.server != 0]);
	if (far.server == 0)
		serve();
}

struct xr_queue *
far_queue(const struct xr_queue_opts *opts)
{
	char text[XR_QUEUE_TEXT_MAX];
	struct xr_queue *q = NULL;

	EXPECT(write(far.talk, opts, sizeof(*opts)) == sizeof(*opts));
	EXPECT(recv(far.talk, text, sizeof(text), MSG_WAITALL) == sizeof(text));
	EXPECT(xr_queue_open(text, &q, &rig_err) == XR_OK);
	EXPECT(write(far.talk, "", 1) == 1);
	EXPECT(read(far.talk, text, 1) == 1);
	return q;
}

/* --- children ----------------------------------------------------------------------------- */

void *
far_memory(size_t bytes)
{
	const char *has = getenv(MEMORY);
	char number[16];

	if (has != NULL) {
		far.memory = (int)strtol(has, NULL, 10);
	} else {
		far.memory = memfd_create("board", 0);
		EXPECT(far.memory != -1 &&
			ftruncate(far.memory, (off_t)bytes) == 0);
		snprintf(number, sizeof(number), "%d", far.memory);
		setenv(MEMORY, number, 1);
	}
	return rig_memory(bytes, far.memory);
}

/* FN INDEX LEFT TEXT; what a function is called by is how far it is from one of ours. */
static void
be_child(const char *task)
{
	struct xr_queue *q = NULL;
	unsigned index, left;
	rig_fn *fn;
	char name[32], text[256];
	long at;

	EXPECT(sscanf(task, "%ld %u %u %255s", &at, &index, &left, text) == 4);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fn = (rig_fn *)((char *)(void *)far_fork + at);
	snprintf(name, sizeof(name), "child%d", (int)getpid());
	join(name, 2 + (int)atomic_load(&rig_word[RIG_READY]));
	EXPECT(xr_queue_open(text, &q, &rig_err) == XR_OK);
	if (left != 0)
		xr_queue_leave(q, left);
	rig_recall();
	rig_post(RIG_READY);
	fn(q, index);
	_exit(0);
}

void
far_begin(void)
{
	const char *task = getenv(CHILD);
	char name[32], byte;

	if (task != NULL)
		be_child(task);
	begin_server();
	EXPECT(read(far.talk, &byte, 1) == 1);
	snprintf(name, sizeof(name), "program%d", (int)getpid());
	join(name, 1);
}

pid_t
far_fork(rig_fn *fn, struct xr_queue *q, uint32_t index)
{
	uint32_t ready = atomic_load(&rig_word[RIG_READY]);
	char text[XR_QUEUE_TEXT_MAX], task[256];
	char *args[] = { "queue", NULL };
	pid_t pid;

	EXPECT(xr_queue_text(q, text, sizeof(text), &rig_err) == XR_OK);
	snprintf(task, sizeof(task), "%ld %u %u %s",
		(long)((char *)(void *)fn - (char *)(void *)far_fork), index,
		rig_left(q), text);
	setenv(CHILD, task, 1);
	pid = vfork();
	if (pid == 0) {
		execv("/proc/self/exe", args);
		_exit(127);
	}
	EXPECT(pid != -1);
	unsetenv(CHILD);
	rig_await(RIG_READY, ready + 1);
	return pid;
}
