/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/plugin.h - the contract between xrun and its plug-ins.
 *
 * A plug-in is one constant struct xr_plugin. It includes this header and
 * libc, links to nothing of xrun, and reaches the host only through struct
 * xr_host; so the same source can be built in or loaded with dlopen(3).
 *
 * Rules. Every struct begins with `size`, filled with sizeof by whoever made
 * it; a field that does not fit into that size is absent, and so is an
 * operation that is NULL: ask with XR_HAS(). Fields are appended, never moved;
 * anything else needs a new XR_PLUGIN_ABI. All calls in both directions are
 * made on the host's main thread, before the first rank starts. Structs and
 * text passed to a call are borrowed for that call.
 */
#ifndef XRUN_PLUGIN_H
#define XRUN_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define XR_PLUGIN_ABI 1u

/* XR_HAS() - is @field there, and neither NULL nor 0? */
#define XR_HAS(s, field) \
	((s)->size >= offsetof(__typeof__(*(s)), field) + \
				sizeof((s)->field) && \
		(s)->field)

/* One accelerator of this machine, or one slice of one. */
struct xr_device {
	uint32_t size;
	uint32_t index;   /* as the vendor counts, from 0; UINT32_MAX unknown */
	uint64_t memory;  /* bytes; 0 unknown */
	char id[64];      /* what the mask calls it: "3", "GPU-1b5c", "MIG-…" */
	char uuid[64];    /* "" while no driver was asked */
	char address[24]; /* PCI address, "" unknown */
	char platform[16]; /* name of the plug-in: "cuda" */
};

/* One named setting: XRUN_<PLUGIN>_<NAME> in the environment. */
struct xr_setting {
	const char *name; /* NULL ends the list */
	const char *dflt;
	const char *help; /* one line, no full stop */
};

/* What a plug-in may ask. */
struct xr_host {
	uint32_t size;
	uint32_t abi; /* XR_PLUGIN_ABI of the host */
	/* What a setting was set to, else its default; NULL: no such setting. */
	const char *(*setting)(const struct xr_host *host, const char *plugin,
		const char *name);
	/* A variable of the environment xrun was started in, or NULL. */
	const char *(*env)(const struct xr_host *host, const char *name);
};

/* Receives one device; @device is the plug-in's and copied. */
typedef void xr_add_device_fn(void *arg, const struct xr_device *device);

/* Receives one variable; both texts are the plug-in's and copied. */
typedef void xr_set_env_fn(void *arg, const char *name, const char *value);

/* What accelerators there are, and how a process is given some. */
struct xr_platform_ops {
	uint32_t size;
	/*
	 * The variable that shows a process fewer devices, in the syntax of
	 * CUDA_VISIBLE_DEVICES: indices or UUIDs, split by commas. The host
	 * reads an inherited one. NULL: there is none.
	 */
	const char *mask;
	/*
	 * find() - every device the machine has, mask or no mask, without
	 * loading or opening a driver: device files, sysfs, variables. Fills
	 * size, index, id, platform. No device is not an error.
	 */
	enum xr_status (*find)(xr_add_device_fn *add, void *arg,
		struct xr_error *err);
	/*
	 * list() - the same devices in the same order, as the driver knows
	 * them: UUID, memory, PCI address. May load a library and take long.
	 */
	enum xr_status (*list)(xr_add_device_fn *add, void *arg,
		struct xr_error *err);
	/*
	 * give() - which variables a process gets that is to use @devices and
	 * no others. @count 0: it is to see none.
	 */
	enum xr_status (*give)(const struct xr_device *const *devices,
		uint32_t count, xr_set_env_fn *set, void *arg,
		struct xr_error *err);
	/* Devices that one process can use at most; 0: any number. */
	uint32_t most;
};

/* The numbers are part of the ABI; kinds without a struct come later. */
enum xr_plugin_kind { XR_LAUNCH = 1, XR_PLATFORM = 2, XR_RPC = 3 };

struct xr_plugin {
	uint32_t size;
	uint32_t abi;
	enum xr_plugin_kind kind;
	int preference;      /* the highest that can work here wins */
	const char *name;    /* [a-z0-9]+, unique within its kind */
	const char *summary; /* one line */
	const struct xr_setting *settings;
	/*
	 * probe() - can it work here? The first call made; keep @host. @err
	 * says why not, in one line. Opens no driver.
	 */
	enum xr_status (*probe)(const struct xr_host *host,
		struct xr_error *err);
	union {
		const void *ops;
		const struct xr_platform_ops *platform;
	};
};

/* XR_PLUGIN(cuda) = { ... }; - the one symbol a plug-in shows. */
#ifdef XR_BUILTIN
#define XR_PLUGIN(tag) \
	extern const struct xr_plugin xr_plugin_##tag; \
	const struct xr_plugin xr_plugin_##tag
#else
#define XR_PLUGIN(tag) \
	__attribute__((visibility("default"))) const struct xr_plugin xr_plugin
#endif

#ifdef __cplusplus
}
#endif

#endif /* XRUN_PLUGIN_H */
