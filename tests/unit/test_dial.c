/* SPDX-License-Identifier: Apache-2.0 */
/* test_dial.c - connections to the control socket of a job (launcher/cmd/dial.h). */
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/cmd/dial.h"

Test(dial, a_job_that_has_ended_has_no_connection)
{
	struct which job = { .id = "k7m2" };
	struct ctl_call call = { .fd = 7 };
	struct xr_error err = { 0 };

	cr_expect_eq(dial_open(&call, &job, &err), XR_E_STATE);
	cr_expect(strstr(err.text, "k7m2") != NULL, "%s", err.text);
	cr_expect_eq(call.fd, -1);
}
