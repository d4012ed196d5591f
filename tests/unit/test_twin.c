/* SPDX-License-Identifier: Apache-2.0 */
/* test_twin.c - a static program is replaced by xrun-dynamic (launcher/host/twin.c). */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "launcher/host/twin.h"

bool __wrap_elf_is_static(void);
char *__wrap_own_file(const char *name, const char *built);
int __wrap_execv(const char *path, char *const *argv);

static bool is_static;
static const char *twin; /* its path; NULL: there is none */
static unsigned asked, executed;
static char *args[] = { "xrun", "--devices", "GPU-1b5c", NULL };

bool
__wrap_elf_is_static(void)
{
	return is_static;
}

char *
__wrap_own_file(const char *name, const char *built)
{
	cr_expect_str_eq(name, "xrun-dynamic");
	cr_expect_str_eq(built, ".");
	asked++;
	return twin == NULL ? NULL : xstrdup(twin);
}

int
__wrap_execv(const char *path, char *const *argv)
{
	cr_expect_str_eq(path, twin);
	cr_expect_eq(argv, args);
	executed++;
	errno = EACCES;
	return -1;
}

static void
take_over(enum xr_status want, const char *text)
{
	struct xr_error err = { 0 };

	cr_expect_eq(twin_take_over(args, "--devices", &err), want);
	cr_expect_str_eq(err.text, text);
}

Test(twin, a_program_with_a_loader_stays)
{
	twin = "/x/xrun-dynamic";
	take_over(XR_OK, "");
	cr_expect_eq(asked, 0);
	cr_expect_eq(executed, 0);
}

Test(twin, a_static_program_without_a_twin_is_refused)
{
	is_static = true;
	take_over(XR_E_NOTFOUND,
		"--devices: the driver is asked by xrun-dynamic, which is not where xrun is");
	cr_expect_eq(asked, 1);
	cr_expect_eq(executed, 0);
}

Test(twin, a_twin_that_cannot_be_executed_is_named_with_the_reason)
{
	is_static = true;
	twin = "/x/xrun-dynamic";
	take_over(XR_E_SYS, "--devices: /x/xrun-dynamic: Permission denied");
	cr_expect_eq(asked, 1);
	cr_expect_eq(executed, 1);
}
