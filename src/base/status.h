/* SPDX-License-Identifier: Apache-2.0 */
/* status.h - failing in one statement: return fail(err, XR_E_X, "...", ...). */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <xrun/error.h>
#include <xrun/status.h>

/*
 * fail() - fill @err (NULL is fine) and give @status back.
 *
 * XR_E_SYS keeps errno in @err->sys. errno itself survives the call.
 */
enum xr_status fail(struct xr_error *err, enum xr_status status,
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * status_on_fail - called by every fail() and xr_error_set() with the status,
 * before anything else, on the failing thread. NULL unless libxrun.so has set it
 * (worker/job/last.h), to keep the place of a failure; it keeps errno, and may be
 * set at any time, atomically. The launcher never sets it.
 */
extern void (*status_on_fail)(enum xr_status status);

/*
 * XR_EXPORT - shown by libxrun.so, where worker/libxrun.map names the function
 * too. Everything without it is hidden, whatever the map says.
 */
#define XR_EXPORT __attribute__((visibility("default")))

/*
 * XR_KEEP_FRAME() - the value of @call, which does not become a jump. A function of the
 * API that waits in another function has a frame only so: the hang report and debuggers
 * name it (tests/lint/frames.sh). KEEP_FRAME is the same for a call without a value: it
 * follows the call.
 */
#define XR_KEEP_FRAME(call) \
	({ \
		__typeof__(call) result_ = (call); \
		KEEP_FRAME; \
		result_; \
	})
#define KEEP_FRAME __asm__ volatile("")

/* XR_ASSERT() - our own mistakes; always on, file and line, then abort. */
#define XR_ASSERT(x) \
	do { \
		if (__builtin_expect(!(x), 0)) \
			assert_failed(__FILE__, __LINE__, #x); \
	} while (0)

void assert_failed(const char *file, int line, const char *what)
	__attribute__((noreturn, cold));

/* status_of_name() - of "XR_E_TIMEOUT"; XR_E_PROTO of a name without a row, and
 * of that of success. */
enum xr_status status_of_name(const char *name);

#endif /* BASE_STATUS_H */
