/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c - xrun-worker: the place of a program whose functions are in a module.
 *
 * Libxrun executes it, with the path that its caller named. What the module registers
 * it does when it is loaded, or in xr_module_init(), if it has one.
 */
#include <dlfcn.h>
#include <stdio.h>

#include <xrun/proc.h>

/* A module's; 0, or what is wrong is told by @err. */
typedef enum xr_status init_fn(struct xr_error *err);

static int
refuse(const char *what)
{
	fprintf(stderr, "xrun-worker: %s\n", what);
	return 125;
}

int
main(int argc, char **argv)
{
	struct xr_error err = { 0 };
	union {
		void *symbol;
		init_fn *fn;
	} init;
	void *module;

	if (argc != 2)
		return refuse("it is executed by libxrun, with a module");
	module = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	if (module == NULL)
		return refuse(dlerror());
	init.symbol = dlsym(module, "xr_module_init");
	if (init.symbol != NULL && init.fn(&err) != XR_OK)
		return refuse(err.text);
	if (xr_init(&err) != XR_OK)
		return refuse(err.text);
	return refuse("nobody who would be served");
}
