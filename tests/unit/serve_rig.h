/* SPDX-License-Identifier: Apache-2.0 */
/* serve_rig.h - functions that a peer calls, which the test plays; see wire_rig.h. */
#ifndef TESTS_UNIT_SERVE_RIG_H
#define TESTS_UNIT_SERVE_RIG_H

#include <unistd.h>

#include <sys/mman.h>

#include "tests/unit/rref_rig.h"
#include "worker/rpc/func.h"
#include "worker/rpc/rref.h"
#include "worker/rpc/serve.h"

/* --- functions --------------------------------------------------------------------- */

/* What "any" does, and what its last answer returned. */
static enum xr_status (*answer)(struct xr_call *call, struct xr_value *args);
static enum xr_status answered;
static unsigned runs;

static inline enum xr_status
any(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	runs++;
	return answer(call, args);
}

static inline enum xr_status
any_raw(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)data;
	(void)len;
	(void)ctx;
	runs++;
	return answer(call, NULL);
}

#define ROW(n, fl, ...) \
	{ .size = sizeof(struct xr_func), \
		.name = n, \
		.flags = XR_FN_SHORT | fl, \
		__VA_ARGS__ }

static const struct xr_func functions[] = {
	ROW("any", 0, .fn = any),
	ROW("raw", 0, .raw = any_raw),
	ROW("later", XR_FN_ASYNC, .fn = any),
	ROW("raw.later", XR_FN_ASYNC, .raw = any_raw),
	/* By another thread. */
	{ .size = sizeof(struct xr_func), .name = "slow", .fn = any },
};

static inline void
begin(void)
{
	wire_begin();
	cr_assert_eq(xr_module_static(functions, 5, NULL), XR_OK);
	runs = 0;
}

static inline enum xr_status
echo(struct xr_call *call, struct xr_value *args)
{
	answered = xr_reply(call, xr_value_ref(args));
	return XR_OK;
}

/* --- calls --------------------------------------------------------------------------- */

/* A call's value: arguments, named ones, and what is bound. Takes them. */
static inline struct xr_value *
call_of(struct xr_value *args, struct xr_value *named, struct xr_value *bound)
{
	struct xr_value *items[3] = { args, named, bound };

	return xr_value_new_list_of(items, 3);
}

static inline struct xr_value *
one_int(int64_t n)
{
	struct xr_value *v = xr_value_new_i64(n);

	return xr_value_new_list_of(&v, 1);
}

static inline struct xr_value *
plain(void)
{
	return call_of(one_int(7), xr_value_new_nil(), xr_value_new_nil());
}

static inline void
request(const char *func, uint8_t kind, uint8_t flags, const void *data,
	size_t len)
{
	const struct xr_record record = { .kind = kind,
		.flags = flags,
		.method = func_hash(func, strlen(func)),
		.corr = 5 };

	wire_deliver(1, &record, data, len);
}

/* A call with a value, which is taken. */
static inline void
call(const char *func, struct xr_value *v)
{
	uint8_t data[WIRE_BODY];

	request(func, MESSAGE_REQUEST, MESSAGE_VALUE, data,
		wire_encode(v, data, sizeof(data)));
}

/* status_to() - the status that an answer without a value has. */
static inline enum xr_status
status_to(uint32_t to)
{
	const struct wire_message *m = wire_sent(MESSAGE_ERROR, to);
	int32_t status = XR_OK;

	cr_assert_not_null(m);
	cr_assert_eq(m->len, sizeof(status));
	cr_expect_eq(m->record.flags, 0);
	memcpy(&status, m->data, sizeof(status));
	return status;
}

/* --- calls that go on ------------------------------------------------------------------ */

static struct xr_call *open_call;

static inline enum xr_status
keep_open(struct xr_call *call, struct xr_value *args)
{
	(void)args;
	open_call = xr_call_defer(call);
	return XR_OK;
}

/* --- functions that run yet -------------------------------------------------------------- */

#define RUNNING \
	"xrun: self (0) cannot leave: these functions have not returned: "

static char said[4096]; /* by serve_tell_running() */

static inline void
hear_running(void)
{
	int was = dup(STDERR_FILENO), fd = memfd_create("said", MFD_CLOEXEC);
	ssize_t len;

	cr_assert(was != -1 && fd != -1);
	dup2(fd, STDERR_FILENO);
	serve_tell_running();
	dup2(was, STDERR_FILENO);
	close(was);
	len = pread(fd, said, sizeof(said) - 1, 0);
	close(fd);
	cr_assert_geq(len, 0);
	said[len] = '\0';
}

#endif /* TESTS_UNIT_SERVE_RIG_H */
