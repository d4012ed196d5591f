/* SPDX-License-Identifier: Apache-2.0 */
/* facts.c - see facts.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "launcher/doctor/facts.h"
#include "launcher/host/platform.h"
#include "launcher/host/processors.h"
#include "launcher/job/options.h"
#include "place/environ.h"
#include "place/port.h"
#include "proc/cgroup.h"

#define PORT_FIRST 10240 /* below are those of services, see port_choose() */
#define MANY       UINT32_MAX

/* Variables of other launchers, engines and masks that decide something in a
 * rank, and are not xrun's. */
static const char *const inherited[] = {
	"RANK",
	"WORLD_SIZE",
	"LOCAL_RANK",
	"MASTER_ADDR",
	"MASTER_PORT",
	"SLURM_JOB_ID",
	"PMI_RANK",
	"OMPI_COMM_WORLD_RANK",
	"XRT_TPU_CONFIG",
	"CUDA_VISIBLE_DEVICES",
	"OMP_NUM_THREADS",
	"LD_PRELOAD",
};

static void
read_inherited(struct facts *f, char *const *vars)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(inherited) / sizeof(inherited[0]); i++)
		if (environ_get(vars, inherited[i]) != NULL)
			buf_fmt(&out, "%s%s", out.len > 0 ? " " : "",
				inherited[i]);
	snprintf(f->inherited, sizeof(f->inherited), "%s", buf_text(&out));
	buf_fini(&out);
}

static void
first_line(const char *text, char out[static FACTS_TEXT])
{
	snprintf(out, FACTS_TEXT, "%.*s", (int)strcspn(text, "\n\t"), text);
}

static uint32_t
count_lines(const struct buf *lines)
{
	uint32_t count = 0;

	for (size_t i = 0; i < lines->len; i++)
		count += lines->data[i] == '\n';
	return count;
}

static void
read_files(struct facts *f, const struct config *config)
{
	size_t len = 0;

	for (unsigned i = 0; i < config->n && len < sizeof(f->files); i++)
		len += (size_t)snprintf(f->files + len, sizeof(f->files) - len,
			"%s%s", i > 0 ? ", " : "", config->file[i].name);
}

/* As a job would read them: files, and variables. */
static void
read_settings(struct facts *f, char *const *vars)
{
	char *argv[] = { "xrun", NULL };
	struct options_in in = { .argc = 1, .argv = argv, .vars = vars };
	struct options_found found;
	struct run_options opt;
	struct xr_error err = { 0 };

	if (options_read(&in, &opt, &found, &err) != XR_OK) {
		f->settings_wrong = count_lines(&found.config.errors);
		first_line(err.text, f->settings);
		if (f->settings_wrong == 0)
			f->settings_wrong = 1;
	}
	first_line(buf_text(&found.warnings), f->warning);
	read_files(f, &found.config);
	options_fini(&found);
}

static void
read_devices(struct facts *f, char *const *vars)
{
	struct platform_choice choice = { 0 };
	struct xr_error err = { 0 };
	struct buf out = { 0 };

	if (platform_choose("auto", vars, &choice, &err) != XR_OK) {
		first_line(err.text, f->no_devices);
		return;
	}
	platform_put(&out, choice.devices, choice.count);
	snprintf(f->devices, sizeof(f->devices), "%s", buf_text(&out));
	buf_fini(&out);
	platform_fini(&choice);
}

static void
count_ports(struct facts *f)
{
	static struct port_limits limits;

	port_limits_read(&limits);
	for (uint32_t port = PORT_FIRST; port <= UINT16_MAX; port++)
		f->ports += (port < limits.low || port > limits.high) &&
			(limits.reserved[port / 8] >> port % 8 & 1) == 0;
}

static void
read_locale(struct facts *f)
{
	const char *name = utf8_locale();

	snprintf(f->locale, sizeof(f->locale), "%s", name == NULL ? "" : name);
	f->utf8 = utf8_spoken();
}

void
facts_read(struct facts *f, char *const *vars)
{
	char *group;

	memset(f, 0, sizeof(*f));
	limit_read(&f->limits);
	limit_count(&f->limits, MANY, UINT64_MAX / 2);
	getrlimit(RLIMIT_CORE, &f->core);
	f->processors = processors_count();
	facts_kernel(f);
	facts_folders(f);
	facts_programs(f);
	group = cgroup_path(0);
	f->cgroup = group != NULL;
	free(group);
	f->leaf = leaf_can();
	count_ports(f);
	read_locale(f);
	read_settings(f, vars);
	read_devices(f, vars);
	read_inherited(f, vars);
	remains_look(&f->remains);
}

void
facts_fini(struct facts *f)
{
	remains_fini(&f->remains);
}
