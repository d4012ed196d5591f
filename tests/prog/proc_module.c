/* SPDX-License-Identifier: Apache-2.0 */
/* proc_module.c - a module of xrun-worker: its functions are registered when it is
 * asked to. */
#include <stdio.h>

#include <xrun/proc.h>

static enum xr_status
say(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	size_t len;
	const char *text = xr_value_data(arg, &len);

	printf("module %u: %.*s\n", ordinal, (int)len, text);
	return XR_OK;
}

enum xr_status xr_module_init(struct xr_error *err);

__attribute__((visibility("default"))) enum xr_status
xr_module_init(struct xr_error *err)
{
	return xr_proc_register("say_in_module", say, NULL, err);
}
