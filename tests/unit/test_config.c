/* SPDX-License-Identifier: Apache-2.0 */
/* test_config.c - which files of settings are read, and which are refused. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "big_files.h"
#include "folder.h"
#include "launcher/job/config.h"
#include "launcher/job/options.h"

static struct config config;
static struct run_options o;
static struct options_found found;
static struct xr_error err;

static void
begin(void)
{
	folder_make();
	setenv("XDG_CONFIG_HOME", folder, 1);
	cr_assert_eq(mkdir("xrun", 0700), 0);
}

static void
end(void)
{
	config_fini(&config);
	options_fini(&found);
	folder_remove();
}

TestSuite(config, .init = begin, .fini = end);

static enum xr_status
open_all(const char *given)
{
	config_fini(&config);
	err = (struct xr_error){ 0 };
	return config_open(&config, given, &err);
}

/* Whoever has a file of the machine here has one file more. */
static unsigned
others(void)
{
	return access("/etc/xrun/config.json", F_OK) == 0;
}

Test(config, no_file_is_no_failure)
{
	cr_expect_eq(open_all(NULL), XR_OK, "%s", err.text);
	cr_expect_eq(config.n, others());
	setenv("XDG_CONFIG_HOME", "/dev/null/x", 1);
	cr_expect_eq(open_all(NULL), XR_OK, "%s", err.text);
	cr_expect_eq(config.n, others());
}

Test(config, the_users_file_is_found_where_the_xdg_says)
{
	folder_write("xrun/config.json", "{}", 0600);
	cr_expect_eq(open_all(NULL), XR_OK, "%s", err.text);
	cr_expect_eq(config.n, 1 + others());
	cr_expect_not_null(config_file_of(&config, OPT_USER));
	cr_expect_null(config_file_of(&config, OPT_FILE));
	setenv("XDG_CONFIG_HOME", ".", 1); /* not absolute: as if unset */
	setenv("HOME", folder, 1);
	cr_expect_eq(open_all(NULL), XR_OK);
	cr_expect_null(config_file_of(&config, OPT_USER));
	cr_assert_eq(mkdir(".config", 0700), 0);
	cr_assert_eq(rename("xrun", ".config/xrun"), 0);
	cr_expect_eq(open_all(NULL), XR_OK);
	cr_assert_not_null(config_file_of(&config, OPT_USER));
	cr_expect_str_eq(config_file_of(&config, OPT_USER)->name,
		"~/.config/xrun/config.json");
}

Test(config, none_reads_nothing)
{
	folder_write("xrun/config.json", "rubbish", 0666);
	cr_expect_eq(open_all("none"), XR_OK);
	cr_expect_eq(config.n, 0);
}

Test(config, what_is_asked_for_must_be_there)
{
	cr_expect_eq(open_all("no/such.json"), XR_E_SYS);
	cr_expect_str_eq(err.text,
		"--config: no/such.json: No such file or directory");
}

Test(config, only_regular_files_are_read)
{
	static const char *const rows[][2] = {
		{ "pipe", "--config: pipe: not a regular file" },
		{ ".", "--config: .: not a regular file" },
		{ "/dev/zero", "--config: /dev/zero: not a regular file" },
		{ "loop", "--config: loop: Too many levels of symbolic links" },
	};

	cr_assert_eq(mkfifo("pipe", 0600), 0);
	cr_assert_eq(symlink("loop", "loop"), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_neq(open_all(rows[i][0]), XR_OK);
		cr_expect_str_eq(err.text, rows[i][1]);
	}
}

Test(config, more_than_a_mebibyte_is_refused_unread)
{
	int fd = open("big", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	cr_assert(allow_big_files());
	cr_assert_eq(ftruncate(fd, (off_t)1 << 40), 0);
	close(fd);
	cr_expect_eq(open_all("big"), XR_E_RANGE);
	cr_expect_str_eq(err.text, "--config: big: larger than 1048576 bytes");
}

Test(config, what_others_can_write_is_refused)
{
	folder_write("xrun/config.json", "{}", 0602);
	cr_expect_eq(open_all(NULL), XR_E_INVAL);
	cr_expect(strstr(err.text, "others may write it (mode 602)\tchmod "));
	folder_write("f", "{}", 0602);
	cr_assert_eq(chmod("xrun/config.json", 0600), 0);
	cr_expect_eq(open_all("f"), geteuid() == 0 ? XR_E_INVAL : XR_OK);
	cr_assert_eq(chmod("f", 0620), 0);
	cr_expect_eq(open_all("f"), geteuid() == 0 ? XR_E_INVAL : XR_OK);
}

Test(config, what_belongs_to_others_is_refused)
{
	folder_write("xrun/config.json", "{}", 0600);
	if (chown("xrun/config.json", 12345, (gid_t)-1) == -1)
		folder_skip("only root gives files away");
	cr_expect_eq(open_all(NULL), XR_E_INVAL);
	cr_expect(strstr(err.text, "belongs to user 12345"), "%s", err.text);
	cr_expect(strstr(err.text, "\tchown root "), "%s", err.text);
	cr_assert_eq(chown("xrun/config.json", 1, (gid_t)-1), 0);
	cr_expect_eq(open_all(NULL), XR_E_INVAL);
	cr_expect(strstr(err.text, "belongs to user 1,"), "%s", err.text);
}

static enum xr_status
read_options(char **argv, char *const *vars)
{
	struct options_in in = { .argv = argv, .vars = vars };

	while (argv[in.argc] != NULL)
		in.argc++;
	options_fini(&found);
	err = (struct xr_error){ 0 };
	return options_read(&in, &o, &found, &err);
}

#define ARGV(...) ((char *[]){ "xrun", __VA_ARGS__, NULL })
#define VARS(...) ((char *[]){ __VA_ARGS__, NULL })

Test(config, command_line_before_environment_before_files)
{
	folder_write("xrun/config.json",
		"{\"ranks\": 2, \"grace\": \"2s\", \"timeout\": \"2s\", "
		"\"show\": \"2\", \"env\": [\"A=2\"]}",
		0600);
	folder_write("f",
		"{\"ranks\": 3, \"grace\": \"3s\", \"timeout\": \"3s\"}", 0600);
	cr_assert_eq(read_options(ARGV("--config", "f", "--ranks=5", "x"),
			     VARS("XRUN_RANKS=4", "XRUN_GRACE=4s")),
		XR_OK, "%s", err.text);
	cr_expect_eq(o.ranks, 5);
	cr_expect_eq(o.grace, 4000000000);
	cr_expect_eq(o.timeout, 3000000000);
	cr_expect_str_eq(o.show, "2");
	cr_expect_eq(o.env.n, 1);
	cr_expect_eq(opt_source(&found.opts, "ranks"), OPT_ARGV);
	cr_expect_eq(opt_source(&found.opts, "grace"), OPT_ENV);
	cr_expect_eq(opt_source(&found.opts, "timeout"), OPT_FILE);
	cr_expect_eq(opt_source(&found.opts, "show"), OPT_USER);
	cr_expect_eq(opt_source(&found.opts, "report"), OPT_DEFAULT);
	cr_assert_eq(read_options(ARGV("x"), VARS("XRUN_CONFIG=f")), XR_OK);
	cr_expect_eq(o.ranks, 3);
	cr_assert_eq(read_options(ARGV("--config=none", "x"), NULL), XR_OK);
	cr_expect_eq(o.ranks, 0);
}

Test(config, every_file_is_judged_and_all_errors_are_kept)
{
	folder_write("xrun/config.json", "{\"rank\": 2}", 0600);
	folder_write("f", "{\"ranks\": 0}", 0600);
	cr_expect_neq(read_options(ARGV("--config", "f", "-n", "1", "x"), NULL),
		XR_OK);
	cr_expect(strstr(err.text, "unknown key \"rank\""), "%s", err.text);
	cr_expect(strstr(buf_text(&found.config.errors),
		"unknown key \"rank\" (did you mean \"ranks\"?)\n"
		"f:1:11: ranks: '0' is too small; 1 to 1000000\n"));
}

Test(config, help_is_given_whatever_the_files_say)
{
	folder_write("xrun/config.json", "rubbish", 0600);
	cr_expect_eq(read_options(ARGV("-h"), NULL), XR_OK);
	cr_expect(o.help);
}

Test(config, warnings_about_variables_are_told_once_with_files_too)
{
	folder_write("xrun/config.json", "{\"ranks\": 2}", 0600);
	cr_expect_eq(read_options(ARGV("x"), VARS("XRUN_RANKZ=1")), XR_OK);
	cr_expect_str_eq(buf_text(&found.warnings),
		"unknown variable XRUN_RANKZ (did you mean XRUN_RANKS?)\n");
}
