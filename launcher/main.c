/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - options, then a verb, an answer, or a job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "launcher/cmd/help.h"
#include "launcher/cmd/run.h"
#include "launcher/cmd/verb.h"
#include "launcher/cmd/version.h"
#include "launcher/host/platform.h"
#include "launcher/host/twin.h"
#include "launcher/job/options.h"
#include "launcher/job/options_pair.h"
#include "launcher/job/outcome.h"
#include "launcher/job/words.h"
#include "launcher/state/jobs.h"

extern char **environ;

static int
say_alone(void)
{
	struct platform_choice platform = { 0 };
	struct buf out = { 0 }, devices = { 0 }, running = { 0 };
	struct help_here here;

	if (platform_choose("auto", environ, &platform, NULL) == XR_OK)
		platform_put(&devices, platform.devices, platform.count);
	here = (struct help_here){
		.accelerators = platform.count,
		.devices = buf_text(&devices),
		.jobs = jobs_running(&running),
	};
	here.running = buf_text(&running);
	help_alone(&out, &here);
	if (out.len > 0)
		utf8_tame(out.data, utf8_narrow(STDERR_FILENO));
	fd_write_all(STDERR_FILENO, buf_text(&out), out.len);
	buf_fini(&out);
	buf_fini(&devices);
	buf_fini(&running);
	platform_fini(&platform);
	return EXIT_XRUN;
}

/* Of files, everything that is wrong in them. */
static void
say_errors(const struct options_found *found, const struct xr_error *err)
{
	if (found->config.errors.len > 0)
		words_lines(&found->config.errors);
	else
		words_error(err);
}

static int
refuse(const struct run_options *opt, const struct xr_error *err)
{
	words_error(err);
	cmd_refused(opt, err->text);
	return EXIT_XRUN;
}

/* What the options ask for. */
static int
do_as_told(const struct options_in *in, struct run_options *opt,
	struct options_found *found)
{
	bool asked = opt->help || opt->version || found->first >= in->argc;
	struct xr_error err = { 0 };
	enum xr_status status = asked ? XR_OK : options_pairs(opt, found, &err);

	words_lines(&found->warnings);
	if (opt->help) {
		help_short(stdout);
		return fflush(stdout) == 0 ? 0 : EXIT_XRUN;
	}
	if (opt->version)
		return cmd_version(1, in->argv);
	if (found->first >= in->argc)
		return say_alone();
	if (status == XR_OK && options_need_driver(opt))
		status = twin_take_over(in->argv, "--devices", &err);
	if (status != XR_OK)
		return refuse(opt, &err);
	return cmd_run(opt, found);
}

static bool
is_verb(const char *word)
{
	return verb_find(word) != NULL;
}

int
main(int argc, char **argv)
{
	struct options_in in = { .argc = argc,
		.argv = argv,
		.vars = environ,
		.is_verb = is_verb };
	struct options_found found;
	struct run_options opt;
	struct xr_error err = { 0 };
	const struct verb *verb = argc > 1 ? verb_find(argv[1]) : NULL;
	int status = EXIT_XRUN;

#ifdef XRUN_DYNAMIC
	prctl(PR_SET_NAME,
		"xrun"); /* for killall, as that whose place it took */
#endif
	if (verb != NULL)
		return verb_run(verb, argc - 1, argv + 1);
	if (options_read(&in, &opt, &found, &err) == XR_OK &&
		(found.fault == NULL ||
			fault_arm(found.fault, &err) == XR_OK)) {
		status = do_as_told(&in, &opt, &found);
	} else {
		say_errors(&found, &err);
		cmd_refused(&opt, err.text);
	}
	options_fini(&found);
	return status;
}
