/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guild_serve.c - what others ask of this process's keys; see guild.h.
 *
 * Both functions have tag, key and generation in front. What is not there is refused
 * as the agent refuses, and no service can: XR_E_NOTFOUND, not XR_E_REMOTE.
 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "worker/group/guild.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/serve_inner.h"

static bool
take_held(struct xr_call *call, const struct xr_value *args,
	enum guild_kind kind, struct guild_held *held)
{
	size_t len;
	const char *tag = xr_value_data(xr_value_at(args, 0), &len);
	const char *key = xr_value_data(xr_value_at(args, 1), &len);
	struct guild_held wanted = { .kind = kind };
	char text[512];

	xr_value_get_u64(xr_value_at(args, 2), &wanted.generation);
	if (guild_holds(tag, &wanted, key, held))
		return true;
	snprintf(text, sizeof(text),
		"%s has no key '%s' of group %.*s any more", agent_self()->name,
		key, (int)strcspn(tag, "/"), tag);
	call_refuse(call, XR_E_NOTFOUND, text);
	return false;
}

static enum xr_status
serve_value(struct xr_call *call, struct xr_value *args, void *unused)
{
	struct guild_held held;

	(void)unused;
	if (take_held(call, args, GUILD_VALUE, &held))
		xr_reply(call, held.value);
	return XR_OK;
}

static enum xr_status
serve_call(struct xr_call *call, struct xr_value *args, void *unused)
{
	struct guild_held held;

	(void)unused;
	if (!take_held(call, args, GUILD_SERVICE, &held))
		return XR_OK;
	call->promises = held.flags;
	return held.fn(call, xr_value_at(args, 3), held.ctx);
}

enum xr_status
guild_serve(struct xr_error *err)
{
	static const struct xr_func funcs[] = {
		{ .size = sizeof(struct xr_func),
			.name = GUILD_FUNC_VALUE,
			.schema = "TTu",
			.flags = XR_FN_SHORT,
			.fn = serve_value },
		{ .size = sizeof(struct xr_func),
			.name = GUILD_FUNC_CALL,
			.schema = "TTuL",
			.fn = serve_call },
	};
	struct xr_error why = { 0 };
	enum xr_status status = xr_module_static(funcs, 2, &why);

	return status == XR_OK || status == XR_E_EXISTS ?
		XR_OK :
		fail(err, status, "%s", why.text);
}
