/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_target.c - a member of a group outside xrun, with one function that reports
 * its calls; or one that calls the function of another member.
 *
 *   rpc_target ADDRESS RANK SIZE          serves until the end of its stdin
 *   rpc_target ADDRESS RANK SIZE PEER     calls the function of rank PEER
 *
 * Prints "ready", "called by N" for each call, "answered" for a call of its own;
 * a failure goes to stderr, with status 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/call.h>
#include <xrun/func.h>
#include <xrun/rpc.h>

static enum xr_status
target_run(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)ctx;
	printf("called by %.*s\n", (int)len, (const char *)data);
	fflush(stdout);
	return xr_reply_bytes(call, data, len);
}

static const struct xr_func functions[] = {
	{ .size = sizeof(functions[0]),
		.name = "target.run",
		.flags = XR_FN_SHORT,
		.raw = target_run },
};

static enum xr_status
target_call(uint32_t peer, const char *me, struct xr_error *err)
{
	struct xr_raw_call call = { .size = sizeof(call),
		.data = me,
		.len = strlen(me),
		.timeout = XR_SECONDS(10) };
	struct xr_raw_reply reply = { 0 };
	enum xr_status status = xr_peer_find(NULL, peer, &call.to, err);

	if (status == XR_OK)
		status = xr_method_find("target.run", &call.method, err);
	if (status == XR_OK)
		status = xr_call_sync(&call, &reply, err);
	if (status == XR_OK)
		puts("answered");
	return status;
}

int
main(int argc, char **argv)
{
	struct xr_rpc_opts opts = { .size = sizeof(opts) };
	struct xr_error err = { 0 };
	enum xr_status status;
	char name[32], byte;

	if (argc < 4)
		return 2;
	snprintf(name, sizeof(name), "target%s", argv[2]);
	status = xr_rpc_opts_init(0, &opts, &err);
	opts.init_method = argv[1];
	if (status == XR_OK)
		status = xr_module_static(functions, 1, &err);
	if (status == XR_OK)
		status = xr_rpc_init(name, strtol(argv[2], NULL, 10),
			strtol(argv[3], NULL, 10), &opts, &err);
	if (status == XR_OK) {
		puts("ready");
		fflush(stdout);
	}
	if (status == XR_OK && argc > 4)
		status = target_call((uint32_t)strtoul(argv[4], NULL, 10),
			argv[2], &err);
	else if (status == XR_OK)
		while (read(STDIN_FILENO, &byte, 1) > 0)
			;
	if (status != XR_OK)
		fprintf(stderr, "%s: %s\n", xr_status_name(status), err.text);
	fflush(stdout);
	_exit(status != XR_OK);
}
