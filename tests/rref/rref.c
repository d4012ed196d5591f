/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rref.c - references of several ranks:
 *
 *   xrun -n 4 rref SCENE...
 *
 * Each scene begins and ends with all ranks at one point; then all leave.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/backend.h"
#include "tests/rref/rref.h"

static const struct scene *
find_in(const struct scene *scenes, const char *name)
{
	for (; scenes->name != NULL; scenes++)
		if (strcmp(scenes->name, name) == 0)
			return scenes;
	return NULL;
}

static const struct scene *
find(const char *name)
{
	const struct scene *s = find_in(lifetime_scenes, name);

	if (s == NULL)
		s = find_in(value_scenes, name);
#ifdef RREF_INSIDE
	if (s == NULL)
		s = find_in(inside_scenes, name);
#endif
	return s;
}

void (*find_scene(const char *name))(void)
{
	const struct scene *scene = find(name);

	CHECK(scene != NULL);
	return scene->run;
}

int
main(int argc, char **argv)
{
	struct xr_rpc_opts opts = { .size = sizeof(opts) };
	const struct scene *scene;
	char name[32];
	bool late = getenv("RREF_LATE") != NULL;

	register_functions();
	/* What fails says XRUN_FAULT. */
	EXPECT(xr_rpc_opts_init(getenv("XRUN_FAULT") != NULL ?
			       xr_backend_find("faulty") :
			       tested_backend(),
		       &opts, &last_err),
		XR_OK);
	if (late)
		opts.rref_flags = XR_RREF_ACK_ON_DONE;
	snprintf(name, sizeof(name), "worker%u", xr_job_rank());
	EXPECT(xr_rpc_init(name, -1, -1, &opts, &last_err), XR_OK);
	for (int i = 1; i < argc; i++) {
		scene = find(argv[i]);
		CHECK(scene != NULL);
		scene->run();
		if (xr_rpc_barrier(NULL, NULL) == XR_E_STATE)
			return 0; /* it has left already */
		if (xr_job_rank() == 0)
			printf("%s: well\n", scene->name);
	}
	EXPECT(xr_rpc_shutdown(XR_SHUTDOWN_STRICT, XR_SECONDS(60), &last_err),
		XR_OK);
	return 0;
}
