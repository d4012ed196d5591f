/* SPDX-License-Identifier: Apache-2.0 */
/* test_options_table.c - which texts the rows of xrun's own options take
 * (launcher/job/options_table.c), and what other launchers call them (foreign.h). */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/opt.h"
#include "launcher/job/foreign.h"
#include "launcher/job/options.h"

static const struct opt *
row_of(const char *name)
{
	for (const struct opt *o = run_options; o->name != NULL; o++)
		if (strcmp(o->name, name) == 0)
			return o;
	cr_assert_fail("no row is called %s", name);
	return NULL;
}

Test(options_table, items_of_lists_have_a_form)
{
	static const struct {
		const char *name, *value;
		bool valid;
	} rows[] = {
		{ "env", "A=b", true },
		{ "env", "A=", true },
		{ "env", "A", false },
		{ "env", "=b", false },
		{ "env", "", false },
		{ "env-pass", "A_*", true },
		{ "env-pass", "a", true },
		{ "env-pass", "", false },
		{ "env-pass", "A=b", false },
		{ "env-pass", "=", false },
		{ "on-event", "all:http://h/", true },
		{ "on-event", "a:", true },
		{ "on-event", ":http://h/", false },
		{ "on-event", "all", false },
		{ "on-event", "", false },
		{ "exec-on", "job.end:true", true },
		{ "exec-on", ":true", false },
		{ "exec-on", "true", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct opt *o = row_of(rows[i].name);

		cr_assert_not_null(o->valid);
		cr_expect_eq(o->valid(rows[i].value), rows[i].valid, "--%s %s",
			rows[i].name, rows[i].value);
	}
}

/* --- other launchers ------------------------------------------------------- */

Test(options_table, each_foreign_option_is_found_as_it_is_written)
{
	char word[100];

	for (const struct foreign *f = foreign_options; f->name != NULL; f++) {
		static const char *const before[] = { "--", "-", "" };
		static const char *const behind[] = { "", "=3", "=" };

		for (int i = 0; i < 9; i++) {
			snprintf(word, sizeof(word), "%s%s%s", before[i / 3],
				f->name, behind[i % 3]);
			cr_assert_not_null(foreign_find(word), "%s", word);
			cr_expect_str_eq(foreign_find(word)->name, f->name);
		}
		snprintf(word, sizeof(word), "--%s", f->name);
		for (char *p = word + 2; *p != '\0'; p++)
			*p = *p == '-' ? '_' : *p;
		cr_assert_not_null(foreign_find(word), "%s", word);
		cr_expect_str_eq(foreign_find(word)->name, f->name);
		snprintf(word, sizeof(word), "--%s/", f->name);
		cr_expect_null(foreign_find(word));
		snprintf(word, sizeof(word), "--/%s", f->name);
		cr_expect_null(foreign_find(word));
	}
	cr_expect_null(foreign_find("--nproc-per"));
	cr_expect_null(foreign_find("--nproc_per_nod="));
	cr_expect_null(foreign_find("--nproc_per-node-"));
	cr_expect_null(foreign_find("--n_odes"));
	cr_expect_null(foreign_find("--_nodes"));
	cr_expect_null(foreign_find("--nnode_"));
	cr_expect_null(foreign_find("--"));
	cr_expect_null(foreign_find(""));
	cr_expect_null(foreign_find("=3"));
}

Test(options_table, each_foreign_verb_has_one_of_ours)
{
	for (const struct foreign_verb *v = foreign_verbs; v->name != NULL;
		v++) {
		cr_assert_not_null(foreign_find_verb(v->name), "%s", v->name);
		cr_expect_str_eq(foreign_find_verb(v->name), v->instead);
	}
	cr_expect_str_eq(foreign_find_verb("submit"), "xrun -d -n N PROGRAM");
	cr_expect_str_eq(foreign_find_verb("kill"), "xrun stop JOB");
	cr_expect_null(foreign_find_verb("kil"));
	cr_expect_null(foreign_find_verb("kills"));
	cr_expect_null(foreign_find_verb(""));
}
