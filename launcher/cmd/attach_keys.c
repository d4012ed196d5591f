/* SPDX-License-Identifier: Apache-2.0 */
/* attach_keys.c - see attach_keys.h. One thread, one poll(2). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/status.h"
#include "launcher/cmd/attach_keys.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/leave.h"
#include "launcher/cmd/lookout.h"
#include "launcher/job/words.h"
#include "launcher/log/modes.h"
#include "launcher/log/raw.h"
#include "launcher/log/reader.h"

#define CHUNK   (64 * 1024)
#define TYPED   (16 * 1024) /* and not taken yet; what is beyond is dropped */
#define KEEP_MS 500         /* Ctrl-P, for what follows */

/* What of lookout.also is what. */
enum { ALSO_KEYS, ALSO_SIGNAL, ALSO_ROOM };

struct window {
	struct attach_keys *k;
	struct lookout lookout;
	struct track track;
	uint64_t offset; /* of the next byte to be shown */
	struct modes modes;
	struct termios before; /* of our terminal */
	struct leave leave;
	char out[TYPED + 1]; /* typed, on its way */
	size_t len;
	bool armed, over;
};

static struct winsize
own_size(void)
{
	struct winsize size = { 0 };

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	return size;
}

enum xr_status
attach_keys_begin(struct attach_keys *k, struct xr_error *err)
{
	struct control m = control_new(CONTROL_ATTACH, CONTROL_NONE), answer;
	const struct winsize size = own_size();
	enum xr_status status;
	int pair[2];

	k->typed = -1;
	k->call = (struct ctl_call){ .fd = -1 };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1)
		return fail(err, XR_E_SYS, "socketpair: %s", strerror(errno));
	m.attach.rank = k->rank;
	m.attach.rows = size.ws_row > 0 ? size.ws_row : CONTROL_NONE;
	m.attach.cols = size.ws_col > 0 ? size.ws_col : CONTROL_NONE;
	status = dial_open(&k->call, &k->attempt->job, err);
	if (status == XR_OK)
		status = ctl_ask_along(&k->call, &m, pair[1], &answer, err);
	fd_close(pair[1]);
	if (status == XR_OK) {
		k->typed = pair[0];
		return XR_OK;
	}
	fd_close(pair[0]);
	ctl_hang_up(&k->call);
	return status;
}

void
attach_keys_end(struct attach_keys *k)
{
	fd_close(k->typed);
	k->typed = -1;
	ctl_hang_up(&k->call);
}

/* --- what the rank wrote -------------------------------------------------- */

/* Where the last lines begin. */
static void
place(struct window *w)
{
	struct back back;

	track_init(&w->track, w->k->attempt->dir,
		RAW_STREAMS * w->k->rank + RAW_OUT);
	back_init(&back, &w->track, track_end(&w->track), true);
	for (int64_t i = 0; i < w->k->tail && back_line(&back); i++)
		w->offset = back.at;
	if (w->k->tail == 0)
		w->offset = track_end(&w->track);
	back_fini(&back);
}

/* Some of it, to the terminal; false: there is nothing more now. */
static bool
show_some(struct window *w)
{
	char data[CHUNK];
	size_t n;

	if (!track_more(&w->track, &w->offset))
		return false;
	n = track_read(&w->track, w->offset, data, sizeof(data));
	if (n == 0)
		return false;
	modes_follow(&w->modes, (struct span){ data, n });
	w->offset += n;
	if (fd_write_all(STDOUT_FILENO, data, n) == -1)
		w->k->sys = errno;
	return true;
}

static void
on_change(void *ctx, int folder, const char *name)
{
	(void)ctx;
	(void)folder;
	(void)name;
}

/* Folders are there when they are needed, and watched twice for nothing. */
static void
watch_folders(struct window *w)
{
	const struct attempt *a = w->k->attempt;
	char path[PATH_MAX + 48];

	snprintf(path, sizeof(path), "%s/%u", a->job.dir, a->number);
	lookout_folder(&w->lookout, path);
	snprintf(path, sizeof(path), "%s/%u/rank-%04u", a->job.dir, a->number,
		w->k->rank);
	lookout_folder(&w->lookout, path);
}

/* --- what is typed -------------------------------------------------------- */

/* Of a rank that has ended before its job, or a job that has too many who ask:
 * our terminal is ours again, and Ctrl-C means us. */
static void
lose_keys(struct window *w)
{
	attach_keys_end(w->k);
	w->len = 0;
	w->leave = (struct leave){ 0 };
	/* All that it wrote comes first: there is an end to it. */
	while (w->k->sys == 0 && show_some(w))
		continue;
	tcsetattr(STDIN_FILENO, TCSANOW, &w->before);
	if (w->k->attempt->ranks > 1)
		words_line("rank %u takes no more keys; Ctrl-C leaves",
			w->k->rank);
}

static void
send_typed(struct window *w)
{
	ssize_t n;

	if (w->len == 0 || w->k->typed == -1)
		return;
	n = send(w->k->typed, w->out, w->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0) {
		w->len -= (size_t)n;
		memmove(w->out, w->out + n, w->len);
	} else if (n == -1 && errno != EAGAIN && errno != EINTR) {
		lose_keys(w);
	}
}

/* True: we leave. */
static bool
take_keys(struct window *w)
{
	char in[1024], out[sizeof(in) + 1];
	ssize_t n = read(STDIN_FILENO, in, sizeof(in));
	size_t passed;
	bool leaves;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return false;
	if (n <= 0)
		return true; /* the terminal is gone */
	leaves = leave_pass(&w->leave, in, (size_t)n, out, &passed);
	if (passed <= TYPED - w->len) {
		memcpy(w->out + w->len, out, passed);
		w->len += passed;
	}
	send_typed(w);
	return leaves;
}

static void
let_go(struct window *w)
{
	if (w->len < TYPED)
		w->len += leave_let_go(&w->leave, w->out + w->len);
	send_typed(w);
}

/* True: we are to end. */
static bool
take_signal(struct window *w)
{
	struct control m = control_new(CONTROL_RESIZE, CONTROL_NONE), answer;
	const struct winsize size = own_size();
	struct signalfd_siginfo info;

	if (read(w->k->signals, &info, sizeof(info)) != sizeof(info))
		return false;
	if (info.ssi_signo != SIGWINCH) {
		w->k->signal = (int)info.ssi_signo;
		return true;
	}
	m.resize.rows = size.ws_row;
	m.resize.cols = size.ws_col;
	if (w->k->call.fd != -1)
		ctl_ask(&w->k->call, &m, &answer, NULL);
	return false;
}

/* --- all of it ------------------------------------------------------------ */

/* True: we leave. */
static bool
await(struct window *w, bool patient)
{
	struct lookout *l = &w->lookout;
	bool leaves = false;

	if (!w->armed)
		lookout_lock(l, w->k->attempt->job.dir);
	w->armed = true;
	l->also[ALSO_KEYS] =
		(struct pollfd){ w->k->typed == -1 ? -1 : STDIN_FILENO, POLLIN,
			0 };
	l->also[ALSO_SIGNAL] = (struct pollfd){ w->k->signals, POLLIN, 0 };
	l->also[ALSO_ROOM] =
		(struct pollfd){ w->k->typed, w->len > 0 ? POLLOUT : 0, 0 };
	l->also_ms = w->leave.kept ? KEEP_MS : -1;
	if (lookout_wait(l, patient, on_change, w) == LOOKOUT_OVER)
		w->armed = false;
	if (l->also[ALSO_SIGNAL].revents != 0)
		leaves = take_signal(w);
	if (l->also[ALSO_KEYS].revents != 0)
		leaves = take_keys(w) || leaves;
	else if (w->leave.kept && patient)
		let_go(w);
	if ((l->also[ALSO_ROOM].revents & (POLLHUP | POLLERR)) != 0 &&
		w->k->typed != -1)
		lose_keys(w);
	else if (l->also[ALSO_ROOM].revents != 0)
		send_typed(w);
	watch_folders(w);
	return leaves;
}

static enum attached
show(struct window *w)
{
	bool more = true, over;

	for (;;) {
		if (await(w, !more))
			return ATTACHED_LEFT;
		over = attempt_is_over(w->k->attempt);
		more = show_some(w);
		if (w->k->sys != 0)
			return ATTACHED_UNWRITTEN;
		if (over && !more)
			return ATTACHED_OVER;
	}
}

static bool
open_window(struct window *w)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &w->before) == -1 ||
		!lookout_open(&w->lookout))
		return false;
	raw = w->before;
	cfmakeraw(&raw);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	/* Not before: the keys that leave would be others. */
	dprintf(STDERR_FILENO,
		"xrun: %s, rank %u; Ctrl-P Ctrl-Q leaves it running\r\n",
		w->k->attempt->job.id, w->k->rank);
	lookout_folder(&w->lookout, w->k->attempt->job.dir);
	watch_folders(w);
	place(w);
	return true;
}

static void
close_window(struct window *w)
{
	char off[MODES_END_MAX];
	size_t len = modes_end(&w->modes, off);

	fd_write_all(STDOUT_FILENO, off, len);
	fd_write_all(STDOUT_FILENO, "\r\n", 2);
	tcsetattr(STDIN_FILENO, TCSANOW, &w->before);
	track_fini(&w->track);
	lookout_close(&w->lookout);
}

enum attached
attach_keys_run(struct attach_keys *k)
{
	static struct window w;
	enum attached how;

	w = (struct window){ .k = k };
	if (!open_window(&w)) {
		k->sys = errno;
		return ATTACHED_UNWRITTEN;
	}
	how = show(&w);
	close_window(&w);
	return how;
}
