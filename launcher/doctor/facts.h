/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts.h - what xrun doctor knows of this machine, this user and this shell.
 *
 * Everything is read first, then judged (checks.h), so that the judgement is
 * pure and tests need no machine for each of its lines. Reading changes
 * nothing: what a kernel can is found out with calls that have no effect.
 *
 * For a short-lived verb: memory that is missing ends xrun.
 */
#ifndef LAUNCHER_DOCTOR_FACTS_H
#define LAUNCHER_DOCTOR_FACTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/resource.h>

#include "launcher/ctl/root.h"
#include "launcher/keeper/remains.h"
#include "proc/leaf.h"
#include "proc/limit.h"

#define FACTS_TEXT 200

/* What of the kernel xrun uses, and older ones or sandboxes have not. */
struct kernel_facts {
	char release[66];
	bool pidfd;        /* pidfd_open: Linux 5.3 */
	bool pidfd_signal; /* pidfd_send_signal: 5.1 */
	bool clone;        /* as spawn.h does it */
	bool close_range;  /* with CLOSE_RANGE_UNSHARE: 5.9 */
	bool memfd;        /* with seals */
	bool inotify;      /* and there is one left for this user */
	int yama;          /* kernel.yama.ptrace_scope; -1: there is none */
	bool traces;       /* CAP_SYS_PTRACE */
	char core_pattern[128];
	char clock[32]; /* clocksource; "": not known */
};

/* A folder that is or will be. */
struct folder_facts {
	char path[PATH_MAX]; /* as shown, with "~"; "": there is none */
	char kind[16];       /* of its file system: "ext4"; "": not known */
	bool exists;
	bool trusted;    /* nobody else can change what we do there */
	bool writable;   /* it, or where it will be made */
	uint64_t room;   /* bytes; UINT64_MAX: not known */
	uint64_t inodes; /* the same of files */
};

struct facts {
	struct kernel_facts kernel;
	struct limits limits;
	struct rlimit core;
	uint32_t processors;

	struct folder_facts state;
	bool runtime_given; /* XDG_RUNTIME_DIR is set */
	bool runtime;       /* the one below may be used */
	char runtime_at[CTL_WHERE_MAX];
	int runtime_sys; /* errno, if not */
	struct xr_error
		runtime_trouble; /* why a preceding folder is not used */
	enum ctl_root_kind runtime_kind;
	bool terminals; /* /dev/ptmx can be opened: --pty */

	bool cgroup; /* in one of version 2 */
	enum leaf_can leaf;

	uint32_t ports; /* that can be held for MASTER_PORT */

	char locale[64]; /* "": none is set */
	bool utf8;

	char self[PATH_MAX];  /* this program */
	char first[PATH_MAX]; /* what `xrun` means in this shell; "": nothing */
	bool first_is_self;
	char other[PATH_MAX]; /* another one, later in PATH; "": none */
	int64_t built;        /* when this program was written, wall s */
	int64_t now;          /* wall s */
	bool is_static;
	bool twin;            /* xrun-dynamic is there */
	bool notify;          /* xrun-notify is there */
	char agent[PATH_MAX]; /* "": nowhere */
	const char
		*agent_wrong; /* "built for another machine"; NULL: it fits */
	bool eu_stack, gdb, py_spy;
	bool nvml; /* the driver's library is there */

	char devices[FACTS_TEXT];    /* "cuda:0-3"; "": none */
	char no_devices[FACTS_TEXT]; /* why a job would be refused; "" */

	char files[FACTS_TEXT];     /* of settings, that were read; "": none */
	char settings[FACTS_TEXT];  /* the first thing wrong with them; "" */
	uint32_t settings_wrong;    /* how many */
	char warning[FACTS_TEXT];   /* the first; "": none */
	char inherited[FACTS_TEXT]; /* variables of other launchers */

	struct remains remains;
};

/* facts_read() - all of it; a few milliseconds. @vars: environ. */
void facts_read(struct facts *out, char *const *vars);
void facts_fini(struct facts *f);

/* The parts of it. */
void facts_kernel(struct facts *f);
void facts_folders(struct facts *f);
void facts_programs(struct facts *f);

#endif /* LAUNCHER_DOCTOR_FACTS_H */
