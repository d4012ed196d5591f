/* SPDX-License-Identifier: Apache-2.0 */
/* platform.c - see platform.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/plugin.h>

#include "base/mem.h"
#include "base/status.h"
#include "launcher/host/platform.h"
#include "place/environ.h"
#include "place/mask.h"

/* Built in; XR_PLUGIN() in plugins/platform/ defines them. A new one is a name
 * here and a file there. */
extern const struct xr_plugin xr_plugin_tpu;
extern const struct xr_plugin xr_plugin_cuda;
extern const struct xr_plugin xr_plugin_cpu;

static const struct xr_plugin *const builtin[] = {
	&xr_plugin_tpu,
	&xr_plugin_cuda,
	&xr_plugin_cpu,
	NULL,
};

static char *const *host_vars;

/* XRUN_CUDA_ROOT of "cuda" and "root". */
static void
setting_name(const char *plugin, const char *setting, char *out, size_t cap)
{
	snprintf(out, cap, "XRUN_%s_%s", plugin, setting);
	for (; *out != '\0'; out++)
		*out = *out == '-' ? '_' : (char)toupper((unsigned char)*out);
}

static const struct xr_plugin *
find_plugin(struct span name)
{
	for (int i = 0; builtin[i] != NULL; i++)
		if (span_is(name, builtin[i]->name))
			return builtin[i];
	return NULL;
}

static const char *
host_setting(const struct xr_host *host, const char *plugin, const char *name)
{
	struct span span = { .at = plugin, .len = strlen(plugin) };
	const struct xr_plugin *p = find_plugin(span);
	const struct xr_setting *s = p == NULL ? NULL : p->settings;
	const char *value = NULL;
	char variable[80];

	for (; s != NULL && s->name != NULL; s++) {
		if (strcmp(s->name, name) != 0)
			continue;
		setting_name(plugin, name, variable, sizeof(variable));
		value = environ_get(host_vars, variable);
		return value == NULL || *value == '\0' ? s->dflt : value;
	}
	return NULL;
}

static const char *
host_env(const struct xr_host *host, const char *name)
{
	return environ_get(host_vars, name);
}

static const struct xr_host host = {
	.size = sizeof(host),
	.abi = XR_PLUGIN_ABI,
	.setting = host_setting,
	.env = host_env,
};

/* A list of devices as a plug-in makes it. */
struct found {
	struct xr_device *devices;
	uint32_t count;
};

/* A plug-in may be older or newer than we: only what both know is taken. */
static void
add_device(void *arg, const struct xr_device *device)
{
	struct found *found = arg;
	struct xr_device *at = NULL;
	size_t len = device->size < sizeof(*at) ? device->size : sizeof(*at);

	found->devices = xrealloc(found->devices,
		(found->count + 1) * sizeof(*found->devices));
	at = &found->devices[found->count++];
	memset(at, 0, sizeof(*at));
	memcpy(at, device, len);
	at->size = sizeof(*at);
}

/* Narrows what was found to what an inherited mask leaves visible. */
static enum xr_status
apply_mask(const struct xr_platform_ops *ops, struct found *found,
	struct xr_error *err)
{
	const char *text = NULL;
	struct found visible = { 0 };
	enum xr_status status = XR_OK;
	struct mask_from from = { 0 };

	if (XR_HAS(ops, mask))
		text = environ_get(host_vars, ops->mask);
	if (text == NULL || found->count == 0)
		return XR_OK;
	from = (struct mask_from){ ops->mask, found->devices, found->count };
	status = mask_apply(&from, text, &visible.devices, &visible.count, err);
	if (status != XR_OK)
		return status;
	free(found->devices);
	*found = visible;
	return XR_OK;
}

typedef enum xr_status source_fn(xr_add_device_fn *add, void *arg,
	struct xr_error *err);

static enum xr_status
ask(const struct xr_plugin *plugin, source_fn *source, struct found *found,
	struct xr_error *err)
{
	enum xr_status status = source(add_device, found, err);

	if (status == XR_OK)
		status = apply_mask(plugin->platform, found, err);
	if (status != XR_OK) {
		free(found->devices);
		*found = (struct found){ 0 };
	}
	return status;
}

static void
settle(struct platform_choice *out, const struct xr_plugin *plugin,
	const struct found *found)
{
	*out = (struct platform_choice){
		.plugin = plugin,
		.devices = found->devices,
		.count = found->count,
	};
	if (XR_HAS(plugin->platform, most))
		out->most = plugin->platform->most;
}

/* "auto|cpu|cuda|tpu" */
static const char *
names(char *out, size_t cap)
{
	int count = 0;
	size_t len = 0;

	while (builtin[count] != NULL)
		count++;
	len = (size_t)snprintf(out, cap, "auto");
	while (count-- > 0 && len < cap)
		len += (size_t)snprintf(out + len, cap - len, "|%s",
			builtin[count]->name);
	return out;
}

/* Devices there may be, but none for us. */
static enum xr_status
refuse_empty(const struct xr_plugin *plugin, struct xr_error *err)
{
	const char *mask = NULL;

	if (XR_HAS(plugin->platform, mask) &&
		environ_get(host_vars, plugin->platform->mask) != NULL)
		mask = plugin->platform->mask;
	return fail(err, XR_E_NODEV, "--platform %s: no device here%s%s",
		plugin->name,
		mask == NULL ? "" : ", or none that is visible in ",
		mask == NULL ? "" : mask);
}

static enum xr_status
choose_named(const char *name, struct platform_choice *out,
	struct xr_error *err)
{
	struct span span = { .at = name, .len = strlen(name) };
	const struct xr_plugin *plugin = find_plugin(span);
	struct found found = { 0 };
	enum xr_status status = XR_OK;
	char all[120];

	if (plugin == NULL)
		return fail(err, XR_E_NOTFOUND,
			"--platform: '%.*s' is not one of %s", QUOTED(span),
			names(all, sizeof(all)));
	status = plugin->probe(&host, err);
	if (status == XR_OK)
		status = ask(plugin, plugin->platform->find, &found, err);
	if (status != XR_OK)
		return status;
	if (found.count == 0 && plugin->preference > 0) {
		free(found.devices);
		return refuse_empty(plugin, err);
	}
	settle(out, plugin, &found);
	return XR_OK;
}

/* A plug-in that cannot work is passed over; a mask that is wrong is not. */
static enum xr_status
try_plugin(const struct xr_plugin *plugin, struct found *found,
	struct xr_error *err)
{
	*found = (struct found){ 0 };
	if (plugin->probe(&host, NULL) != XR_OK)
		return XR_OK;
	if (plugin->platform->find(add_device, found, NULL) != XR_OK) {
		free(found->devices);
		*found = (struct found){ 0 };
		return XR_OK;
	}
	return apply_mask(plugin->platform, found, err);
}

static enum xr_status
choose_best(struct platform_choice *out, struct xr_error *err)
{
	const struct xr_plugin *best = &xr_plugin_cpu;
	struct found found = { 0 }, other = { 0 };

	for (int i = 0; builtin[i] != NULL; i++) {
		const struct xr_plugin *plugin = builtin[i];
		enum xr_status status = XR_OK;

		if (plugin->preference <= best->preference)
			continue;
		status = try_plugin(plugin, &other, err);
		if (status != XR_OK) {
			free(other.devices);
			free(found.devices);
			return status;
		}
		if (other.count == 0) {
			free(other.devices);
			continue;
		}
		free(found.devices);
		found = other;
		best = plugin;
	}
	settle(out, best, &found);
	return XR_OK;
}

enum xr_status
platform_choose(const char *name, char *const *vars,
	struct platform_choice *out, struct xr_error *err)
{
	host_vars = vars;
	if (strcmp(name, "auto") == 0)
		return choose_best(out, err);
	return choose_named(name, out, err);
}

void
platform_fini(struct platform_choice *choice)
{
	free(choice->devices);
	*choice = (struct platform_choice){ 0 };
	host_vars = NULL;
}

enum xr_status
platform_list(struct platform_choice *choice, struct xr_error *err)
{
	const struct xr_plugin *plugin = choice->plugin;
	struct found found = { 0 };
	enum xr_status status = XR_OK;

	if (!XR_HAS(plugin->platform, list))
		return XR_OK;
	status = ask(plugin, plugin->platform->list, &found, err);
	if (status != XR_OK)
		return status;
	free(choice->devices);
	choice->devices = found.devices;
	choice->count = found.count;
	return XR_OK;
}

/* Collects what one call of give() sets. */
struct gift {
	struct env_var *vars;
	uint32_t count;
};

static void
set_var(void *arg, const char *name, const char *value)
{
	struct gift *gift = arg;

	gift->vars =
		xrealloc(gift->vars, (gift->count + 1) * sizeof(*gift->vars));
	gift->vars[gift->count++] = (struct env_var){
		.name = xstrdup(name),
		.value = xstrdup(value),
	};
}

static enum xr_status
give_deal(const struct xr_platform_ops *ops, const struct plan_deal *deal,
	struct env_given *given, struct xr_error *err)
{
	const struct xr_device **devices =
		xcalloc(deal->count, sizeof(struct xr_device *));
	struct gift gift = { 0 };
	enum xr_status status = XR_OK;

	for (uint32_t i = 0; i < deal->count; i++)
		devices[i] = &deal->devices[i];
	status = ops->give(devices, deal->count, set_var, &gift, err);
	given->vars = gift.vars;
	given->count = gift.count;
	free(devices);
	return status;
}

enum xr_status
platform_give(const struct platform_choice *choice, const struct plan *plan,
	struct env_given **given, struct xr_error *err)
{
	const struct xr_platform_ops *ops = choice->plugin->platform;
	enum xr_status status = XR_OK;
	struct env_given *out = NULL;

	*given = NULL;
	if (!XR_HAS(ops, give))
		return XR_OK;
	out = xcalloc(plan->deal_count, sizeof(*out));
	for (uint32_t i = 0; i < plan->deal_count && status == XR_OK; i++)
		status = give_deal(ops, &plan->deals[i], &out[i], err);
	if (status != XR_OK) {
		platform_given_free(out, plan->deal_count);
		return status;
	}
	*given = out;
	return XR_OK;
}

void
platform_given_free(struct env_given *given, uint32_t deals)
{
	for (uint32_t d = 0; given != NULL && d < deals; d++) {
		for (uint32_t i = 0; i < given[d].count; i++) {
			free((char *)given[d].vars[i].name);
			free((char *)given[d].vars[i].value);
		}
		free((struct env_var *)given[d].vars);
	}
	free(given);
}

bool
platform_is_setting(struct span name)
{
	char variable[80];

	for (int i = 0; builtin[i] != NULL; i++) {
		const struct xr_setting *s = builtin[i]->settings;

		for (; s != NULL && s->name != NULL; s++) {
			setting_name(builtin[i]->name, s->name, variable,
				sizeof(variable));
			if (span_is(name, variable))
				return true;
		}
	}
	return false;
}

const struct xr_plugin *
platform_next(const struct xr_plugin *last)
{
	int i = 0;

	if (last == NULL)
		return builtin[0];
	while (builtin[i] != last)
		i++;
	return builtin[i + 1];
}

/* Do they count up by one, by numbers that a person knows? */
static bool
in_a_row(const struct xr_device *devices, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (devices[i].index == UINT32_MAX ||
			devices[i].index != devices[0].index + i)
			return false;
	return count > 1;
}

void
platform_put(struct buf *out, const struct xr_device *devices, uint32_t count)
{
	if (count == 0)
		return;
	buf_fmt(out, "%s:", devices[0].platform);
	if (in_a_row(devices, count)) {
		buf_fmt(out, "%u-%u", devices[0].index,
			devices[count - 1].index);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		buf_fmt(out, "%s%s", i > 0 ? "," : "", devices[i].id);
}
