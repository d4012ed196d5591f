/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/status.h - the one list of things that can go wrong.
 *
 * Every fallible call of xrun returns XR_OK or a negative code of this table.
 * The table is the only place that knows a code's number, text and meaning:
 * the enum, xr_status_name(), xr_status_text() and the ERRORS section of the
 * manual all come from it. Numbers are part of the ABI and are never reused.
 *
 * Groups say who has to act: 1-19 the caller, 20-39 this machine,
 * 40-59 the other end, 60-79 the job.
 */
#ifndef XRUN_STATUS_H
#define XRUN_STATUS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* S(NAME, number, retry?, "text") */
#define XR_STATUS_TABLE(S) \
	S(E_INVAL, 1, false, "invalid argument") \
	S(E_STATE, 2, false, "not possible in this state") \
	S(E_NOTFOUND, 3, false, "no such thing") \
	S(E_EXISTS, 4, false, "already exists") \
	S(E_RANGE, 5, false, "out of range") \
	S(E_CONFLICT, 6, true, "somebody else's version won") \
	S(E_NOTMEMBER, 7, false, "not a member of the group") \
	S(E_END, 8, false, "nothing left") \
	S(E_NO_FUNCTION, 9, false, "no function has that name") \
	S(E_SCHEMA, 10, false, "arguments do not fit the function") \
	S(E_ENCODE, 11, false, "value cannot be encoded") \
	S(E_STALE, 12, false, "version no longer kept") \
	S(E_NOMEM, 20, true, "out of memory") \
	S(E_SYS, 21, false, "system call failed") \
	S(E_NODEV, 22, false, "no such device") \
	S(E_ABI, 23, false, "plug-in and host do not fit") \
	S(E_AGAIN, 24, true, "not now") \
	S(E_DEVICE, 25, false, "device failed") \
	S(E_PROTO, 40, false, "the other end broke the protocol") \
	S(E_VERSION, 41, false, "no common protocol version") \
	S(E_AUTH, 42, false, "the other end could not prove who it is") \
	S(E_PEER_LOST, 43, true, "lost the other end") \
	S(E_REMOTE, 44, false, "the remote function failed") \
	S(E_DECODE, 45, false, "value cannot be decoded") \
	S(E_WORKER_LOST, 46, true, "lost a worker of the pool") \
	S(E_INJECTED, 47, true, "failed on purpose") \
	S(E_TIMEOUT, 60, true, "timed out") \
	S(E_CANCELLED, 61, false, "canceled") \
	S(E_CLOSED, 62, false, "shutting down") \
	S(E_FENCED, 63, false, "shut out of the group")

enum xr_status {
	XR_OK = 0,
#define S(name, number, retry, text) XR_##name = -(number),
	XR_STATUS_TABLE(S)
#undef S
};

/*
 * xr_status_name() - "XR_E_TIMEOUT"; "XR_?" for a number of no row.
 * xr_status_text() - "timed out"; a static string, never NULL.
 * xr_status_retryable() - true if the same call may succeed later.
 *
 * Thread   any.  Blocks: no.
 */
const char *xr_status_name(enum xr_status status);
const char *xr_status_text(enum xr_status status);
bool xr_status_retryable(enum xr_status status);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_STATUS_H */
