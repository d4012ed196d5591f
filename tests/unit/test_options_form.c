/* SPDX-License-Identifier: Apache-2.0 */
/* test_options_form.c - what the values of options look like, and what is said about
 * those that do not (launcher/job/options_form.h). */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/job/options.h"
#include "launcher/job/options_form.h"
#include "launcher/log/prefix.h"
#include "launcher/state/state.h"

typedef enum xr_status form_fn(const char *value, struct xr_error *err);

static struct xr_error err;

/* @text: what is said; NULL: it is fine. */
static void
expect_form(form_fn *form, const char *value, enum xr_status status,
	const char *text)
{
	err = (struct xr_error){ 0 };
	cr_expect_eq(form(value, &err), status, "'%s': %s", value, err.text);
	cr_expect_str_eq(err.text, text == NULL ? "" : text);
	cr_expect_eq(err.status, status);
}

/* Of those that are no such value, with what is said behind it in quotes. */
static void
expect_none(form_fn *form, const char *value, const char *words)
{
	char text[300];

	snprintf(text, sizeof(text), "'%.60s' %s", value, words);
	expect_form(form, value, XR_E_INVAL, text);
}

Test(options_form, a_list_of_processors)
{
	static const char *const fine[] = { "0", "7", "0-3", "0-3,8", "3-3",
		"8,0-3" };
	static const char *const odd[] = { "", "x", "0,", ",0", "3-0", "0-",
		"-3", "0 ", "0\n", "0-3\n", "auto", "0,x", "0-3x" };

	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		expect_form(form_bind, fine[i], XR_OK, NULL);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		err = (struct xr_error){ 0 };
		cr_expect_eq(form_bind(odd[i], &err), XR_E_INVAL, "'%s'",
			odd[i]);
		cr_expect_not_null(strstr(err.text,
			"is not auto, none, core or a list of CPUs such as 0-3,8"));
	}
	expect_none(form_bind, "0-3x",
		"is not auto, none, core or a list of CPUs such as 0-3,8");
}

Test(options_form, a_name_of_a_job)
{
	char longest[STATE_ID_MAX + 2], text[300];

	expect_form(form_job, "train-7.b_c", XR_OK, NULL);
	expect_form(form_job, "7", XR_OK, NULL);
	expect_form(form_job, "_", XR_OK, NULL);
	expect_form(form_job, "latest2", XR_OK, NULL);
	expect_form(form_job, "latest", XR_E_INVAL,
		"'latest' is what xrun calls the newest job; another name");
	expect_form(form_job, ".a", XR_E_INVAL,
		"'.a' begins with '.'; a name begins with a letter, digit or underscore");
	expect_form(form_job, "-a", XR_E_INVAL,
		"'-a' begins with '-'; a name begins with a letter, digit or underscore");
	expect_none(form_job, "a/b",
		"has a character that no name has; letters, digits, dots, hyphens and underscores");
	expect_none(form_job, "a b",
		"has a character that no name has; letters, digits, dots, hyphens and underscores");
	memset(longest, 'j', sizeof(longest));
	longest[STATE_ID_MAX] = '\0';
	expect_form(form_job, longest, XR_OK, NULL);
	longest[0] = '.'; /* as long as a name may be, and none */
	snprintf(text, sizeof(text),
		"'%.60s' begins with '.'; a name begins with a letter, digit or underscore",
		longest);
	expect_form(form_job, longest, XR_E_INVAL, text);
	memset(longest, 'j', STATE_ID_MAX + 1);
	longest[STATE_ID_MAX + 1] = '\0';
	snprintf(text, sizeof(text), "'%.60s' has %d characters; %d at most",
		longest, STATE_ID_MAX + 1, STATE_ID_MAX);
	expect_form(form_job, longest, XR_E_RANGE, text);
}

Test(options_form, sizes_of_logs)
{
	expect_form(form_log_rotate, "10M", XR_OK, NULL);
	expect_form(form_log_rotate, "10M,5", XR_OK, NULL);
	expect_form(form_log_rotate, "64k,2", XR_OK, NULL);
	expect_form(form_log_rotate, "1k", XR_E_RANGE,
		"'1k': the size is too small or too large; 64k to 4194303T");
	expect_form(form_log_rotate, "10M,1", XR_E_RANGE,
		"'10M,1': the count is too small or too large; 2 to 4294967295 files, the newest included");
	expect_none(form_log_rotate, "ten",
		"is not a size, or size and count, such as 10M or 10M,5");
	expect_form(form_log_reserve, "0", XR_OK, NULL);
	expect_form(form_log_reserve, "500M", XR_OK, NULL);
	expect_none(form_log_reserve, "much",
		"is not a size such as 0, 500M or 2G");
}

Test(options_form, when_stacks_are_taken)
{
	static const char *const fine[] = { "none", "hang", "timeout", "crash",
		"hang,timeout", "crash,hang,timeout" };
	static const char *const odd[][2] = {
		{ "", "" },
		{ "nonee", "nonee" },
		{ "hang,none", "none" },
		{ "none,hang", "none" },
		{ "hang,", "" },
		{ "hang,crashes", "crashes" },
		{ "all", "all" },
	};

	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		expect_form(form_stacks_on, fine[i], XR_OK, NULL);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		char text[200];

		snprintf(text, sizeof(text),
			"'%s' is not one of hang|timeout|crash, or none alone",
			odd[i][1]);
		expect_form(form_stacks_on, odd[i][0], XR_E_INVAL, text);
	}
}

Test(options_form, a_rank_that_reads)
{
	char most[32], more[32];

	snprintf(most, sizeof(most), "%lld", (long long)OPTIONS_RANK_MAX);
	snprintf(more, sizeof(more), "%lld", (long long)OPTIONS_RANK_MAX + 1);
	expect_form(form_stdin, "0", XR_OK, NULL);
	expect_form(form_stdin, most, XR_OK, NULL);
	expect_none(form_stdin, more, "is not all, none or a rank");
	expect_none(form_stdin, "-1", "is not all, none or a rank");
	expect_none(form_stdin, "", "is not all, none or a rank");
	expect_none(form_stdin, "both", "is not all, none or a rank");
}

/* What others judge is passed on. */
Test(options_form, folders_and_prefixes_are_judged_by_who_uses_them)
{
	static const char *const folders[] = { "/tmp/x", "x", "", ".",
		"/tmp/\n" };
	static const char *const prefixes[] = { "{rank}: ", "none", "", "{x}",
		"{rank", "}" };
	struct xr_error want;
	struct prefix parts;
	enum xr_status status;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		want = (struct xr_error){ 0 };
		status = state_dir_check(folders[i], &want);
		expect_form(form_log_dir, folders[i], status, want.text);
	}
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		want = (struct xr_error){ 0 };
		status = prefix_parse(&parts, span_of(prefixes[i]), &want);
		expect_form(form_prefix, prefixes[i], status, want.text);
	}
	cr_expect_neq(form_prefix("{x}", &err), XR_OK);
}
