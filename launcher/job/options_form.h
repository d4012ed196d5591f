/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_form.h - what the values of rows look like, as far as that can be
 * said without looking at the machine or the job: opt.check of base/opt.h.
 *
 * Whoever uses a value later parses it anew, and says what only he can know:
 * that there is no rank 9, no processor 70.
 */
#ifndef LAUNCHER_JOB_OPTIONS_FORM_H
#define LAUNCHER_JOB_OPTIONS_FORM_H

#include "xrun/error.h"

/* Each returns XR_OK, or XR_E_INVAL and XR_E_RANGE with the words in @err. */
enum xr_status form_bind(const char *value, struct xr_error *err);
enum xr_status form_job(const char *value, struct xr_error *err);
enum xr_status form_log_dir(const char *value, struct xr_error *err);
enum xr_status form_log_rotate(const char *value, struct xr_error *err);
enum xr_status form_log_reserve(const char *value, struct xr_error *err);
enum xr_status form_prefix(const char *value, struct xr_error *err);
enum xr_status form_stacks_on(const char *value, struct xr_error *err);
enum xr_status form_stdin(const char *value, struct xr_error *err);

#endif /* LAUNCHER_JOB_OPTIONS_FORM_H */
